//! Rules as laws: usable in both directions, wherever the sizes allow it.

use regraft_ir::{Graph, NodeId, OpKind};
use regraft_rules::rule::{Pattern, Rule, Target};
use regraft_rules::{Library, RuleError};
use rustc_hash::FxHashSet;

use crate::reverse::reverse;

/// A set of rules to derive from, each read in both directions.
///
/// Values with other readers may be rewritten too: the old operators then stay next to the new
/// ones.
#[derive(Clone, Debug, Default)]
pub struct Laws {
    forward: Library,
    backward: Library,
}

impl Laws {
    /// The laws stated by these rules.
    ///
    /// # Errors
    /// Two rules have the same name.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Result<Laws, RuleError> {
        let forward: Vec<Rule> = rules.into_iter().map(|rule| Rule { shared: true, ..rule }).collect();
        let backward = forward.iter().filter_map(reverse).collect();
        Ok(Laws { forward: Library::new(forward)?, backward: Library::new(backward)? })
    }

    /// The rules, applied from left to right.
    pub fn rules(&self) -> &[Rule] {
        self.forward.rules()
    }

    /// The rules that propose rewrites from right to left.
    pub fn reversed(&self) -> &[Rule] {
        self.backward.rules()
    }

    /// The law of this name.
    pub fn get(&self, name: &str) -> Option<&Rule> {
        self.forward.get(name)
    }

    /// The laws that `keep` accepts.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(&Rule) -> bool) -> Laws {
        let names: FxHashSet<&str> = self.rules().iter().filter(|rule| keep(rule)).map(|rule| rule.name.as_ref()).collect();
        let kept = |library: &Library| library.clone().filter(|rule| names.contains(rule.name.as_ref()));
        Laws { forward: kept(&self.forward), backward: kept(&self.backward) }
    }

    /// The laws about only the operators of these graphs and about concatenating, cutting and
    /// adding tensors; if `wide`, about products and moving elements as well.
    #[must_use]
    pub fn about(&self, graphs: &[&Graph], wide: bool) -> Laws {
        let mut kinds: FxHashSet<OpKind> = FxHashSet::from_iter([OpKind::Concat, OpKind::Split, OpKind::Slice, OpKind::Add]);
        if wide {
            kinds.extend([OpKind::Mul, OpKind::Expand, OpKind::Transpose, OpKind::Pad, OpKind::Constant, OpKind::ConstantOfShape]);
        }
        for graph in graphs {
            kinds.extend(graph.ids().map(|id| graph.node(id).op.kind()));
        }
        self.filter(|rule| {
            let mut spoken = Vec::new();
            rule.source.iter().for_each(|pattern| kinds_of_pattern(pattern, &mut spoken));
            let built = rule.target.iter().chain(rule.lets.iter().map(|(_, body)| body));
            built.for_each(|target| kinds_of_target(target, &mut spoken));
            spoken.iter().all(|kind| kinds.contains(kind))
        })
    }

    pub(crate) fn forward(&self) -> &Library {
        &self.forward
    }

    pub(crate) fn backward(&self) -> &Library {
        &self.backward
    }
}

/// Where the rules of a library may be rooted in a graph.
pub(crate) fn anchors<'a>(library: &'a Library, graph: &'a Graph) -> impl Iterator<Item = (NodeId, &'a Rule, usize)> {
    graph.ids().flat_map(move |id| {
        let rooted = library.rooted_at(graph.node(id).op.kind());
        rooted.iter().map(move |entry| (id, &library.rules()[entry.rule], entry.root))
    })
}

fn kinds_of_pattern(pattern: &Pattern, kinds: &mut Vec<OpKind>) {
    match pattern {
        Pattern::Node(node) => {
            kinds.push(node.kind);
            node.operands.iter().for_each(|operand| kinds_of_pattern(operand, kinds));
        }
        Pattern::Each(inner, _) | Pattern::Elementwise(_, _, inner) => kinds_of_pattern(inner, kinds),
        Pattern::Number(_) => kinds.push(OpKind::Constant),
        Pattern::Any(_) | Pattern::Constant(_) | Pattern::Optional(_) | Pattern::Rest(_) => {}
    }
}

fn kinds_of_target(target: &Target, kinds: &mut Vec<OpKind>) {
    match target {
        Target::Node { kind, operands, .. } => {
            kinds.push(*kind);
            operands.iter().for_each(|operand| kinds_of_target(operand, kinds));
        }
        Target::Each(_, inner) | Target::Repeat(_, _, inner) | Target::Out(_, inner) => kinds_of_target(inner, kinds),
        Target::Apply(_, inner, _) | Target::Unshifted(_, inner, _) => kinds_of_target(inner, kinds),
        Target::With(_, value, body) => [value, body].into_iter().for_each(|part| kinds_of_target(part, kinds)),
        // One branch may not need what the other does.
        Target::If(_, yes, no) => {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            kinds_of_target(yes, &mut first);
            no.iter().for_each(|no| kinds_of_target(no, &mut second));
            kinds.extend(first.into_iter().filter(|kind| second.contains(kind)));
        }
        Target::Combine(_, operands) => operands.iter().for_each(|operand| kinds_of_target(operand, kinds)),
        Target::Scalar(..) | Target::Tensor(..) | Target::Ints(_) | Target::Counted(_) => kinds.push(OpKind::Constant),
        Target::Fill(..) => kinds.push(OpKind::ConstantOfShape),
        Target::Vector(..) | Target::Shift(..) | Target::Use(_) | Target::Item(..) => {}
    }
}
