//! `Matcher`: finds the moves of a library at given nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use regraft_ir::{Graph, NodeId, OpKind, View};
use regraft_rules::{Found, Library, Refusal, Rooted, Writable, accept, closes_cycle, edit, sources_at};
use rustc_hash::{FxHashMap, FxHashSet};

use super::automaton::{Automaton, Leaf, Numbering};
use super::facts::Facts;
use super::rewrite::Move;
use super::template::{Template, place_of};
use super::witness::{Asked, Question, Witness};

/// Which rules to match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All of them.
    All,
    /// Those with several roots.
    Merges,
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
    automaton: Automaton,
    /// By the kind of the anchor and the rule.
    of_rules: FxHashMap<(OpKind, usize), Automaton>,
    /// Matches that were not rewritten.
    pub refusals: Refusals,
}

impl<'a> Matcher<'a> {
    /// A matcher for these rules, writing only what `writable` accepts.
    pub fn new(library: &'a Library, writable: &'a dyn Writable) -> Matcher<'a> {
        let depths = OpKind::ALL.iter().map(|kind| library.rooted_at(*kind).iter().map(|r| r.depth).max().unwrap_or(0));
        Matcher {
            library,
            writable,
            depths: depths.collect(),
            radius: library.radius(),
            automaton: Automaton::of_all(),
            of_rules: FxHashMap::default(),
            refusals: Default::default(),
        }
    }

    /// The rules.
    pub fn library(&self) -> &'a Library {
        self.library
    }

    /// What may be written.
    pub(crate) fn writable(&self) -> &'a dyn Writable {
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

    /// Moves rooted at one of `anchors`, each match once.
    ///
    /// Patterns no deeper than an anchor's distance are skipped there.
    pub(super) fn at(
        &mut self,
        (graph, facts): (&Graph, &Facts<'_>),
        anchors: &[(NodeId, usize)],
        which: Which,
        seen: &mut FxHashSet<u64>,
    ) -> Vec<Arc<Move>> {
        self.automaton.enter(graph, facts);
        let (mut moves, mut nodes) = (Vec::new(), Numbering::new());
        for (anchor, distance) in anchors {
            let node = graph.node(*anchor);
            if node.constant || self.depth(node.op.kind()) <= *distance {
                continue;
            }
            let leaf = match self.automaton.walk(graph, facts, *anchor, &mut nodes) {
                Some(leaf) => leaf.clone(),
                None => self.learn(graph, facts, *anchor, &mut nodes),
            };
            for template in &leaf.templates {
                if template.depth <= *distance || (which == Which::Merges && !template.is_merge) {
                    continue;
                }
                let places = template.place(graph, &nodes);
                let place = template.identity(&places);
                if seen.contains(&place) {
                    continue;
                }
                let rewrite = template.at(&places);
                if template.reads_below && closes_cycle(graph, &rewrite.patch) {
                    self.refuse(graph, *anchor, template.rule, &Refusal::Cycle.to_string());
                    continue;
                }
                seen.insert(place);
                moves.push(Arc::new(Move::new(template, rewrite, place)));
            }
            for (rule, why) in &leaf.refusals {
                self.refuse(graph, *anchor, *rule, why);
            }
        }
        moves
    }

    /// Matches all rules at a node and remembers what it took. Fills in the nodes that the result
    /// speaks of.
    fn learn(&mut self, graph: &Graph, facts: &Facts<'_>, anchor: NodeId, nodes: &mut Numbering) -> Arc<Leaf> {
        let (found, asked) = self.found(graph, facts, anchor);
        match numbered(graph, facts, anchor, &asked, &found) {
            Some((numbers, known)) => {
                let leaf = Arc::new(Leaf { questions: Vec::new(), ..known });
                self.automaton.learn(graph, facts, anchor, &asked, leaf.clone());
                *nodes = numbers;
                leaf
            }
            // By their ids, nodes are known in this graph alone.
            _ => {
                nodes.clear();
                nodes.extend((0..graph.capacity() as u32).map(NodeId));
                Arc::new(found)
            }
        }
    }

    /// All matches at a node, as templates whose nodes are ids, and the questions that it took.
    fn found(&mut self, graph: &Graph, facts: &Facts<'_>, anchor: NodeId) -> (Leaf, Asked) {
        let (mut all, mut asked) = (Leaf::default(), Asked::default());
        asked.note(Question::Node(anchor));
        let (library, kind, mut nodes) = (self.library, graph.kind(anchor), Numbering::new());
        for roots in library.rooted_at(kind).chunk_by(|a, b| a.rule == b.rule) {
            let automaton = self.of_rules.entry((kind, roots[0].rule)).or_insert_with(Automaton::of_one);
            automaton.enter(graph, facts);
            if let Some(leaf) = automaton.walk(graph, facts, anchor, &mut nodes) {
                let absolute = |question: &Question<u16>| question.about(|at| nodes.get(usize::from(at)).copied());
                leaf.questions.iter().filter_map(absolute).for_each(|question| asked.note(question));
                all.templates.extend(leaf.templates.iter().map(|template| Arc::new(template.with_ids(&template.place(graph, &nodes)))));
                all.refusals.extend(leaf.refusals.iter().cloned());
                continue;
            }
            let witness = Witness::new(graph);
            let found = self.found_by(graph, &witness, anchor, roots);
            let own = witness.into_asked();
            if let Some((_, leaf)) = numbered(graph, facts, anchor, &own, &found)
                && let Some(automaton) = self.of_rules.get_mut(&(kind, roots[0].rule))
            {
                automaton.learn(graph, facts, anchor, &own, Arc::new(leaf));
            }
            own.questions.into_iter().for_each(|question| asked.note(question));
            all.templates.extend(found.templates);
            all.refusals.extend(found.refusals);
        }
        (all, asked)
    }

    /// The matches of one rule at a node, as templates whose nodes are ids.
    fn found_by(&self, graph: &Graph, view: &dyn View, anchor: NodeId, roots: &[Rooted]) -> Leaf {
        let mut leaf = Leaf::default();
        let mut seen = FxHashSet::default();
        view.kind(anchor);
        let (at, rule) = (roots[0].rule, &self.library.rules()[roots[0].rule]);
        let depth = roots.iter().map(|r| r.depth).max().unwrap_or(0);
        let mut sources: Vec<Found> = roots.iter().flat_map(|rooted| sources_at(view, rule, rooted.root, anchor)).collect();
        // Of the operand orders of a symmetric merge only one counts: the same one, whichever of its
        // roots is the anchor.
        if roots.len() > 1 {
            sources.sort_by(|a, b| a.in_order(b, view));
        }
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
                    leaf.templates.push(Arc::new(Template::new(view, graph, at, depth, rule, found, edit)));
                }
                Err(Refusal::Guard | Refusal::Nothing) => {}
                Err(why) => leaf.refusals.push((at, why.to_string())),
            }
        }
        leaf
    }

    /// Records why a match was not rewritten, once per place.
    fn refuse(&mut self, graph: &Graph, anchor: NodeId, rule: usize, why: &str) {
        let node = graph.node(anchor);
        let name = node.names.iter().flatten().next();
        let place = name.map_or_else(|| format!("{}#{}", node.op.kind().name(), anchor.0), |n| n.to_string());
        let rule = self.library.rules()[rule].name.to_string();
        self.refusals.entry((rule, why.to_string())).or_default().insert(place);
    }
}

/// The nodes at an anchor by number, and what was found with numbers in place of ids; `None` if what
/// was asked cannot be remembered.
fn numbered(graph: &Graph, facts: &Facts<'_>, anchor: NodeId, asked: &Asked, found: &Leaf) -> Option<(Numbering, Leaf)> {
    let (nodes, questions) = Automaton::numbered(graph, facts, anchor, asked)?;
    let templates = found.templates.iter().map(|template| template.numbered(graph, &nodes).map(Arc::new)).collect::<Option<Vec<_>>>()?;
    Some((nodes, Leaf { templates, refusals: found.refusals.clone(), questions }))
}
