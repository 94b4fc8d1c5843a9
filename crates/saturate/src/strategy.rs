//! `Saturate`: search by equality saturation (TENSAT, Yang et al., MLSys 2021).

use regraft_ir::{Budget, NodeId};
use regraft_search::{Engine, Greedy, Matcher, Outcome, Script, Strategy};

use crate::cycles::Cycles;
use crate::extract::{Alone, Method};
use crate::grow::{Growth, Limits, Rules};
use crate::refine::{Refined, refine};
use crate::schedule::Schedule;

/// Applies all rules at once, to an e-graph that forgets nothing, and extracts what is cheapest in
/// it.
#[derive(Clone, Copy, Debug)]
pub struct Saturate {
    /// How far e-graphs grow.
    pub limits: Limits,
    /// Most e-nodes beside those of the graph, if that is less.
    pub room: usize,
    /// How rules take turns.
    pub schedule: Schedule,
    /// What becomes of cycles.
    pub cycles: Cycles,
    /// How to extract.
    pub method: Method,
    /// Whether a descent improves what was extracted, and the e-graph of the result is searched
    /// again, as long as that saves.
    pub polish: bool,
}

impl Default for Saturate {
    fn default() -> Saturate {
        Saturate {
            limits: Limits::default(),
            room: usize::MAX,
            schedule: Schedule::default(),
            cycles: Cycles::Kept,
            method: Method::Exact,
            polish: true,
        }
    }
}

impl Saturate {
    /// A search of small e-graphs, as one of several: of what large ones find on the networks of
    /// the zoo, it finds nearly all in a tenth of the time.
    pub fn small() -> Saturate {
        Saturate { room: ROOM, ..Saturate::default() }
    }
}

/// E-nodes beside those of the graph in a search of small e-graphs.
const ROOM: usize = 1000;
/// E-graphs searched one after the other.
const ROUNDS: usize = 4;

impl Strategy for Saturate {
    fn name(&self) -> &'static str {
        "saturate"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.observed(engine, matcher, budget, &mut |_| {})
    }

    fn search_after(&self, known: &Outcome, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.run(Some(known), engine, matcher, budget, &mut |_| {})
    }
}

impl Saturate {
    /// The search; `observe` is shown the e-graph after each iteration.
    pub fn observed(
        &self,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        observe: &mut dyn FnMut(&Growth<'_>),
    ) -> Outcome {
        self.run(None, engine, matcher, budget, observe)
    }

    fn run(
        &self,
        known: Option<&Outcome>,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        observe: &mut dyn FnMut(&Growth<'_>),
    ) -> Outcome {
        repeated((self.polish, known), engine, matcher, budget, &mut |(rules, alone), engine, matcher, budget| {
            let nodes = self.limits.nodes.min(engine.graph().len().saturating_add(self.room));
            let limits = Limits { nodes, ..self.limits };
            let growth = Growth::new(engine.graph().clone(), rules, matcher.writable(), limits);
            let mut growth = growth.scheduled(self.schedule).with_cycles(self.cycles);
            observe(&growth);
            // A rule that sets different types equal is wrong; what was known before is not.
            let is_sound = growth.observed(budget, observe).is_ok();
            let script = extracted(&growth, alone, self.method, engine, budget).script;
            Found { script, visited: growth.space().len() as u64, complete: is_sound }
        })
    }
}

/// What a search of one e-graph has found.
pub(crate) struct Found {
    pub(crate) script: Script,
    /// E-nodes, or e-graphs, looked at.
    pub(crate) visited: u64,
    pub(crate) complete: bool,
}

/// The cheapest graph in an e-graph, priced in context.
pub(crate) fn extracted(
    growth: &Growth<'_>,
    alone: &mut Alone<'_>,
    method: Method,
    engine: &mut Engine<'_>,
    budget: &mut dyn Budget,
) -> Refined {
    let prices = engine.prices();
    let in_context = |engine: &Engine<'_>, id: NodeId| prices.price(engine.graph(), id);
    refine(growth, alone, method, engine, &in_context, budget)
}

/// A search of one e-graph, by these rules and prices.
type Once<'o, 'e, 'm> = dyn FnMut((&Rules, &mut Alone<'e>), &mut Engine<'e>, &mut Matcher<'m>, &mut dyn Budget) -> Found + 'o;

/// Searches once; or, if polished, in turns with a descent as long as both together save something,
/// from the input or from where a descent alone leads, or what is known, whichever is cheaper by
/// then.
pub(crate) fn repeated<'e, 'm>(
    (polish, known): (bool, Option<&Outcome>),
    engine: &mut Engine<'e>,
    matcher: &mut Matcher<'m>,
    budget: &mut dyn Budget,
    once: &mut Once<'_, 'e, 'm>,
) -> Outcome {
    let start = engine.depth();
    let mut found = Outcome::of(Script::here(engine));
    let Ok(rules) = Rules::of(matcher.library()) else { return Outcome { complete: false, ..found } };
    let mut alone = Alone::new(engine.prices());
    let known = known.map(|known| Outcome { visited: 0, ..known.clone() });
    let descent = polish.then(|| known.unwrap_or_else(|| Greedy::default().search(engine, matcher, budget)));
    found.visited += descent.as_ref().map_or(0, |descent| descent.visited);
    let descent = descent.and_then(|descent| descent.scripts.into_iter().next());
    let (mut moves, mut complete) = (Vec::new(), true);
    for _ in 0..if polish { ROUNDS } else { 1 } {
        let before = engine.cost();
        let mut keep = |engine: &mut Engine<'e>, script: Script, visited: u64| {
            for step in script.moves {
                engine.apply(&step);
                moves.push(step);
            }
            let script = Script { moves: moves.clone(), ..Script::here(engine) };
            found.add(Outcome { visited, ..Outcome::of(script) });
        };
        let one = once((&rules, &mut alone), engine, matcher, budget);
        keep(engine, one.script, one.visited);
        if polish && !budget.exhausted() {
            let Outcome { scripts, visited, .. } = Greedy::default().search(engine, matcher, budget);
            scripts.into_iter().take(1).for_each(|script| keep(engine, script, visited));
        }
        complete &= one.complete && !budget.exhausted();
        if let Some(descent) = descent.as_ref().filter(|descent| descent.cost < engine.cost()) {
            engine.rewind(start);
            descent.moves.iter().for_each(|step| engine.apply(step));
            moves.clone_from(&descent.moves);
            found.add(Outcome { visited: 0, ..Outcome::of(descent.clone()) });
        }
        if !complete || engine.cost() >= before {
            break;
        }
    }
    engine.rewind(start);
    Outcome { complete, ..found }
}
