//! Operators as graphs of Regraft's operators.

use regraft_ir::dim::Dim;
use regraft_ir::op::Op;
use regraft_ir::ops::{arithmetic, concat, conv, einsum, expand, gather, matmul, pad, reduce, reshape, slice, transpose, unsqueeze};
use regraft_ir::{Const, DType, Graph, TensorType, TypeError, ValueId};
use smallvec::SmallVec;

use crate::coordinate::{Coord, Coordinate, Coordinates};
use crate::error::LowerError;
use crate::operator::Operator;
use crate::plan::{Plan, Stage};
use crate::size::Size;
use crate::spec::Layer;
use crate::state::Coords;

/// How products with weights are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As convolutions, the windows that are summed in them.
    Convolution,
    /// As Einstein sums, with windows written out. Sizes may be symbols.
    Einsum,
}

/// What the variables of a specification stand for.
#[derive(Clone, Debug)]
pub struct Dims(Vec<Dim>);

impl Dims {
    /// The numbers of a layer.
    pub fn of(layer: &Layer) -> Dims {
        Dims(layer.values.iter().map(|value| Dim::from(*value as i64)).collect())
    }

    /// Symbols for the primary variables, each times the product of coefficients by which the
    /// operators divide it, and numbers for the coefficients. Whatever holds for such symbols holds
    /// for all sizes for which the operators are defined.
    pub fn symbolic(operators: &[&Operator], layer: &Layer, coordinates: &Coordinates<'_>) -> Dims {
        let spec = coordinates.spec;
        let mut dims: Vec<Dim> = layer.values.iter().map(|value| Dim::from(*value as i64)).collect();
        let mut below = vec![Size::ONE; dims.len()];
        for coord in operators.iter().flat_map(|operator| operator.closure(coordinates)) {
            let size = coordinates.size(coord);
            for (variable, _) in size.exponents().filter(|(v, e)| !spec.is_coefficient(*v) && *e > 0) {
                for (c, exponent) in size.exponents().filter(|(_, e)| *e < 0) {
                    let most = below[variable].exponent(c).max(-exponent);
                    below[variable] = below[variable] * Size::power(c, most - below[variable].exponent(c));
                }
            }
        }
        for (variable, dim) in dims.iter_mut().enumerate().filter(|(v, _)| !spec.is_coefficient(*v)) {
            let multiple: u64 = below[variable].exponents().map(|(c, e)| layer.values[c].pow(e as u32)).product();
            let name: String = spec.variables[variable].name.chars().filter(|c| c.is_alphanumeric()).collect();
            *dim = Dim::from(multiple as i64) * Dim::symbol(&name);
        }
        Dims(dims)
    }

    /// These, one for each variable.
    pub fn new(dims: Vec<Dim>) -> Dims {
        Dims(dims)
    }

    fn of_size(&self, size: Size) -> Option<Dim> {
        let power = |(variable, exponent): (usize, i8)| (0..exponent.unsigned_abs()).map(move |_| self.0[variable].clone());
        let (above, below): (Vec<_>, Vec<_>) = size.exponents().partition(|(_, e)| *e > 0);
        let product = |factors: Vec<(usize, i8)>| factors.into_iter().flat_map(power).fold(Dim::from(1), |product, dim| product * dim);
        product(above).exact_div(&product(below))
    }
}

