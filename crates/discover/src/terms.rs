//! Terms: operators applied to variables and to results of other terms, each stored once.
//!
//! A graph of the generator is a set of terms closed under operands ([`TermSet`]). As equal
//! applications are one term and commutative operands have a fixed order, a graph has no two equal
//! operators, and no order of its operators.

use regraft_ir::TensorType;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

use crate::error::DiscoverError;
use crate::operator::{OperandGuard, Operator};
use crate::set::{MOST_OPERATORS, TermId, TermSet};
use crate::spec::Spec;
use crate::types::{InstanceId, TypeId, Types};

/// Number of a value: a variable, or a result of a term.
pub type ValueId = u32;

/// Operands in order.
pub type Operands = SmallVec<[ValueId; 3]>;

/// An operator application, or a variable passed through.
#[derive(Clone, Debug)]
pub struct Term {
    /// The applied instance; `None` for a variable passed through.
    pub instance: Option<InstanceId>,
    /// Its operands.
    pub operands: Operands,
    /// The first result; others follow.
    pub first: ValueId,
    /// Number of results.
    pub results: u32,
    /// Itself and all terms it is built from; empty for a variable.
    pub closure: TermSet,
}

impl Term {
    /// The results.
    pub fn values(&self) -> std::ops::Range<ValueId> {
        self.first..self.first + self.results
    }
}

/// A variable or a result.
#[derive(Clone, Copy, Debug)]
struct ValueInfo {
    ty: TypeId,
    owner: TermId,
}

/// All terms of up to a given number of operators. The first terms, and the first values, are the
/// variables, in the specification's order.
#[derive(Debug)]
pub struct Terms {
    /// Types and instances.
    pub types: Types,
    list: Vec<Term>,
    values: Vec<ValueInfo>,
    index: FxHashMap<u64, TermId>,
    /// First term of every size, and one past the last.
    starts: Vec<TermId>,
    variables: usize,
}

impl Terms {
    /// All terms of up to `size` operators.
    ///
    /// Fails if they need more than `budget` bytes.
    pub fn generate(spec: &Spec, size: usize, budget: u64) -> Result<Terms, DiscoverError> {
        if size == 0 || size > MOST_OPERATORS {
            return Err(DiscoverError::Size { asked: size, most: MOST_OPERATORS });
        }
        let mut terms = Terms {
            types: Types::default(),
            list: Vec::new(),
            values: Vec::new(),
            index: FxHashMap::default(),
            starts: vec![0],
            variables: spec.variables.len(),
        };
        for (at, variable) in spec.variables.iter().enumerate() {
            let ty = terms.types.id(&variable.ty);
            let at = at as u32;
            terms.values.push(ValueInfo { ty, owner: at });
            let operands = Operands::from_slice(&[at]);
            terms.list.push(Term { instance: None, operands, first: at, results: 1, closure: TermSet::EMPTY });
        }
        terms.starts.push(terms.list.len() as TermId);
        for size in 1..=size {
            terms.grow(spec, size, budget)?;
        }
        Ok(terms)
    }

    /// Largest number of operators of a term.
    pub fn size(&self) -> usize {
        self.starts.len() - 2
    }

    /// All terms.
    pub fn list(&self) -> &[Term] {
        &self.list
    }

    /// The term with this number.
    pub fn get(&self, id: TermId) -> &Term {
        &self.list[id as usize]
    }

    /// Numbers of the terms built from `size` operators.
    pub fn of_size(&self, size: usize) -> std::ops::Range<TermId> {
        self.starts[size]..self.starts[size + 1]
    }

    /// Number of values.
    pub fn values(&self) -> usize {
        self.values.len()
    }

