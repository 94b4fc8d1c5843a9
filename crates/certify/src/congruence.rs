//! Equality by congruence: the same operators on the same operands.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use regraft_ir::{Attr, Dim, Folded, Graph, Misfit, NodeId, Op, ValueId};

use crate::oracle::Oracle;

/// Constants with more elements are not recomputed.
const MAX_ELEMENTS: i64 = 1 << 27;

/// Rounding found by recomputing constant expressions and comparing them with the stored constants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rounding {
    /// Constants that were folded or lost subnormal elements, and parameters that were rounded.
    pub constants: usize,
    /// The largest deviation from double precision, relative to the tensor's largest magnitude.
    pub bound: f64,
}

impl Rounding {
    pub(crate) fn join(&mut self, other: Rounding) {
        self.constants += other.constants;
        self.bound = self.bound.max(other.bound);
    }

    fn note(&mut self, bound: f64) {
        self.join(Rounding { constants: 1, bound });
    }
}

/// Decides whether two operators kept verbatim are the same, given their nodes in both graphs, and
/// which operands must then be equal.
pub trait Verbatims {
    /// Pairs of operands that must be equal, or why the operators differ.
    fn same(&mut self, a: NodeId, b: NodeId) -> Result<Vec<(ValueId, ValueId)>, String>;
}

/// Two graphs, and the equalities known between them.
pub struct Congruence<'a> {
    a: &'a Graph,
    b: &'a Graph,
    seen: HashSet<(ValueId, ValueId)>,
    /// Pairing of operators with effects, from either side: one to one.
    effects: [HashMap<NodeId, NodeId>; 2],
    /// What symbols of `b` are in `a`: sizes of verbatim results are named after the results.
    symbols: HashMap<String, Dim>,
    /// Sizes that must be equal, and where.
    sizes: Vec<(Vec<Dim>, Vec<Dim>, String)>,
    /// Pairs of constant expression and stored constant, grouped by the constants they depend on.
    folded: BTreeMap<Vec<NodeId>, Vec<(ValueId, ValueId)>>,
    /// What was rounded in `b`.
    pub rounding: Rounding,
}

impl<'a> Congruence<'a> {
    /// Nothing is known yet.
    pub fn new(a: &'a Graph, b: &'a Graph) -> Congruence<'a> {
        let (seen, effects, symbols, sizes, folded) = Default::default();
        Congruence { a, b, seen, effects, symbols, sizes, folded, rounding: Rounding::default() }
    }

    /// Whether these values are equal expressions over inputs of the same names and types.
    ///
    /// A constant of `b` may stand for a constant expression of `a`: recomputed in double
    /// precision, the expression must round to it. Or it may be one of `a` with zeros instead of
    /// subnormal elements. Identities are ignored. It holds only if [`settle`](Self::settle) does.
    pub fn values(&mut self, a: ValueId, b: ValueId, verbatims: &mut dyn Verbatims) -> Result<(), String> {
        let mut todo = vec![(a, b)];
        while let Some((a, b)) = todo.pop() {
            let (a, b) = (self.a.named(a), self.b.named(b));
            if !self.seen.insert((a, b)) {
                continue;
            }
            let (x, y) = (self.a.node(a.node), self.b.node(b.node));
            let place = |why: &str| format!("{}: {why}", describe(self.a, a));
            if let (Op::Opaque(p), Op::Opaque(q)) = (&x.op, &y.op) {
                if a.port != b.port {
                    return Err(place("another result of it"));
                }
                let [ours, theirs] = &mut self.effects;
                let compared = ours.get(&a.node) == Some(&b.node);
                let paired = *ours.entry(a.node).or_insert(b.node) == b.node && *theirs.entry(b.node).or_insert(a.node) == a.node;
                if (p.effects || q.effects) && !paired {
                    return Err(place("an operator with effects, which is equal to itself alone"));
                }
                // Bodies are replayed once, however many results are read.
                todo.extend(if compared { Vec::new() } else { verbatims.same(a.node, b.node).map_err(|why| place(&why))? });
                self.learn(a.node, b.node);
                continue;
            }
            if let (Op::Constant(x), Op::Constant(y)) = (&x.op, &y.op) {
                if x.value != y.value {
                    let flushed = x.value.flushed().filter(|(flushed, _)| *flushed == y.value);
                    self.rounding.note(flushed.ok_or_else(|| place("another constant"))?.1);
                }
                continue;
            }
            let loose = same_operator(&x.op, &y.op).filter(|_| a.port == b.port && x.inputs.len() == y.inputs.len());
            match loose {
                Some(loose) => {
                    for attribute in loose {
                        match attribute {
                            Loose::Rounded(difference) => self.rounding.note(difference),
                            Loose::Sizes(p, q) => self.sizes.push((p, q, place(&format!("{} instead of {}", shown(&y.op), shown(&x.op))))),
                        }
                    }
                    todo.extend(x.inputs.iter().copied().zip(y.inputs.iter().copied()));
                }
                None if x.constant && y.constant => {
                    let origin = leaves(self.b, b).and_then(|_| leaves(self.a, a));
                    let origin = origin.ok_or_else(|| place("a constant expression that is too large to be computed again"))?;
                    self.folded.entry(origin).or_default().push((a, b));
                }
                None => return Err(place(&format!("{} instead of {}", shown(&y.op), shown(&x.op)))),
            }
        }
        Ok(())
    }

    /// Checks recomputed constants, and that sizes in attributes agree.
    pub fn settle(&mut self, oracle: &mut dyn Oracle) -> Result<(), String> {
        self.recompute(oracle)?;
        let meaning = |symbol: &str| Some(self.symbols.get(symbol).cloned().unwrap_or_else(|| Dim::symbol(symbol)));
        for (p, q, place) in &self.sizes {
            let same = p.len() == q.len() && p.iter().zip(q).all(|(p, q)| q.substitute(&meaning).as_ref() == Some(p));
            if !same {
                return Err(place.clone());
            }
        }
        Ok(())
    }

    /// Results of equal operators have equal sizes.
    fn learn(&mut self, a: NodeId, b: NodeId) {
        for (p, q) in self.a.node(a).types.iter().zip(&self.b.node(b).types) {
            let (Some(p), Some(q)) = (p, q) else { continue };
            for (size, named) in p.shape.iter().zip(&q.shape).filter(|_| p.rank() == q.rank()) {
                if let Some(symbol) = named.as_symbol().filter(|symbol| size.as_symbol() != Some(symbol)) {
                    self.symbols.entry(symbol.into()).or_insert_with(|| size.clone());
                }
            }
        }
    }

    /// Asks how far the constants of `b` are from the expressions of `a`, grouped by the constants
    /// they depend on, and records the answer.
    fn recompute(&mut self, oracle: &mut dyn Oracle) -> Result<(), String> {
        let groups: Vec<_> = std::mem::take(&mut self.folded).into_values().collect();
        let folded: Vec<Folded> = groups.iter().map(|pairs| Folded::new(self.a, self.b, pairs)).collect();
        for (pairs, differences) in groups.iter().zip(oracle.differences(&folded)) {
            let place = |misfit: &Misfit| describe(self.a, pairs[if let Misfit::Other(at) = misfit { *at } else { 0 }].0);
            differences.map_err(|misfit| format!("{}: {misfit}", place(&misfit)))?.into_iter().for_each(|off| self.rounding.note(off));
        }
        Ok(())
    }
}

