//! The definition of a specification's operator, as an expression over the operators of
//! `regraft-ir`.

use std::collections::HashMap;

use regraft_ir::{Attr, Bindings, Const, DType, Dim, EvalContext, EvalError, Float, Op, OpKind, TensorType, TypeError, Value};
use regraft_prove::Field;

/// A size: over size parameters, sizes of operands, and the cut point.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// A number.
    Number(i64),
    /// A size parameter of the specification.
    Parameter(String),
    /// The point at which an operand is cut.
    Cut,
    /// The size of an operand along an axis.
    Of(usize, usize),
    /// A sum.
    Sum(Vec<Size>),
    /// A product.
    Product(Vec<Size>),
    /// The first minus the second.
    Difference(Box<[Size; 2]>),
}

impl Size {
    /// The symbolic size for these operands; `None` if an operand has no such axis, or there is no
    /// cut.
    pub fn resolve(&self, operands: &[TensorType], cut: Option<&Dim>) -> Option<Dim> {
        Some(match self {
            Size::Number(n) => Dim::from(*n),
            Size::Parameter(name) => Dim::symbol(name),
            Size::Cut => cut?.clone(),
            Size::Of(operand, axis) => operands.get(*operand)?.shape.get(*axis)?.clone(),
            Size::Sum(parts) => parts.iter().try_fold(Dim::from(0), |sum, p| Some(sum + p.resolve(operands, cut)?))?,
            Size::Product(parts) => parts.iter().try_fold(Dim::from(1), |product, p| Some(product * p.resolve(operands, cut)?))?,
            Size::Difference(parts) => parts[0].resolve(operands, cut)? - parts[1].resolve(operands, cut)?,
        })
    }
}

/// The value of an attribute, before sizes are known.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrExpr {
    /// A fixed value.
    Given(Attr),
    /// A list of sizes; a list of integers if all are numbers.
    Sizes(Vec<Size>),
}

/// An expression over operands.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// An operand of the specification's operator.
    Operand(usize),
    /// A constant.
    Constant(Const),
    /// A tensor of this shape, filled with one value.
    Fill(Vec<Size>, Const),
    /// The first result of an operator.
    Apply {
        /// The operator.
        kind: OpKind,
        /// Its attributes.
        attrs: Vec<(String, AttrExpr)>,
        /// Its operands.
        args: Vec<Expr>,
    },
}

/// One operator application of a [`Program`].
#[derive(Clone, Debug)]
pub struct Step {
    /// The operator.
    pub op: Op,
    /// Slots of its operands: those of the program first, then the first results of the steps, in
    /// order.
    pub args: Vec<usize>,
    inputs: Vec<TensorType>,
    outputs: Vec<TensorType>,
}

/// An expression for operands of known types: straight-line code.
#[derive(Clone, Debug)]
pub struct Program {
    /// In order of execution.
    pub steps: Vec<Step>,
    /// Slots of the results.
    pub results: Vec<usize>,
    slots: Vec<TensorType>,
}

impl Program {
    /// The program that computes `results` from operands of these types.
    ///
    /// Fails if the type rule of an operator does.
    pub fn compile(results: &[Expr], operands: &[TensorType], cut: Option<&Dim>) -> Result<Program, TypeError> {
        let mut program = Program { steps: Vec::new(), results: Vec::new(), slots: operands.to_vec() };
        for result in results {
            let slot = program.emit(result, operands, cut)?;
            program.results.push(slot);
        }
        Ok(program)
    }

    /// The type of an operand.
    pub fn operand(&self, at: usize) -> Option<&TensorType> {
        self.slots.get(at)
    }

    /// Types of the results.
    pub fn types(&self) -> impl Iterator<Item = &TensorType> {
        self.results.iter().map(|slot| &self.slots[*slot])
    }

    fn emit(&mut self, expr: &Expr, operands: &[TensorType], cut: Option<&Dim>) -> Result<usize, TypeError> {
        let missing = || TypeError::invalid("an operand has no such axis");
        let sizes = |sizes: &[Size]| -> Result<Vec<Dim>, TypeError> {
            sizes.iter().map(|s| s.resolve(operands, cut).ok_or_else(missing)).collect()
        };
        let (op, args) = match expr {
            Expr::Operand(at) => return if *at < operands.len() { Ok(*at) } else { Err(missing()) },
            Expr::Constant(value) => (Op::Constant(regraft_ir::ops::Constant { value: value.clone() }), Vec::new()),
            Expr::Fill(shape, value) => {
                let (shape, value) = (sizes(shape)?, value.clone());
                (Op::ConstantOfShape(regraft_ir::ops::constant_of_shape::ConstantOfShape { shape, value }), Vec::new())
            }
            Expr::Apply { kind, attrs, args } => {
                let args = args.iter().map(|a| self.emit(a, operands, cut)).collect::<Result<Vec<usize>, _>>()?;
                let mut given = Vec::with_capacity(attrs.len());
                for (name, value) in attrs {
                    let value = match value {
                        AttrExpr::Given(attr) => attr.clone(),
                        AttrExpr::Sizes(list) => numbers_or_dims(sizes(list)?),
                    };
                    given.push((name.clone(), value));
                }
                (kind.with_attrs(&given).map_err(|e| TypeError::invalid(e.to_string()))?, args)
            }
        };
        if let Some(at) = self.steps.iter().position(|step| step.op == op && step.args == args) {
            return Ok(self.slots.len() - self.steps.len() + at);
        }
        let inputs: Vec<TensorType> = args.iter().map(|slot| self.slots[*slot].clone()).collect();
        let outputs = op.infer(&inputs)?;
        let Some(first) = outputs.first().cloned() else { return Err(TypeError::invalid("an operator without results")) };
        self.steps.push(Step { op, args, inputs, outputs });
        self.slots.push(first);
        Ok(self.slots.len() - 1)
    }

