//! `MatchCache`: what a matcher learned, for the next one.

use regraft_ir::OpKind;
use regraft_rules::{Library, Writable};
use rustc_hash::FxHashMap;

use super::automaton::Automaton;
use super::matcher::Matcher;

/// What a matcher learned of its rules: where surroundings are alike, they are not matched again.
///
/// It outlives the matcher, so that the next search of a graph with the same rules begins with it.
#[derive(Default)]
pub struct MatchCache {
    /// The rules that it is about; none if it is empty.
    library: Option<u64>,
    /// Of all rules together.
    pub(super) all: Automaton,
    /// By the kind of the anchor and the rule.
    pub(super) of_rules: FxHashMap<(OpKind, usize), Automaton>,
    /// Of rules with two roots, by the rule.
    pub(super) of_pairs: FxHashMap<usize, Automaton>,
    /// Of the search that goes on in another thread.
    pub(super) beside: Option<Box<MatchCache>>,
}

impl MatchCache {
    /// Does something with a matcher of these rules that knows this, and keeps what it learned.
    pub fn with<'a, T>(&mut self, library: &'a Library, writable: &'a dyn Writable, work: impl FnOnce(&mut Matcher<'a>) -> T) -> T {
        let mut matcher = Matcher::knowing(std::mem::take(self), library, writable);
        let done = work(&mut matcher);
        *self = matcher.into_cache();
        done
    }

    /// The same if it is about these rules; else an empty one.
    pub(super) fn about(self, library: &Library) -> MatchCache {
        if self.library.is_some_and(|known| known == library.fingerprint()) { self } else { MatchCache::default() }
    }

    /// The same, to be used again with these rules.
    pub(super) fn kept(self, library: &Library) -> MatchCache {
        MatchCache { library: Some(library.fingerprint()), ..self }
    }
}
