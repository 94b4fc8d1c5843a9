//! An operator at one position of the output, as a matrix of what it reads.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::coordinate::{Coord, Coordinate, Coordinates};
use crate::factored::{Factored, Side};
use crate::loops::{Loops, unflattened};
use crate::matrix::{Matrix, add_product};
use crate::operator::Operator;
use crate::spec::{Axis, Layer};

/// Where an input lies, as seen from an output: one distance for each axis that is not a channel.
pub type Offset = Vec<i32>;

/// An operator at one position of the output: what it multiplies with what.
///
/// Sums over what the input does not depend on, such as the channels between two factors, are kept
/// apart: `matrix[place] = sum over them of a product of weights`.
#[derive(Clone, Debug)]
pub struct Stencil {
    /// Channels of the output.
    pub outputs: usize,
    /// Channels of the input.
    pub channels: usize,
    /// Offsets that are read; a patch holds all channels of the first, then of the second, ..
    pub offsets: Vec<Offset>,
    /// Elements of each weight.
    pub weights: Vec<usize>,
    /// For each term its place in the matrix, then an element of each weight, where all sums that
    /// are kept apart are at their first position.
    places: Vec<u32>,
    /// For each position of these sums, how much further the element of each weight lies.
    inner: Vec<u32>,
    /// The same terms as products of matrices, where they can be written so.
    blocks: Vec<Block>,
}

/// Terms that are a product of two matrices: all pairs of some elements of two weights.
#[derive(Clone, Debug)]
struct Block {
    /// Elements of the first weight, and of the second.
    elements: [Vec<u32>; 2],
    /// The place of each pair, row by row.
    places: Vec<u32>,
}

/// One term: an output channel, an offset, an input channel, and an element of each weight.
#[derive(Clone, PartialEq)]
struct Read {
    row: usize,
    slot: usize,
    column: usize,
    elements: Vec<u32>,
}

/// How much faster terms are that are products of matrices.
const BY_PRODUCTS: usize = 50;

impl Stencil {
    /// The stencil of an operator at the sizes of a layer, with at least these offsets.
    ///
    /// `None` if a size is no whole number there, if it does not treat all positions alike, or if
    /// it takes longer than `most` terms, one by one.
    pub fn of(operator: &Operator, layer: &Layer, offsets: &[Offset], most: usize, coordinates: &Coordinates<'_>) -> Option<Stencil> {
        let apart = apart(operator, coordinates);
        let all = Loops::at(operator, layer, coordinates)?;
        let loops = all.held(&|sum| apart.contains(&operator.sums[sum]));
        let spec = coordinates.spec;
        let ordered = |axes: &[Axis]| -> Vec<usize> { (0..axes.len()).filter(|axis| !axes[*axis].unordered).collect() };
        let (inputs, outputs) = (ordered(&spec.input), ordered(&spec.output));
        let places: usize = outputs.iter().map(|axis| loops.output[*axis]).product();
        if inputs.len() != outputs.len() || loops.len() / places > most {
            return None;
        }
        let channel = |at: &[usize], axes: &[Axis], shape: &[usize]| {
            (0..at.len()).filter(|axis| axes[*axis].unordered).fold(0, |flat, axis| flat * shape[axis] + at[axis])
        };
        let volume = |axes: &[Axis], shape: &[usize]| -> usize {
            (0..shape.len()).filter(|axis| axes[*axis].unordered).map(|axis| shape[axis]).product()
        };
        let (rows, channels) = (volume(&spec.output, &loops.output), volume(&spec.input, &loops.input));
        let mut slots: FxHashMap<Offset, usize> = offsets.iter().cloned().zip(0..).collect();
        let mut known: Vec<Offset> = offsets.to_vec();
        let mut found: Vec<Read> = Vec::new();
        let mut first: Option<Vec<Read>> = None;
        let mut middle = 0;
        // The middle, and one further along each axis.
        for shift in std::iter::once(None).chain((0..outputs.len()).map(Some)) {
            let place: Vec<usize> =
                outputs.iter().enumerate().map(|(k, axis)| loops.output[*axis] / 2 + usize::from(shift == Some(k))).collect();
            if place.iter().zip(&outputs).any(|(at, axis)| *at >= loops.output[*axis]) {
                return None;
            }
            found.clear();
            for y in 0..loops.output.iter().product() {
                let at = unflattened(y, &loops.output);
                if outputs.iter().zip(&place).any(|(axis, wanted)| at[*axis] != *wanted) {
                    continue;
                }
                if first.is_none() && found.is_empty() {
                    middle = y;
                }
                let row = channel(&at, &spec.output, &loops.output);
                loops.terms_from(y..y + 1, &mut |term| {
                    let x = unflattened(term.input, &loops.input);
                    let offset: Offset = inputs.iter().zip(&place).map(|(axis, at)| x[*axis] as i32 - *at as i32).collect();
                    let slot = *slots.entry(offset.clone()).or_insert_with(|| {
                        known.push(offset);
                        known.len() - 1
                    });
                    let column = channel(&x, &spec.input, &loops.input);
                    found.push(Read { row, slot, column, elements: term.weights.iter().map(|w| *w as u32).collect() });
                });
            }
            match &first {
                None => first = Some(found.clone()),
                Some(first) if *first != found => return None,
                Some(_) => {}
            }
        }
        let width = known.len() * channels;
        let mut places = Vec::with_capacity(found.len() * (1 + loops.weights.len()));
        for Read { row, slot, column, elements } in first? {
            places.push((row * width + slot * channels + column) as u32);
            places.extend(elements);
        }
        let mut inner: Vec<u32> = Vec::new();
        let alone = all.held(&|sum| !apart.contains(&operator.sums[sum]));
        let mut start: Option<Vec<u32>> = None;
        alone.terms_from(middle..middle + 1, &mut |term| {
            let elements: Vec<u32> = term.weights.iter().map(|w| *w as u32).collect();
            let start = start.get_or_insert_with(|| elements.clone());
            inner.extend(elements.iter().zip(start.iter()).map(|(element, start)| element - start));
        });
        let weights: Vec<usize> = loops.weights.iter().map(|shape| shape.iter().product()).collect();
        let blocks = if weights.len() == 2 && inner.len() > 2 { blocks(&places) } else { vec![] };
        let stencil = Stencil { outputs: rows, channels, offsets: known, weights, places, inner, blocks };
        let effort = stencil.terms() / if stencil.blocks.is_empty() { 1 } else { BY_PRODUCTS };
        (stencil.inner.len() >= stencil.weights.len() && effort <= most).then_some(stencil)
    }

