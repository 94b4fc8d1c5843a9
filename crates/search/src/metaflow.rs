//! Search of the parts that a graph is split into (MetaFlow, SysML 2019, section 5).

use regraft_ir::{Graph, NodeId};

use crate::best::Best;
use crate::best_first::BestFirst;
use crate::engine::{Engine, Matcher, Move, all_moves};
use crate::flow_split::FlowSplit;
use crate::strategy::{Outcome, Script, Strategy};
use regraft_ir::Budget;

/// Splits the graph where few rewrites match, searches each part by itself, best first, and then
/// what crosses the cuts.
///
/// As published, but for four points: a part is a set of nodes, not of edges, which allows the same
/// rewrites in it; of equally small cuts the one nearest to the middle is taken; graphs of more
/// than twice the nodes are not dropped, since one rewrite may make many; and the number of states
/// expanded in a part is limited, so that the search ends.
#[derive(Clone, Copy, Debug)]
pub struct MetaFlow {
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
    /// States above `alpha` times the best cost are dropped.
    pub alpha: f64,
    /// Parts of at most so many nodes are not split.
    pub part: usize,
    /// Maximum number of states expanded in a part.
    pub expansions: usize,
}

impl Default for MetaFlow {
    /// The published parameters.
    fn default() -> MetaFlow {
        MetaFlow { steps: None, alpha: 1.05, part: 30, expansions: 100 }
    }
}

impl Strategy for MetaFlow {
    fn name(&self) -> &'static str {
        "metaflow"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let start = engine.depth();
        let moves = all_moves(engine, matcher);
        let mut split = FlowSplit::of(engine.graph(), moves.iter().map(|step| &**step), self.part);
        let mut taken = Vec::new();
        let (mut visited, mut complete) = (1, true);
        // The last pass is for what crosses the cuts.
        for part in (0..split.parts).map(Some).chain([None]) {
            if budget.exhausted() {
                complete = false;
                break;
            }
            let made = engine.graph().capacity();
            let admits = |engine: &Engine<'_>, step: &Move| {
                let owner = |id: NodeId| if id.0 as usize >= made { part } else { split.owner(id) };
                home(engine.graph(), step, owner) == part
            };
            let steps = self.steps.map_or(usize::MAX, |most| most.saturating_sub(taken.len()));
            let search = BestFirst { alpha: self.alpha, expansions: self.expansions, steps, admits: &admits };
            let mut best = Best::from(Script::here(engine)).keeping(1);
            let (more, ended) = search.search(engine, matcher, budget, &[], &mut best);
            (visited, complete) = (visited + more, complete && ended);
            for step in best.into_scripts().swap_remove(0).moves {
                engine.apply(&step);
                taken.push(step);
            }
            split.assign(made..engine.graph().capacity(), part);
        }
        let found = Script { moves: taken, cost: engine.cost(), key: engine.key() };
        engine.rewind(start);
        Outcome { scripts: vec![found], visited, complete }
    }
}

/// The part that all nodes are of that a move takes away, constants apart; `None` if they are of
/// several, or one lies on a cut.
fn home(graph: &Graph, step: &Move, owner: impl Fn(NodeId) -> Option<usize>) -> Option<usize> {
    let computed = step.nodes.iter().filter(|id| !graph.node(**id).constant);
    let mut owners = computed.map(|id| owner(*id));
    let first = owners.next()??;
    owners.all(|owner| owner == Some(first)).then_some(first)
}
