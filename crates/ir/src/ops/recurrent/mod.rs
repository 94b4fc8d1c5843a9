//! Shared by the recurrent operators: attributes, optional operands, types, ONNX mapping, cost
//! features.

mod curve;
mod pass;

pub(crate) use pass::{Pass, Place, State};

use crate::attr::{Attr, Float};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::TypeError;
use crate::onnx::{NoSpelling, OnnxNode, OnnxSpelling, Opaque, SpellingInput};
use crate::op::{Kernel, Work};
use crate::ops::accepts::{self, Since, Types};
use crate::ops::operands::enforced_sizes;
use crate::ty::TensorType;
use curve::{Curve, completed, count, curves};

/// Element types by opset. Before opset 7, an attribute said whether there is a first result.
const TYPES: &[Since] = &[(7, Types::FLOATS), (22, Types::BF16)];

/// Operands after `x`, `w` and `r`, as ONNX calls them.
pub(crate) const BIAS: &str = "B";
pub(crate) const LENGTHS: &str = "sequence_lens";
pub(crate) const HIDDEN: &str = "initial_h";
pub(crate) const CELL: &str = "initial_c";
pub(crate) const PEEPHOLES: &str = "P";

/// Declares a recurrent operator: its name, its family, a flag that others do not have, and what
/// one step does to the states of all sequences.
macro_rules! recurrent {
    ($(#[$doc:meta])* $name:ident, $family:expr, { $($(#[$fdoc:meta])* $flag:ident)? },
        |$op:pat_param, $pass:ident, $places:ident, $state:ident| $step:expr) => {
        $crate::operator! {
            $(#[$doc])*
            pub struct $name {
                /// `"forward"`, `"reverse"` (from the last element of each sequence to the first),
                /// or `"bidirectional"`.
                pub direction: String,
                /// The activations of the first direction, then those of the second.
                pub activations: Vec<String>,
                /// `alpha` of all activations that have it, in order.
                pub alphas: Vec<$crate::Float>,
                /// `beta` of all activations that have it, in order.
                pub betas: Vec<$crate::Float>,
                /// Bound on the magnitude of what the activations of gates are computed of, above
                /// 0.
                pub clip: Option<$crate::Float>,
                /// Which of the optional operands follow the first three, by their names in ONNX,
                /// in order.
                pub optional: Vec<String>,
                $($(#[$fdoc])* pub $flag: bool)?
            }
        }

        impl $name {
            /// The operator that computes direction number `number` of this one alone; `None` if
            /// there is no such direction.
            pub fn single(&self, number: usize) -> Option<$name> {
                let $crate::ops::recurrent::Read { direction, activations, alphas, betas, clip, optional, .. } = self.layer().single(number)?;
                Some($name { direction, activations, alphas, betas, clip, optional, $($flag: self.$flag)? })
            }

            fn layer(&self) -> $crate::ops::recurrent::Layer<'_> {
                $crate::ops::recurrent::Layer {
                    family: $family,
                    direction: &self.direction,
                    activations: &self.activations,
                    alphas: &self.alphas,
                    betas: &self.betas,
                    clip: self.clip,
                    optional: &self.optional,
                }
            }
        }

        impl $crate::op::Operator for $name {
            fn infer(&self, inputs: &[$crate::TensorType]) -> Result<Vec<$crate::TensorType>, $crate::TypeError> {
                self.layer().types(inputs)
            }
            fn eval<S: $crate::Scalar>(&self, inputs: &[$crate::Value<S>], context: &$crate::EvalContext<'_>) -> Result<Vec<$crate::Value<S>>, $crate::EvalError> {
                let $op = self;
                self.layer().run(
                    inputs,
                    context,
                    |$pass: &$crate::ops::recurrent::Pass<'_, S>, $places: &[$crate::ops::recurrent::Place], $state: &mut $crate::ops::recurrent::State<S>| $step,
                )
            }
            fn onnx_types() -> &'static [&'static str] {
                &[stringify!($name)]
            }
            /// Lengths that are all the whole length are none.
            fn import(node: &$crate::onnx::OnnxNode) -> Result<$crate::onnx::Imported, $crate::onnx::Opaque> {
                let read = $crate::ops::recurrent::Read::of(node, $family)?;
                let op = $name {
                    direction: read.direction,
                    activations: read.activations,
                    alphas: read.alphas,
                    betas: read.betas,
                    clip: read.clip,
                    optional: read.optional,
                    $($flag: node.flag(stringify!($flag), false)?)?
                };
                Ok(node.import_with($crate::Op::$name(op), &read.slots))
            }
            fn spell(&self, inputs: &[$crate::TensorType], _: &[$crate::TensorType], version: i64) -> Result<$crate::onnx::OnnxSpelling, $crate::onnx::NoSpelling> {
                self.layer().spelling(inputs, version, &[$((stringify!($flag), self.$flag))?])
            }
            fn work(&self, inputs: &[Vec<usize>], _: &[Vec<usize>]) -> $crate::Work {
                $crate::ops::recurrent::work(inputs)
            }
        }
    };
}
pub(crate) use recurrent;

/// What distinguishes a recurrent operator from the others.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// Blocks of `hidden` rows in `w` and `r`.
    pub(crate) gates: usize,
    /// The activations of a direction, if none are given.
    pub(crate) activations: &'static [&'static str],
    /// The operands after `x`, `w` and `r`, each of which may be left out, in the order of ONNX.
    pub(crate) optional: &'static [&'static str],
    /// Results: all states, the last ones, and the last cells, if there are cells.
    pub(crate) results: usize,
}

