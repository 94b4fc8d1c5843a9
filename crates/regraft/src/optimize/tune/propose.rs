//! Proposals: what a search makes of a graph under a price list.

use std::collections::HashSet;
use std::sync::Arc;

use regraft_cost::{CostModel, Ns};
use regraft_ir::{Graph, ValueId};
use regraft_rules::{Library, Writable};
use regraft_search::{Budget, Engine, Matcher, Move, Moves, RandomWalk, Script, Spread, Strategy, all_moves, next_moves};

use crate::optimize::place::Place;
use crate::optimize::script::Rewrite;
use crate::report::{Applied, NotDone};

/// A rewritten graph, and how it came about.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The graph.
    pub graph: Graph,
    /// Rewrites, in order.
    pub rewrites: Vec<Rewrite>,
    /// Cost under the price list.
    pub cost: Ns,
    /// Key of the state.
    pub key: u128,
}

impl Proposal {
    /// Where its rewrites are, in order.
    pub fn places(&self) -> Vec<Place> {
        self.rewrites.iter().map(|rewrite| rewrite.place.clone()).collect()
    }
}

/// The result of a search.
#[derive(Default)]
pub struct Proposals {
    /// Cheapest first; the start graph is not among them.
    pub best: Vec<Proposal>,
    /// States visited.
    pub visited: u64,
    /// Matches that were found but could not be rewritten.
    pub refused: Vec<NotDone>,
}

/// Searches from `start`.
pub fn propose(
    start: &Graph,
    prices: &dyn CostModel,
    matcher: &mut Matcher<'_>,
    search: &dyn Strategy,
    budget: &mut dyn Budget,
) -> Proposals {
    let (mut engine, library) = (Engine::new(start.clone(), prices), matcher.library());
    let outcome = search.search(&mut engine, matcher, budget);
    let best = outcome.scripts.iter().filter(|s| !s.moves.is_empty()).filter_map(|s| replay(&mut engine, library, s)).collect();
    Proposals { best, visited: outcome.visited, refused: refused(matcher) }
}

/// Rewrites blocks that are alike in different ways, so that one measurement tells which pays;
/// `None` if none is repeated with a choice.
pub fn spread(
    spread: Spread,
    start: &Graph,
    prices: &dyn CostModel,
    matcher: &mut Matcher<'_>,
    budget: &mut dyn Budget,
) -> Option<Proposal> {
    let (mut engine, library) = (Engine::new(start.clone(), prices), matcher.library());
    let outcome = spread.search(&mut engine, matcher, budget);
    outcome.scripts.iter().filter(|s| !s.moves.is_empty()).find_map(|s| replay(&mut engine, library, s))
}

/// Rewrites at random, at any cost: the worst a search could do. `None` if no rule matches.
pub fn scramble(start: &Graph, prices: &dyn CostModel, library: &Library, writable: &dyn Writable, walk: RandomWalk) -> Option<Proposal> {
    let mut engine = Engine::new(start.clone(), prices);
    let mut matcher = Matcher::new(library, writable);
    let outcome = walk.search(&mut engine, &mut matcher, &mut || false);
    outcome.scripts.iter().filter(|s| !s.moves.is_empty()).find_map(|s| replay(&mut engine, library, s))
}

/// Applies the rules that `wanted` names at every match, one after the other, at any cost.
pub fn everywhere(
    start: &Graph,
    prices: &dyn CostModel,
    matcher: &mut Matcher<'_>,
    wanted: &dyn Fn(&regraft_rules::Rule) -> bool,
) -> Option<Proposal> {
    let library = matcher.library();
    applied(start, prices, matcher, &|_, _, moves| moves.iter().find(|m| wanted(&library.rules()[m.rule])).cloned())
}

/// Applies an exploratory rule at every match, those included that the rules prepare which it
/// names; `None` if there is none.
pub fn explored(start: &Graph, prices: &dyn CostModel, matcher: &mut Matcher<'_>, rule: &regraft_rules::Rule) -> Option<Proposal> {
    let library = matcher.library();
    let name = |step: &Move| &library.rules()[step.rule].name;
    let is_wanted = |step: &Move| *name(step) == rule.name;
    let found = applied(start, prices, matcher, &|engine, matcher, moves| {
        if let Some(step) = moves.iter().find(|step| is_wanted(step)) {
            return Some(step.clone());
        }
        let may_prepare = |step: &&Arc<Move>| rule.prepared_by.iter().any(|other| **other == **name(step));
        let prepares = |step: &&Arc<Move>| {
            engine.apply(step);
            let prepares = next_moves(engine, matcher, moves).iter().any(|next| is_wanted(next));
            engine.undo();
            prepares
        };
        moves.iter().filter(may_prepare).find(prepares).cloned()
    });
    found.filter(|found| found.rewrites.iter().any(|rewrite| is_wanted(&rewrite.step)))
}

