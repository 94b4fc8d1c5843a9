//! Types of values, numbered, and operators applied to types.

use regraft_ir::{Dim, TensorType};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::expr::Program;
use crate::spec::Spec;

/// Number of a type.
pub type TypeId = u32;
/// Number of an operator applied to operand types.
pub type InstanceId = u32;

/// An operator for operands of certain types, cut at a certain point if it has a cut.
#[derive(Debug)]
pub struct Instance {
    /// The operator, by index in the specification.
    pub operator: usize,
    /// The point of the cut.
    pub cut: Option<Dim>,
    /// What it computes.
    pub program: Program,
    /// Types of the results.
    pub results: Vec<TypeId>,
}

/// All types and instances so far.
#[derive(Debug, Default)]
pub struct Types {
    list: Vec<TensorType>,
    index: FxHashMap<TensorType, TypeId>,
    instances: Vec<Instance>,
    applied: FxHashMap<(usize, SmallVec<[TypeId; 3]>), Vec<InstanceId>>,
}

impl Types {
    /// The number of a type.
    pub fn id(&mut self, ty: &TensorType) -> TypeId {
        if let Some(id) = self.index.get(ty) {
            return *id;
        }
        let id = self.list.len() as TypeId;
        self.list.push(ty.clone());
        self.index.insert(ty.clone(), id);
        id
    }

    /// The number of a type, if it occurred.
    pub fn find(&self, ty: &TensorType) -> Option<TypeId> {
        self.index.get(ty).copied()
    }

    /// The type with this number.
    pub fn get(&self, id: TypeId) -> &TensorType {
        &self.list[id as usize]
    }

    /// Number of types.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The instance with this number.
    pub fn instance(&self, id: InstanceId) -> &Instance {
        &self.instances[id as usize]
    }

    /// Known instances of an operator for operands of these types.
    pub fn known(&self, operator: usize, operands: &[TypeId]) -> &[InstanceId] {
        self.applied.get(&(operator, SmallVec::from_slice(operands))).map_or(&[], Vec::as_slice)
    }

    /// Instances of an operator for operands of these types: none if a guard, a type rule or the
    /// limit on elements forbids it.
    pub fn apply(&mut self, spec: &Spec, operator: usize, operands: &[TypeId]) -> &[InstanceId] {
        let key = (operator, SmallVec::from_slice(operands));
        if !self.applied.contains_key(&key) {
            let made = self.make(spec, operator, operands);
            self.applied.insert(key.clone(), made);
        }
        &self.applied[&key]
    }

    fn make(&mut self, spec: &Spec, at: usize, operands: &[TypeId]) -> Vec<InstanceId> {
        let operator = &spec.operators[at];
        let types: Vec<TensorType> = operands.iter().map(|id| self.get(*id).clone()).collect();
        if !operator.accepts(&types) {
            return Vec::new();
        }
        let mut made = Vec::new();
        for cut in operator.cuts(&types) {
            let Ok(program) = Program::compile(&operator.results, &types, cut.as_ref()) else { continue };
            if !program.types().all(|ty| within(spec, ty)) {
                continue;
            }
            let results: Vec<TensorType> = program.types().cloned().collect();
            let results = results.iter().map(|ty| self.id(ty)).collect();
            made.push(self.instances.len() as InstanceId);
            self.instances.push(Instance { operator: at, cut, program, results });
        }
        made
    }
}

/// Whether a type has real elements, at least one under every assignment, and not too many under
/// the first.
fn within(spec: &Spec, ty: &TensorType) -> bool {
    ty.dtype == regraft_ir::DType::F32
        && spec.assignments.iter().enumerate().all(|(at, bindings)| {
            let elements = ty.bind(bindings).map(|shape| shape.iter().product::<usize>());
            elements.is_some_and(|n| n > 0 && (at > 0 || n <= spec.limit_elements))
        })
}