    /// Elements of a patch.
    pub fn width(&self) -> usize {
        self.offsets.len() * self.channels
    }

    /// How many products of weights are added up.
    pub fn terms(&self) -> usize {
        let weights = self.weights.len();
        self.places.len() / (1 + weights) * (self.inner.len() / weights.max(1)).max(1)
    }

    /// The matrix for some weights, a row for each output.
    pub fn matrix(&self, weights: &[Vec<f32>]) -> Vec<f32> {
        let mut matrix = vec![0.0; self.outputs * self.width()];
        for block in &self.blocks {
            let [a, b] = [0, 1].map(|w| self.gathered(block, w, &weights[w]));
            let (rows, columns, inner) = (block.elements[0].len(), block.elements[1].len(), self.inner.len() / 2);
            let mut product = vec![0.0; rows * columns];
            add_product(Matrix::new(&a, rows, inner), Matrix::new(&b, columns, inner).transposed(), &mut product);
            block.places.iter().zip(product).for_each(|(place, value)| matrix[*place as usize] += value);
        }
        self.each(|place, elements| {
            let product: f32 = elements.iter().zip(weights).map(|(at, weight)| weight[*at as usize]).product();
            matrix[place] += product;
        });
        matrix
    }

    /// For each element of a weight, how much the sum of `matrix * self.matrix(weights)` grows with
    /// it.
    pub fn gradient(&self, weight: usize, weights: &[Vec<f32>], matrix: &[f32]) -> Vec<f32> {
        let mut gradient = vec![0.0; self.weights[weight]];
        let inner = self.inner.len() / self.weights.len().max(1);
        for block in &self.blocks {
            let other = self.gathered(block, 1 - weight, &weights[1 - weight]);
            let [rows, columns] = [0, 1].map(|w| block.elements[w].len());
            let here: Vec<f32> = block.places.iter().map(|place| matrix[*place as usize]).collect();
            let here = Matrix::new(&here, rows, columns);
            let here = if weight == 0 { here } else { here.transposed() };
            let mut product = vec![0.0; block.elements[weight].len() * inner];
            add_product(here, Matrix::new(&other, block.elements[1 - weight].len(), inner), &mut product);
            for (element, row) in block.elements[weight].iter().zip(product.chunks_exact(inner)) {
                for (step, value) in self.inner.chunks_exact(2).zip(row) {
                    gradient[(element + step[weight]) as usize] += value;
                }
            }
        }
        self.each(|place, elements| {
            let others = elements.iter().enumerate().filter(|(w, _)| *w != weight);
            let product: f32 = others.map(|(w, at)| weights[w][*at as usize]).product();
            gradient[elements[weight] as usize] += product * matrix[place];
        });
        gradient
    }

