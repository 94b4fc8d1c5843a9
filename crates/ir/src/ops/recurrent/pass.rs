//! The steps of recurrent operators over all sequences of a batch.

use std::ops::Range;

use crate::error::EvalError;
use crate::op::EvalContext;
use crate::ops::elementwise::clamp;
use crate::ops::recurrent::curve::Curve;
use crate::ops::recurrent::{BIAS, CELL, HIDDEN, LENGTHS, Layer, PEEPHOLES};
use crate::ops::strided::transposed;
use crate::scalar::{Scalar, Unsupported, zeros};
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// One direction: what does not depend on the states.
pub(crate) struct Pass<'a, S> {
    /// For each gate, products of all elements with its weights, and its bias: `[length * batch,
    /// hidden]`.
    inputs: Vec<Vec<S>>,
    /// For each gate, the weights of the state before: `[hidden, hidden]`, by rows of that state.
    weights: Vec<Vec<S>>,
    /// For each gate, what is added to products with the state before: `[hidden]`.
    biases: Option<&'a [S]>,
    /// For each of up to three gates, factors of the cell: `[hidden]`.
    peepholes: Option<&'a [S]>,
    curves: &'a [Curve],
    /// Least and largest number that activations are computed of.
    clip: Option<[S; 2]>,
    batch: usize,
    hidden: usize,
}

/// An element of the states that a step computes.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Among the states of the batch.
    pub(crate) at: usize,
    /// Among the products of all elements of the input.
    input: usize,
    /// In a state.
    unit: usize,
}

/// The states of all sequences of a batch, `[batch, hidden]`.
pub(crate) struct State<S> {
    pub(crate) hidden: Vec<S>,
    pub(crate) cell: Vec<S>,
}

impl<S: Scalar> Pass<'_, S> {
    /// The input's part of a gate.
    pub(crate) fn input(&self, gate: usize, place: Place) -> &S {
        &self.inputs[gate][place.input]
    }

    /// The products of the states before with the weights of a gate, and its bias: `[batch,
    /// hidden]`.
    pub(crate) fn recurrent(&self, gate: usize, states: &[S]) -> Vec<S> {
        let mut sums = match self.biases {
            Some(biases) => repeated(&biases[gate * self.hidden..][..self.hidden], self.batch),
            None => zeros(self.batch * self.hidden),
        };
        S::gemm(self.batch, self.hidden, self.hidden, states, &self.weights[gate], &mut sums);
        sums
    }

    /// `x`, and what a gate adds of the cell if there are peepholes.
    pub(crate) fn peeping(&self, gate: usize, place: Place, cell: &S, x: &S) -> S {
        match self.peepholes {
            Some(factors) => x.add(&factors[gate * self.hidden + place.unit].mul(cell)),
            None => x.clone(),
        }
    }

    /// The activation number `at` of `x`, clipped.
    pub(crate) fn gate(&self, at: usize, x: &S) -> Result<S, Unsupported> {
        match &self.clip {
            Some([low, high]) => self.curves[at].of(&clamp(x, low, high)?),
            None => self.curves[at].of(x),
        }
    }

    /// The activation number `at` of `x`, which no bound applies to.
    pub(crate) fn activation(&self, at: usize, x: &S) -> Result<S, Unsupported> {
        self.curves[at].of(x)
    }
}