/// The graph of an operator, computed as planned: `x` and the weights `w0`, `w1`, .. are its
/// inputs, in the layout of the operator; `y` is its output.
///
/// # Errors
///
/// If a size is no whole number, or is a symbol where the spelling needs a number.
pub fn graph(
    operator: &Operator,
    plan: &Plan,
    spelling: Spelling,
    dims: &Dims,
    coordinates: &Coordinates<'_>,
) -> Result<Graph, LowerError> {
    let mut graph = Graph::new("operator");
    let size = |size: Size| dims.of_size(size).ok_or_else(|| LowerError::Fraction(coordinates.spec.show(size)));
    let shape = |coords: &[Coord]| coords.iter().map(|coord| size(coordinates.size(*coord))).collect::<Result<Vec<Dim>, _>>();
    let batch = coordinates.spec.batch.iter().map(|s| size(*s)).collect::<Result<Vec<Dim>, _>>()?;
    let input: Vec<Dim> = batch.into_iter().chain(shape(&operator.input)?).collect();
    let x = graph.add_input("x", TensorType::new(DType::F32, input));
    let weights = operator.weights.iter().enumerate();
    let weights = weights
        .map(|(w, weight)| Ok(graph.add_input(&format!("w{w}"), TensorType::new(DType::F32, shape(weight)?))))
        .collect::<Result<Vec<ValueId>, LowerError>>()?;
    let y = Lowered { plan, spelling, dims }.add_to(&mut graph, operator, x, weights, coordinates)?;
    graph.add_output("y", y);
    Ok(graph)
}

/// How an operator is written.
#[derive(Clone, Copy, Debug)]
pub struct Lowered<'a> {
    /// The order of computing.
    pub plan: &'a Plan,
    /// How products with weights are spelled.
    pub spelling: Spelling,
    /// Sizes.
    pub dims: &'a Dims,
}

impl Lowered<'_> {
    /// Adds the operator to a graph, where its input and weights are; its output.
    ///
    /// # Errors
    ///
    /// As for [`graph`].
    pub fn add_to(
        self,
        graph: &mut Graph,
        operator: &Operator,
        x: ValueId,
        weights: Vec<ValueId>,
        coordinates: &Coordinates<'_>,
    ) -> Result<ValueId, LowerError> {
        let size = |size: Size| self.dims.of_size(size).ok_or_else(|| LowerError::Fraction(coordinates.spec.show(size)));
        let batch = coordinates.spec.batch.iter().map(|s| size(*s)).collect::<Result<Vec<Dim>, _>>()?;
        let Lowered { plan, spelling, dims } = self;
        let axes = operator.input.to_vec();
        let mut lowering = Lowering { graph, coordinates, dims, batch, operator, weights, spelling, value: x, axes, windows: vec![] };
        lowering.merge_equal_axes()?;
        for stage in &plan.stages {
            lowering.stage(stage)?;
        }
        lowering.open_windows()?;
        let outputs: Vec<Coord> = coordinates.outputs().collect();
        lowering.arrange(&outputs)?;
        Ok(lowering.value)
    }
}

struct Lowering<'a, 's> {
    graph: &'a mut Graph,
    coordinates: &'a Coordinates<'s>,
    dims: &'a Dims,
    batch: Vec<Dim>,
    operator: &'a Operator,
    weights: Vec<ValueId>,
    spelling: Spelling,
    /// The tensor, and what its axes after the batch are.
    value: ValueId,
    axes: Vec<Coord>,
    /// Windows that are not written out yet: a convolution may do that.
    windows: Vec<Coord>,
}

impl Lowering<'_, '_> {
    fn add(&mut self, op: Op, inputs: &[ValueId]) -> Result<ValueId, TypeError> {
        Ok(self.graph.add(op, inputs)?.out())
    }

    fn dim(&self, coord: Coord) -> Result<Dim, LowerError> {
        self.dim_of(self.coordinates.size(coord))
    }

    fn dim_of(&self, size: Size) -> Result<Dim, LowerError> {
        self.dims.of_size(size).ok_or_else(|| LowerError::Fraction(self.coordinates.spec.show(size)))
    }

    fn number(&self, coord: Coord) -> Result<i64, LowerError> {
        self.dim(coord)?.known().ok_or_else(|| LowerError::Symbol(self.coordinates.spec.show(self.coordinates.size(coord))))
    }

    fn product(&self, coords: &[Coord]) -> Result<Dim, LowerError> {
        coords.iter().try_fold(Dim::from(1), |product, coord| Ok(product * self.dim(*coord)?))
    }

    fn place(&self, coord: Coord) -> Result<usize, LowerError> {
        self.axes.iter().position(|axis| *axis == coord).ok_or(LowerError::Plan)
    }