    /// The two weights as factors of one matrix, if they are that: every element of each is in it
    /// once.
    pub(crate) fn factored(&self) -> Option<Factored> {
        let [block] = &self.blocks[..] else { return None };
        let rank = self.inner.len() / 2;
        for weight in 0..2 {
            let mut seen = vec![false; self.weights[weight]];
            let all = block.elements[weight].iter().flat_map(|element| self.inner.chunks_exact(2).map(move |step| element + step[weight]));
            for element in all {
                if std::mem::replace(&mut seen[element as usize], true) {
                    return None;
                }
            }
            if seen.contains(&false) {
                return None;
            }
        }
        let sizes = [0, 1].map(|weight| block.elements[weight].len());
        let (width, channels) = (self.width() as u32, self.channels as u32);
        // With the weights as they are, or exchanged.
        [[0, 1], [1, 0]].into_iter().find_map(|weights| {
            let (rows, columns) = (sizes[weights[0]], sizes[weights[1]]);
            let place = |row: usize, column: usize| match weights {
                [0, 1] => block.places[row * columns + column],
                _ => block.places[column * rows + row],
            };
            let places: Vec<u32> = (0..rows).flat_map(|row| (0..columns).map(move |column| place(row, column))).collect();
            // What depends on the row alone, and on the column alone.
            let fits = |of_row: &dyn Fn(u32) -> u32, of_column: &dyn Fn(u32) -> u32| {
                places.iter().enumerate().all(|(at, place)| {
                    of_row(*place) == of_row(places[at / columns * columns]) && of_column(*place) == of_column(places[at % columns])
                })
            };
            let side = if rows == self.outputs && fits(&|place| place / width, &|place| place % width) {
                Side::Outputs
            } else if columns == self.channels && fits(&|place| place / channels, &|place| place % channels) {
                Side::OutputsAtOffsets
            } else {
                return None;
            };
            // Rows are outputs, or columns are channels, in their order.
            let ordered = match side {
                Side::Outputs => (0..rows).all(|row| places[row * columns] / width == row as u32),
                Side::OutputsAtOffsets => (0..columns).all(|column| places[column] % channels == column as u32),
            };
            ordered.then_some(Factored { weights, places, rows, columns, rank, side })
        })
    }

    /// Weights from the factors of [`Self::factored`].
    pub(crate) fn of_factors(&self, factored: &Factored, factors: [Vec<f32>; 2]) -> Vec<Vec<f32>> {
        let mut weights: Vec<Vec<f32>> = self.weights.iter().map(|size| vec![0.0; *size]).collect();
        for (weight, factor) in factored.weights.into_iter().zip(factors) {
            for (element, row) in self.blocks[0].elements[weight].iter().zip(factor.chunks_exact(factored.rank)) {
                for (step, value) in self.inner.chunks_exact(2).zip(row) {
                    weights[weight][(element + step[weight]) as usize] = *value;
                }
            }
        }
        weights
    }

    /// Elements of one of two weights that a block multiplies, a row for each, over the sums apart.
    fn gathered(&self, block: &Block, weight: usize, values: &[f32]) -> Vec<f32> {
        let steps = self.inner.chunks_exact(2);
        block.elements[weight].iter().flat_map(|element| steps.clone().map(move |step| values[(element + step[weight]) as usize])).collect()
    }

    /// Every term that is in no block.
    fn each(&self, mut then: impl FnMut(usize, &[u32])) {
        if !self.blocks.is_empty() {
            return;
        }
        let weights = self.weights.len();
        let mut elements = vec![0; weights];
        for term in self.places.chunks_exact(1 + weights) {
            for step in self.inner.chunks_exact(weights) {
                elements.iter_mut().zip(&term[1..]).zip(step).for_each(|((element, start), step)| *element = start + step);
                then(term[0] as usize, &elements);
            }
        }
    }
}

