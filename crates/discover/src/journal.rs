//! The verdicts of a pruning, kept so that an interrupted one can resume.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use regraft_prove::Allowance;
use rustc_hash::FxHashMap;

use crate::candidate::Candidate;
use crate::error::DiscoverError;
use crate::spec::Spec;

/// First line of the file starts with this: its name and the version of its format.
const HEADER: &str = "regraft journal 1";
/// Digits of a pair's digest.
const DIGITS: usize = 32;

/// Verdicts on pairs, by the pairs' texts; on disk, one per line, in the order they were reached.
#[derive(Debug, Default)]
pub struct Journal {
    known: FxHashMap<u128, bool>,
    file: Option<(PathBuf, File)>,
}

impl Journal {
    /// A journal in memory only.
    pub fn none() -> Journal {
        Journal::default()
    }

    /// Opens or creates a journal. Verdicts depend on the specification and on the work budget of a
    /// proof: fails if the file was written for others, is not a journal, or cannot be read or
    /// written. A truncated last line is dropped.
    pub fn open(path: &Path, spec: &Spec, allowance: Allowance) -> Result<Journal, DiscoverError> {
        let Allowance { closed, by_cases, by_tables } = allowance;
        let head = format!("{HEADER} spec {:016x} work {closed} {by_cases} {by_tables}", spec.digest);
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(DiscoverError::io(path)(e)),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut lines = whole.lines();
        match lines.next() {
            None => {}
            Some(first) if first == head => {}
            Some(first) if first.starts_with(HEADER) => {
                return Err(DiscoverError::state(path, format!("it belongs to `{first}`, not to `{head}`; name another file")));
            }
            Some(_) => return Err(DiscoverError::state(path, "it is no journal of proofs; name another file")),
        }
        let mut known = FxHashMap::default();
        for line in lines {
            let (pair, proved) =
                verdict(line).ok_or_else(|| DiscoverError::state(path, format!("`{line}` is no verdict; remove the file")))?;
            known.insert(pair, proved);
        }
        let io = || DiscoverError::io(path);
        let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(io())?;
        if whole.len() < text.len() {
            file.set_len(whole.len() as u64).map_err(io())?;
        }
        if whole.is_empty() {
            writeln!(file, "{head}").map_err(io())?;
        }
        Ok(Journal { known, file: Some((path.to_path_buf(), file)) })
    }

    /// Number of verdicts.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether a pair is proved, if that is known.
    pub fn get(&self, spec: &Spec, pair: &Candidate) -> Option<bool> {
        self.known.get(&digest(spec, pair)).copied()
    }

    /// Records verdicts, and writes them to disk.
    pub fn learn<'c>(&mut self, spec: &Spec, verdicts: impl Iterator<Item = (&'c Candidate, bool)>) -> Result<(), DiscoverError> {
        let mut text = String::new();
        for (pair, proved) in verdicts {
            let pair = digest(spec, pair);
            self.known.insert(pair, proved);
            text.push_str(&format!("{pair:032x} {}\n", if proved { "proved" } else { "unproved" }));
        }
        match &mut self.file {
            Some((path, file)) => file.write_all(text.as_bytes()).map_err(DiscoverError::io(path)),
            None => Ok(()),
        }
    }
}

fn verdict(line: &str) -> Option<(u128, bool)> {
    let (pair, word) = line.split_once(' ')?;
    let pair = u128::from_str_radix(pair, 16).ok().filter(|_| pair.len() == DIGITS)?;
    match word {
        "proved" => Some((pair, true)),
        "unproved" => Some((pair, false)),
        _ => None,
    }
}

/// A digest of a pair's text, regardless of its number.
fn digest(spec: &Spec, pair: &Candidate) -> u128 {
    xxhash_rust::xxh3::xxh3_128(pair.text(spec, 0).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "(sizes m) (assignment (m 4)) (variable (x1 x2) m m)
        (operator relu (?a) (is (relu ?a))) (operator add (?a ?b) commutative (is (add ?a ?b)))";

    #[test]
    fn verdicts_are_read_back_and_belong_to_one_specification_and_work() {
        let spec = Spec::parse("t", SPEC).unwrap();
        let pairs = "(pair 1 (inputs (x1 m m)) (left (relu x1)) (right (relu (relu x1))))
                     (pair 2 (inputs (x1 m m) (x2 m m)) (left (add x1 x2)) (right (add x2 x1)))";
        let pairs = Candidate::parse(&spec, "t", pairs).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let work = Allowance::default();
        let mut journal = Journal::open(&path, &spec, work).unwrap();
        assert!(journal.is_empty() && journal.get(&spec, &pairs[0]).is_none());
        journal.learn(&spec, [(&pairs[0], true)].into_iter()).unwrap();
        drop(journal);
        // A truncated line.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"0123").unwrap();
        let mut journal = Journal::open(&path, &spec, work).unwrap();
        assert_eq!((journal.len(), journal.get(&spec, &pairs[0]), journal.get(&spec, &pairs[1])), (1, Some(true), None));
        journal.learn(&spec, [(&pairs[1], false)].into_iter()).unwrap();
        drop(journal);
        let journal = Journal::open(&path, &spec, work).unwrap();
        assert_eq!((journal.get(&spec, &pairs[0]), journal.get(&spec, &pairs[1])), (Some(true), Some(false)));
        let less = Allowance { closed: 1, ..work };
        assert!(Journal::open(&path, &spec, less).unwrap_err().to_string().contains("name another file"));
        let other = Spec::parse("t", &format!("{SPEC} ")).unwrap();
        assert!(Journal::open(&path, &other, work).is_err());
        for damaged in ["a journal\n", "regraft journal 1\n", &format!("{}zz proved\n", std::fs::read_to_string(&path).unwrap())] {
            std::fs::write(&path, damaged).unwrap();
            assert!(Journal::open(&path, &spec, work).is_err(), "{damaged}");
        }
    }
}
