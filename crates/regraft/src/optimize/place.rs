//! How a rewrite is found again by a later search or run.

use std::sync::Arc;

use regraft_certify::Step;
use regraft_ir::{Graph, NodeId, ValueId};
use regraft_rules::Library;
use regraft_search::{Move, Moves};
use serde::{Deserialize, Serialize};

/// A rewrite, in the state that it was made in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// The identity of a match ([`Move::match_id`]).
    Match(u64),
    /// An edit that takes several rules, or one whose match is elsewhere.
    Edit {
        /// The rule to name for it.
        rule: String,
        /// What it is called.
        cause: String,
        /// The nodes that it replaces.
        replaces: Vec<u32>,
        /// Values, as nodes and results, that are replaced by other existing ones.
        redirects: Vec<[(u32, u32); 2]>,
        /// The new nodes ([`Step::fragment`]).
        fragment: String,
    },
}

impl Place {
    /// The place of a move in `graph`; `None` if its edit cannot be expressed as data.
    pub fn of(graph: &Graph, library: &Library, step: &Move) -> Option<Place> {
        if !step.is_given() {
            return Some(Place::Match(step.match_id()));
        }
        let rule = library.rules().get(step.rule)?;
        let Step { rule: cause, replaces, redirects, fragment, .. } = Step::of(graph, &step.nodes, step.patch())?;
        let number = |value: ValueId| (value.node.0, value.port);
        Some(Place::Edit {
            rule: rule.name.to_string(),
            cause,
            replaces: replaces.into_iter().map(|id| id.0).collect(),
            redirects: redirects.into_iter().map(|(old, new)| [number(old), number(new)]).collect(),
            fragment,
        })
    }

    /// The move at this place in `graph`, whose moves by rules are `moves`; `None` if there is none
    /// any more.
    pub fn find(&self, graph: &Graph, library: &Library, moves: &Moves) -> Option<Arc<Move>> {
        match self {
            Place::Match(identity) => moves.iter().find(|step| step.match_id() == *identity).cloned(),
            Place::Edit { rule, cause, replaces, redirects, fragment } => {
                let rule = library.rules().iter().position(|known| *known.name == **rule)?;
                let value = |(node, port): (u32, u32)| NodeId(node).port(port);
                let step = Step {
                    rule: cause.clone(),
                    replaces: replaces.iter().map(|id| NodeId(*id)).collect(),
                    redirects: redirects.iter().map(|[old, new]| (value(*old), value(*new))).collect(),
                    fragment: fragment.clone(),
                    ..Step::default()
                };
                let patch = step.patch(graph).ok().filter(|patch| !regraft_rules::closes_cycle(graph, patch))?;
                Some(Arc::new(Move::given(graph, rule, &step.replaces, &patch)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_cost::Roofline;
    use regraft_ir::text::{parse, print};
    use regraft_ir::{NewNode, Op, Patch, PatchValue};
    use regraft_search::Engine;

    #[test]
    fn an_edit_is_found_again_by_its_text() {
        let graph = parse("graph (x: f32[N,4]) { y = Relu(x) z = Relu(y) output z }").expect("a graph");
        let library = Library::shipped().expect("the library");
        let prices = Roofline::new(regraft_ir::Bindings::default());
        let mut engine = Engine::new(graph.clone(), &prices);
        let old = graph.outputs()[0].value;
        let (x, types) = (graph.inputs()[0].out(), graph.node(old.node).types.clone());
        let relu = graph.node(old.node).op.clone();
        assert!(!matches!(relu, Op::Opaque(_)));
        let create = vec![NewNode::new(relu, [PatchValue::Old(x)].into_iter().collect(), types)];
        let replace = [(old, PatchValue::New { index: 0, port: 0 })].into_iter().collect();
        let patch = Patch { cause: "several".into(), create, replace };
        let step = Move::given(&graph, 0, &[old.node], &patch);
        let place = Place::of(&graph, &library, &step).expect("a place");
        let text = serde_json::to_string(&place).expect("text");
        let read: Place = serde_json::from_str(&text).expect("a place");
        assert_eq!(read, place);
        let again = read.find(&graph, &library, &Moves::default()).expect("the edit");
        engine.apply(&again);
        assert_eq!(
            engine.graph().ids().filter(|id| matches!(engine.graph().node(*id).op.kind().name(), "Relu")).count(),
            1,
            "{}",
            print(engine.graph())
        );
        assert_eq!(again.match_id(), step.match_id());
        // Nothing is found where its nodes are gone.
        assert_eq!(read.find(engine.graph(), &library, &Moves::default()).map(|step| step.match_id()), None);
        assert_eq!(serde_json::from_str::<Place>("17").ok(), Some(Place::Match(17)));
    }
}
