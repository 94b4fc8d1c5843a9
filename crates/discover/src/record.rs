//! Graphs by the fingerprint of their outputs, in memory and in sorted files.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::DiscoverError;
use crate::set::{MOST_OPERATORS, TermId, TermSet};

/// Bytes of a read or write to a run.
const BLOCK: usize = 1 << 20;
/// Marks an unused slot of a record.
const NONE: TermId = TermId::MAX;

/// A graph and the fingerprint of its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// The fingerprint of the multiset of outputs, under the first assignment.
    pub print: u64,
    /// The graph.
    pub graph: TermSet,
}

/// A file of sorted records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where it is.
    pub path: PathBuf,
    /// How many records it has.
    pub records: u64,
}

impl Run {
    /// Bytes of a record for graphs of up to `size` operators.
    pub fn record_bytes(size: usize) -> u64 {
        8 + 4 * size.max(2) as u64
    }

    /// Sorts `records`, writes them and clears the list. Graphs have up to `size` operators.
    pub fn write(path: PathBuf, records: &mut Vec<Record>, size: usize) -> Result<Run, DiscoverError> {
        records.sort_unstable();
        let file = File::create(&path).map_err(DiscoverError::io(&path))?;
        let mut out = BufWriter::with_capacity(BLOCK, file);
        let mut line = [0u8; 8 + 4 * MOST_OPERATORS];
        let bytes = Run::record_bytes(size) as usize;
        for record in records.iter() {
            line[..8].copy_from_slice(&record.print.to_le_bytes());
            let ids = record.graph.as_slice().iter().copied().chain(std::iter::repeat(NONE));
            for (place, id) in line[8..].chunks_exact_mut(4).zip(ids) {
                place.copy_from_slice(&id.to_le_bytes());
            }
            out.write_all(&line[..bytes]).map_err(DiscoverError::io(&path))?;
        }
        out.into_inner().map_err(|e| e.into_error()).and_then(|file| file.sync_data()).map_err(DiscoverError::io(&path))?;
        let run = Run { path, records: records.len() as u64 };
        records.clear();
        Ok(run)
    }

    fn open(&self, size: usize) -> Result<Reader, DiscoverError> {
        let file = File::open(&self.path).map_err(DiscoverError::io(&self.path))?;
        let expected = self.records * Run::record_bytes(size);
        let found = file.metadata().map_err(DiscoverError::io(&self.path))?.len();
        if found != expected {
            return Err(DiscoverError::state(&self.path, format!("it has {found} bytes instead of {expected}")));
        }
        Ok(Reader {
            path: self.path.clone(),
            file: BufReader::with_capacity(BLOCK, file),
            left: self.records,
            bytes: Run::record_bytes(size) as usize,
        })
    }
}

struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    left: u64,
    bytes: usize,
}

impl Reader {
    fn next(&mut self) -> Result<Option<Record>, DiscoverError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut line = [0u8; 8 + 4 * MOST_OPERATORS];
        self.file.read_exact(&mut line[..self.bytes]).map_err(DiscoverError::io(&self.path))?;
        let mut word = [0; 8];
        word.copy_from_slice(&line[..8]);
        let mut graph = TermSet::EMPTY;
        for place in line[8..self.bytes].chunks_exact(4) {
            let mut id = [0; 4];
            id.copy_from_slice(place);
            let id = TermId::from_le_bytes(id);
            if id != NONE {
                graph = graph.with(id).ok_or_else(|| DiscoverError::state(&self.path, "a record of too many operators"))?;
            }
        }
        Ok(Some(Record { print: u64::from_le_bytes(word), graph }))
    }
}

/// Records of several runs in one order: equal fingerprints are adjacent.
pub struct Merge {
    readers: Vec<Reader>,
    memory: std::vec::IntoIter<Record>,
    heads: BinaryHeap<Reverse<(Record, usize)>>,
}

impl Merge {
    /// Merges runs of graphs of up to `size` operators, and records in memory.
    pub fn new(runs: &[Run], mut memory: Vec<Record>, size: usize) -> Result<Merge, DiscoverError> {
        memory.sort_unstable();
        let readers = runs.iter().map(|run| run.open(size)).collect::<Result<_, _>>()?;
        let mut merge = Merge { readers, memory: memory.into_iter(), heads: BinaryHeap::new() };
        for source in 0..=merge.readers.len() {
            merge.refill(source)?;
        }
        Ok(merge)
    }

    fn refill(&mut self, source: usize) -> Result<(), DiscoverError> {
        let next = match self.readers.get_mut(source) {
            Some(reader) => reader.next()?,
            None => self.memory.next(),
        };
        self.heads.extend(next.map(|record| Reverse((record, source))));
        Ok(())
    }

    /// The smallest remaining record.
    pub fn next(&mut self) -> Result<Option<Record>, DiscoverError> {
        let Some(Reverse((record, source))) = self.heads.pop() else { return Ok(None) };
        self.refill(source)?;
        Ok(Some(record))
    }
}

/// The name of a run in the work folder.
pub fn run_path(work: &Path, number: usize) -> PathBuf {
    work.join(format!("run-{number:05}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(print: u64, ids: &[TermId]) -> Record {
        Record { print, graph: TermSet::of(ids).unwrap() }
    }

    #[test]
    fn runs_and_memory_merge_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let parts = [
            vec![record(9, &[1, 2]), record(3, &[7]), record(u64::MAX, &[1, 2, 3])],
            vec![record(3, &[2, 5]), record(9, &[])],
            vec![record(4, &[8]), record(3, &[1])],
        ];
        let mut all: Vec<Record> = parts.iter().flatten().copied().collect();
        all.sort_unstable();
        let [a, b, c] = parts;
        let runs: Vec<Run> =
            [a, b].into_iter().enumerate().map(|(n, mut part)| Run::write(run_path(folder.path(), n), &mut part, 3).unwrap()).collect();
        let mut merge = Merge::new(&runs, c, 3).unwrap();
        let mut merged = Vec::new();
        while let Some(record) = merge.next().unwrap() {
            merged.push(record);
        }
        assert_eq!(merged, all);
    }

    #[test]
    fn a_run_that_was_cut_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let run = Run::write(run_path(folder.path(), 0), &mut vec![record(1, &[1]), record(2, &[2])], 3).unwrap();
        File::options().write(true).open(&run.path).unwrap().set_len(30).unwrap();
        let Err(error) = Merge::new(&[run], Vec::new(), 3) else { panic!("the run was cut") };
        assert!(error.to_string().contains("30 bytes instead of 40"), "{error}");
    }
}
