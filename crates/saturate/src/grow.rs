//! `Growth`: an e-graph that rules make larger.

use std::sync::Arc;

use regraft_ir::{Budget, Graph, NodeId, OpKind};
use regraft_rules::{Library, Rule, RuleError, Writable};
use rustc_hash::FxHashSet;

use crate::choice::Frozen;
use crate::cycles::{Cycles, Reach};
use crate::matches::{Application, Search, kinds};
use crate::schedule::{Schedule, Turns};
use crate::space::{Class, Made, Space, TypeClash};

/// Matches are kept that make so many times the e-nodes that there is room for, and so many more:
/// some of what they make, others make too.
const ROOMS: usize = 2;
const SPARE: usize = 4096;

/// When an e-graph is large enough.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// E-nodes, weights and inputs included. Checked before each application: it is exceeded by 5 %
    /// at most, unless the input is larger.
    pub nodes: usize,
    /// Iterations: in each, all rules are matched, and then applied.
    pub iterations: usize,
    /// Iterations in which rules with several roots are applied (`k_multi` of TENSAT).
    pub multi: usize,
    /// A match that makes so many nodes, such as a fast convolution, waits until no other makes
    /// anything new.
    pub piece: usize,
    /// Most choices of e-nodes that are looked at for one rule at one e-node.
    pub choices: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { nodes: 10_000, iterations: 30, multi: 3, piece: 12, choices: 64 }
    }
}

/// Why an e-graph grows no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No rule makes anything new.
    Saturated,
    /// The limit of nodes.
    Nodes,
    /// The limit of iterations.
    Iterations,
    /// The budget.
    Budget,
}

/// Rules as e-graphs need them: nothing is lost when one is applied, so it does not matter who else
/// reads the values within its source.
pub struct Rules {
    library: Library,
    /// What each of them tells apart.
    kinds: Vec<Option<Vec<OpKind>>>,
    /// Whether it does not matter in a graph, either.
    shared: Vec<bool>,
}

impl Rules {
    /// These rules.
    ///
    /// # Errors
    ///
    /// None if they come from a library: names are unique there.
    pub fn of(library: &Library) -> Result<Rules, RuleError> {
        let shared = |rule: &Rule| Rule { shared: true, ..rule.clone() };
        let kinds = library.rules().iter().map(kinds).collect();
        let is_shared = library.rules().iter().map(|rule| rule.shared).collect();
        Ok(Rules { library: Library::new(library.rules().iter().map(shared).collect())?, kinds, shared: is_shared })
    }

    /// Whether a rule of the library that they came from matches where others read values within
    /// its source.
    pub(crate) fn is_shared(&self, rule: usize) -> bool {
        self.shared[rule]
    }

    /// The rules, in the order of the library they came from.
    pub fn rules(&self) -> &[Rule] {
        self.library.rules()
    }
}

/// An e-graph, the rules that make it larger, and how it came about.
#[derive(Clone)]
pub struct Growth<'r> {
    rules: &'r Rules,
    writable: &'r dyn Writable,
    limits: Limits,
    space: Space,
    cycles: Cycles,
    /// E-nodes that cycles are cut at.
    blocked: FxHashSet<NodeId>,
    /// What was applied, in order.
    applied: Vec<Arc<Application>>,
    /// The e-nodes that they made.
    made: Vec<Made>,
    /// Matches that are known.
    seen: FxHashSet<u64>,
    /// Matches that make many nodes, and wait until nothing else is new.
    held: Vec<Arc<Application>>,
    turns: Turns,
    iterations: usize,
    /// Whether an e-node with several choices had more than were looked at.
    is_partial: bool,
}

