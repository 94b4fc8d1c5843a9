//! Pairs of models from the catalogue.

use anyhow::{Context, Result};
use regraft_ir::{Class, DType};
use regraft_onnx::proto::ModelProto;
use regraft_runtime::{Feeds, Runtime};

use super::build::{Frame, model};
use super::catalogue::{Drawn, Family};
use super::claim::Clause;
use super::feeds::feeds;
use super::label::{Difference, declare, difference, outputs};
use super::term::{Attribute, Program, Term};
use crate::generate::random::Random;

/// Runs on which two models are compared.
const RUNS: usize = 4;

/// Two models that look alike.
pub struct Pair {
    /// In which way they look alike.
    pub family: String,
    /// Both as text.
    pub text: String,
    /// The first.
    pub a: ModelProto,
    /// The second.
    pub b: ModelProto,
    /// Inputs for both.
    pub feeds: Vec<Feeds>,
    /// The assumption under which they are equal, if there is one.
    pub clause: Option<Clause>,
    /// How they differ.
    pub difference: Difference,
}

impl Pair {
    /// The pair with its models swapped.
    pub fn swapped(self) -> Pair {
        Pair { a: self.b, b: self.a, ..self }
    }
}

/// Rearrangements of a result.
const ARRANGED: &[&str] = &["Transpose(r)", "Reshape(r, [-1])", "Concat(r, r, axis=0)"];
/// The same, for later versions.
const ARRANGED_SINCE_13: &[&str] = &["Unsqueeze(r, [0])", "Slice(r, [-1], [-9223372036854775807], [0], [-1])"];
/// Operations on booleans.
const OF_TRUTHS: &[&str] = &["Not(r)", "Where(r, 1.0:f32, 0.0:f32)", "Cast(r, to=i32)", "Xor(r, true:bool)", "And(r, r)"];
/// Operations on integers.
const OF_INTEGERS: &[&str] = &["Add(r, 1)", "Mul(r, 3)", "Cast(r, to=i64)", "Cast(r, to=f64)", "Equal(r, 0)", "Add(r, r)", "Sub(r, 1)"];
/// Operations on reals: none that hides a small difference.
const OF_REALS: &[&str] = &["Mul(r, 2)", "Neg(r)", "Add(r, r)", "Mul(r, -0.5)"];

/// The pair number `law` of a family at type `ty`; an error says why it cannot be built or run.
pub fn pair(family: &Family, law: usize, ty: DType, plain: bool, runtime: &dyn Runtime, random: &mut Random) -> Result<Pair> {
    let mut drawn = family.draw(law, ty, random)?;
    if !plain {
        surround(&mut drawn, random)?;
    }
    let frame_b = Frame { opset: drawn.opset_b, ..drawn.frame.clone() };
    let mut a = model(&drawn.a, &drawn.frame, random)?;
    let mut b = model(&drawn.b, &frame_b, random)?;
    let all = (0..RUNS).map(|run| feeds(&drawn.frame.inputs, &drawn.sizes, family.fill, run, random));
    let feeds = all.collect::<Option<Vec<_>>>().context("an input cannot be fed")?;
    let (ours, theirs) = (outputs(runtime, &a, &feeds)?, outputs(runtime, &b, &feeds)?);
    for (model, outputs) in [(&mut a, &ours), (&mut b, &theirs)] {
        if let Some(first) = outputs.first() {
            declare(model, first);
        }
    }
    let difference = if family.constructed { Difference::Clear } else { difference(&ours, &theirs, family.exact) };
    let clause = family.clause.or(difference.clause());
    Ok(Pair { family: family.name.clone(), text: drawn.text, a, b, feeds, clause, difference })
}

/// Surrounds both expressions with the same operators.
fn surround(drawn: &mut Drawn, random: &mut Random) -> Result<()> {
    let old = drawn.frame.opset.min(drawn.opset_b) < 13;
    let free = drawn.frame.inputs.iter().any(|i| i.name == "x" && i.range.is_none() && i.ty == drawn.frame.ty && !i.dims.is_empty());
    if free && random.once_in(3) {
        let before: &[&str] = match drawn.frame.ty.class() {
            Class::Bool => &["Not(x)"],
            Class::Int => &["Add(x, 1)", "Mul(x, 3)", "Add(x, x)"],
            _ => &["Neg(x)", "Mul(x, 2)"],
        };
        let before = if random.once_in(3) && !old { "Slice(x, [-1], [-9223372036854775807], [0], [-1])" } else { random.pick(before) };
        let before = Program::parse(before)?.results.swap_remove(0);
        for program in [&mut drawn.a, &mut drawn.b] {
            program.lets.insert(0, ("x".into(), before.clone()));
        }
    }
    for _ in 0..random.below(3) {
        let class = drawn.a.results.first().and_then(|r| class(r, &drawn.a, drawn.frame.ty));
        let after = match class {
            Some(Class::Bool) if random.once_in(2) => OF_TRUTHS,
            Some(Class::Int) if random.once_in(2) => OF_INTEGERS,
            Some(Class::Real) if random.once_in(2) => OF_REALS,
            _ if !old && random.once_in(2) => ARRANGED_SINCE_13,
            _ => ARRANGED,
        };
        let after = Program::parse(random.pick(after))?.results.swap_remove(0);
        for program in [&mut drawn.a, &mut drawn.b] {
            let inner = std::mem::replace(&mut program.results[0], after.clone());
            let name = format!("r{}", program.lets.len());
            rename(&mut program.results[0], &name);
            program.lets.push((name, inner));
        }
    }
    Ok(())
}

/// Replaces `r` in a template by `name`.
fn rename(term: &mut Term, name: &str) {
    match term {
        Term::Name(text) if text == "r" => *text = name.into(),
        Term::Call { operands, .. } => operands.iter_mut().for_each(|o| rename(o, name)),
        _ => {}
    }
}

/// The class of a value's type, if it can be determined.
fn class(term: &Term, program: &Program, ty: DType) -> Option<Class> {
    match term {
        Term::Name(name) => match program.lets.iter().rev().find(|(n, t)| n == name && t != term) {
            Some((_, inner)) if name != "x" => class(inner, program, ty),
            _ if matches!(name.as_str(), "x" | "y" | "z" | "w") => Some(ty.class()),
            _ if matches!(name.as_str(), "m" | "n") => Some(Class::Bool),
            _ => None,
        },
        Term::Number { ty: None, .. } => Some(ty.class()),
        Term::Call { op, operands, attributes, port: 0 } => match op.as_str() {
            "Equal" | "Greater" | "Less" | "GreaterOrEqual" | "LessOrEqual" | "And" | "Or" | "Xor" | "Not" => Some(Class::Bool),
            "Shape" | "Size" | "ArgMax" | "ArgMin" => Some(Class::Int),
            "Where" => class(operands.get(1)?, program, ty),
            "Cast" => match &attributes.first()?.1 {
                Attribute::Type(name) if name == "T" => Some(ty.class()),
                Attribute::Type(name) => Some(DType::from_name(name)?.class()),
                _ => None,
            },
            "If" | "Loop" | "OneHot" | "QuantizeLinear" | "DequantizeLinear" | "ConstantOfShape" | "Multinomial" => None,
            _ => class(operands.first()?, program, ty),
        },
        _ => None,
    }
}