impl Layer<'_> {
    /// The results for these operands. `step` changes the states at the given places, one step
    /// further.
    pub(crate) fn run<S: Scalar>(
        &self,
        inputs: &[Value<S>],
        context: &EvalContext<'_>,
        mut step: impl FnMut(&Pass<'_, S>, &[Place], &mut State<S>) -> Result<(), EvalError>,
    ) -> Result<Vec<Value<S>>, EvalError> {
        let concrete = |(value, ty): (&Value<S>, &TensorType)| TensorType::new(ty.dtype, value.shape().iter().map(|size| *size as i64));
        let types: Vec<TensorType> = inputs.iter().zip(context.input_types).map(concrete).collect();
        self.types(&types).map_err(|error| EvalError::value(error.to_string()))?;
        let curves = self.curves().map_err(EvalError::value)?;
        let directions = self.directions().map_err(EvalError::value)?;
        let x = real(&inputs[0])?;
        let (length, batch, hidden) = (x.shape[0], x.shape[1], inputs[2].shape()[2]);
        let lengths = self.lengths(inputs, length, batch)?;
        let mut all = zeros(length * directions.len() * batch * hidden);
        let mut last = State { hidden: Vec::new(), cell: Vec::new() };
        for (direction, backward) in directions.iter().enumerate() {
            let pass = self.pass(inputs, &curves, direction)?;
            let part = direction * batch * hidden..(direction + 1) * batch * hidden;
            let mut state = State { hidden: self.initial(HIDDEN, inputs, &part)?, cell: self.initial(CELL, inputs, &part)? };
            for number in 0..length {
                let element = |n: &usize| if *backward { n.checked_sub(number + 1) } else { (number < *n).then_some(number) };
                let elements: Vec<Option<usize>> = lengths.iter().map(element).collect();
                let states = elements.iter().enumerate().filter_map(|(n, element)| Some((n, (*element)?)));
                let places = |(n, element): (usize, usize)| {
                    (0..hidden).map(move |unit| Place { at: n * hidden + unit, input: (element * batch + n) * hidden + unit, unit })
                };
                step(&pass, &states.clone().flat_map(places).collect::<Vec<_>>(), &mut state)?;
                for (n, element) in states {
                    let to = ((element * directions.len() + direction) * batch + n) * hidden;
                    all[to..to + hidden].clone_from_slice(&state.hidden[n * hidden..][..hidden]);
                }
            }
            last.hidden.extend(state.hidden);
            last.cell.extend(state.cell);
        }
        let states = vec![directions.len(), batch, hidden];
        let results = [
            Tensor::new(vec![length, directions.len(), batch, hidden], all),
            Tensor::new(states.clone(), last.hidden),
            Tensor::new(states, last.cell),
        ];
        Ok(results.into_iter().take(self.family.results).map(Value::real).collect())
    }

    fn operand<'v, S: Scalar>(&self, name: &str, inputs: &'v [Value<S>]) -> Result<Option<&'v Tensor<S>>, EvalError> {
        self.slot(name).map(|slot| real(&inputs[slot])).transpose()
    }

    /// The states before the first step.
    fn initial<S: Scalar>(&self, name: &str, inputs: &[Value<S>], part: &Range<usize>) -> Result<Vec<S>, EvalError> {
        Ok(self.operand(name, inputs)?.map_or_else(|| zeros(part.len()), |given| given.data[part.clone()].to_vec()))
    }

    /// The length of each sequence. Runtimes disagree about the last state of one without elements.
    fn lengths<S: Scalar>(&self, inputs: &[Value<S>], length: usize, batch: usize) -> Result<Vec<usize>, EvalError> {
        let Some(slot) = self.slot(LENGTHS) else { return Ok(vec![length; batch]) };
        let Value::Int(given) = &inputs[slot] else { return Err(EvalError::value("lengths of sequences are integers")) };
        let valid = |n: &i64| usize::try_from(*n).ok().filter(|n| (1..=length).contains(n));
        let invalid = |n: &i64| EvalError::value(format!("{} of a sequence of {n} out of {length} elements", self.family.name));
        given.data.iter().map(|n| valid(n).ok_or_else(|| invalid(n))).collect()
    }

    fn pass<'v, S: Scalar>(&self, inputs: &'v [Value<S>], curves: &'v [Curve], direction: usize) -> Result<Pass<'v, S>, EvalError> {
        let (x, w, r) = (real(&inputs[0])?, real(&inputs[1])?, real(&inputs[2])?);
        let (length, batch, size, hidden) = (x.shape[0], x.shape[1], x.shape[2], r.shape[2]);
        let (gates, each) = (self.family.gates, self.family.activations.len());
        let biases =
            self.operand(BIAS, inputs)?.map(|b| b.data[direction * 2 * gates * hidden..][..2 * gates * hidden].split_at(gates * hidden));
        let block = |of: &Tensor<S>, gate: usize, columns: usize| {
            transposed(&of.data[(direction * gates + gate) * hidden * columns..][..hidden * columns], hidden, columns)
        };
        let input = |gate: usize| {
            let mut sums = match biases {
                Some((biases, _)) => repeated(&biases[gate * hidden..][..hidden], length * batch),
                None => zeros(length * batch * hidden),
            };
            S::gemm(length * batch, size, hidden, &x.data, &block(w, gate, size), &mut sums);
            sums
        };
        let peepholes = self.operand(PEEPHOLES, inputs)?;
        Ok(Pass {
            inputs: (0..gates).map(input).collect(),
            weights: (0..gates).map(|gate| block(r, gate, hidden)).collect(),
            biases: biases.map(|(_, biases)| biases),
            peepholes: peepholes.map(|p| &p.data[direction * 3 * hidden..][..3 * hidden]),
            curves: &curves[direction * each..][..each],
            clip: self.clip.map(|clip| [S::from_f64(-clip.0), S::from_f64(clip.0)]),
            batch,
            hidden,
        })
    }
}

fn real<S: Scalar>(value: &Value<S>) -> Result<&Tensor<S>, EvalError> {
    match value {
        Value::Real(tensor) => Ok(tensor),
        _ => Err(EvalError::value("recurrent operators are defined for reals")),
    }
}

fn repeated<S: Clone>(row: &[S], times: usize) -> Vec<S> {
    row.iter().cycle().take(row.len() * times).cloned().collect()
}
