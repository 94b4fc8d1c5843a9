//! Exact enumeration: every operator that so many steps can make.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::explorer::{Explorer, Found};
use crate::key::Key;
use crate::state::State;

/// What an enumeration came to.
#[derive(Clone, Debug, Default)]
pub struct Enumerated {
    /// One operator for each key, with the number of steps that first made it.
    pub operators: FxHashMap<Key, (usize, Found)>,
    /// Partial operators that were looked at.
    pub states: usize,
    /// Complete operators whose key another one has.
    pub duplicates: usize,
    /// Pairs of states that are one operator: the first that was met, and another.
    pub twins: Vec<(State, State)>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

/// All operators of at most `depth` steps, the last one of which says which axis is which; levels
/// are worked through one after another. `go_on` is asked before each state.
pub fn enumerate(explorer: &mut Explorer<'_>, depth: usize, go_on: &mut dyn FnMut() -> bool) -> Enumerated {
    let mut result = Enumerated::default();
    let mut first: FxHashMap<Key, State> = FxHashMap::default();
    let mut level = vec![explorer.start()];
    let mut seen: FxHashSet<State> = level.iter().cloned().collect();
    for steps in 0..depth {
        let mut next = Vec::new();
        for state in level {
            if !go_on() {
                result.stopped = true;
                return result;
            }
            result.states += 1;
            for found in explorer.finals(&state).iter() {
                match result.operators.entry(found.key) {
                    std::collections::hash_map::Entry::Vacant(entry) => {
                        entry.insert((steps + 1, found.clone()));
                        first.insert(found.key, state.clone());
                    }
                    std::collections::hash_map::Entry::Occupied(_) => {
                        result.duplicates += 1;
                        result.twins.push((first[&found.key].clone(), state.clone()));
                    }
                }
            }
            for child in explorer.children(&state).iter() {
                // One step to the child, its distance, and the last step.
                if steps + 2 + usize::from(child.distance) <= depth && seen.insert(child.state.clone()) {
                    next.push(child.state.clone());
                }
            }
        }
        level = next;
    }
    result
}
