//! The state of a work folder: how far an enumeration has got.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::DiscoverError;
use crate::record::Run;

/// Name of the file in the work folder.
const NAME: &str = "state";

/// A part of the fingerprints: the `index`-th of `count` ranges, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which range.
    pub index: u32,
    /// Number of ranges.
    pub count: u32,
}

impl Shard {
    /// The whole range.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };

    /// Whether a fingerprint is in the range.
    pub fn has(self, print: u64) -> bool {
        ((u128::from(print) * u128::from(self.count)) >> 64) as u32 == self.index
    }
}

/// The identity of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// [`Spec::digest`](crate::Spec::digest).
    pub spec: u64,
    /// Operators of the largest graphs.
    pub size: usize,
    /// Seed of all random elements.
    pub seed: u64,
    /// Which fingerprints.
    pub shard: Shard,
}

impl Identity {
    /// Reads what [`line`](Identity::line) wrote.
    pub fn parse(line: &str) -> Option<Identity> {
        let words: Vec<&str> = line.split(' ').collect();
        let ["spec", spec, "size", size, "seed", seed, "shard", shard] = words[..] else { return None };
        let (index, count) = shard.split_once('/')?;
        let shard = Shard { index: index.parse().ok()?, count: count.parse().ok()? };
        let spec = u64::from_str_radix(spec, 16).ok()?;
        let identity = Identity { spec, size: size.parse().ok()?, seed: seed.parse().ok()?, shard };
        (shard.index < shard.count).then_some(identity)
    }

    /// As a line of text.
    pub fn line(&self) -> String {
        format!("spec {:016x} size {} seed {} shard {}/{}", self.spec, self.size, self.seed, self.shard.index, self.shard.count)
    }
}

/// How far an enumeration has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The enumeration it belongs to.
    pub identity: Identity,
    /// The first item not yet enumerated.
    pub next: usize,
    /// Records of the items before it.
    pub runs: Vec<Run>,
}

impl State {
    /// The initial state.
    pub fn new(identity: Identity) -> State {
        State { identity, next: 0, runs: Vec::new() }
    }

    /// The path of a work folder's state.
    pub fn path(work: &Path) -> PathBuf {
        work.join(NAME)
    }

    /// Writes the state atomically.
    pub fn save(&self, work: &Path) -> Result<(), DiscoverError> {
        let mut text = format!("{}\nnext {}\n", self.identity.line(), self.next);
        for run in &self.runs {
            let name = run.path.file_name().unwrap_or_default().to_string_lossy();
            let _ = writeln!(text, "run {name} {}", run.records);
        }
        text.push_str("end\n");
        let (path, fresh) = (State::path(work), work.join("state.new"));
        fs::write(&fresh, text).map_err(DiscoverError::io(&fresh))?;
        fs::rename(&fresh, &path).map_err(DiscoverError::io(&path))
    }

    /// Reads the state of a work folder; the initial one if there is none. Fails if it belongs to
    /// another enumeration.
    pub fn load(work: &Path, identity: Identity) -> Result<State, DiscoverError> {
        let path = State::path(work);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(State::new(identity)),
            Err(e) => return Err(DiscoverError::io(&path)(e)),
        };
        let damaged = || DiscoverError::state(&path, "it is damaged; remove the folder and begin again");
        let mut lines = text.lines();
        let first = lines.next().ok_or_else(damaged)?;
        if first != identity.line() {
            return Err(DiscoverError::state(&path, format!("it belongs to `{first}`, not to `{}`; name another folder", identity.line())));
        }
        let mut state = State::new(identity);
        let next = lines.next().and_then(|line| line.strip_prefix("next ")).and_then(|n| n.parse().ok());
        state.next = next.ok_or_else(damaged)?;
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["run", name, records] if !name.contains(['/', '\\']) => {
                    state.runs.push(Run { path: work.join(name), records: records.parse().map_err(|_| damaged())? });
                }
                ["end"] => return Ok(state),
                _ => return Err(damaged()),
            }
        }
        Err(damaged())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_back_and_belongs_to_one_enumeration() {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity { spec: 7, size: 3, seed: 1, shard: Shard { index: 1, count: 4 } };
        assert_eq!(State::load(folder.path(), identity).unwrap(), State::new(identity));
        let run = Run { path: folder.path().join("run-00001"), records: 12 };
        let state = State { next: 5, runs: vec![run], ..State::new(identity) };
        state.save(folder.path()).unwrap();
        assert_eq!(State::load(folder.path(), identity).unwrap(), state);
        let Err(error) = State::load(folder.path(), Identity { size: 4, ..identity }) else { panic!("another size") };
        assert!(error.to_string().contains("name another folder"), "{error}");
        let text = fs::read_to_string(State::path(folder.path())).unwrap();
        fs::write(State::path(folder.path()), &text[..text.len() - 2]).unwrap();
        assert!(State::load(folder.path(), identity).is_err());
    }

    #[test]
    fn shards_share_all_fingerprints() {
        let shards = [0, 1, 2].map(|index| Shard { index, count: 3 });
        for print in [0, 1, u64::MAX / 3, u64::MAX / 3 + 1, u64::MAX / 2, u64::MAX] {
            assert_eq!(shards.iter().filter(|s| s.has(print)).count(), 1, "{print}");
        }
    }
}
