//! `Matcher`: finds the moves of a library at given nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use regraft_ir::{Ancestors, Graph, NodeId, OpKind, View};
use regraft_rules::{Found, Join, Library, Refusal, Rooted, Writable, accept, edit, joins_at, sources_at, sources_at_both};
use rustc_hash::{FxHashSet, FxHasher};

use super::automaton::{Automaton, Leaf};
use super::cache::MatchCache;
use super::facts::Facts;
use super::inquiries::Inquiry;
use super::numbering::Numbering;
use super::rewrite::Move;
use super::template::{Placed, place_of};
use super::witness::{Asked, Question, Witness};

/// What rules offer at some nodes.
#[derive(Default)]
pub(super) struct Offer {
    /// Moves.
    pub(super) moves: Vec<Arc<Move>>,
    /// Matches that would close a cycle.
    pub(super) blocked: Vec<Arc<Move>>,
    /// For each node, what was asked to find out.
    pub(super) asked: Vec<(NodeId, Arc<Inquiry>)>,
    /// The nodes where rules had to be matched one by one.
    pub(super) learned: u64,
}

/// Matches that were not rewritten: `(rule, why)`, and where.
pub type Refusals = BTreeMap<(String, String), BTreeSet<String>>;

/// Matches the rules of a library, and records why matches were not rewritten.
pub struct Matcher<'a> {
    library: &'a Library,
    writable: &'a dyn Writable,
    /// For each kind of operator, the most operators on a path of a pattern rooted there.
    depths: Vec<usize>,
    radius: usize,
    numbering: Numbering,
    others: Numbering,
    spare: Numbering,
    cache: MatchCache,
    /// Matches that were not rewritten.
    pub refusals: Refusals,
    /// What was recorded there: rule, node, and a hash of the reason.
    refused: FxHashSet<(usize, NodeId, u64)>,
}

