//! Cached answers to repeated questions.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::index::{Facts, Poly, Var};

/// Maximum number of cached scopes.
const SCOPES: usize = 256;

/// Ranges of variables, and sums that are at least 0.
pub(crate) type Scope = (Vec<(Var, Poly)>, Vec<Poly>);

/// Which sums were shown to be at least 0, which were not, and what holds inside scopes. A copy
/// starts empty: copies are made to learn other facts.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    sums: RefCell<FxHashMap<Poly, bool>>,
    scopes: RefCell<FxHashMap<Scope, Rc<Facts>>>,
}

impl Clone for Answers {
    fn clone(&self) -> Answers {
        Answers::default()
    }
}

impl Answers {
    pub fn get(&self, sum: &Poly) -> Option<bool> {
        self.sums.borrow().get(sum).copied()
    }

    pub fn keep(&self, sum: &Poly, answer: bool) {
        self.sums.borrow_mut().insert(sum.clone(), answer);
    }

    /// The facts that hold inside a scope, computed by `facts` if not cached.
    pub fn inside(&self, scope: Scope, facts: impl FnOnce(&Scope) -> Facts) -> Rc<Facts> {
        if let Some(facts) = self.scopes.borrow().get(&scope) {
            return facts.clone();
        }
        let facts = Rc::new(facts(&scope));
        let mut scopes = self.scopes.borrow_mut();
        if scopes.len() == SCOPES {
            scopes.clear();
        }
        scopes.insert(scope, facts.clone());
        facts
    }

    /// Forgets everything, because the facts have changed.
    pub fn clear(&mut self) {
        self.sums.get_mut().clear();
        self.scopes.get_mut().clear();
    }
}
