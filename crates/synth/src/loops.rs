//! An operator at given sizes: the nest of loops that it is by definition.

use regraft_ir::tensor::Tensor;

use crate::coordinate::{Coord, Coordinate, Coordinates};
use crate::operator::Operator;
use crate::size::Size;
use crate::spec::{Layer, Spec};

/// One coordinate as a function of those before it.
#[derive(Clone, Copy, Debug)]
enum Index {
    Output(usize),
    Sum(usize),
    Split(usize, usize, usize),
    Quotient(usize, usize),
    Remainder(usize, usize),
    Shift(usize, usize),
    Stride(usize, usize),
    /// Axis, window, half the window, and the axis's size.
    Unfold(usize, usize, usize, usize),
}

/// An operator in numbers: loops over outputs and sums, and what each term reads. The batch is left
/// out.
#[derive(Clone, Debug)]
pub struct Loops {
    /// The output's axes.
    pub output: Vec<usize>,
    /// The input's axes.
    pub input: Vec<usize>,
    /// The axes of each weight.
    pub weights: Vec<Vec<usize>>,
    sums: Vec<usize>,
    indices: Vec<Index>,
    input_at: Vec<usize>,
    weights_at: Vec<Vec<usize>>,
}

/// One term: positions in row-major order.
#[derive(Clone, Debug)]
pub struct Term<'t> {
    /// Of the output.
    pub output: usize,
    /// Of the input.
    pub input: usize,
    /// Of each weight.
    pub weights: &'t [usize],
}

impl Loops {
    /// The operator at the sizes of a layer, which need not be one of the specification; `None` if a
    /// size in it is no whole number there.
    pub fn at(operator: &Operator, layer: &Layer, coordinates: &Coordinates<'_>) -> Option<Loops> {
        let spec: &Spec = coordinates.spec;
        let value = |size: Size| spec.value(size, layer).map(|v| v as usize);
        let size = |coord: Coord| value(coordinates.size(coord));
        let mut all = operator.closure(coordinates);
        all.extend(coordinates.outputs().filter(|output| !all.contains(output)).collect::<Vec<_>>());
        all.extend(operator.sums.iter().copied().filter(|sum| !all.contains(sum)).collect::<Vec<_>>());
        all.sort_unstable();
        let at = |coord: Coord| all.iter().position(|other| *other == coord).unwrap_or_default();
        let indices = all
            .iter()
            .map(|&coord| {
                Some(match coordinates.get(coord) {
                    Coordinate::Output(axis) => Index::Output(usize::from(axis)),
                    Coordinate::Reduce(..) => Index::Sum(operator.sums.iter().position(|sum| *sum == coord)?),
                    Coordinate::Split(a, b) => Index::Split(at(a), at(b), size(b)?),
                    Coordinate::Quotient(a, block) => {
                        value(coordinates.size(a) / block)?;
                        Index::Quotient(at(a), value(block)?)
                    }
                    Coordinate::Remainder(a, block) => {
                        value(coordinates.size(a) / block)?;
                        Index::Remainder(at(a), value(block)?)
                    }
                    Coordinate::Shift(a) => Index::Shift(at(a), size(a)?),
                    Coordinate::Stride(a, stride) => Index::Stride(at(a), value(stride)?),
                    Coordinate::Unfold(a, b) => Index::Unfold(at(a), at(b), size(b)? / 2, size(a)?),
                })
            })
            .collect::<Option<Vec<Index>>>()?;
        let sizes = |coords: &[Coord]| coords.iter().map(|coord| size(*coord)).collect::<Option<Vec<usize>>>();
        let positions = |coords: &[Coord]| coords.iter().map(|coord| at(*coord)).collect::<Vec<usize>>();
        Some(Loops {
            output: sizes(&coordinates.outputs().collect::<Vec<_>>())?,
            input: sizes(&operator.input)?,
            weights: operator.weights.iter().map(|weight| sizes(weight)).collect::<Option<_>>()?,
            sums: sizes(&operator.sums)?,
            indices,
            input_at: positions(&operator.input),
            weights_at: operator.weights.iter().map(|weight| positions(weight)).collect(),
        })
    }

    /// How many terms there are, those that windows leave out included.
    pub fn len(&self) -> usize {
        self.output.iter().chain(&self.sums).product()
    }

    /// Whether there is no term.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `each` with every term, outputs outermost.
    pub fn terms(&self, mut each: impl FnMut(Term<'_>)) {
        self.terms_from(0..self.output.iter().product(), &mut each);
    }

    /// The same, of some outputs only.
    pub fn terms_from(&self, outputs: std::ops::Range<usize>, each: &mut dyn FnMut(Term<'_>)) {
        let mut values = vec![0usize; self.indices.len()];
        let mut weights = vec![0usize; self.weights.len()];
        for y in outputs {
            let output = unflattened(y, &self.output);
            let mut sums = vec![0usize; self.sums.len()];
            'terms: loop {
                if self.evaluate(&output, &sums, &mut values) {
                    let flat = |at: &[usize], shape: &[usize]| at.iter().zip(shape).fold(0, |flat, (at, size)| flat * size + values[*at]);
                    for (w, weight) in weights.iter_mut().enumerate() {
                        *weight = flat(&self.weights_at[w], &self.weights[w]);
                    }
                    each(Term { output: y, input: flat(&self.input_at, &self.input), weights: &weights });
                }
                for k in (0..sums.len()).rev() {
                    sums[k] += 1;
                    if sums[k] < self.sums[k] {
                        continue 'terms;
                    }
                    sums[k] = 0;
                }
                break;
            }
        }
    }

    /// All coordinates of one term; whether no window leaves its axis.
    fn evaluate(&self, output: &[usize], sums: &[usize], values: &mut [usize]) -> bool {
        for (at, index) in self.indices.iter().enumerate() {
            values[at] = match *index {
                Index::Output(axis) => output[axis],
                Index::Sum(k) => sums[k],
                Index::Split(a, b, size) => values[a] * size + values[b],
                Index::Quotient(a, block) => values[a] / block,
                Index::Remainder(a, block) => values[a] % block,
                Index::Shift(a, size) => (values[a] + 1) % size,
                Index::Stride(a, stride) => values[a] * stride,
                Index::Unfold(a, b, half, size) => match (values[a] + values[b]).checked_sub(half) {
                    Some(position) if position < size => position,
                    _ => return false,
                },
            };
        }
        true
    }

    /// The output for an input and weights, by definition: every term, one by one.
    ///
    /// # Panics
    ///
    /// If shapes are not those of the loops.
    pub fn run(&self, input: &Tensor<f64>, weights: &[Tensor<f64>]) -> Tensor<f64> {
        assert_eq!(input.shape, self.input, "the input's shape");
        assert!(weights.iter().zip(&self.weights).all(|(weight, shape)| weight.shape == **shape), "shapes of weights");
        let mut output = Tensor::filled(self.output.clone(), 0.0);
        self.terms(|term| {
            let product: f64 = term.weights.iter().zip(weights).map(|(at, weight)| weight.data[*at]).product();
            output.data[term.output] += input.data[term.input] * product;
        });
        output
    }
}

/// The position on each axis of an element, counted row by row.
pub(crate) fn unflattened(flat: usize, shape: &[usize]) -> Vec<usize> {
    let (mut rest, mut at) = (flat, vec![0; shape.len()]);
    for axis in (0..shape.len()).rev() {
        at[axis] = rest % shape[axis];
        rest /= shape[axis];
    }
    at
}
