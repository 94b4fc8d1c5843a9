//! Different moves at places that are alike, so that one measured model prices them all.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::{Graph, NodeId, OpKind};
use regraft_rules::Library;
use rustc_hash::{FxHashSet, FxHasher};

use crate::engine::{Engine, Matcher, Move, Moves, all_moves, next_moves};
use crate::greedy::{Greedy, Pieces, note_piece};
use crate::strategy::{Outcome, Script, Strategy};
use regraft_ir::Budget;

/// Where a network repeats a block, rewrites each repetition by another of the moves that promise
/// to save there, in turn, and then descends. Prices that promise too much would otherwise rewrite
/// all repetitions alike, and one measured model would tell of one move only. Moves of exploratory
/// rules, whose prices tell nothing before they are measured, count among the promising ones; where
/// there is one choice only, every other place is left as it is.
///
/// Finds nothing if no block that can be rewritten is repeated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread {
    /// The descent does not rewrite inside of pieces, such as a fast convolution: what they cost as
    /// they are is to be known.
    pub keeps_pieces: bool,
}

/// A move that saves, and by how much.
type Saving = (Ns, Arc<Move>);

impl Strategy for Spread {
    fn name(&self) -> &'static str {
        "spread"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let (start, mut visited) = (engine.depth(), 1);
        let mut moves = all_moves(engine, matcher);
        let mut seen = FxHashSet::from_iter([engine.key()]);
        let mut taken: Vec<Arc<Move>> = Vec::new();
        let (mut complete, mut pieces) = (true, Pieces::default());
        for kind in alike(engine, matcher.library(), &moves, &mut visited) {
            let choices = kind.choices();
            for (turn, place) in kind.places.values().enumerate() {
                if budget.exhausted() {
                    complete = false;
                    break;
                }
                let in_turn = (0..choices.len()).map(|at| choices[(turn + at) % choices.len()]);
                // A move elsewhere may have taken nodes from this one.
                let free = |step: &&Arc<Move>| moves.contains(step);
                let chosen = in_turn
                    .map_while(|rule| rule)
                    .find_map(|rule| place.iter().map(|(_, step)| step).filter(|step| step.rule == rule).find(free));
                let Some(step) = chosen.cloned() else { continue };
                engine.apply(&step);
                if !seen.insert(engine.key()) {
                    engine.undo();
                    continue;
                }
                note_piece(&mut pieces, None, engine);
                moves = next_moves(engine, matcher, &moves);
                taken.push(step);
            }
        }
        if !taken.is_empty() {
            let descent = Greedy { keeps_pieces: self.keeps_pieces, ..Greedy::default() };
            let rest = descent.search_beside(pieces, engine, matcher, budget);
            (visited, complete) = (visited + rest.visited, complete && rest.complete);
            for step in rest.scripts.into_iter().next().map_or_else(Vec::new, |script| script.moves) {
                engine.apply(&step);
                taken.push(step);
            }
        }
        let script = Script { cost: engine.cost(), key: engine.key(), moves: taken };
        engine.rewind(start);
        Outcome { scripts: vec![script], visited, complete }
    }
}

/// Places of one kind, by the node that is replaced there, and the moves that save at each, the
/// most saving first.
struct Kind {
    places: BTreeMap<NodeId, Vec<Saving>>,
}

impl Kind {
    /// The rules that save at some place, the most saving first; `None` for no rule, if there is
    /// one only.
    fn choices(&self) -> Vec<Option<usize>> {
        let mut best: BTreeMap<usize, Ns> = BTreeMap::new();
        for (saved, step) in self.places.values().flatten() {
            let most = best.entry(step.rule).or_default();
            *most = (*most).max(*saved);
        }
        let mut rules: Vec<(Ns, usize)> = best.into_iter().map(|(rule, saved)| (saved, rule)).collect();
        rules.sort_by_key(|(saved, rule)| (std::cmp::Reverse(*saved), *rule));
        let alone = (rules.len() == 1).then_some(None);
        rules.into_iter().map(|(_, rule)| Some(rule)).chain(alone).collect()
    }

    fn saves(&self) -> Ns {
        self.places.values().filter_map(|moves| moves.first()).map(|(saved, _)| saved).sum()
    }
}

/// A hash that is equal for places that run alike: the operator, the types of its operands, and the
/// kinds of the operators around it. What weights hold does not matter.
fn place_kind(graph: &Graph, id: NodeId) -> u64 {
    let (node, mut hasher) = (graph.node(id), FxHasher::default());
    node.op.hash(&mut hasher);
    for value in &node.inputs {
        graph.ty(*value).hash(&mut hasher);
        graph.node(value.node).op.kind().hash(&mut hasher);
    }
    let mut readers: Vec<OpKind> = node.users.iter().map(|(user, _)| graph.node(*user).op.kind()).collect();
    readers.sort_unstable();
    readers.hash(&mut hasher);
    hasher.finish()
}

/// Kinds of places that occur more than once, the most saving first.
fn alike(engine: &mut Engine<'_>, library: &Library, moves: &Moves, visited: &mut u64) -> Vec<Kind> {
    let before = engine.cost();
    let mut kinds: BTreeMap<u64, Kind> = BTreeMap::new();
    for step in moves {
        let Some((old, _)) = step.patch().replace.first() else { continue };
        engine.apply(step);
        let saved = before.saturating_sub(engine.cost());
        engine.undo();
        *visited += 1;
        if saved > 0 || library.rules()[step.rule].explore {
            let kind = kinds.entry(place_kind(engine.graph(), old.node)).or_insert_with(|| Kind { places: BTreeMap::new() });
            kind.places.entry(old.node).or_default().push((saved, step.clone()));
        }
    }
    let mut kinds: Vec<Kind> = kinds.into_values().collect();
    for kind in &mut kinds {
        kind.places.values_mut().for_each(|moves| moves.sort_by_key(|(saved, step)| (std::cmp::Reverse(*saved), step.match_id())));
    }
    kinds.retain(|kind| kind.places.len() > 1);
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.saves()));
    kinds
}
