//! Constants that were folded before: rewritten forms of a model share most of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use regraft_ir::Const;

/// Folded constants by the [keys](regraft_ir::key::ValueKeys) of the expressions they were folded
/// from. Those that were not asked for lately make room for others.
#[derive(Debug, Default)]
pub(crate) struct Folds(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// With when each was asked for last.
    constants: HashMap<u128, (u64, Const)>,
    now: u64,
    bytes: u64,
}

impl Folds {
    /// The constant of this key, which is made if it is not known. All of them take at most so many
    /// bytes.
    pub fn get<E>(&self, key: u128, most: u64, make: impl FnOnce() -> Result<Const, E>) -> Result<Const, E> {
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).recall(key) {
            return Ok(known);
        }
        let made = make()?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keep(key, &made, most);
        Ok(made)
    }
}

impl Kept {
    fn recall(&mut self, key: u128) -> Option<Const> {
        self.now += 1;
        let (asked, constant) = self.constants.get_mut(&key)?;
        *asked = self.now;
        Some(constant.clone())
    }

    fn keep(&mut self, key: u128, constant: &Const, most: u64) {
        let size = |constant: &Const| constant.bytes().len() as u64;
        while self.bytes + size(constant) > most {
            let Some(oldest) = self.constants.iter().min_by_key(|(_, (asked, _))| *asked).map(|(key, _)| *key) else { return };
            let freed = self.constants.remove(&oldest);
            self.bytes -= freed.map_or(0, |(_, constant)| size(&constant));
        }
        self.bytes += size(constant);
        if let Some((_, replaced)) = self.constants.insert(key, (self.now, constant.clone())) {
            self.bytes -= size(&replaced);
        }
    }
}

#[cfg(test)]
mod tests {
    use regraft_ir::DType;

    use super::*;

    #[test]
    fn the_least_recently_asked_for_makes_room() {
        let folds = Folds::default();
        let made = |value: f64| move || Const::from_f64(DType::F64, &[2], &[value, value]).ok_or("no constant");
        let known = || Err::<Const, _>("it was made before");
        for key in [1, 2, 3] {
            assert!(folds.get(key, 48, made(key as f64)).is_ok());
        }
        assert!(folds.get(1, 48, known).is_ok());
        assert!(folds.get(4, 48, made(4.0)).is_ok());
        assert!([1, 3, 4].iter().all(|key| folds.get(*key, 48, known).is_ok()));
        assert!(folds.get(2, 48, known).is_err());
        // What is larger than all may be is made every time.
        assert!(folds.get(5, 8, made(5.0)).is_ok() && folds.get(5, 8, known).is_err());
    }
}
