//! Semantics of operators: each element of a result as a sum over elements of operands.

mod attention;
mod constants;
mod contraction;
mod definedness;
mod integer;
mod movement;
mod normalization;
mod one_hot;
mod pointwise;
mod position;
mod quantization;
mod recurrent;
mod reduction;
mod resampling;
mod table;

pub(crate) use constants::Constants;
pub(crate) use pointwise::is_pointwise;

use std::collections::HashMap;
use std::rc::Rc;

use regraft_ir::{Class, Const, Dim, Graph, NodeId, Op, OpKind, TensorType, ValueId, eval};
use rustc_hash::FxHashMap;

use crate::index::{Atom, Facts, Poly, Source, Table, Var, fresh};
use crate::meaning::definedness::Sign;
use crate::value::{Claim, Obligation, Simplifier, Sum, Trouble, canonical, wrapped};

/// An element that reads more input elements than this does not record which.
const MOST_OBLIGATIONS: usize = 32;

/// Sums of so many terms with summed variables are searched for like ones.
const MANY: usize = 4;

/// What must be known about the output index before an element can be written out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The digits of a variable: `v = low * h + l`.
    Cut(Var, Poly),
    /// Whether a sum is at least 0.
    Sign(Poly),
    /// The value of a variable.
    Value(Var),
}

/// What readings of several graphs share.
#[derive(Default)]
pub(crate) struct Shared {
    /// Variables of the output index with their ranges, if cases are distinguished as elements need
    /// them.
    pub asked: Vec<(Var, Poly)>,
    /// Summed variables in use, with their ranges.
    summed: Vec<(Var, Poly)>,
    /// What the element that could not be written out needs.
    pub need: Option<Need>,
    /// Ranges of the variables in use, and what else is known.
    pub facts: Facts,
    /// Index variables for an arbitrary element of a tensor of a given shape.
    generic: HashMap<Vec<Poly>, Vec<Var>>,
    /// What is known outside all conditions that currently apply to elements, if there are any.
    certain: Option<Vec<Poly>>,
    tables: HashMap<Source, Rc<Table>>,
    /// How constants are read, and those read so far.
    constants: Constants,
    /// What must hold for the elements that were read to have values.
    pub obligations: Vec<Obligation>,
    /// Whether elements were read without recording an obligation, because there were too many.
    pub crowded: bool,
    /// Claims that always hold, for reasons the claims do not show.
    pub shown: Vec<Claim>,
}

impl Shared {
    pub fn new(facts: Facts, asked: Vec<(Var, Poly)>, constants: Constants) -> Shared {
        Shared { facts, asked, constants, ..Shared::default() }
    }

    /// A new variable of this range.
    pub fn variable(&mut self, extent: &Poly) -> Var {
        let var = fresh();
        self.facts.range(var, extent.clone());
        var
    }

    fn generic(&mut self, shape: &[Poly]) -> Vec<Poly> {
        if !self.generic.contains_key(shape) {
            let vars = shape.iter().map(|extent| self.variable(extent)).collect();
            self.generic.insert(shape.to_vec(), vars);
        }
        self.generic[shape].iter().map(|var| Poly::var(*var)).collect()
    }

    /// Makes a small constant's elements known.
    fn learn(&mut self, source: &Source, table: Rc<Table>) {
        if self.tables.insert(source.clone(), table).is_none() {
            self.facts.set_tables(self.tables.clone());
        }
    }
}

/// The element of a value at an index, if the operator is of the kind that the function handles.
type Kind<'a> = fn(&mut Meaning<'a>, ValueId, &[Poly]) -> Result<Option<Sum>, Trouble>;

/// An element at given values of summed variables.
type Body<'b, 'a> = &'b mut dyn FnMut(&mut Meaning<'a>, &[Poly]) -> Result<Sum, Trouble>;

/// An element, and what must hold for it to have a value.
type Known = (Sum, Rc<[Obligation]>);

/// The elements of a graph's values.
pub(crate) struct Meaning<'a> {
    graph: &'a Graph,
    shared: &'a mut Shared,
    simplifier: Simplifier,
    memory: &'a mut Memory,
    /// The element that was asked for last.
    last: Sum,
    /// Nodes whose elements are being written out, and how many of their sums are open.
    open: Vec<(NodeId, usize)>,
}

