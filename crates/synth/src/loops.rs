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
    /// What is known once the output's position is, and then once each sum's is, outermost first.
    levels: Vec<Level>,
}

/// What one more loop settles.
#[derive(Clone, Debug, Default)]
struct Level {
    /// Indices, each after those that it is a function of.
    indices: Vec<usize>,
    /// Of the input, then of each weight, the axes whose positions these are: index and distance
    /// between neighbours.
    reads: Vec<Vec<(usize, usize)>>,
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
    /// The operator at the sizes of a layer, which need not be one of the specification; `None` if
    /// a size in it is no whole number there.
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
        let input = sizes(&operator.input)?;
        let weights: Vec<Vec<usize>> = operator.weights.iter().map(|weight| sizes(weight)).collect::<Option<_>>()?;
        let sums = sizes(&operator.sums)?;
        let reads = std::iter::once((&operator.input[..], &input[..]))
            .chain(operator.weights.iter().map(|w| &w[..]).zip(weights.iter().map(|w| &w[..])));
        let reads = reads.map(|(coords, shape)| coords.iter().map(|coord| at(*coord)).zip(strides(shape)).collect());
        let levels = levels(&indices, sums.len(), &reads.collect::<Vec<_>>());
        Some(Loops { output: sizes(&coordinates.outputs().collect::<Vec<_>>())?, input, weights, sums, indices, levels })
    }

    /// The same loops, some sums at their first position only.
    pub(crate) fn held(&self, held: &dyn Fn(usize) -> bool) -> Loops {
        let mut loops = self.clone();
        loops.sums.iter_mut().enumerate().filter(|(sum, _)| held(*sum)).for_each(|(_, size)| *size = 1);
        loops
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
        let mut nest = Nest { loops: self, values: vec![0; self.indices.len()], sums: vec![0; self.sums.len()], each };
        let mut reads = vec![0; (self.weights.len() + 1) * (self.levels.len() + 1)];
        for y in outputs {
            let output = unflattened(y, &self.output);
            nest.run(0, y, &output, &mut reads);
        }
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

/// The loops, as they run.
struct Nest<'l, 'e> {
    loops: &'l Loops,
    values: Vec<usize>,
    sums: Vec<usize>,
    each: &'e mut dyn FnMut(Term<'_>),
}

impl Nest<'_, '_> {
    /// Runs the loops from a level on. `reads` begins with what is read so far, and has room for
    /// what each further level makes of it.
    fn run(&mut self, level: usize, y: usize, output: &[usize], reads: &mut [usize]) {
        let loops = self.loops;
        let here = &loops.levels[level];
        // Where a window leaves its axis, there is no term.
        for at in &here.indices {
            match loops.indices[*at].value(output, &self.sums, &self.values) {
                Some(value) => self.values[*at] = value,
                None => return,
            }
        }
        let (so_far, rest) = reads.split_at_mut(here.reads.len());
        for (tensor, axes) in here.reads.iter().enumerate() {
            rest[tensor] = axes.iter().fold(so_far[tensor], |flat, (at, stride)| flat + self.values[*at] * stride);
        }
        match loops.sums.get(level) {
            None => (self.each)(Term { output: y, input: rest[0], weights: &rest[1..here.reads.len()] }),
            Some(size) => {
                for position in 0..*size {
                    self.sums[level] = position;
                    self.run(level + 1, y, output, rest);
                }
            }
        }
    }
}

impl Index {
    /// Its value, from those that it is a function of; `None` where a window leaves its axis.
    fn value(self, output: &[usize], sums: &[usize], values: &[usize]) -> Option<usize> {
        Some(match self {
            Index::Output(axis) => output[axis],
            Index::Sum(k) => sums[k],
            Index::Split(a, b, size) => values[a] * size + values[b],
            Index::Quotient(a, block) => values[a] / block,
            Index::Remainder(a, block) => values[a] % block,
            Index::Shift(a, size) => (values[a] + 1) % size,
            Index::Stride(a, stride) => values[a] * stride,
            Index::Unfold(a, b, half, size) => return (values[a] + values[b]).checked_sub(half).filter(|position| *position < size),
        })
    }
}

/// Which loop settles each index, and so what is read. `reads` has the axes of the input and of
/// each weight.
fn levels(indices: &[Index], sums: usize, reads: &[Vec<(usize, usize)>]) -> Vec<Level> {
    let mut levels = vec![Level { indices: vec![], reads: vec![vec![]; reads.len()] }; sums + 1];
    let mut settled: Vec<usize> = Vec::with_capacity(indices.len());
    for (at, index) in indices.iter().enumerate() {
        let level = match *index {
            Index::Output(_) => 0,
            Index::Sum(k) => k + 1,
            Index::Split(a, b, _) | Index::Unfold(a, b, ..) => settled[a].max(settled[b]),
            Index::Quotient(a, _) | Index::Remainder(a, _) | Index::Shift(a, _) | Index::Stride(a, _) => settled[a],
        };
        settled.push(level);
        levels[level].indices.push(at);
    }
    for (tensor, axes) in reads.iter().enumerate() {
        for (at, stride) in axes {
            levels[settled[*at]].reads[tensor].push((*at, *stride));
        }
    }
    levels
}

/// Distances between neighbours on each axis, row by row.
fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
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