/// The constants a constant expression depends on; `None` if it is larger than the writer folds.
fn leaves(graph: &Graph, value: ValueId) -> Option<Vec<NodeId>> {
    let (mut stack, mut seen) = (vec![value.node], BTreeSet::new());
    while let Some(id) = stack.pop() {
        let node = graph.node(id);
        if node.types.iter().any(|ty| ty.as_ref().and_then(|t| t.elements().known()).is_none_or(|n| n > MAX_ELEMENTS)) {
            return None;
        }
        stack.extend(node.inputs.iter().map(|v| v.node).filter(|id| seen.insert(*id)));
    }
    Some(seen.into_iter().filter(|id| graph.node(*id).inputs.is_empty()).collect())
}

/// An attribute that two operators share only in a wider sense.
enum Loose {
    /// It was rounded, by this much relative to its magnitude.
    Rounded(f64),
    /// Sizes that are written differently.
    Sizes(Vec<Dim>, Vec<Dim>),
}

/// The attributes that differ, if the operators can be the same; `None` if they cannot.
fn same_operator(a: &Op, b: &Op) -> Option<Vec<Loose>> {
    if a == b {
        return Some(Vec::new());
    }
    if a.kind() != b.kind() || matches!(a, Op::Input(_) | Op::Constant(_) | Op::Opaque(_)) {
        return None;
    }
    let mut loose = Vec::new();
    for ((_, x), (_, y)) in a.attrs().into_iter().zip(b.attrs()) {
        match (x, y) {
            (x, y) if x == y => {}
            // The file stores attributes in single precision.
            (Attr::Float(x), Attr::Float(y)) if x.0 as f32 == y.0 as f32 => {
                loose.push(Loose::Rounded((x.0 - y.0).abs() / x.0.abs().max(f64::MIN_POSITIVE)));
            }
            (x @ Attr::Dims(_), y) | (x, y @ Attr::Dims(_)) => loose.push(Loose::Sizes(sizes(x)?, sizes(y)?)),
            _ => return None,
        }
    }
    Some(loose)
}

/// An attribute as a list of sizes, if it is one.
fn sizes(attr: Attr) -> Option<Vec<Dim>> {
    match attr {
        Attr::Dims(sizes) => Some(sizes),
        Attr::Ints(sizes) => Some(sizes.into_iter().map(Dim::from).collect()),
        _ => None,
    }
}

fn shown(op: &Op) -> String {
    let attrs: Vec<String> = op.attrs().iter().filter(|(_, v)| *v != Attr::Absent).map(|(name, value)| format!("{name}={value}")).collect();
    match op {
        Op::Input(input) => format!("the input `{}`", input.name),
        op if attrs.is_empty() => op.kind().name().into(),
        op => format!("{}({})", op.kind().name(), attrs.join(", ")),
    }
}

/// A value in words: by its name in the model, if it has one.
pub(crate) fn describe(graph: &Graph, value: ValueId) -> String {
    let node = graph.node(value.node);
    match node.names.get(value.port as usize).and_then(Option::as_ref) {
        Some(name) => format!("`{name}`"),
        None => format!("{} {}", node.op.kind().name(), crate::step::show(value)),
    }
}