    fn stage(&mut self, stage: &Stage) -> Result<(), LowerError> {
        if !matches!(stage, Stage::Contract { .. } | Stage::Open(_)) {
            self.open_windows()?;
        }
        match stage {
            Stage::Open(axis) => self.open(*axis),
            Stage::Close(whole, block) => {
                let parts: Vec<Coord> = self
                    .axes
                    .iter()
                    .copied()
                    .filter(|axis| matches!(self.coordinates.get(*axis), Coordinate::Quotient(a, b) | Coordinate::Remainder(a, b) if a == *whole && b == *block))
                    .collect();
                let quotient = parts.iter().copied().find(|part| matches!(self.coordinates.get(*part), Coordinate::Quotient(..)));
                let rest = parts.iter().copied().find(|part| matches!(self.coordinates.get(*part), Coordinate::Remainder(..)));
                let (Some(quotient), Some(rest)) = (quotient, rest) else { return Err(LowerError::Plan) };
                let mut order: Vec<Coord> = self.axes.iter().copied().filter(|axis| *axis != rest).collect();
                let at = order.iter().position(|axis| *axis == quotient).unwrap_or(0);
                order.insert(at + 1, rest);
                self.arrange(&order)?;
                self.axes.splice(at..at + 2, [*whole]);
                self.reshape()?;
                self.merge_equal_axes()
            }
            Stage::Repeat(coord) => {
                let partner = match self.coordinates.get(*coord) {
                    Coordinate::Quotient(a, block) => {
                        self.axes.iter().position(|axis| self.coordinates.get(*axis) == Coordinate::Remainder(a, block))
                    }
                    Coordinate::Remainder(a, block) => {
                        self.axes.iter().position(|axis| self.coordinates.get(*axis) == Coordinate::Quotient(a, block)).map(|at| at + 1)
                    }
                    _ => None,
                };
                let at = partner.unwrap_or(self.axes.len());
                self.value = self.add(Op::Unsqueeze(unsqueeze::Unsqueeze { axes: vec![(self.batch.len() + at) as i64] }), &[self.value])?;
                self.axes.insert(at, *coord);
                let shape = self.shape()?;
                self.value = self.add(Op::Expand(expand::Expand { shape }), &[self.value])?;
                Ok(())
            }
            Stage::Sum(sums) => self.sum(sums),
            Stage::Contract { weight, sums } => self.contract(*weight, sums),
        }
    }

    /// The tensor's shape as its axes say.
    fn shape(&self) -> Result<Vec<Dim>, LowerError> {
        self.batch.iter().cloned().map(Ok).chain(self.axes.iter().map(|axis| self.dim(*axis))).collect()
    }

    fn reshape(&mut self) -> Result<(), LowerError> {
        let shape = self.shape()?;
        self.value = self.add(Op::Reshape(reshape::Reshape { shape }), &[self.value])?;
        Ok(())
    }

    /// Puts the axes in this order.
    fn arrange(&mut self, order: &[Coord]) -> Result<(), LowerError> {
        if self.axes == order {
            return Ok(());
        }
        let batch = self.batch.len();
        let mut perm: Vec<i64> = (0..batch as i64).collect();
        for coord in order {
            perm.push((batch + self.place(*coord)?) as i64);
        }
        self.value = self.add(Op::Transpose(transpose::Transpose { perm }), &[self.value])?;
        self.axes = order.to_vec();
        Ok(())
    }

