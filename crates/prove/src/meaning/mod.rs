//! What operators mean: each element of a result as a sum over elements of operands.

mod contraction;
mod movement;
mod normalization;
mod pointwise;
mod reduction;
mod table;

use std::collections::HashMap;

use regraft_ir::{DType, Graph, NodeId, Op, TensorType, ValueId};

use crate::index::{Facts, Poly, Source, Table, Var, fresh};
use crate::value::{Simplifier, Sum, Trouble, canonical};

/// What readings of several graphs share.
#[derive(Default)]
pub(crate) struct Shared {
    /// Ranges of the variables in use, and what else is known.
    pub facts: Facts,
    /// Index variables that stand for any element of a tensor of a shape.
    generic: HashMap<Vec<Poly>, Vec<Var>>,
    tables: HashMap<Source, Table>,
    /// Element types of inputs.
    dtypes: HashMap<Source, DType>,
}

impl Shared {
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
    fn learn(&mut self, source: &Source, table: Table) {
        if self.tables.insert(source.clone(), table).is_none() {
            self.facts.set_tables(self.tables.clone());
        }
    }
}

/// The elements of a graph's values.
pub(crate) struct Meaning<'a> {
    graph: &'a Graph,
    shared: &'a mut Shared,
    simplifier: Simplifier,
    memo: HashMap<(ValueId, Vec<Poly>), Sum>,
}

impl<'a> Meaning<'a> {
    pub fn new(graph: &'a Graph, shared: &'a mut Shared, simplifier: Simplifier) -> Meaning<'a> {
        Meaning { graph, shared, simplifier, memo: HashMap::new() }
    }

    /// The element of a value at an index.
    pub fn at(&mut self, value: ValueId, index: &[Poly]) -> Result<Sum, Trouble> {
        let index: Vec<Poly> = index.iter().map(|p| self.shared.facts.reduce(p)).collect();
        let key = (value, index);
        if let Some(known) = self.memo.get(&key) {
            return Ok(known.clone());
        }
        let sum = self.element(value, &key.1)?;
        let sum = self.simplifier.sum(&sum, &self.shared.facts)?;
        self.memo.insert(key, sum.clone());
        Ok(sum)
    }

    /// The sizes of a value.
    pub fn shape(&self, value: ValueId) -> Result<Vec<Poly>, Trouble> {
        Ok(self.ty(value)?.shape.iter().map(Poly::size).collect())
    }

    fn ty(&self, value: ValueId) -> Result<&TensorType, Trouble> {
        self.graph.ty(value).ok_or_else(|| Trouble("a value of unknown type".into()))
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
                self.shared.dtypes.insert(source.clone(), input.ty.dtype);
                return Ok(Sum::read(source, index.to_vec()));
            }
            Op::Constant(constant) => return self.constant(&constant.value, index),
            _ => {}
        }
        let kinds: [fn(&mut Meaning<'a>, ValueId, &[Poly]) -> Result<Option<Sum>, Trouble>; 5] =
            [Meaning::pointwise, Meaning::movement, Meaning::contraction, Meaning::reduction, Meaning::normalization];
        for kind in kinds {
            if let Some(sum) = kind(self, value, index)? {
                return Ok(sum);
            }
        }
        self.opaque(value, index)
    }

    /// A result of an operator that is not looked into: the same for the same operands.
    fn opaque(&mut self, value: ValueId, index: &[Poly]) -> Result<Sum, Trouble> {
        let node = self.graph.node(value.node);
        let mut text = match &node.op {
            Op::Opaque(op) if is_random(&format!("{op:?}")) => return Trouble::new("a random operator"),
            op => format!("{op:?}"),
        };
        for operand in self.operands(value.node) {
            let shape = self.shape(operand)?;
            let generic = self.shared.generic(&shape);
            let element = canonical(&self.at(operand, &generic)?);
            text.push_str(&format!("\n{}: {element:?}", self.ty(operand)?));
        }
        let name = blake3::hash(text.as_bytes()).to_hex();
        Ok(Sum::read(Source::Opaque(name.as_str().into(), value.port), index.to_vec()))
    }

    /// The sum of `body` over a new variable of this range.
    fn sum_over(&mut self, extent: &Poly, body: impl FnOnce(&mut Self, &Poly) -> Result<Sum, Trouble>) -> Result<Sum, Trouble> {
        let var = self.shared.variable(extent);
        let body = body(self, &Poly::var(var))?;
        Ok(Sum::new(body.into_terms().into_iter().map(|(mut term, c)| {
            term.binders.push((var, extent.clone()));
            (term, c)
        })))
    }

    /// The sum of `body` over new variables of these ranges.
    fn sum_over_all(&mut self, extents: &[Poly], body: &mut dyn FnMut(&mut Self, &[Poly]) -> Result<Sum, Trouble>) -> Result<Sum, Trouble> {
        let vars: Vec<Var> = extents.iter().map(|extent| self.shared.variable(extent)).collect();
        let indices: Vec<Poly> = vars.iter().map(|var| Poly::var(*var)).collect();
        let body = body(self, &indices)?;
        Ok(Sum::new(body.into_terms().into_iter().map(|(mut term, c)| {
            term.binders.extend(vars.iter().copied().zip(extents.iter().cloned()));
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

/// Operators whose results differ from run to run.
fn is_random(op: &str) -> bool {
    ["Random", "Multinomial", "Bernoulli"].iter().any(|name| op.contains(name))
}
