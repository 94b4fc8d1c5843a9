//! Fingerprints of values as a file: shards share it, since computing them is most of what a shard
//! would take.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::error::DiscoverError;
use crate::state::{Identity, Shard};
use crate::values::Values;

/// The first line of a file.
const HEADER: &str = "regraft-discover values 1";
/// Words that are read or written at a time.
const BLOCK: usize = 1 << 13;

impl Values {
    /// Writes them to a file, for enumerations of this identity, whatever their shard.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, identity: &Identity, out: &mut dyn Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        writeln!(out, "{}", header(identity, self.first.len()))?;
        let mut hash = Xxh3::new();
        for block in self.first.chunks(BLOCK).chain(self.all.chunks(BLOCK)) {
            let bytes: Vec<u8> = block.iter().flat_map(|word| word.to_le_bytes()).collect();
            hash.update(&bytes);
            out.write_all(&bytes)?;
        }
        out.write_all(&hash.digest().to_le_bytes())?;
        out.flush()
    }

    /// Reads so many from a file that [`write`](Values::write) made for enumerations of this
    /// identity.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is damaged, or belongs to another specification, size or seed.
    pub fn read(path: &Path, identity: &Identity, count: usize) -> Result<Values, DiscoverError> {
        let file = File::open(path).map_err(DiscoverError::io(path))?;
        let mut file = BufReader::new(file);
        let wanted = header(identity, count);
        let mut line = vec![0; wanted.len() + 1];
        let damaged = |_| DiscoverError::state(path, "it is damaged");
        file.read_exact(&mut line).map_err(damaged)?;
        if line != format!("{wanted}\n").as_bytes() {
            return Err(DiscoverError::state(path, "it belongs to another specification, size or seed"));
        }
        let mut hash = Xxh3::new();
        let mut words = || -> Result<Vec<u64>, DiscoverError> {
            let mut found = Vec::with_capacity(count);
            let mut bytes = vec![0; 8 * BLOCK];
            while found.len() < count {
                let block = &mut bytes[..8 * BLOCK.min(count - found.len())];
                file.read_exact(block).map_err(damaged)?;
                hash.update(block);
                found.extend(block.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?))));
            }
            Ok(found)
        };
        let (first, all) = (words()?, words()?);
        let mut sum = Vec::new();
        file.read_to_end(&mut sum).map_err(damaged)?;
        if sum != hash.digest().to_le_bytes() {
            return Err(DiscoverError::state(path, "it is damaged"));
        }
        Ok(Values { first, all })
    }
}

/// What a file is about.
fn header(identity: &Identity, count: usize) -> String {
    format!("{HEADER} {} of {count}", Identity { shard: Shard::WHOLE, ..*identity }.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("values");
        let values = Values { first: (0..20_000).collect(), all: (0..20_000).rev().collect() };
        let identity = Identity { spec: 7, size: 3, seed: 1, shard: Shard { index: 1, count: 4 } };
        values.write(&identity, &mut File::create(&path).expect("writable")).expect("written");
        let other_shard = Identity { shard: Shard { index: 0, count: 2 }, ..identity };
        let read = Values::read(&path, &other_shard, 20_000).expect("readable");
        assert_eq!((read.first, read.all), (values.first, values.all));
        for (identity, count) in [(Identity { size: 4, ..identity }, 20_000), (identity, 19_999)] {
            let error = Values::read(&path, &identity, count).expect_err("another enumeration").to_string();
            assert!(error.contains("belongs to another"), "{error}");
        }
        let mut bytes = std::fs::read(&path).expect("readable");
        bytes[1000] ^= 1;
        std::fs::write(&path, &bytes).expect("writable");
        let error = Values::read(&path, &identity, 20_000).expect_err("a bit is wrong").to_string();
        assert!(error.contains("damaged"), "{error}");
        std::fs::write(&path, &bytes[..500]).expect("writable");
        assert!(Values::read(&path, &identity, 20_000).is_err());
    }
}