    /// Of two axes with one coordinate, the diagonal.
    fn merge_equal_axes(&mut self) -> Result<(), LowerError> {
        let twice = (0..self.axes.len()).find_map(|at| {
            let again = (at + 1..self.axes.len()).find(|other| self.axes[*other] == self.axes[at]);
            again.map(|again| (at, again))
        });
        let Some((first, second)) = twice else { return Ok(()) };
        let coord = self.axes[first];
        let batch = self.batch.len();
        let mut perm: Vec<i64> = (0..(batch + self.axes.len()) as i64).collect();
        let moved = perm.remove(batch + second);
        perm.insert(batch + first + 1, moved);
        if second != first + 1 {
            self.value = self.add(Op::Transpose(transpose::Transpose { perm }), &[self.value])?;
        }
        self.axes.remove(second);
        let n = self.number(coord)?;
        let mut shape = self.shape()?;
        shape[batch + first] = Dim::from(n * n);
        self.value = self.add(Op::Reshape(reshape::Reshape { shape }), &[self.value])?;
        let diagonal: Vec<i64> = (0..n).map(|i| i * (n + 1)).collect();
        let indices = Const::from_i64(DType::I64, &[n], &diagonal).ok_or(LowerError::Plan)?;
        let indices = self.graph.add_const(indices);
        self.value = self.add(Op::Gather(gather::Gather { axis: (batch + first) as i64 }), &[self.value, indices])?;
        self.merge_equal_axes()
    }

    fn open(&mut self, axis: Coord) -> Result<(), LowerError> {
        // What is opened may be what a window that was put off slides over.
        if self.windows.iter().any(|window| self.coordinates.parts(*window).any(|part| part == axis)) {
            self.open_windows()?;
        }
        let at = self.place(axis)?;
        match self.coordinates.get(axis) {
            Coordinate::Split(a, b) => {
                if self.windows.iter().any(|window| self.coordinates.parts(*window).any(|part| part == a || part == b)) {
                    self.open_windows()?;
                }
                self.axes.splice(at..=at, [a, b]);
                self.reshape()?;
                self.merge_equal_axes()
            }
            Coordinate::Unfold(a, b) => {
                let free = !self.axes.contains(&a) && !self.axes.contains(&b);
                let apart = self.windows.iter().all(|window| self.coordinates.parts(*window).all(|part| part != a && part != b));
                match self.spelling == Spelling::Convolution && free && apart {
                    true => {
                        self.windows.push(axis);
                        Ok(())
                    }
                    false => {
                        self.open_windows()?;
                        self.unfold(axis)
                    }
                }
            }
            Coordinate::Shift(a) => {
                let n = self.dim(axis)?;
                let rest = self.slice(at, Dim::from(1), n, 1)?;
                let first = self.slice(at, Dim::from(0), Dim::from(1), 1)?;
                self.value = self.add(Op::Concat(concat::Concat { axis: (self.batch.len() + at) as i64 }), &[rest, first])?;
                self.axes[at] = a;
                self.merge_equal_axes()
            }
            Coordinate::Stride(a, stride) => {
                let n = self.dim(axis)?;
                let step = self.dim_of(stride)?.known().ok_or(LowerError::Plan)?;
                self.value = self.slice(at, Dim::from(0), n, step)?;
                self.axes[at] = a;
                self.merge_equal_axes()
            }
            _ => Err(LowerError::Plan),
        }
    }

    fn slice(&mut self, at: usize, start: Dim, end: Dim, step: i64) -> Result<ValueId, LowerError> {
        let axes = vec![(self.batch.len() + at) as i64];
        let slice = slice::Slice { axes, starts: vec![start], ends: vec![end], steps: vec![step] };
        Ok(self.add(Op::Slice(slice), &[self.value])?)
    }

    /// Windows that were put off.
    fn open_windows(&mut self) -> Result<(), LowerError> {
        for window in std::mem::take(&mut self.windows) {
            self.unfold(window)?;
        }
        Ok(())
    }