/// Sums that the input does not depend on, and that are axes of weights by themselves or with
/// others of their kind.
fn apart(operator: &Operator, coordinates: &Coordinates<'_>) -> Vec<Coord> {
    let read = coordinates.with_parts(operator.input.iter().copied());
    let mut apart: Vec<Coord> = operator.sums.iter().copied().filter(|sum| !read.contains(sum)).collect();
    loop {
        let mixed = operator.weights.iter().flatten().find_map(|axis| {
            let parts = coordinates.with_parts([*axis]);
            let own: Vec<Coord> = parts.iter().copied().filter(|part| apart.contains(part)).collect();
            let alone = parts.iter().all(|part| match coordinates.get(*part) {
                Coordinate::Output(_) | Coordinate::Unfold(..) => false,
                Coordinate::Reduce(..) => apart.contains(part),
                _ => true,
            });
            (!own.is_empty() && !alone).then_some(own)
        });
        let Some(mixed) = mixed else { return apart };
        apart.retain(|sum| !mixed.contains(sum));
    }
}

/// Terms of two weights as products of matrices; none if they are no such products.
fn blocks(places: &[u32]) -> Vec<Block> {
    let mut rows: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for term in places.chunks_exact(3) {
        rows.entry(term[1]).or_default().push((term[2], term[0]));
    }
    let mut blocks: FxHashMap<Vec<u32>, Block> = FxHashMap::default();
    for (element, mut row) in rows {
        row.sort_unstable();
        let columns: Vec<u32> = row.iter().map(|(column, _)| *column).collect();
        if columns.windows(2).any(|pair| pair[0] == pair[1]) {
            return vec![];
        }
        let block = blocks.entry(columns.clone()).or_insert_with(|| Block { elements: [vec![], columns], places: vec![] });
        block.elements[0].push(element);
        block.places.extend(row.iter().map(|(_, place)| *place));
    }
    // Elements of the second weight in several blocks are fine: their sums add up.
    let mut blocks: Vec<Block> = blocks.into_values().collect();
    blocks.sort_by_key(|block| block.elements[0][0]);
    blocks
}

#[cfg(test)]
mod tests {
    use regraft_ir::SplitMix64;

    use super::*;
    use crate::presets;

    /// Terms as products of matrices, one by one, and by the operator's own loops.
    #[test]
    fn products_of_matrices_are_the_operators_loops() {
        let spec = presets::find("resnet-18-layer").unwrap().spec;
        let mut coordinates = Coordinates::new(&spec);
        let sizes = [("C_in", 8), ("C_out", 12), ("H", 7), ("k_1", 3), ("s", 2), ("g", 4)];
        let value = |name: &str| sizes.iter().find(|(known, _)| *known == name).map_or(1, |(_, value)| *value);
        let layer = Layer { values: spec.variables.iter().map(|v| value(&v.name)).collect(), count: 1 };
        let (mut compared, mut with_blocks) = (0, 0);
        for formula in presets::families(&spec) {
            let Ok(operator) = Operator::parse(&formula, &mut coordinates) else { continue };
            let Some(stencil) = Stencil::of(&operator, &layer, &[], 1 << 22, &coordinates) else { continue };
            let mut random = SplitMix64(5);
            let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| random.normal() as f32).collect() };
            let weights: Vec<Vec<f32>> = stencil.weights.iter().map(|n| numbers(*n)).collect();
            let plain = Stencil { blocks: vec![], ..stencil.clone() };
            let near = |a: &[f32], b: &[f32]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3 * (1.0 + b.abs()));
            let matrix = stencil.matrix(&weights);
            assert!(near(&matrix, &plain.matrix(&weights)), "{formula}");
            for weight in 0..weights.len() {
                assert!(near(&stencil.gradient(weight, &weights, &matrix), &plain.gradient(weight, &weights, &matrix)), "{formula}");
            }
            // All rows at the middle of the image, by definition.
            let loops = Loops::at(&operator, &layer, &coordinates).unwrap();
            let mut expected = vec![0.0f32; matrix.len()];
            for row in 0..12 {
                let y = (row * 7 + 3) * 7 + 3;
                loops.terms_from(y..y + 1, &mut |term| {
                    let at = unflattened(term.input, &loops.input);
                    let offset = vec![at[1] as i32 - 3, at[2] as i32 - 3];
                    let slot = stencil.offsets.iter().position(|known| *known == offset).unwrap();
                    let product: f32 = term.weights.iter().zip(&weights).map(|(at, weight)| weight[*at]).product();
                    expected[row * stencil.width() + slot * 8 + at[0]] += product;
                });
            }
            assert!(near(&matrix, &expected), "{formula}");
            compared += 1;
            with_blocks += usize::from(!stencil.blocks.is_empty());
        }
        assert!(compared > 15 && with_blocks > 8, "{compared} {with_blocks}");
    }
}