/// A recurrent operator: its family, and the attributes that all of them have.
pub(crate) struct Layer<'a> {
    pub(crate) family: &'static Family,
    pub(crate) direction: &'a str,
    pub(crate) activations: &'a [String],
    pub(crate) alphas: &'a [Float],
    pub(crate) betas: &'a [Float],
    pub(crate) clip: Option<Float>,
    pub(crate) optional: &'a [String],
}

impl Layer<'_> {
    /// For each direction, whether it begins at the last element.
    fn directions(&self) -> Result<&'static [bool], String> {
        match self.direction {
            "forward" => Ok(&[false]),
            "reverse" => Ok(&[true]),
            "bidirectional" => Ok(&[false, true]),
            other => Err(format!("{} has the direction {other:?}", self.family.name)),
        }
    }

    /// The activations of all directions, once all attributes are checked.
    fn curves(&self) -> Result<Vec<Curve>, String> {
        let (name, expected) = (self.family.name, self.directions()?.len() * self.family.activations.len());
        if self.activations.len() != expected {
            return Err(format!("{name} has {} activations instead of {expected}", self.activations.len()));
        }
        if self.clip.is_some_and(|clip| !(clip.0.is_finite() && clip.0 > 0.0)) {
            return Err(format!("{name} is clipped, but by no positive number"));
        }
        let mut known = self.family.optional.iter();
        match self.optional.iter().find(|given| !known.any(|name| name == given)) {
            Some(given) => Err(format!("{name} has the operands {:?}, of which {given} is none, or misplaced", self.optional)),
            None => curves(self.activations, self.alphas, self.betas),
        }
    }

    /// The place of an optional operand among all.
    fn slot(&self, name: &str) -> Option<usize> {
        self.optional.iter().position(|given| given == name).map(|at| at + 3)
    }

    /// The result types for these operand types.
    pub(crate) fn types(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let name = self.family.name;
        self.curves().map_err(TypeError::Invalid)?;
        let directions = Dim::from(self.directions().map_or(1, <[bool]>::len) as i64);
        if inputs.len() != 3 + self.optional.len() {
            return Err(TypeError::invalid(format!("{name} takes {} operands, not {}", 3 + self.optional.len(), inputs.len())));
        }
        let (x, w, r) = (&inputs[0], &inputs[1], &inputs[2]);
        let ([length, batch, size], [_, _, _], [_, _, hidden]) = (&x.shape[..], &w.shape[..], &r.shape[..]) else {
            return Err(TypeError::invalid(format!("{name} of {x} with weights {w} and {r}")));
        };
        accepts::check(name, TYPES, x.dtype)?;
        if length.is(0) {
            return Err(TypeError::invalid(format!("{name} of no elements")));
        }
        let rows = Dim::from(self.family.gates as i64) * hidden.clone();
        let states = [directions.clone(), batch.clone(), hidden.clone()];
        let mut expected = vec![
            vec![length.clone(), batch.clone(), size.clone()],
            vec![directions.clone(), rows.clone(), size.clone()],
            vec![directions.clone(), rows.clone(), hidden.clone()],
        ];
        expected.extend(self.optional.iter().map(|operand| match operand.as_str() {
            BIAS => vec![directions.clone(), Dim::from(2) * rows.clone()],
            LENGTHS => vec![batch.clone()],
            PEEPHOLES => vec![directions.clone(), Dim::from(3) * hidden.clone()],
            _ => states.to_vec(),
        }));
        let all = TensorType::new(x.dtype, [length.clone(), directions.clone(), batch.clone(), hidden.clone()]);
        let mut types = vec![all];
        types.resize(self.family.results, TensorType::new(x.dtype, states));
        let mut undecided: Option<TypeError> = None;
        for (at, (given, expected)) in inputs.iter().zip(&expected).enumerate() {
            let dtype = if Some(at) == self.slot(LENGTHS) { DType::I32 } else { x.dtype };
            if given.dtype != dtype || given.rank() != expected.len() {
                return Err(TypeError::invalid(format!("{name} of {x} with the operand {given}")));
            }
            for (size, wanted) in given.shape.iter().zip(expected) {
                if let Err(error) = enforced_sizes(name, "operands of matching sizes", wanted, size) {
                    undecided = Some(undecided.map_or(error.clone(), |first| first.and(error)));
                }
            }
        }
        undecided.map_or(Ok(types.clone()), |error| Err(error.with_types(types)))
    }

    /// The attributes of one direction alone.
    pub(crate) fn single(&self, number: usize) -> Option<Read> {
        let backward = *self.directions().ok()?.get(number)?;
        let each = self.family.activations.len();
        let (before, rest) = self.activations.split_at_checked(number * each)?;
        let activations = rest.get(..each)?;
        let part = |list: &[Float], at: usize| Some(list.get(count(before, at)..)?.get(..count(activations, at))?.to_vec());
        Some(Read {
            direction: if backward { "reverse" } else { "forward" }.to_string(),
            activations: activations.to_vec(),
            alphas: part(self.alphas, 0)?,
            betas: part(self.betas, 1)?,
            clip: self.clip,
            optional: self.optional.to_vec(),
            slots: Vec::new(),
        })
    }

    /// The ONNX spelling; `flags` are those that not all recurrent operators have.
    pub(crate) fn spelling(&self, inputs: &[TensorType], version: i64, flags: &[(&'static str, bool)]) -> Result<OnnxSpelling, NoSpelling> {
        let name = self.family.name;
        accepts::spelled(name, TYPES, version, inputs[0].dtype)?;
        let hidden = inputs.get(2).and_then(|r| r.shape.last()?.known());
        let hidden = hidden.ok_or_else(|| NoSpelling { op: name, why: "the size of its states is symbolic".into() })?;
        let mut spelling = OnnxSpelling::plain(name, 3)
            .with("hidden_size", Attr::Int(hidden))
            .with("direction", Attr::Str(self.direction.to_string()))
            .with("activations", Attr::Strs(self.activations.to_vec()));
        for (name, values) in [("activation_alpha", self.alphas), ("activation_beta", self.betas)] {
            if !values.is_empty() {
                spelling = spelling.with(name, Attr::Floats(values.to_vec()));
            }
        }
        spelling.attrs.extend(self.clip.map(|clip| ("clip", Attr::Float(clip))));
        spelling.attrs.extend(flags.iter().filter(|(_, set)| *set).map(|(name, _)| (*name, Attr::Int(1))));
        let input = |name: &&str| self.slot(name).map_or(SpellingInput::Missing, SpellingInput::Operand);
        spelling.inputs.extend(self.family.optional.iter().map(input));
        while matches!(spelling.inputs.last(), Some(SpellingInput::Missing)) {
            spelling.inputs.pop();
        }
        Ok(spelling)
    }
}

/// The attributes that all recurrent operators have, as read from a node or made for one.
pub(crate) struct Read {
    pub(crate) direction: String,
    pub(crate) activations: Vec<String>,
    pub(crate) alphas: Vec<Float>,
    pub(crate) betas: Vec<Float>,
    pub(crate) clip: Option<Float>,
    pub(crate) optional: Vec<String>,
    /// The inputs of the node that become operands.
    pub(crate) slots: Vec<usize>,
}

impl Read {
    /// The attributes of a node of this family, or why it stays opaque.
    pub(crate) fn of(node: &OnnxNode, family: &'static Family) -> Result<Read, Opaque> {
        if node.version < 7 {
            return Err(Opaque(format!("{} of opset {}", family.name, node.version)));
        }
        if node.int("layout").unwrap_or(0) != 0 {
            return Err(Opaque(format!("{} with the batch first, which runtimes do not execute", family.name)));
        }
        let hidden = &node.ty(2)?.shape;
        if node.int("hidden_size").is_some_and(|size| !hidden.last().is_some_and(|hidden| hidden.is(size))) {
            return Err(Opaque(format!("{} whose hidden_size is not that of its weights", family.name)));
        }
        let mut read = Read {
            direction: node.str("direction").unwrap_or("forward").to_string(),
            activations: Vec::new(),
            alphas: Vec::new(),
            betas: Vec::new(),
            clip: node.float("clip").map(Float),
            optional: Vec::new(),
            slots: vec![0, 1, 2],
        };
        let directions = read.layer(family).directions().map_err(Opaque)?.len();
        read.activations = match node.attrs.get("activations") {
            None => family.activations.repeat(directions).into_iter().map(String::from).collect(),
            Some(Attr::Strs(names)) => names.clone(),
            Some(other) => return Err(Opaque(format!("{} with the activations {other}", family.name))),
        };
        read.alphas = completed(&read.activations, &floats(node, "activation_alpha")?, 0).map_err(Opaque)?;
        read.betas = completed(&read.activations, &floats(node, "activation_beta")?, 1).map_err(Opaque)?;
        if node.inputs.len() > 3 + family.optional.len() {
            return Err(Opaque(format!("{} with {} inputs", family.name, node.inputs.len())));
        }
        for (at, name) in family.optional.iter().enumerate().map(|(at, name)| (at + 3, name)) {
            if node.has(at) && !(*name == LENGTHS && whole(node, at)?) {
                read.optional.push(name.to_string());
                read.slots.push(at);
            }
        }
        read.layer(family).curves().map_err(Opaque)?;
        Ok(read)
    }

    fn layer(&self, family: &'static Family) -> Layer<'_> {
        Layer {
            family,
            direction: &self.direction,
            activations: &self.activations,
            alphas: &self.alphas,
            betas: &self.betas,
            clip: self.clip,
            optional: &self.optional,
        }
    }
}

fn floats(node: &OnnxNode, name: &str) -> Result<Vec<Float>, Opaque> {
    match node.attrs.get(name) {
        None => Ok(Vec::new()),
        Some(Attr::Floats(values)) => Ok(values.clone()),
        Some(other) => Err(Opaque(format!("{} whose {name} is {other}", node.op_type))),
    }
}

/// Whether the lengths at input `at` are known to be the whole length.
fn whole(node: &OnnxNode, at: usize) -> Result<bool, Opaque> {
    let Some(lengths) = node.inputs[at].as_ref().and_then(|input| input.value.as_ref()?.to_i64()) else { return Ok(false) };
    let length = node.ty(0)?.shape.first().and_then(Dim::known);
    if lengths.iter().any(|n| *n < 1 || length.is_some_and(|length| *n > length)) {
        return Err(Opaque(format!("{} of sequences that are empty, or longer than the tensor", node.op_type)));
    }
    Ok(length.is_some_and(|length| lengths.iter().all(|n| *n == length)))
}

/// Products of each element, and of the state before it, with the weights. The state's weights are
/// read again at each step, as 32-bit numbers.
pub(crate) fn work(inputs: &[Vec<usize>]) -> Work {
    let product = |at: usize| inputs.get(at).map_or(0.0, |shape| shape.iter().map(|size| *size as f64).product::<f64>());
    let size = |axis: usize| inputs.first().and_then(|x| x.get(axis)).map_or(0.0, |size| *size as f64);
    let (length, batch) = (size(0), size(1));
    Work {
        flops: 2.0 * length * batch * (product(1) + product(2)),
        extra_bytes: 4.0 * (length - 1.0).max(0.0) * product(2),
        kernel: if batch < 4.0 { Kernel::Thin } else { Kernel::Dense },
    }
}