    /// The results for these operands, in the prime field, with the bound sizes.
    pub fn run(&self, operands: &[&Value<Field>], bindings: &Bindings) -> Result<Vec<Value<Field>>, EvalError> {
        let mut slots: Vec<Value<Field>> = operands.iter().map(|v| (*v).clone()).collect();
        for step in &self.steps {
            let args: Vec<Value<Field>> = step.args.iter().map(|slot| slots[*slot].clone()).collect();
            let context = EvalContext { bindings, input_types: &step.inputs, output_types: &step.outputs };
            let results = step.op.eval(&args, &context)?;
            slots.push(results.into_iter().next().ok_or_else(|| EvalError::value("an operator without results"))?);
        }
        Ok(self.results.iter().map(|slot| slots[*slot].clone()).collect())
    }
}

fn numbers_or_dims(dims: Vec<Dim>) -> Attr {
    let numbers: Option<Vec<i64>> = dims.iter().map(Dim::known).collect();
    numbers.map_or(Attr::Dims(dims), Attr::Ints)
}

/// A number as a constant with one element.
pub fn scalar(dtype: DType, shape: &[i64], value: f64) -> Option<Const> {
    if dtype == DType::I64 { Const::from_i64(dtype, shape, &[value as i64]) } else { Const::from_f64(dtype, shape, &[value]) }
}

/// A word of a specification as the value of an attribute.
pub fn word(text: &str) -> Attr {
    if let Ok(n) = text.parse::<i64>() {
        return Attr::Int(n);
    }
    if let Ok(x) = text.parse::<f64>() {
        return Attr::Float(Float(x));
    }
    match text {
        "true" => Attr::Bool(true),
        "false" => Attr::Bool(false),
        _ => DType::from_name(text).map_or_else(|| Attr::Str(text.to_string()), Attr::DType),
    }
}

/// A size with its symbols replaced; `None` if a symbol has no replacement.
pub fn substitute(dim: &Dim, sizes: &HashMap<String, Dim>) -> Option<Dim> {
    use regraft_ir::dim::Factor;
    let mut sum = Dim::from(0);
    for (coefficient, factors) in dim.products() {
        let mut product = Dim::from(coefficient);
        for factor in factors {
            product = product
                * match factor {
                    Factor::Symbol(name) => sizes.get(name)?.clone(),
                    Factor::FloorDiv(a, b) => substitute(a, sizes)?.floor_div(&substitute(b, sizes)?),
                    Factor::Broadcast(a, b) => substitute(a, sizes)?.broadcast(&substitute(b, sizes)?)?,
                };
        }
        sum = sum + product;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dim(text: &str) -> Dim {
        text.split('+').fold(Dim::from(0), |sum, part| sum + part.parse::<i64>().map_or_else(|_| Dim::symbol(part), Dim::from))
    }

    #[test]
    fn programs_share_equal_steps_and_infer_types() {
        let relu = Expr::Apply { kind: OpKind::Relu, attrs: Vec::new(), args: vec![Expr::Operand(0)] };
        let sum = Expr::Apply { kind: OpKind::Add, attrs: Vec::new(), args: vec![relu.clone(), relu] };
        let ty = TensorType::new(DType::F32, [dim("m"), dim("k")]);
        let program = Program::compile(&[sum], std::slice::from_ref(&ty), None).unwrap();
        assert_eq!(program.steps.len(), 2);
        assert_eq!(program.types().collect::<Vec<_>>(), [&ty]);
    }

    #[test]
    fn sizes_are_resolved_and_substituted() {
        let ty = TensorType::new(DType::F32, [dim("m+m+3"), dim("k")]);
        let size = Size::Difference(Box::new([Size::Of(0, 0), Size::Cut]));
        assert_eq!(size.resolve(std::slice::from_ref(&ty), Some(&dim("m"))), Some(dim("m+3")));
        assert_eq!(Size::Of(0, 2).resolve(std::slice::from_ref(&ty), None), None);
        let sizes = HashMap::from([("m".to_string(), dim("a+b")), ("k".to_string(), dim("a"))]);
        assert_eq!(substitute(&ty.shape[0], &sizes), Some(dim("a+b+a+b+3")));
        assert_eq!(substitute(&dim("z"), &sizes), None);
    }
}
