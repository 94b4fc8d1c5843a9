//! Operators as tensor expressions of TVM.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use crate::coordinate::{Coord, Coordinate, Coordinates};
use crate::operator::Operator;
use crate::plan::{Plan, Stage};
use crate::size::Size;
use crate::spec::Layer;

/// Source of a Python function that declares the operator in TVM's tensor expressions, one
/// `te.compute` for each sum of the plan, at the sizes of a layer.
///
/// A window is guarded by the size of the *axis* that it slides over. The published generator
/// guards it by its own width, so that its kernels compute a sliver of the output.
///
/// `None` if a size is no whole number there.
pub fn expression(operator: &Operator, plan: &Plan, layer: &Layer, coordinates: &Coordinates<'_>) -> Option<String> {
    let spec = coordinates.spec;
    let value = |size: Size| spec.value(size, layer);
    let batch = spec.batch.iter().map(|size| value(*size)).collect::<Option<Vec<u64>>>()?;
    let shape = |coords: &[Coord]| coords.iter().map(|coord| value(coordinates.size(*coord))).collect::<Option<Vec<u64>>>();
    let tuple = |sizes: &[u64]| format!("({},)", sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", "));
    let with_batch = |sizes: Vec<u64>| -> Vec<u64> { batch.iter().copied().chain(sizes).collect() };
    let mut text = String::from("from tvm import te, tir\n\n\ndef operator():\n");
    let _ = writeln!(text, "    x = te.placeholder({}, name=\"x\")", tuple(&with_batch(shape(&operator.input)?)));
    for (w, weight) in operator.weights.iter().enumerate() {
        let _ = writeln!(text, "    w{w} = te.placeholder({}, name=\"w{w}\")", tuple(&shape(weight)?));
    }
    let (mut tensor, mut held) = ("x".to_string(), operator.input.to_vec());
    let mut axes = operator.input.clone();
    let mut made = 0;
    let mut finished =
        |axes: &[Coord], held: &[Coord], tensor: &str, weight: Option<usize>, sums: &[Coord], text: &mut String| -> Option<String> {
            let mut names: FxHashMap<Coord, String> = axes.iter().enumerate().map(|(at, axis)| (*axis, format!("a{at}"))).collect();
            for (k, sum) in sums.iter().enumerate() {
                names.insert(*sum, format!("r{made}_{k}"));
                let _ = writeln!(text, "    r{made}_{k} = te.reduce_axis((0, {}), name=\"r{made}_{k}\")", value(coordinates.size(*sum))?);
            }
            let mut guards = Vec::new();
            let mut index = |coords: &[Coord]| {
                coords.iter().map(|coord| written(*coord, &names, layer, coordinates, &mut guards)).collect::<Option<Vec<_>>>()
            };
            let batches: Vec<String> = (0..batch.len()).map(|axis| format!("b{axis}")).collect();
            let read: Vec<String> = batches.iter().cloned().chain(index(held)?).collect();
            let mut product = format!("{tensor}[{}]", read.join(", "));
            if let Some(weight) = weight {
                let _ = write!(product, " * w{weight}[{}]", index(&operator.weights[weight])?.join(", "));
            }
            guards.sort();
            guards.dedup();
            if !guards.is_empty() {
                product = format!("tir.if_then_else(tir.all({}), {product}, 0.0)", guards.join(", "));
            }
            if !sums.is_empty() {
                let sums: Vec<String> = (0..sums.len()).map(|k| format!("r{made}_{k}")).collect();
                product = format!("te.sum({product}, axis=[{}])", sums.join(", "));
            }
            let arguments: Vec<String> = batches.into_iter().chain((0..axes.len()).map(|at| format!("a{at}"))).collect();
            let name = format!("t{made}");
            made += 1;
            let sizes = tuple(&with_batch(shape(axes)?));
            let _ = writeln!(text, "    {name} = te.compute({sizes}, lambda {}: {product}, name=\"{name}\")", arguments.join(", "));
            Some(name)
        };
    for stage in &plan.stages {
        axes = stage.at_work(&axes, operator, coordinates);
        axes.retain(|axis| !stage.sums().contains(axis));
        let weight = match stage {
            Stage::Contract { weight, .. } => Some(*weight),
            Stage::Sum(_) => None,
            // Views are part of what reads them.
            Stage::Open(_) | Stage::Close(..) | Stage::Repeat(_) => continue,
        };
        tensor = finished(&axes, &held, &tensor, weight, stage.sums(), &mut text)?;
        held = axes.to_vec();
    }
    let outputs: Vec<Coord> = coordinates.outputs().collect();
    if held != outputs {
        tensor = finished(&outputs, &held, &tensor, None, &[], &mut text)?;
    }
    let placeholders: Vec<String> = (0..operator.weights.len()).map(|w| format!("w{w}")).collect();
    let _ = writeln!(text, "    return [x, {}, {tensor}]", placeholders.join(", "));
    Some(text)
}

/// A coordinate in terms of those that have a name, and what has to hold for it.
fn written(
    coord: Coord,
    names: &FxHashMap<Coord, String>,
    layer: &Layer,
    coordinates: &Coordinates<'_>,
    guards: &mut Vec<String>,
) -> Option<String> {
    if let Some(name) = names.get(&coord) {
        return Some(name.clone());
    }
    let value = |size: Size| coordinates.spec.value(size, layer);
    let mut of = |coord| written(coord, names, layer, coordinates, guards);
    Some(match coordinates.get(coord) {
        Coordinate::Output(_) | Coordinate::Reduce(..) => return None,
        Coordinate::Split(a, b) => format!("({} * {} + {})", of(a)?, value(coordinates.size(b))?, of(b)?),
        Coordinate::Quotient(a, block) => format!("({} // {})", of(a)?, value(block)?),
        Coordinate::Remainder(a, block) => format!("({} % {})", of(a)?, value(block)?),
        Coordinate::Shift(a) => format!("(({} + 1) % {})", of(a)?, value(coordinates.size(a))?),
        Coordinate::Stride(a, stride) => format!("({} * {})", of(a)?, value(stride)?),
        Coordinate::Unfold(a, b) => {
            let (n, window) = (value(coordinates.size(a))?, value(coordinates.size(b))?);
            let index = format!("({} + {} - {})", of(a)?, of(b)?, window / 2);
            guards.push(format!("{index} >= 0"));
            guards.push(format!("{index} < {n}"));
            index
        }
    })
}