impl<'a> Matcher<'a> {
    /// A matcher for these rules, writing only what `writable` accepts.
    pub fn new(library: &'a Library, writable: &'a dyn Writable) -> Matcher<'a> {
        Matcher::knowing(MatchCache::default(), library, writable)
    }

    /// A matcher that knows what another one learned, if that had the same rules. It must have
    /// written the same, too.
    pub fn knowing(cache: MatchCache, library: &'a Library, writable: &'a dyn Writable) -> Matcher<'a> {
        let depths = OpKind::ALL.iter().map(|kind| library.rooted_at(*kind).iter().map(|r| r.depth).max().unwrap_or(0));
        Matcher {
            library,
            writable,
            depths: depths.collect(),
            radius: library.radius(),
            numbering: Numbering::default(),
            others: Numbering::default(),
            spare: Numbering::default(),
            cache: cache.about(library),
            refusals: Default::default(),
            refused: FxHashSet::default(),
        }
    }

    /// What it learned.
    pub fn into_cache(self) -> MatchCache {
        self.cache.kept(self.library)
    }

    /// A matcher for another thread, which knows what the last one for another thread learned.
    pub(crate) fn beside(&mut self) -> Matcher<'a> {
        let cache = self.cache.beside.take().map_or_else(MatchCache::default, |cache| *cache);
        Matcher::knowing(cache, self.library, self.writable)
    }

    /// Takes over from such a matcher what it learned, and what it could not rewrite.
    pub(crate) fn join(&mut self, (cache, refusals): (MatchCache, Refusals)) {
        self.cache.beside = Some(Box::new(cache));
        for (why, places) in refusals {
            self.refusals.entry(why).or_default().extend(places);
        }
    }

    /// The rules.
    pub fn library(&self) -> &'a Library {
        self.library
    }

    /// What may be written.
    pub fn writable(&self) -> &'a dyn Writable {
        self.writable
    }

    /// How many nodes downstream of a change the root of a match that it touches can be.
    pub(super) fn radius(&self) -> usize {
        self.radius
    }

    /// The most operators on a path of a pattern whose root is of this kind.
    pub(super) fn depth(&self, kind: OpKind) -> usize {
        self.depths[kind as usize]
    }

    /// What rules offer at `anchors`: each match once, and none of those `seen`.
    pub(super) fn at(
        &mut self,
        (graph, facts): (&Graph, &Facts<'_>),
        anchors: &[NodeId],
        seen: &mut FxHashSet<u64>,
        ancestors: &mut Ancestors<'_>,
    ) -> Offer {
        self.cache.all.enter(graph, facts);
        let (mut offer, mut asked) = (Offer::default(), Vec::new());
        let (mut nodes, mut others) = (std::mem::take(&mut self.numbering), std::mem::take(&mut self.others));
        for anchor in anchors.iter().copied() {
            let node = graph.node(anchor);
            if node.constant || self.depth(node.op.kind()) == 0 {
                continue;
            }
            let leaf = match self.cache.all.walk(graph, facts, &[anchor], &mut nodes) {
                Some(leaf) => leaf.clone(),
                None => {
                    offer.learned += 1;
                    self.learn(graph, facts, anchor, &mut nodes)
                }
            };
            asked.extend(leaf.asked.iter().map(|at| nodes.node(graph, *at)));
            self.offer((graph, anchor), &leaf, &nodes, seen, ancestors, &mut offer);
            for (rule, join) in &leaf.joins {
                let join = renamed(join, &|at| nodes.node(graph, at.0));
                for partner in join.partners(graph, &mut asked).into_iter().filter(|partner| *partner != anchor) {
                    let both = [anchor.min(partner), anchor.max(partner)];
                    let leaf = self.at_both((graph, facts), *rule, both, &mut others);
                    asked.extend(leaf.asked.iter().map(|at| others.node(graph, *at)));
                    self.offer((graph, anchor), &leaf, &others, seen, ancestors, &mut offer);
                }
            }
            if !leaf.joins.is_empty() {
                asked.sort_unstable();
                asked.dedup();
            }
            offer.asked.push((anchor, Arc::new(Inquiry::about(asked.drain(..)))));
        }
        self.others = others;
        self.numbering = nodes;
        offer
    }

    /// Adds what was found at an anchor, where the numbered nodes are these.
    fn offer(
        &mut self,
        (graph, anchor): (&Graph, NodeId),
        leaf: &Leaf,
        nodes: &Numbering,
        seen: &mut FxHashSet<u64>,
        ancestors: &mut Ancestors<'_>,
        offer: &mut Offer,
    ) {
        let here = |at: NodeId| Some(nodes.node(graph, at.0));
        for placed in leaf.templates.iter().filter_map(|placed| placed.renamed(here)) {
            let identity = placed.identity();
            if seen.contains(&identity) {
                continue;
            }
            let (reads_below, found) = (placed.template.reads_below, Arc::new(Move::new(graph, placed, identity)));
            if reads_below && found.closes_cycle(graph, ancestors) {
                self.refuse(graph, anchor, found.rule, &Refusal::Cycle.to_string());
                offer.blocked.push(found);
                continue;
            }
            seen.insert(identity);
            offer.moves.push(found);
        }
        for (rule, why) in &leaf.refusals {
            self.refuse(graph, anchor, *rule, why);
        }
    }

    /// What matches of a rule whose two roots are these nodes. Fills in the nodes that the result
    /// speaks of.
    fn at_both(&mut self, (graph, facts): (&Graph, &Facts<'_>), rule: usize, both: [NodeId; 2], nodes: &mut Numbering) -> Arc<Leaf> {
        let automaton = self.cache.of_pairs.entry(rule).or_insert_with(Automaton::of_one);
        automaton.enter(graph, facts);
        if let Some(leaf) = automaton.walk(graph, facts, &both, nodes) {
            return leaf.clone();
        }
        let view = Witness::new(graph);
        both.iter().for_each(|id| {
            view.kind(*id);
        });
        let mut sources = sources_at_both(&view, &self.library.rules()[rule], both[0], both[1]);
        // Of the orders of a symmetric merge only one counts.
        sources.sort_by(|a, b| a.in_order(b, &view));
        let found = self.accepted(graph, &view, rule, sources);
        let asked = view.into_asked();
        let Some(known) = numbered(graph, facts, &both, &asked, &found, nodes) else { return by_id(graph, found, &asked, nodes) };
        let leaf = Arc::new(known);
        if let Some(automaton) = self.cache.of_pairs.get_mut(&rule) {
            automaton.learn(graph, facts, &both, &leaf.questions, leaf.clone(), nodes);
        }
        leaf
    }

    /// Matches all rules at a node and remembers what it took. Fills in the nodes that the result
    /// speaks of.
    fn learn(&mut self, graph: &Graph, facts: &Facts<'_>, anchor: NodeId, nodes: &mut Numbering) -> Arc<Leaf> {
        let (found, asked) = self.found(graph, facts, anchor);
        if let Some(mut known) = numbered(graph, facts, &[anchor], &asked, &found, nodes) {
            let questions = std::mem::take(&mut known.questions);
            let leaf = Arc::new(known);
            self.cache.all.learn(graph, facts, &[anchor], &questions, leaf.clone(), nodes);
            return leaf;
        }
        by_id(graph, found, &asked, nodes)
    }

    /// All matches at a node, the nodes of their templates being ids, and the questions that it
    /// took.
    fn found(&mut self, graph: &Graph, facts: &Facts<'_>, anchor: NodeId) -> (Leaf, Asked) {
        let (mut all, mut asked) = (Leaf::default(), Asked::default());
        asked.note(Question::Node(anchor));
        let (library, kind, mut nodes) = (self.library, graph.kind(anchor), std::mem::take(&mut self.spare));
        for roots in library.rooted_at(kind).chunk_by(|a, b| a.rule == b.rule) {
            let automaton = self.cache.of_rules.entry((kind, roots[0].rule)).or_insert_with(Automaton::of_one);
            automaton.enter(graph, facts);
            if let Some(leaf) = automaton.walk(graph, facts, &[anchor], &mut nodes) {
                let absolute = |question: &Question<u32>| question.about(|at| Some(nodes.node(graph, at)));
                leaf.questions.iter().filter_map(absolute).for_each(|question| asked.note(question));
                all.templates.extend(leaf.templates.iter().filter_map(|placed| placed.renamed(|at| Some(nodes.node(graph, at.0)))));
                all.refusals.extend(leaf.refusals.iter().cloned());
                all.joins.extend(leaf.joins.iter().map(|(rule, join)| (*rule, renamed(join, &|at| nodes.node(graph, at.0)))));
                continue;
            }
            let witness = Witness::new(graph);
            let found = self.found_by(graph, &witness, anchor, roots);
            let own = witness.into_asked();
            if let Some(leaf) = numbered(graph, facts, &[anchor], &own, &found, &mut nodes)
                && let Some(automaton) = self.cache.of_rules.get_mut(&(kind, roots[0].rule))
            {
                let leaf = Arc::new(leaf);
                automaton.learn(graph, facts, &[anchor], &leaf.questions, leaf.clone(), &mut nodes);
            }
            own.questions.into_iter().for_each(|question| asked.note(question));
            all.templates.extend(found.templates);
            all.refusals.extend(found.refusals);
            all.joins.extend(found.joins);
        }
        self.spare = nodes;
        (all, asked)
    }

    /// The matches of one rule at a node, the nodes of their templates being ids.
    fn found_by(&self, graph: &Graph, view: &dyn View, anchor: NodeId, roots: &[Rooted]) -> Leaf {
        view.kind(anchor);
        let (at, rule) = (roots[0].rule, &self.library.rules()[roots[0].rule]);
        if rule.source.len() == 2 {
            let mut leaf = Leaf::default();
            for join in roots.iter().flat_map(|rooted| joins_at(view, rule, rooted.root, anchor)) {
                if !leaf.joins.contains(&(at, join.clone())) {
                    leaf.joins.push((at, join));
                }
            }
            return leaf;
        }
        let mut sources: Vec<Found> = roots.iter().flat_map(|rooted| sources_at(view, rule, rooted.root, anchor)).collect();
        // Of the operand orders of a symmetric merge only one counts: the same one, whichever of
        // its roots is the anchor.
        if roots.len() > 1 {
            sources.sort_by(|a, b| a.in_order(b, view));
        }
        self.accepted(graph, view, at, sources)
    }

    /// Those of these matches of a rule that can be applied, the nodes of their templates being
    /// ids.
    fn accepted(&self, graph: &Graph, view: &dyn View, at: usize, sources: Vec<Found>) -> Leaf {
        let rule = &self.library.rules()[at];
        let (mut leaf, mut seen) = (Leaf::default(), FxHashSet::default());
        for mut found in sources {
            let place = place_of(rule, &found);
            if seen.contains(&place) || !accept(view, rule, &mut found) {
                continue;
            }
            match edit(view, rule, &found, self.writable) {
                Ok(edit) => {
                    // Where this one closes a cycle, another reading of the operands may not.
                    if !edit.reads_below {
                        seen.insert(place);
                    }
                    leaf.templates.push(Placed::new(view, graph, at, rule, found, edit));
                }
                Err(Refusal::Guard | Refusal::Nothing) => {}
                Err(why) => leaf.refusals.push((at, why.to_string())),
            }
        }
        leaf
    }

    /// Records why a match was not rewritten, once per place.
    fn refuse(&mut self, graph: &Graph, anchor: NodeId, rule: usize, why: &str) {
        let mut hasher = FxHasher::default();
        why.hash(&mut hasher);
        if !self.refused.insert((rule, anchor, hasher.finish())) {
            return;
        }
        let node = graph.node(anchor);
        let name = node.names.iter().flatten().next();
        let place = name.map_or_else(|| format!("{}#{}", node.op.kind().name(), anchor.0), |n| n.to_string());
        let rule = self.library.rules()[rule].name.to_string();
        self.refusals.entry((rule, why.to_string())).or_default().insert(place);
    }
}

/// What was found, with numbers in place of ids, and the nodes by number; `None` if what was asked
/// cannot be remembered.
fn numbered(graph: &Graph, facts: &Facts<'_>, anchors: &[NodeId], asked: &Asked, found: &Leaf, nodes: &mut Numbering) -> Option<Leaf> {
    let questions = Automaton::numbered(graph, facts, anchors, asked, nodes)?;
    let number = |id: NodeId| nodes.get(graph, id).map(NodeId);
    let templates = found.templates.iter().map(|placed| placed.renamed(number)).collect::<Option<Vec<_>>>()?;
    let mut asked: Vec<u32> = questions.iter().filter_map(|question| question.subject()).collect();
    asked.sort_unstable();
    asked.dedup();
    let is_known = |join: &Join| nodes.get(graph, join.shared.node).is_some();
    if !found.joins.iter().all(|(_, join)| is_known(join)) {
        return None;
    }
    let joins = found.joins.iter().map(|(rule, join)| (*rule, renamed(join, &|id| NodeId(nodes.get(graph, id).unwrap_or(id.0))))).collect();
    Some(Leaf { templates, refusals: found.refusals.clone(), questions, asked, joins })
}

/// What was found where it cannot be remembered: by their ids, nodes are known in this graph alone.
fn by_id(graph: &Graph, found: Leaf, asked: &Asked, nodes: &mut Numbering) -> Arc<Leaf> {
    let all: Vec<NodeId> = (0..graph.capacity() as u32).map(NodeId).collect();
    nodes.begin(graph, &all);
    let asked = asked.questions.iter().filter_map(|question| question.subject()).map(|id| id.0).collect();
    Arc::new(Leaf { asked, ..found })
}

fn renamed(join: &Join, name: &dyn Fn(NodeId) -> NodeId) -> Join {
    Join { shared: name(join.shared.node).port(join.shared.port), path: join.path.clone() }
}