    /// Writes a window out: one slice for each position in it.
    fn unfold(&mut self, axis: Coord) -> Result<(), LowerError> {
        let Coordinate::Unfold(a, b) = self.coordinates.get(axis) else { return Err(LowerError::Plan) };
        let (at, batch) = (self.place(axis)?, self.batch.len());
        let (n, window) = (self.dim(a)?, self.number(b)?);
        let rank = batch + self.axes.len();
        let mut pads = vec![0; 2 * rank];
        (pads[batch + at], pads[rank + batch + at]) = (window / 2, window - 1 - window / 2);
        self.value = self.add(Op::Pad(pad::Pad { pads, mode: "constant".into(), value: regraft_ir::Float(0.0) }), &[self.value])?;
        let padded = self.value;
        // Where the window's position is an axis already, each position of it takes its own slice.
        let held = self.axes.iter().position(|other| *other == b);
        let mut slices = Vec::new();
        for position in 0..window {
            self.value = padded;
            let mut part = self.slice(at, Dim::from(position), n.clone() + Dim::from(position), 1)?;
            match held {
                Some(held) => {
                    self.value = part;
                    part = self.slice(held, Dim::from(position), Dim::from(position + 1), 1)?;
                }
                None => part = self.add(Op::Unsqueeze(unsqueeze::Unsqueeze { axes: vec![(batch + at + 1) as i64] }), &[part])?,
            }
            slices.push(part);
        }
        let along = held.unwrap_or(at + 1);
        self.value = self.add(Op::Concat(concat::Concat { axis: (batch + along) as i64 }), &slices)?;
        self.axes[at] = a;
        if held.is_none() {
            self.axes.insert(at + 1, b);
        }
        self.merge_equal_axes()
    }

    fn sum(&mut self, sums: &[Coord]) -> Result<(), LowerError> {
        let place = |sum: &Coord| Ok((self.batch.len() + self.place(*sum)?) as i64);
        let mut axes = sums.iter().map(place).collect::<Result<Vec<i64>, LowerError>>()?;
        axes.sort_unstable();
        self.value = self.add(Op::ReduceSum(reduce::ReduceSum { axes, keepdims: false }), &[self.value])?;
        self.axes.retain(|axis| !sums.contains(axis));
        Ok(())
    }

    fn contract(&mut self, weight: usize, sums: &Coords) -> Result<(), LowerError> {
        let coords = self.operator.weights[weight].clone();
        let fused = |window: &Coord| match self.coordinates.get(*window) {
            Coordinate::Unfold(a, b) => sums.contains(&b) && coords.contains(&b) && !coords.contains(&a) && !sums.contains(&a),
            _ => false,
        };
        let fused: SmallVec<[Coord; 2]> = self.windows.iter().copied().filter(fused).take(2).collect();
        let others: Vec<Coord> = self.windows.iter().copied().filter(|window| !fused.contains(window)).collect();
        self.windows = fused.to_vec();
        for window in others {
            self.unfold(window)?;
        }
        let windows = std::mem::take(&mut self.windows);
        // What is summed and not in the weight is summed first.
        let before: Vec<Coord> = self.axes.iter().copied().filter(|axis| sums.contains(axis) && !coords.contains(axis)).collect();
        if !before.is_empty() {
            self.sum(&before)?;
        }
        match self.spelling {
            Spelling::Einsum => self.einsum(weight, &coords, sums),
            Spelling::Convolution => self.convolution(weight, &coords, sums, &windows),
        }
    }

    fn einsum(&mut self, weight: usize, coords: &Coords, sums: &Coords) -> Result<(), LowerError> {
        let mut known: Vec<Coord> = Vec::new();
        let mut letters = |coords: &[Coord]| -> String {
            coords
                .iter()
                .map(|coord| {
                    let at = known.iter().position(|other| other == coord).unwrap_or_else(|| {
                        known.push(*coord);
                        known.len() - 1
                    });
                    char::from(b'a' + at as u8)
                })
                .collect()
        };
        let mut result: Vec<Coord> = self.axes.clone();
        result.extend(coords.iter().filter(|coord| !self.axes.contains(coord)));
        result.retain(|axis| !sums.contains(axis));
        let batch: String = (0..self.batch.len()).map(|axis| char::from(b'A' + axis as u8)).collect();
        let equation = format!("{batch}{},{}->{batch}{}", letters(&self.axes.clone()), letters(coords), letters(&result));
        self.value = self.add(Op::Einsum(einsum::Einsum { equation }), &[self.value, self.weights[weight]])?;
        self.axes = result;
        Ok(())
    }

