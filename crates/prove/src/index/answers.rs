//! Answers to questions that are asked again.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use crate::index::Poly;

/// Which sums were shown to be at least 0, and which were not. A copy knows nothing: it is made to learn other facts.
#[derive(Debug, Default)]
pub(crate) struct Answers(RefCell<FxHashMap<Poly, bool>>);

impl Clone for Answers {
    fn clone(&self) -> Answers {
        Answers::default()
    }
}

impl Answers {
    pub fn get(&self, sum: &Poly) -> Option<bool> {
        self.0.borrow().get(sum).copied()
    }

    pub fn keep(&self, sum: &Poly, answer: bool) {
        self.0.borrow_mut().insert(sum.clone(), answer);
    }

    /// Forgets all, because facts have changed.
    pub fn clear(&mut self) {
        self.0.get_mut().clear();
    }
}