impl<'r> Growth<'r> {
    /// The e-graph of a graph in normal form.
    pub fn new(graph: Graph, rules: &'r Rules, writable: &'r dyn Writable, limits: Limits) -> Growth<'r> {
        Growth {
            rules,
            writable,
            limits,
            space: Space::new(graph),
            cycles: Cycles::Kept,
            blocked: FxHashSet::default(),
            applied: Vec::new(),
            made: Vec::new(),
            seen: FxHashSet::default(),
            held: Vec::new(),
            turns: Turns::new(Schedule::Simple, rules.rules().len()),
            iterations: 0,
            is_partial: false,
        }
    }

    /// The same, with rules taking turns by this schedule.
    pub fn scheduled(self, schedule: Schedule) -> Growth<'r> {
        Growth { turns: Turns::new(schedule, self.rules.rules().len()), ..self }
    }

    /// The same, with cycles treated in this way.
    pub fn with_cycles(self, cycles: Cycles) -> Growth<'r> {
        Growth { cycles, ..self }
    }

    /// The e-graph.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The rewrites that made it, in order.
    pub fn applied(&self) -> &[Arc<Application>] {
        &self.applied
    }

    /// The e-nodes that the new nodes of a rewrite are.
    pub(crate) fn made(&self, number: u32) -> &[NodeId] {
        &self.made[number as usize]
    }

    /// The rules.
    pub fn rules(&self) -> &'r Rules {
        self.rules
    }

    /// What may be written.
    pub(crate) fn writable(&self) -> &'r dyn Writable {
        self.writable
    }

    /// Whether an e-node must not be extracted, because a cycle is cut there.
    pub fn is_blocked(&self, id: NodeId) -> bool {
        self.blocked.contains(&id)
    }

    /// Iterations so far.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Whether matches were left out because there were too many choices.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Applies all rules until nothing is new, or a limit is reached.
    ///
    /// # Errors
    ///
    /// A rule that sets values of different types equal.
    pub fn saturate(&mut self, budget: &mut dyn Budget) -> Result<Stop, TypeClash> {
        self.observed(budget, &mut |_| {})
    }

    /// The same; `observe` is shown the e-graph after each iteration.
    ///
    /// # Errors
    ///
    /// As [`Growth::saturate`].
    pub fn observed(&mut self, budget: &mut dyn Budget, observe: &mut dyn FnMut(&Growth<'_>)) -> Result<Stop, TypeClash> {
        loop {
            if self.iterations >= self.limits.iterations {
                return Ok(Stop::Iterations);
            }
            let stop = self.iterate(budget);
            observe(self);
            if let Some(stop) = stop? {
                return Ok(stop);
            }
        }
    }

    /// Matches the rules where something has changed, and applies what they offer. Tells why
    /// nothing more is to be done, if so.
    ///
    /// # Errors
    ///
    /// As [`Growth::saturate`].
    pub fn iterate(&mut self, budget: &mut dyn Budget) -> Result<Option<Stop>, TypeClash> {
        let (found, is_cut) = self.matches(budget);
        self.iterations += 1;
        let makes_piece = |one: &Arc<Application>| one.patch.create.len() >= self.limits.piece;
        let (pieces, small): (Vec<_>, Vec<_>) = found.into_iter().map(Arc::new).partition(makes_piece);
        self.held.extend(pieces);
        let mut stop = self.apply(small, budget)?;
        if stop == Ok(false) && !is_cut {
            let held = std::mem::take(&mut self.held);
            stop = self.apply(held, budget)?;
        }
        Ok(match stop {
            Err(stop) => Some(stop),
            Ok(_) if is_cut => Some(Stop::Budget),
            Ok(false) if !self.turns.has_missed() && !self.turns.skip(self.iterations) => Some(Stop::Saturated),
            Ok(_) => None,
        })
    }

    /// What the rules offer where something has changed, each match once, and whether the budget
    /// ended the search for it.
    fn matches(&mut self, budget: &mut dyn Budget) -> (Vec<Application>, bool) {
        let distances = self.distances();
        let (mut found, mut is_cut) = (Vec::new(), false);
        // There is room for no more than the smallest of them: the others are found again.
        let most = ROOMS * self.limits.nodes.saturating_sub(self.space.len()) + SPARE;
        let (mut weight, mut left_out, mut done) = (0, Vec::new(), FxHashSet::default());
        let Growth { rules, writable, limits, space, blocked, seen, turns, iterations, is_partial, .. } = self;
        let is_hidden = |id: NodeId| blocked.contains(&id);
        let frozen = Frozen::new(space, &is_hidden);
        let search = Search { frozen: &frozen, writable: *writable, choices: limits.choices };
        let is_due = |rule: usize| rules.rules()[rule].source.len() == 1 || *iterations < limits.multi;
        turns.begin(*iterations, &is_due);
        for anchor in space.ids().filter(|id| !space.graph().node(*id).constant && !blocked.contains(id)) {
            if budget.exhausted() {
                is_cut = true;
                break;
            }
            for rooted in rules.library.rooted_at(space.graph().node(anchor).op.kind()) {
                let is_near = distances[anchor.0 as usize] as usize <= rooted.depth;
                if !turns.asks(rooted.rule, is_near) {
                    continue;
                }
                let before = found.len();
                let kinds = rules.kinds[rooted.rule].as_deref();
                *is_partial |=
                    !search.at((rooted.rule, &rules.rules()[rooted.rule], rooted.root), kinds, anchor, (seen, &mut done), &mut found);
                turns.found(rooted.rule, found.len() - before);
                weight += found[before..].iter().map(Application::weight).sum::<usize>();
                if weight > 2 * most {
                    weight = keep_small(&mut found, most, &mut left_out);
                }
            }
        }
        for rule in turns.end(*iterations) {
            // Its matches are looked for again when its turn comes.
            found.retain(|one: &Application| one.rule != rule || !seen.remove(&one.place));
        }
        for (rule, place) in left_out {
            turns.missed(rule);
            seen.remove(&place);
        }
        (found, is_cut)
    }

    /// The matches of one more iteration, which somebody else applies.
    pub(crate) fn look(&mut self, budget: &mut dyn Budget) -> Vec<Application> {
        let found = self.matches(budget).0;
        self.iterations += 1;
        found
    }

    /// Whether it has as many e-nodes as it may.
    pub fn is_full(&self) -> bool {
        self.space.len() >= self.limits.nodes
    }

    /// Whether so many e-nodes more are not too many.
    fn has_room(&self, nodes: usize) -> bool {
        (self.space.len() + nodes) * 20 <= self.limits.nodes * 21
    }

    /// Applies matches; whether anything is new, or why not all could be applied.
    pub(crate) fn apply(&mut self, mut found: Vec<Arc<Application>>, budget: &mut dyn Budget) -> Result<Result<bool, Stop>, TypeClash> {
        // What adds little comes first: with a limit of nodes, it is what the others are measured
        // by.
        found.sort_by_key(|one| one.patch.create.len());
        let mut reach = Reach::new(self.cycles, &self.space);
        let (mut is_new, mut stop) = (false, None);
        for application in found {
            let made = application.patch.create.len();
            if self.is_full() || !self.has_room(made) {
                // What has become equal meanwhile makes room.
                self.space.rebuild()?;
                if self.space.len() * 20 >= self.limits.nodes * 19 || !self.has_room(made) {
                    stop = Some(Stop::Nodes);
                    break;
                }
            }
            if budget.exhausted() {
                stop = Some(Stop::Budget);
                break;
            }
            if reach.closes_cycle(&self.space, &self.blocked, &application.patch) {
                continue;
            }
            let number = self.applied.len() as u32;
            if let Some(made) = self.space.add(&application.patch, number)? {
                self.applied.push(application);
                self.made.push(made);
                is_new = true;
            }
        }
        self.space.rebuild()?;
        if self.cycles == Cycles::Efficient {
            self.blocked.extend(crate::cycles::cut(&self.space, &self.blocked));
        }
        Ok(match stop {
            Some(stop) => Err(stop),
            None => Ok(is_new),
        })
    }

    /// For each e-node, how far downstream of a change it is: 0 if its own class has changed, by
    /// node.
    fn distances(&mut self) -> Vec<u32> {
        let space = &mut self.space;
        let changed: Vec<Class> = space.take_changed();
        let mut distance = vec![u32::MAX; space.graph().capacity()];
        let mut frontier: Vec<NodeId> = Vec::new();
        for class in changed {
            for member in space.members(class) {
                if std::mem::replace(&mut distance[member.node.0 as usize], 0) != 0 {
                    frontier.push(member.node);
                }
            }
        }
        let radius = self.rules.library.radius() as u32;
        for far in 1..=radius {
            let mut next = Vec::new();
            for id in frontier {
                for port in 0..space.graph().node(id).types.len() as u32 {
                    for (reader, _) in space.readers(space.class(id.port(port))) {
                        if distance[reader.0 as usize] == u32::MAX {
                            distance[reader.0 as usize] = far;
                            next.push(*reader);
                        }
                    }
                }
            }
            frontier = next;
        }
        distance
    }

    /// Whether an output depends on itself in some choice of e-nodes.
    pub fn is_cyclic(&self) -> bool {
        !crate::cycles::cut(&self.space, &self.blocked).is_empty()
    }
}

/// Keeps the matches that make the fewest e-nodes, up to so much together, in their order, and
/// notes what is left out; what those that are kept weigh.
fn keep_small(found: &mut Vec<Application>, most: usize, left_out: &mut Vec<(usize, u64)>) -> usize {
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|at| found[*at].weight());
    let mut weight = 0;
    let mut is_kept = vec![false; found.len()];
    for at in order {
        weight += found[at].weight();
        if weight > most {
            weight -= found[at].weight();
            break;
        }
        is_kept[at] = true;
    }
    let mut kept = is_kept.into_iter();
    found.retain(|one| {
        let is_kept = kept.next().unwrap_or(false);
        if !is_kept {
            left_out.push((one.rule, one.place));
        }
        is_kept
    });
    weight
}