    /// As a convolution: what both have and is kept is a group, what both have and is summed are
    /// input channels, what the weight alone has are output channels, and the rest is space.
    fn convolution(&mut self, weight: usize, coords: &Coords, sums: &Coords, windows: &[Coord]) -> Result<(), LowerError> {
        let parts: Vec<(Coord, Coord, Coord)> = windows
            .iter()
            .filter_map(|window| match self.coordinates.get(*window) {
                Coordinate::Unfold(a, b) => Some((*window, a, b)),
                _ => None,
            })
            .collect();
        let in_weight = |axis: &Coord| coords.contains(axis);
        let group: Vec<Coord> = self.axes.iter().copied().filter(|axis| in_weight(axis) && !sums.contains(axis)).collect();
        let summed: Vec<Coord> = self.axes.iter().copied().filter(|axis| in_weight(axis) && sums.contains(axis)).collect();
        let taps: Vec<Coord> = parts.iter().map(|(_, _, b)| *b).collect();
        let added: Vec<Coord> =
            coords.iter().copied().filter(|coord| !self.axes.contains(coord) && !taps.contains(coord) && !sums.contains(coord)).collect();
        // Sums of the weight alone, which no plan that is best has.
        let alone: Vec<Coord> =
            coords.iter().copied().filter(|coord| !self.axes.contains(coord) && !taps.contains(coord) && sums.contains(coord)).collect();
        let mut weight_value = self.weights[weight];
        let mut weight_axes: Vec<Coord> = coords.to_vec();
        if !alone.is_empty() {
            let axes = (0..weight_axes.len()).filter(|at| alone.contains(&weight_axes[*at])).map(|at| at as i64).collect();
            weight_value = self.add(Op::ReduceSum(reduce::ReduceSum { axes, keepdims: false }), &[weight_value])?;
            weight_axes.retain(|axis| !alone.contains(axis));
        }
        let window_axes: Vec<Coord> = parts.iter().map(|(window, ..)| *window).collect();
        let rest: Vec<Coord> = self.axes.iter().copied().filter(|axis| !in_weight(axis) && !window_axes.contains(axis)).collect();
        if windows.is_empty() && summed.is_empty() && added.is_empty() {
            return self.scaled(weight_value, &weight_axes);
        }
        if windows.is_empty() && !summed.is_empty() && self.axes.ends_with(&summed) {
            return self.product_of(weight_value, &weight_axes, [rest, group, summed, added]);
        }
        // With two windows nothing else fits into the space: it joins the batch.
        let (outer, inner) = if parts.len() == 2 { (rest, vec![]) } else { (vec![], rest) };
        let order: Vec<Coord> = outer.iter().chain(&group).chain(&summed).chain(&window_axes).chain(&inner).copied().collect();
        self.arrange(&order)?;
        let batch = self.batch.iter().cloned().fold(Dim::from(1), |product, dim| product * dim) * self.product(&outer)?;
        let mut shape = vec![batch, self.product(&group)? * self.product(&summed)?];
        for window in &window_axes {
            shape.push(self.dim(*window)?);
        }
        if parts.len() < 2 {
            shape.push(self.product(&inner)?);
        }
        if parts.is_empty() {
            shape.push(Dim::from(1));
        }
        self.value = self.add(Op::Reshape(reshape::Reshape { shape }), &[self.value])?;
        let weight_order: Vec<Coord> = group.iter().chain(&added).chain(&summed).chain(&taps).copied().collect();
        let perm: Vec<i64> =
            weight_order.iter().map(|coord| weight_axes.iter().position(|axis| axis == coord).unwrap_or(0) as i64).collect();
        if perm.iter().enumerate().any(|(to, from)| to as i64 != *from) {
            weight_value = self.add(Op::Transpose(transpose::Transpose { perm }), &[weight_value])?;
        }
        let mut kernel = vec![self.product(&group)? * self.product(&added)?, self.product(&summed)?];
        for tap in &taps {
            kernel.push(self.dim(*tap)?);
        }
        kernel.resize(4, Dim::from(1));
        weight_value = self.add(Op::Reshape(reshape::Reshape { shape: kernel }), &[weight_value])?;
        let mut pads = vec![0; 4];
        for (at, tap) in taps.iter().enumerate() {
            let window = self.number(*tap)?;
            (pads[at], pads[at + 2]) = (window / 2, window - 1 - window / 2);
        }
        let groups = self.product(&group)?.known().ok_or_else(|| LowerError::Symbol("groups".into()))?;
        let conv = conv::Conv { strides: vec![1, 1], pads, dilations: vec![1, 1], group: groups };
        self.value = self.add(Op::Conv(conv), &[self.value, weight_value])?;
        let spaces: Vec<Coord> = parts.iter().map(|(_, a, _)| *a).collect();
        self.axes = outer.iter().chain(&group).chain(&added).chain(&spaces).chain(&inner).copied().collect();
        self.reshape()
    }

