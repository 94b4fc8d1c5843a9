//! How constants of one model might have been computed: rules that combine constants, applied to a
//! region.
//!
//! Rules only propose. Whether a proposal is equal is put to the prover, like everything else.

use std::collections::VecDeque;

use regraft_ir::{Graph, NodeId, Op, OpKind, ValueId, canonical_key, normal};
use regraft_rules::{Anything, Library, instantiate, matches_at};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::joint::Joint;
use crate::region::{Content, Cut, Scope};

/// Maximum number of rewritten forms of one region.
const FORMS: usize = 48;
/// Maximum number of consecutive rewrites.
const STEPS: usize = 3;
/// The region that is rewritten.
const SCOPE: Scope = Scope { above: 0, content: true, cones: false, nodes: 16 };

/// Rewrites regions.
pub(crate) struct Rewriter<'r> {
    rules: &'r Library,
}

impl<'r> Rewriter<'r> {
    pub fn new(rules: &'r Library) -> Rewriter<'r> {
        Rewriter { rules }
    }

    /// Other forms of `from`, the nearest first, over values it shares with `to`.
    pub fn forms(&self, joint: &Joint, from: ValueId, to: ValueId) -> Option<Forms> {
        let cut = Cut::new(joint, from, to, SCOPE);
        let region = cut.region(joint, from, to, Content::All, &FxHashMap::default())?;
        let leaves: FxHashMap<ValueId, ValueId> = region.leaves.iter().map(|(value, copy)| (*copy, *value)).collect();
        let mut seen: FxHashSet<u128> = FxHashSet::default();
        let mut open = VecDeque::from([(region.before, 0)]);
        let mut graphs = Vec::new();
        while let Some((form, steps)) = open.pop_front() {
            for next in self.steps(&form) {
                if graphs.len() >= FORMS {
                    return Some(Forms { graphs, leaves });
                }
                if !seen.insert(canonical_key(&next)) {
                    continue;
                }
                graphs.push(next.clone());
                if steps + 1 < STEPS {
                    open.push_back((next, steps + 1));
                }
            }
        }
        Some(Forms { graphs, leaves })
    }

    /// All graphs that one rule derives from this one.
    fn steps(&self, form: &Graph) -> Vec<Graph> {
        let mut next = Vec::new();
        for id in form.ids() {
            for rooted in self.rules.rooted_at(form.node(id).op.kind()) {
                let Some(rule) = self.rules.rules().get(rooted.rule) else { continue };
                for found in matches_at(form, rule, rooted.root, id) {
                    let Ok(patch) = instantiate(form, rule, &found, &Anything) else { continue };
                    let mut graph = form.clone();
                    graph.apply(&patch);
                    normal::dce(&mut graph);
                    next.push(graph);
                }
            }
        }
        next
    }
}

/// Rewritten forms of a region.
pub(crate) struct Forms {
    /// The forms, each with one output.
    pub graphs: Vec<Graph>,
    /// The values of the joint graph behind their leaves.
    leaves: FxHashMap<ValueId, ValueId>,
}

impl Forms {
    /// The output of a form in the joint graph.
    pub fn place(&self, joint: &mut Joint, form: &Graph) -> Option<ValueId> {
        imported(joint, form, &self.leaves)
    }
}

fn imported(joint: &mut Joint, form: &Graph, leaves: &FxHashMap<ValueId, ValueId>) -> Option<ValueId> {
    let mut values: FxHashMap<ValueId, ValueId> = FxHashMap::default();
    for id in form.topological() {
        let node = form.node(id);
        if let Some(leaf) = leaves.get(&id.out()).filter(|_| is_leaf(form, id)) {
            values.insert(id.out(), *leaf);
            continue;
        }
        if node.op.kind() == OpKind::Input {
            return None;
        }
        let operands: Vec<ValueId> = node.inputs.iter().map(|v| values.get(v).copied()).collect::<Option<_>>()?;
        let placed = joint.place(node.op.clone(), operands, &node.types);
        values.extend((0..).map(|port| id.port(port)).zip(placed.values));
    }
    values.get(&form.outputs().first()?.value).copied()
}

fn is_leaf(form: &Graph, id: NodeId) -> bool {
    matches!(form.node(id).op, Op::Input(_) | Op::Constant(_))
}
