//! `Matcher`: finds the moves of a library at given nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use regraft_ir::{Graph, NodeId};
use regraft_rules::{Library, Refusal, Writable, accept, instantiate, sources_at};
use rustc_hash::FxHashSet;

use super::rewrite::{Move, place};

/// Which rules to match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All of them.
    All,
    /// Those with several roots.
    Merges,
}

/// Matches the rules of a library, and records why matches were not rewritten.
pub struct Matcher<'a> {
    library: &'a Library,
    writable: &'a dyn Writable,
    radius: usize,
    /// Matches that were not rewritten: `(rule, why)`, and where.
    pub refusals: BTreeMap<(String, String), BTreeSet<String>>,
}

impl<'a> Matcher<'a> {
    /// A matcher for these rules, writing only what `writable` accepts.
    pub fn new(library: &'a Library, writable: &'a dyn Writable) -> Matcher<'a> {
        Matcher { library, writable, radius: library.radius(), refusals: Default::default() }
    }

    /// The rules.
    pub fn library(&self) -> &'a Library {
        self.library
    }

    /// How many nodes downstream of a change the root of a match that it touches can be.
    pub(super) fn radius(&self) -> usize {
        self.radius
    }

    /// Moves rooted at one of `anchors`, each match once.
    ///
    /// Patterns no deeper than an anchor's distance are skipped there.
    pub(super) fn at(&mut self, graph: &Graph, anchors: &[(NodeId, usize)], which: Which, seen: &mut FxHashSet<u64>) -> Vec<Arc<Move>> {
        let mut moves = Vec::new();
        for (anchor, distance) in anchors {
            let node = graph.node(*anchor);
            if node.constant {
                continue;
            }
            for roots in self.library.rooted_at(node.op.kind()).chunk_by(|a, b| a.rule == b.rule) {
                let (at, rule) = (roots[0].rule, &self.library.rules()[roots[0].rule]);
                if roots.iter().all(|r| r.depth <= *distance) || (which == Which::Merges && rule.source.len() == 1) {
                    continue;
                }
                let mut sources: Vec<_> = roots.iter().flat_map(|rooted| sources_at(graph, rule, rooted.root, *anchor)).collect();
                // Of the operand orders of a symmetric merge only one counts: the same one,
                // whichever of its roots is the anchor.
                if roots.len() > 1 {
                    sources.sort_by(|a, b| a.roots.cmp(&b.roots));
                }
                for mut found in sources {
                    let place = place(rule, &found);
                    if seen.contains(&place) || !accept(graph, rule, &mut found) {
                        continue;
                    }
                    match instantiate(graph, rule, &found, self.writable) {
                        Ok(patch) => {
                            seen.insert(place);
                            moves.push(Arc::new(Move::new(graph, at, found, patch, place)));
                        }
                        Err(Refusal::Guard | Refusal::Nothing) => {}
                        Err(why) => self.refuse(graph, *anchor, &rule.name, why.to_string()),
                    }
                }
            }
        }
        moves
    }

    /// Records why a match was not rewritten, once per place.
    fn refuse(&mut self, graph: &Graph, anchor: NodeId, rule: &str, why: String) {
        let node = graph.node(anchor);
        let name = node.names.iter().flatten().next();
        let place = name.map_or_else(|| format!("{}#{}", node.op.kind().name(), anchor.0), |n| n.to_string());
        self.refusals.entry((rule.to_string(), why)).or_default().insert(place);
    }
}