    /// The term that a value is a result of.
    pub fn owner(&self, value: ValueId) -> TermId {
        self.values[value as usize].owner
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &TensorType {
        self.types.get(self.values[value as usize].ty)
    }

    /// The number of the type of a value.
    pub fn type_id(&self, value: ValueId) -> TypeId {
        self.values[value as usize].ty
    }

    /// Whether a value is a variable; its number is then the variable's.
    pub fn is_variable(&self, value: ValueId) -> bool {
        (value as usize) < self.variables
    }

    /// Number of variables.
    pub fn variables(&self) -> usize {
        self.variables
    }

    /// The operator of a term; `None` for a variable.
    pub fn operator<'a>(&self, spec: &'a Spec, id: TermId) -> Option<&'a Operator> {
        self.get(id).instance.map(|i| &spec.operators[self.types.instance(i).operator])
    }

    /// The terms of a graph that no other term of it reads: those in no other term's closure.
    pub fn sinks(&self, graph: &TermSet) -> SmallVec<[TermId; MOST_OPERATORS]> {
        let read = |id: TermId| graph.as_slice().iter().any(|other| *other != id && self.get(*other).closure.contains(id));
        graph.as_slice().iter().copied().filter(|id| !read(*id)).collect()
    }

    /// The results of a graph: those that no term of it reads.
    pub fn outputs(&self, graph: &TermSet) -> SmallVec<[ValueId; 8]> {
        let read = |value: ValueId| {
            let reads = |id: &TermId| self.get(*id).instance.is_some() && self.get(*id).operands.contains(&value);
            graph.as_slice().iter().any(reads)
        };
        graph.as_slice().iter().flat_map(|id| self.get(*id).values()).filter(|value| !read(*value)).collect()
    }

    /// The smallest graph that contains these terms.
    pub fn closed(&self, ids: &[TermId]) -> Option<TermSet> {
        ids.iter().try_fold(TermSet::EMPTY, |set, id| {
            let closure = &self.get(*id).closure;
            if closure.is_empty() { set.with(*id) } else { set.union(closure) }
        })
    }

    /// The term that applies `instance` to these operands (in the order of commutative operators),
    /// if it was generated.
    pub fn find(&self, instance: InstanceId, operands: &[ValueId]) -> Option<TermId> {
        let mut key = key(instance, operands);
        loop {
            let id = *self.index.get(&key)?;
            let term = self.get(id);
            if term.instance == Some(instance) && term.operands.as_slice() == operands {
                return Some(id);
            }
            key = key.wrapping_add(1);
        }
    }

    fn add(&mut self, instance: InstanceId, operands: &[ValueId], rest: TermSet) -> Result<(), DiscoverError> {
        let id = self.list.len() as TermId;
        let Some(closure) = rest.with(id) else { return Ok(()) };
        let first = self.values.len() as ValueId;
        let results = &self.types.instance(instance).results;
        self.values.extend(results.iter().map(|ty| ValueInfo { ty: *ty, owner: id }));
        let results = results.len() as u32;
        self.list.push(Term { instance: Some(instance), operands: Operands::from_slice(operands), first, results, closure });
        let mut key = key(instance, operands);
        while self.index.contains_key(&key) {
            key = key.wrapping_add(1);
        }
        self.index.insert(key, id);
        Ok(())
    }

    /// Approximate size of the tables in bytes.
    fn bytes(&self) -> u64 {
        let map = self.index.capacity() * (size_of::<(u64, TermId)>() + 1);
        (self.list.capacity() * size_of::<Term>() + self.values.capacity() * size_of::<ValueInfo>() + map) as u64
    }

    /// Adds all terms of `size` operators to the smaller ones.
    fn grow(&mut self, spec: &Spec, size: usize, budget: u64) -> Result<(), DiscoverError> {
        let pools = Pools::of(self, size);
        for (at, operator) in spec.operators.iter().enumerate() {
            let arity = operator.operands.len();
            if arity == 0 && size > 1 {
                continue;
            }
            for types in pools.tuples(self, operator) {
                let instances: SmallVec<[InstanceId; 4]> = self.types.apply(spec, at, &types).into();
                if instances.is_empty() {
                    continue;
                }
                let mut choice = Choice { pools: &pools, operator, types: &types, rest: size - 1, found: Vec::new() };
                choice.extend(self, spec, TermSet::EMPTY, &mut Operands::new());
                choice.contained(self, spec);
                for (operands, rest) in choice.found {
                    for instance in &instances {
                        self.add(*instance, &operands, rest)?;
                    }
                }
                if self.bytes() > budget {
                    return Err(DiscoverError::Memory { size, budget });
                }
            }
        }
        self.starts.push(self.list.len() as TermId);
        Ok(())
    }
}

fn key(instance: InstanceId, operands: &[ValueId]) -> u64 {
    let mut hasher = FxHasher::default();
    (instance, operands).hash(&mut hasher);
    hasher.finish()
}

/// Values by type and by the number of operators they are built from.
struct Pools {
    by_type: Vec<Vec<Vec<ValueId>>>,
}

impl Pools {
    fn of(terms: &Terms, size: usize) -> Pools {
        let mut by_type = vec![vec![Vec::new(); size]; terms.types.len()];
        for (at, value) in terms.values.iter().enumerate() {
            by_type[value.ty as usize][terms.get(value.owner).closure.len()].push(at as ValueId);
        }
        Pools { by_type }
    }

