//! What constants of one model might have been computed from: rules that combine constants, applied to a region.
//!
//! Rules only propose. Whether what they propose is equal is asked of the prover, like everything else.

use std::collections::VecDeque;

use regraft_ir::{Graph, NodeId, Op, OpKind, ValueId, canonical_key, normal};
use regraft_rules::{Anything, Library, instantiate, matches_at};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::joint::Joint;
use crate::question::{Roundings, alike};
use crate::region::{Content, Cut, Scope};

/// Rewritten forms of one region at most.
const FORMS: usize = 64;
/// Rewrites in a row at most.
const STEPS: usize = 4;
/// What is rewritten.
const SCOPE: Scope = Scope { above: 0, content: true, cones: false, nodes: 16 };

/// Rewrites regions.
pub(crate) struct Rewriter<'r> {
    rules: &'r Library,
}

impl<'r> Rewriter<'r> {
    pub fn new(rules: &'r Library) -> Rewriter<'r> {
        Rewriter { rules }
    }

    /// Another form of `from`, in the joint graph, that is `to` but for rounded constants.
    pub fn towards(&self, joint: &mut Joint, from: ValueId, to: ValueId) -> Option<(ValueId, Roundings)> {
        let cut = Cut::new(joint, from, to, SCOPE);
        let region = cut.region(joint, from, to, Content::All, &FxHashMap::default())?;
        let wanted = joint.graph.node(to.node).op.clone();
        let leaves: FxHashMap<ValueId, ValueId> = region.leaves.iter().map(|(value, copy)| (*copy, *value)).collect();
        let mut seen: FxHashSet<u128> = FxHashSet::default();
        let mut open = VecDeque::from([(region.before, 0)]);
        while let Some((form, steps)) = open.pop_front() {
            for next in self.steps(&form) {
                if seen.len() >= FORMS || !seen.insert(canonical_key(&next)) {
                    continue;
                }
                if next.outputs().first().is_some_and(|o| next.node(o.value.node).op == wanted)
                    && let Some(value) = imported(joint, &next, &leaves)
                    && let Some(roundings) = alike(joint, value, to)
                {
                    return Some((value, roundings));
                }
                if steps + 1 < STEPS {
                    open.push_back((next, steps + 1));
                }
            }
        }
        None
    }

    /// All graphs that one rule makes of this one.
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

/// The output of a form in the joint graph.
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
