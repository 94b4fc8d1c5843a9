//! Sides of pairs as graphs of model operators, at numeric sizes: a cut into two parts becomes one
//! split.

use regraft_ir::{Attr, Bindings, Dim, Graph, Op, OpKind, TensorType, TypeError, ValueId, ops};

use crate::candidate::Written;
use crate::expr::{Program, Step};
use crate::operator::Operator;
use crate::spec::Spec;

/// Which variables are constants of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constants {
    /// None.
    None,
    /// Weights and scalars.
    Weights,
}

impl Constants {
    /// Whether this variable is a constant.
    pub fn has(self, spec: &Spec, variable: usize) -> bool {
        let declared = &spec.variables[variable];
        self == Constants::Weights && (declared.weight || declared.ty.rank() == 0)
    }
}

/// The graph that computes `side` from variables of the specification, at the bound sizes.
///
/// Fails if an operator does not accept its operands.
pub fn lowered(spec: &Spec, side: &[Written], bindings: &Bindings, constants: Constants) -> Result<Graph, TypeError> {
    let mut lowering = Lowering { spec, bindings, constants, graph: Graph::new(""), variables: Vec::new(), done: Vec::new() };
    for (at, written) in side.iter().enumerate() {
        let value = lowering.value(written)?;
        lowering.graph.add_output(&format!("y{at}"), value);
    }
    Ok(lowering.graph)
}

/// The axis of an operator's program that cuts in two, with one part the rest of the other.
pub fn cut_axis(operator: &Operator, program: &Program) -> Option<i64> {
    let (_, axis) = operator.cut?;
    let is_slice =
        |step: &Step| step.op.kind() == OpKind::Slice && step.op.attr("axes") == Some(Attr::Ints(vec![axis as i64])) && step.args == [0];
    let [first, second] = program.steps.as_slice() else { return None };
    let one = |step: &Step, name: &str| step.op.attr(name).and_then(|attr| one_size(&attr));
    let touch = one(first, "starts")?.is(0) && one(first, "ends")? == one(second, "starts")?;
    let ends = one(second, "ends")? == *program.operand(0)?.shape.get(axis)?;
    (is_slice(first) && is_slice(second) && touch && ends && operator.operands.len() == 1).then_some(axis as i64)
}

fn one_size(attr: &Attr) -> Option<Dim> {
    match attr {
        Attr::Ints(list) => <[i64; 1]>::try_from(list.as_slice()).ok().map(|[n]| Dim::from(n)),
        Attr::Dims(list) => list.first().filter(|_| list.len() == 1).cloned(),
        _ => None,
    }
}

/// An operator of the specification, its cut point, its operands, and its results in the graph.
type Applied = (usize, Option<Dim>, Vec<ValueId>, Vec<ValueId>);

struct Lowering<'a> {
    spec: &'a Spec,
    bindings: &'a Bindings,
    constants: Constants,
    graph: Graph,
    variables: Vec<(usize, ValueId)>,
    done: Vec<Applied>,
}

impl Lowering<'_> {
    fn value(&mut self, written: &Written) -> Result<ValueId, TypeError> {
        let (operator, cut, port, operands) = match written {
            Written::Variable(at) => return self.variable(*at),
            Written::Result { operator, cut, port, operands } => (*operator, cut, *port, operands),
        };
        let args = operands.iter().map(|o| self.value(o)).collect::<Result<Vec<_>, _>>()?;
        let cut = cut.as_ref().map(|cut| self.bound(cut)).transpose()?;
        let known = self.done.iter().find(|(o, c, a, _)| (*o, c, a) == (operator, &cut, &args)).map(|(.., results)| results.clone());
        let results = match known {
            Some(results) => results,
            None => {
                let results = self.apply(operator, cut.as_ref(), &args)?;
                self.done.push((operator, cut, args, results.clone()));
                results
            }
        };
        results.get(port).copied().ok_or_else(|| TypeError::invalid("no such result"))
    }

    fn variable(&mut self, at: usize) -> Result<ValueId, TypeError> {
        if let Some((_, value)) = self.variables.iter().find(|(have, _)| *have == at) {
            return Ok(*value);
        }
        let variable = &self.spec.variables[at];
        let shape = variable.ty.bind(self.bindings).ok_or_else(|| TypeError::undecided("a size without a value"))?;
        let ty = TensorType::new(variable.ty.dtype, shape.into_iter().map(|size| size as i64));
        let value = match self.constants.has(self.spec, at) {
            true => self.graph.add_parameter(&variable.name, ty),
            false => self.graph.add_input(&variable.name, ty),
        };
        self.variables.push((at, value));
        Ok(value)
    }

    fn bound(&self, size: &Dim) -> Result<Dim, TypeError> {
        size.eval(self.bindings).map(Dim::from).ok_or_else(|| TypeError::undecided("a size without a value"))
    }

    fn apply(&mut self, at: usize, cut: Option<&Dim>, args: &[ValueId]) -> Result<Vec<ValueId>, TypeError> {
        let operator = &self.spec.operators[at];
        let types: Option<Vec<TensorType>> = args.iter().map(|v| self.graph.ty(*v).cloned()).collect();
        let types = types.ok_or_else(|| TypeError::undecided("an operand of unknown type"))?;
        let program = Program::compile(&operator.results, &types, cut)?;
        if let (Some(axis), Some(point)) = (cut_axis(operator, &program), cut.and_then(Dim::known)) {
            let whole = types[0].shape[axis as usize].known().ok_or_else(|| TypeError::undecided("a size without a value"))?;
            let split = Op::Split(ops::split::Split { axis, sizes: vec![point, whole - point] });
            let id = self.graph.add(split, args)?;
            return Ok(vec![id.port(0), id.port(1)]);
        }
        let mut slots = args.to_vec();
        for step in &program.steps {
            let inputs: Vec<ValueId> = step.args.iter().map(|slot| slots[*slot]).collect();
            let value = match &step.op {
                Op::Constant(constant) => self.graph.add_const(constant.value.clone()),
                op => self.graph.add(self.with_numbers(op)?, &inputs)?.out(),
            };
            slots.push(value);
        }
        Ok(program.results.iter().map(|slot| slots[*slot]).collect())
    }

    /// The operator with its size attributes as numbers.
    fn with_numbers(&self, op: &Op) -> Result<Op, TypeError> {
        let mut attrs = Vec::new();
        for (name, attr) in op.attrs() {
            let attr = match attr {
                Attr::Dims(sizes) => Attr::Dims(sizes.iter().map(|size| self.bound(size)).collect::<Result<_, _>>()?),
                other => other,
            };
            attrs.push((name.to_string(), attr));
        }
        op.kind().with_attrs(&attrs).map_err(|e| TypeError::invalid(e.to_string()))
    }
}