/// The sum with like terms combined, whatever their summed variables are called, if there are many:
/// the blocks of a fast product cancel before they are multiplied again.
fn gathered(sum: Sum) -> Sum {
    if sum.terms().iter().filter(|(term, _)| !term.binders.is_empty()).count() < MANY {
        return sum;
    }
    let canonical = canonical(&sum);
    if canonical.terms().len() == sum.terms().len() {
        return sum;
    }
    // Canonical names are for comparisons only: inside of another sum they would clash.
    Sum::new(canonical.into_terms().into_iter().map(|(term, c)| (term.refreshed(), c)))
}

/// True if each element of the result is one of the first operand's, or an average of some with
/// weights that add up to 1.
fn keeps_what_is_alike(op: &Op) -> bool {
    match op {
        Op::Resize(op) => op.roi.is_empty(),
        op => matches!(op.kind(), OpKind::GatherND),
    }
}

/// The sizes of a value.
pub(crate) fn shape(graph: &Graph, value: ValueId) -> Result<Vec<Poly>, Trouble> {
    Ok(ty(graph, value)?.shape.iter().map(Poly::size).collect())
}

fn ty(graph: &Graph, value: ValueId) -> Result<&TensorType, Trouble> {
    graph.ty(value).ok_or_else(|| Trouble("a value of unknown type".into()))
}

/// What was found out about a graph's values under the same facts.
#[derive(Default)]
pub(crate) struct Memory {
    /// Elements, and what must hold for them to have values.
    elements: FxHashMap<(ValueId, Vec<Poly>), Known>,
    /// What is known about all elements of values.
    signs: HashMap<ValueId, Sign>,
    /// Constants computed from others, without rounding.
    computed: HashMap<ValueId, Option<Rc<Const>>>,
    /// Variables that a node sums over, by how many of its sums are open, so that the same element
    /// is read at the same index again.
    names: HashMap<(NodeId, usize, Vec<Poly>), Range>,
}

/// The range of a sum over several variables.
#[derive(Clone)]
struct Range {
    /// Values of the variables, one list for each choice of those that are written out.
    choices: Vec<Vec<Poly>>,
    /// The variables that stay summed.
    binders: Vec<(Var, Poly)>,
}