    /// Tuples of types that have values and that each operand on its own admits.
    fn tuples(&self, terms: &Terms, operator: &Operator) -> Vec<SmallVec<[TypeId; 3]>> {
        let mut tuples = vec![SmallVec::new()];
        for operand in 0..operator.operands.len() {
            let met = |id: &TypeId| self.by_type[*id as usize].iter().any(|pool| !pool.is_empty());
            let admitted: Vec<TypeId> =
                (0..self.by_type.len() as TypeId).filter(|id| met(id) && operator.admits(operand, terms.types.get(*id))).collect();
            tuples = tuples
                .into_iter()
                .flat_map(|tuple: SmallVec<[TypeId; 3]>| {
                    admitted.iter().map(move |id| tuple.iter().copied().chain([*id]).collect::<SmallVec<[TypeId; 3]>>())
                })
                .collect();
        }
        tuples
    }
}

/// Operands of given types that are together built from exactly `rest` operators.
struct Choice<'a> {
    pools: &'a Pools,
    operator: &'a Operator,
    types: &'a [TypeId],
    rest: usize,
    found: Vec<(Operands, TermSet)>,
}

impl Choice<'_> {
    fn extend(&mut self, terms: &Terms, spec: &Spec, union: TermSet, operands: &mut Operands) {
        let at = operands.len();
        if at == self.types.len() {
            if union.len() == self.rest && self.in_place(terms, spec, operands) {
                self.found.push((operands.clone(), union));
            }
            return;
        }
        let pools = self.pools;
        let last = at + 1 == self.types.len();
        let missing = self.rest - union.len();
        let pool = &pools.by_type[self.types[at] as usize];
        let variable_only = self.operator.operand_guards.contains(&OperandGuard::Variable(at));
        for (made_of, values) in pool.iter().enumerate() {
            // A larger value adds at least the difference.
            if (variable_only && made_of > 0) || made_of > self.rest || (last && union.len() + made_of < self.rest) {
                continue;
            }
            // Left to `contained`.
            if last && at == 1 && made_of == self.rest && !union.is_empty() && missing > 0 {
                continue;
            }
            if made_of > 0 && missing == 0 {
                // Only existing values.
                let inside = union.as_slice().iter().flat_map(|id| terms.get(*id).values());
                let fitting: SmallVec<[ValueId; 8]> =
                    inside.filter(|v| terms.type_id(*v) == self.types[at] && terms.get(terms.owner(*v)).closure.len() == made_of).collect();
                for value in fitting {
                    self.with(terms, spec, union, operands, value);
                }
                continue;
            }
            for value in values {
                let Some(wider) = union.union(&terms.get(terms.owner(*value)).closure).filter(|u| u.len() <= self.rest) else { continue };
                if !last || wider.len() == self.rest {
                    self.with(terms, spec, wider, operands, *value);
                }
            }
        }
    }

    /// Pairs whose second operand is built from all required operators, and so contains the first:
    /// found from the second.
    fn contained(&mut self, terms: &Terms, spec: &Spec) {
        let [first, second] = *self.types else { return };
        if self.operator.operand_guards.contains(&OperandGuard::Variable(1))
            || self.operator.operand_guards.contains(&OperandGuard::Variable(0))
        {
            return;
        }
        let pools = self.pools;
        let Some(seconds) = pools.by_type[second as usize].get(self.rest) else { return };
        for value in seconds {
            let whole = terms.get(terms.owner(*value)).closure;
            let inside = whole.as_slice().iter().filter(|id| **id != terms.owner(*value)).flat_map(|id| terms.get(*id).values());
            for part in inside.filter(|part| terms.type_id(*part) == first) {
                self.with(terms, spec, whole, &mut Operands::from_slice(&[part]), *value);
            }
        }
    }

    fn with(&mut self, terms: &Terms, spec: &Spec, union: TermSet, operands: &mut Operands, value: ValueId) {
        if self.operator.commutative && operands.last().is_some_and(|before| *before > value) {
            return;
        }
        operands.push(value);
        self.extend(terms, spec, union, operands);
        operands.pop();
    }

    fn in_place(&self, terms: &Terms, spec: &Spec, operands: &Operands) -> bool {
        self.operator.operand_guards.iter().all(|place| match *place {
            OperandGuard::Variable(a) => terms.is_variable(operands[a]),
            OperandGuard::Data(a) => !terms.is_variable(operands[a]) || !spec.variables[operands[a] as usize].weight,
            OperandGuard::Distinct(a, b) => operands[a] != operands[b],
        })
    }
}
