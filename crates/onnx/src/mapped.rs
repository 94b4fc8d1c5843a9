//! Memory-mapped files, and how to evict their pages.
//!
//! Pages of a mapped file count as this process's memory once they are read. A pass over all
//! weights would thus take as much memory as the weights, although every page can be read again
//! from the file at any time: whoever makes such a pass releases what it has read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use memmap2::Mmap;
use regraft_ir::Const;

/// Smaller slices are not worth a call.
const SMALL: usize = 64 << 10;

/// Every live mapping, by its first address.
static MAPPINGS: Mutex<BTreeMap<usize, Weak<Mmap>>> = Mutex::new(BTreeMap::new());

struct Owner(Arc<Mmap>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The whole file, memory-mapped; an empty buffer for an empty file.
pub(crate) fn map(path: &Path) -> io::Result<Bytes> {
    map_file(&File::open(path)?)
}

/// The whole of an open file, memory-mapped.
pub(crate) fn map_file(file: &File) -> io::Result<Bytes> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("this is a folder"));
    }
    if metadata.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is read-only and private to this process. Short of copying, no reader can
    // defend against another process truncating the file while it is mapped.
    let mapping = Arc::new(unsafe { Mmap::map(file)? });
    let mut mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    mappings.retain(|_, mapping| mapping.strong_count() > 0);
    mappings.insert(mapping.as_ptr() as usize, Arc::downgrade(&mapping));
    Ok(Bytes::from_owner(Owner(mapping)))
}

/// Evicts the pages of these bytes if they lie in a mapped file; otherwise does nothing. They stay
/// readable.
pub(crate) fn release(bytes: &[u8]) {
    if bytes.len() < SMALL {
        return;
    }
    let start = bytes.as_ptr() as usize;
    let mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((first, mapping)) = mappings.range(..=start).next_back() else { return };
    let Some(mapping) = mapping.upgrade().filter(|m| start + bytes.len() <= first + m.len()) else { return };
    drop_pages(&mapping, start - first, bytes.len());
}

/// Evicts the pages of all mapped files: after a step that read many weights. They stay readable.
pub fn release_weights() {
    let mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    for mapping in mappings.values().filter_map(Weak::upgrade) {
        drop_pages(&mapping, 0, mapping.len());
    }
}

/// Moves the constant's bytes into an unnamed file in `folder`; a small one is left in memory.
pub(crate) fn park(value: Const, folder: &Path) -> io::Result<Const> {
    if value.bytes().len() < SMALL {
        return Ok(value);
    }
    let mut file = tempfile::tempfile_in(folder)?;
    io::Write::write_all(&mut file, value.bytes())?;
    let bytes = map_file(&file)?;
    Ok(Const::new(value.dtype(), value.shape(), bytes).map_or(value, |parked| parked.released_by(release)))
}

#[cfg(unix)]
fn drop_pages(mapping: &Mmap, offset: usize, length: usize) {
    // SAFETY: nothing is ever written to these mappings, so an evicted page is read from the file
    // again, with the same content. Failure on some system only costs memory.
    let _ = unsafe { mapping.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, offset, length) };
}

#[cfg(not(unix))]
fn drop_pages(_: &Mmap, _: usize, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_bytes_stay_readable() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        let content: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        io::Write::write_all(&mut file, &content).expect("writable");
        let bytes = map_file(&file).expect("it can be mapped");
        release(&bytes);
        release(&bytes[100_001..400_000]);
        assert!(bytes == content);
        release_weights();
        assert!(bytes == content);
    }

    #[test]
    fn parked_constants_are_the_same() {
        let value = Const::from_f64(regraft_ir::DType::F32, &[200, 200], &(0..40_000).map(f64::from).collect::<Vec<_>>()).expect("it fits");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let parked = park(value.clone(), folder.path()).expect("the folder can be written");
        assert_ne!(parked.bytes().as_ptr(), value.bytes().as_ptr());
        assert_eq!((parked.fingerprint(), parked.bytes()), (value.fingerprint(), value.bytes()));
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
        assert!(park(value, &folder.path().join("none")).is_err());
    }

    #[test]
    fn bytes_that_are_not_mapped_are_left_alone() {
        let content: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        let copy = content.clone();
        release(&content);
        release_weights();
        assert!(content == copy);
    }
}