impl<'a> Meaning<'a> {
    /// Reads the graph's values; `memory` must match the graph, the facts and the simplifier.
    pub fn new(graph: &'a Graph, shared: &'a mut Shared, memory: &'a mut Memory, simplifier: Simplifier) -> Meaning<'a> {
        Meaning { graph, shared, simplifier, memory, last: Sum::default(), open: Vec::new() }
    }

    /// The element of a value at an index.
    pub fn at(&mut self, value: ValueId, index: &[Poly]) -> Result<Sum, Trouble> {
        let index: Vec<Poly> = index.iter().map(|p| self.shared.facts.reduce(p)).collect();
        if !self.shared.asked.is_empty() {
            index.iter().try_for_each(|p| self.digits(p))?;
        }
        let key = (value, index);
        if let Some((known, obligations)) = self.memory.elements.get(&key) {
            self.last = known.clone();
            self.shared.obligations.extend_from_slice(obligations);
            return Ok(known.clone());
        }
        let met = self.met();
        self.open.push((value.node, 0));
        let sum = self.element(value, &key.1);
        self.open.pop();
        if sum.is_err() {
            self.shared.obligations.truncate(met);
        }
        let sum = sum?;
        // An element that is only moved needs no simplification.
        if sum != self.last {
            self.last = gathered(self.simplifier.sum(&sum, &self.shared.facts)?);
        }
        let dtype = self.ty(value)?.dtype;
        if dtype.class() == Class::Int {
            self.last = wrapped(&self.last, dtype, &self.shared.facts)?;
        }
        let mut obligations = self.shared.obligations.split_off(met);
        obligations.sort();
        obligations.dedup();
        if obligations.len() > MOST_OBLIGATIONS {
            self.shared.crowded = true;
            obligations.retain(|obligation| !matches!(obligation.claim, Claim::Read(_)));
        }
        self.shared.obligations.extend_from_slice(&obligations);
        self.memory.elements.insert(key, (self.last.clone(), obligations.into()));
        Ok(self.last.clone())
    }

    /// Asks for the digits of an output variable that is divided, or of a summed variable whose
    /// range they fill.
    fn digits(&mut self, poly: &Poly) -> Result<(), Trouble> {
        let mut cut = None;
        poly.any(&mut |atom| {
            if let Atom::Floor(a, b) = atom {
                let low = |var: Var, extent: &Poly| {
                    let (factor, _) = a.linear(var)?;
                    b.exact(&factor).filter(|low| !factor.is_zero() && low.known() != Some(1) && low != extent)
                };
                let asked = || self.shared.asked.iter().find_map(|(var, extent)| Some(Need::Cut(*var, low(*var, extent)?)));
                let summed = || {
                    let filled = |(var, extent): &(Var, Poly)| low(*var, extent).filter(|low| extent.exact(low).is_some());
                    self.shared.summed.iter().find_map(|of| Some(Need::Cut(of.0, filled(of)?)))
                };
                cut = cut.take().or_else(|| summed().or_else(asked));
            }
            false
        });
        match cut {
            Some(need) => self.ask(need),
            None => Ok(()),
        }
    }

    /// Asks for the sign of a condition that involves output variables only.
    pub(super) fn decided(&mut self, condition: &Poly) -> Result<(), Trouble> {
        let facts = &self.shared.facts;
        if self.shared.asked.is_empty() || facts.nonnegative(condition) || self.never(condition) {
            return Ok(());
        }
        let mut vars = Vec::new();
        condition.vars(&mut vars);
        if vars.is_empty() || !vars.iter().all(|var| self.shared.asked.iter().any(|(asked, _)| asked == var)) {
            return Ok(());
        }
        self.ask(Need::Sign(condition.clone()))
    }

    /// Asks for the value of an output variable with few values that, together with a summed one,
    /// chooses a part: the sum then decides what remains.
    fn chosen(&mut self, poly: &Poly) -> Result<(), Trouble> {
        if !self.shared.summed.iter().any(|(var, _)| poly.has(*var)) {
            return Ok(());
        }
        self.short(std::slice::from_ref(poly)).map_or(Ok(()), |var| self.ask(Need::Value(var)))
    }

    /// An output variable with few values on which the index depends.
    pub(super) fn short(&self, index: &[Poly]) -> Option<Var> {
        let most = Poly::number(self.simplifier.choose - 1);
        let short = |var: Var| self.shared.facts.at_least(&most, &Poly::var(var));
        self.shared.asked.iter().map(|(var, _)| *var).find(|var| index.iter().any(|p| p.has(*var)) && short(*var))
    }

    fn ask<T>(&mut self, need: Need) -> Result<T, Trouble> {
        self.shared.need = Some(need);
        Trouble::new("it depends on the output index")
    }

    fn shape(&self, value: ValueId) -> Result<Vec<Poly>, Trouble> {
        shape(self.graph, value)
    }

    fn ty(&self, value: ValueId) -> Result<&TensorType, Trouble> {
        ty(self.graph, value)
    }

    fn operand(&self, node: NodeId, at: usize) -> Result<ValueId, Trouble> {
        self.graph.node(node).inputs.get(at).copied().ok_or_else(|| Trouble("a missing operand".into()))
    }

    fn operands(&self, node: NodeId) -> Vec<ValueId> {
        self.graph.node(node).inputs.to_vec()
    }

    fn element(&mut self, value: ValueId, index: &[Poly]) -> Result<Sum, Trouble> {
        let node = self.graph.node(value.node);
        match &node.op {
            Op::Input(input) => {
                let source = Source::Input(input.name.clone());
                self.shared.facts.all_of(&source, input.ty.dtype);
                // An axis of size one has only one index.
                let along = |(p, size): (&Poly, &Dim)| if size.is(1) { Poly::default() } else { p.clone() };
                let read = Sum::read(source, index.iter().zip(&input.ty.shape).map(along).collect());
                // Elements of other classes always have a value.
                if input.ty.dtype.class() == Class::Real {
                    self.require_read(&read);
                }
                return Ok(read);
            }
            Op::Constant(constant) => return self.constant(&constant.value, index),
            _ => {}
        }
        if let Some(constant) = self.whole_numbers(value) {
            return self.constant(&constant, index);
        }
        let kinds: [Kind<'a>; 8] = [
            Meaning::pointwise,
            Meaning::movement,
            Meaning::contraction,
            Meaning::reduction,
            Meaning::normalization,
            Meaning::position,
            Meaning::quantization,
            Meaning::recurrent,
        ];
        for kind in kinds {
            if let Some(sum) = kind(self, value, index)? {
                return Ok(sum);
            }
        }
        self.opaque(value, index)
    }

    /// The constant that a computation on integers yields.
    fn whole_numbers(&mut self, value: ValueId) -> Option<Rc<Const>> {
        if !self.graph.is_constant(value) || !matches!(self.graph.ty(value)?.dtype.class(), Class::Int | Class::Bool) {
            return None;
        }
        let graph = self.graph;
        self.memory.computed.entry(value).or_insert_with(|| eval::exact_constant(graph, value, table::LARGEST).map(Rc::new)).clone()
    }

    /// A result of an operator of which no more is known than that it is the same for the same
    /// operands, and for some that it picks elements of the first.
    fn opaque(&mut self, value: ValueId, index: &[Poly]) -> Result<Sum, Trouble> {
        let node = self.graph.node(value.node);
        let mut text = match &node.op {
            Op::Opaque(op) if op.effects => return Trouble::new("an operator that is equal to nothing but itself"),
            op => format!("{op:?}"),
        };
        for (at, operand) in self.operands(value.node).into_iter().enumerate() {
            let shape = self.shape(operand)?;
            let generic = self.shared.generic(&shape);
            let element = self.at_any(operand, &generic)?;
            if at == 0 && keeps_what_is_alike(&node.op) && element.known().is_some() {
                return Ok(element);
            }
            let element = canonical(&element);
            text.push_str(&format!("\n{}: {element:?}", self.ty(operand)?));
        }
        let name = blake3::hash(text.as_bytes()).to_hex();
        let source = Source::Opaque(name.as_str().into(), value.port);
        let dtype = self.ty(value)?.dtype;
        self.shared.facts.all_of(&source, dtype);
        Ok(Sum::read(source, index.to_vec()))
    }

    /// The element of a value at an arbitrary index, regardless of the conditions under which its
    /// operator is read: they may involve the same variables.
    fn at_any(&mut self, value: ValueId, index: &[Poly]) -> Result<Sum, Trouble> {
        self.regardless(|m| m.at(value, index))
    }

    /// What `body` returns outside of the conditions under which the current operator is read.
    fn regardless(&mut self, body: impl FnOnce(&mut Self) -> Result<Sum, Trouble>) -> Result<Sum, Trouble> {
        let Some(certain) = self.shared.certain.take() else { return body(self) };
        let supposed = self.shared.facts.instead(certain.clone());
        let elements = std::mem::take(&mut self.memory.elements);
        let result = body(self);
        self.memory.elements = elements;
        self.shared.facts.forget(supposed);
        self.shared.certain = Some(certain);
        result
    }

    /// What `body` returns where a condition holds, and 0 elsewhere.
    fn where_holds(&mut self, condition: &Poly, body: &mut dyn FnMut(&mut Self) -> Result<Sum, Trouble>) -> Result<Sum, Trouble> {
        if self.never(condition) {
            return Ok(Sum::default());
        }
        let before = self.shared.facts.suppose(condition.clone());
        let outermost = self.shared.certain.is_none();
        if outermost {
            self.shared.certain = Some(before.clone());
        }
        // Cached elements are in the form they have where the condition holds.
        let elements = std::mem::take(&mut self.memory.elements);
        let met = self.met();
        let result = body(self);
        self.met_under(met, &[], std::slice::from_ref(condition));
        self.memory.elements = elements;
        if outermost {
            self.shared.certain = None;
        }
        self.shared.facts.forget(before);
        Ok(result?.only_where(condition))
    }

    /// The sum of `body` over a variable of this range.
    fn sum_over(&mut self, extent: &Poly, body: &mut dyn FnMut(&mut Self, &Poly) -> Result<Sum, Trouble>) -> Result<Sum, Trouble> {
        self.sum_over_all(std::slice::from_ref(extent), &mut |m, vars| body(m, &vars[0]))
    }

    /// The sum of `body` over variables of these ranges; short sums are written out if the
    /// simplifier says so.
    fn sum_over_all(&mut self, extents: &[Poly], body: Body<'_, 'a>) -> Result<Sum, Trouble> {
        self.sum_written_out(self.simplifier.expand, extents, body)
    }

    /// The same; sums over ranges up to `most` are written out.
    fn sum_written_out(&mut self, most: i64, extents: &[Poly], body: Body<'_, 'a>) -> Result<Sum, Trouble> {
        let depth = self.open.last_mut().map(|(node, sums)| {
            *sums += 1;
            (*node, *sums)
        });
        let result = self.sum_over_range(depth, most, extents, body);
        if let Some((_, sums)) = self.open.last_mut() {
            *sums -= 1;
        }
        result
    }

    fn sum_over_range(&mut self, place: Option<(NodeId, usize)>, most: i64, extents: &[Poly], body: Body<'_, 'a>) -> Result<Sum, Trouble> {
        let key = place.map(|(node, depth)| (node, depth, extents.to_vec()));
        let known = key.as_ref().and_then(|key| self.memory.names.get(key).cloned());
        let mut range = known.unwrap_or_else(|| self.range(most, extents));
        loop {
            let (before, met) = (self.shared.summed.len(), self.met());
            self.shared.summed.extend(range.binders.iter().cloned());
            let result = self.sum_of(&range, body);
            self.shared.summed.truncate(before);
            // A divided variable is summed by its digits.
            let cut = match self.shared.need.clone() {
                Some(Need::Cut(var, low)) => range.binders.iter().position(|(v, _)| *v == var).map(|at| (at, var, low)),
                _ => None,
            };
            let digits = cut.and_then(|(at, var, low)| Some((at, var, range.binders[at].1.exact(&low)?, low)));
            let Some((at, var, high, low)) = digits else {
                if let Some(key) = key {
                    self.memory.names.insert(key, range);
                }
                return result;
            };
            self.shared.need = None;
            self.shared.obligations.truncate(met);
            let (h, l) = (self.shared.variable(&high), self.shared.variable(&low));
            let digits = Poly::var(h).mul(&low).add(&Poly::var(l));
            range.binders.splice(at..=at, [(h, high), (l, low)]);
            range.choices.iter_mut().flatten().for_each(|p| *p = p.with(var, &digits));
        }
    }

    /// Variables of these ranges; those up to `most` are written out.
    fn range(&mut self, most: i64, extents: &[Poly]) -> Range {
        let mut range = Range { choices: vec![Vec::new()], binders: Vec::new() };
        for extent in extents {
            let short = extent.known().filter(|e| (0..=most).contains(e));
            let values: Vec<Poly> = match short {
                Some(count) => (0..count).map(Poly::number).collect(),
                None => {
                    let var = self.shared.variable(extent);
                    range.binders.push((var, extent.clone()));
                    vec![Poly::var(var)]
                }
            };
            let longer = |choice: &Vec<Poly>| values.iter().map(|v| choice.iter().chain([v]).cloned().collect()).collect::<Vec<_>>();
            range.choices = range.choices.iter().flat_map(longer).collect();
        }
        range
    }

    fn sum_of(&mut self, range: &Range, body: Body<'_, 'a>) -> Result<Sum, Trouble> {
        let mut terms = Vec::new();
        let met = self.met();
        for choice in &range.choices {
            terms.extend(body(self, choice)?.into_terms());
        }
        self.met_under(met, &range.binders, &[]);
        Ok(Sum::new(terms.into_iter().map(|(mut term, c)| {
            term.binders.extend(range.binders.iter().cloned());
            (term, c)
        })))
    }

    /// The element of an operand that is broadcast to `shape`, at an index into that shape.
    fn broadcast(&mut self, operand: ValueId, shape: &[Poly], index: &[Poly]) -> Result<Sum, Trouble> {
        let own = self.shape(operand)?;
        let missing = shape.len().checked_sub(own.len()).ok_or_else(|| Trouble("an operand of too many axes".into()))?;
        let inner = own.iter().enumerate().map(|(axis, size)| {
            let at = &index[missing + axis];
            if *size == shape[missing + axis] { at.clone() } else { self.shared.facts.stretch(at, size) }
        });
        let inner: Vec<Poly> = inner.collect();
        self.at(operand, &inner)
    }
}