    /// As a product of matrices: what is summed are the last axes.
    fn product_of(
        &mut self,
        mut weight: ValueId,
        weight_axes: &[Coord],
        [rest, group, summed, added]: [Vec<Coord>; 4],
    ) -> Result<(), LowerError> {
        let batch = self.batch.len();
        let order: Vec<Coord> = group.iter().chain(&rest).chain(&summed).copied().collect();
        self.arrange(&order)?;
        // Each group is a matrix with all the rest as its rows.
        let mut shape: Vec<Dim> = self.shape()?[..batch].to_vec();
        match group.is_empty() {
            true => shape.extend(rest.iter().map(|axis| self.dim(*axis)).collect::<Result<Vec<_>, _>>()?),
            false => shape.extend([self.product(&group)?, self.product(&rest)?]),
        }
        shape.push(self.product(&summed)?);
        if shape != self.shape()? {
            self.value = self.add(Op::Reshape(reshape::Reshape { shape }), &[self.value])?;
        }
        let weight_order: Vec<Coord> = group.iter().chain(&summed).chain(&added).copied().collect();
        let perm: Vec<i64> =
            weight_order.iter().map(|coord| weight_axes.iter().position(|axis| axis == coord).unwrap_or(0) as i64).collect();
        if perm.iter().enumerate().any(|(to, from)| to as i64 != *from) {
            weight = self.add(Op::Transpose(transpose::Transpose { perm }), &[weight])?;
        }
        let mut matrix = if group.is_empty() { vec![] } else { vec![self.product(&group)?] };
        matrix.extend([self.product(&summed)?, self.product(&added)?]);
        weight = self.add(Op::Reshape(reshape::Reshape { shape: matrix }), &[weight])?;
        self.value = self.add(Op::MatMul(matmul::MatMul {}), &[self.value, weight])?;
        self.axes = group.iter().chain(&rest).chain(&added).copied().collect();
        match group.is_empty() && added.len() == 1 {
            true => Ok(()),
            false => self.reshape(),
        }
    }

    /// Multiplies elementwise.
    fn scaled(&mut self, weight: ValueId, weight_axes: &[Coord]) -> Result<(), LowerError> {
        let order: Vec<Coord> = self.axes.iter().copied().filter(|axis| weight_axes.contains(axis)).collect();
        let perm: Vec<i64> = order.iter().map(|coord| weight_axes.iter().position(|axis| axis == coord).unwrap_or(0) as i64).collect();
        let mut weight = weight;
        if perm.iter().enumerate().any(|(to, from)| to as i64 != *from) {
            weight = self.add(Op::Transpose(transpose::Transpose { perm }), &[weight])?;
        }
        let shape = self.axes.iter().map(|axis| if weight_axes.contains(axis) { self.dim(*axis) } else { Ok(Dim::from(1)) });
        let shape = shape.collect::<Result<Vec<Dim>, _>>()?;
        weight = self.add(Op::Reshape(reshape::Reshape { shape }), &[weight])?;
        self.value = self.add(Op::Mul(arithmetic::Mul {}), &[self.value, weight])?;
        Ok(())
    }
}