/// Which of the moves of a state comes next, if any.
type Choice<'a> = dyn Fn(&mut Engine<'_>, &mut Matcher<'_>, &Moves) -> Option<Arc<Move>> + 'a;

/// Applies what `choose` chooses among the moves of a state, again and again.
fn applied(start: &Graph, prices: &dyn CostModel, matcher: &mut Matcher<'_>, choose: &Choice<'_>) -> Option<Proposal> {
    let (mut engine, library) = (Engine::new(start.clone(), prices), matcher.library());
    let mut moves = all_moves(&mut engine, matcher);
    let mut script = Vec::new();
    let mut seen = HashSet::from([engine.key()]);
    // An exploratory rule may match its own result: bound the number of steps, and repeat no state.
    for _ in 0..start.len() {
        let Some(step) = choose(&mut engine, matcher, &moves) else { break };
        engine.apply(&step);
        if !seen.insert(engine.key()) {
            engine.undo();
            moves.retain(|m| !Arc::ptr_eq(m, &step));
            continue;
        }
        moves = next_moves(&mut engine, matcher, &moves);
        script.push(step);
    }
    if script.is_empty() {
        return None;
    }
    let script = Script { moves: script, cost: engine.cost(), key: engine.key() };
    while engine.undo() {}
    replay(&mut engine, library, &script)
}

/// The graph that a script leads to, and how each of its moves changed the cost; `None` if the
/// graph is not well-formed, or if a move cannot be expressed as data.
///
/// A script of checked moves always leads to a well-formed graph; a bug here must cost a candidate,
/// never yield a wrong model.
pub fn replay(engine: &mut Engine<'_>, library: &Library, script: &Script) -> Option<Proposal> {
    let mut rewrites = Vec::new();
    for step in &script.moves {
        let before = engine.cost();
        let rule = &library.rules()[step.rule];
        let Some(found_at) = Place::of(engine.graph(), library, step) else { break };
        let at = step.patch().replace.first().map_or_else(String::new, |(old, _)| place(engine.graph(), *old));
        engine.apply(step);
        let applied = Applied {
            rule: rule.name.to_string(),
            at,
            gain_ns: before as i64 - engine.cost() as i64,
            numeric: rule.numeric,
            trust: rule.trust,
        };
        rewrites.push(Rewrite { step: step.clone(), place: found_at, applied });
    }
    let proposal = Proposal { graph: engine.graph().clone(), rewrites, cost: engine.cost(), key: engine.key() };
    for _ in &proposal.rewrites {
        engine.undo();
    }
    let is_whole = proposal.rewrites.len() == script.moves.len();
    (is_whole && proposal.graph.topological().len() == proposal.graph.len()).then_some(proposal)
}

/// A name for a value: its own, or that of the nearest named value below it.
pub fn place(graph: &Graph, value: ValueId) -> String {
    let mut frontier = vec![value];
    for _ in 0..8 {
        for v in &frontier {
            if let Some(name) = graph.node(v.node).names.get(v.port as usize).and_then(Option::as_ref) {
                return if *v == value { name.to_string() } else { format!("before {name}") };
            }
        }
        frontier = frontier.iter().flat_map(|v| graph.node(v.node).users.iter().map(|(user, _)| user.out())).collect();
    }
    format!("{}#{}", graph.node(value.node).op.kind().name(), value.node.0)
}

fn refused(matcher: &Matcher<'_>) -> Vec<NotDone> {
    let row = |((rule, why), places): (&(String, String), &std::collections::BTreeSet<String>)| {
        let first = places.first().cloned().unwrap_or_default();
        let at = if places.len() > 1 { format!("{first} and {} more", places.len() - 1) } else { first };
        NotDone { what: rule.clone(), at, because: why.clone() }
    };
    matcher.refusals.iter().map(row).collect()
}
