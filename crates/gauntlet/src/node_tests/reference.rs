//! The reference executor against the expected outputs, on every case whose nodes are all defined
//! operators.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, bail};
use regraft_ir::{Const, DType, Value, eval};
use regraft_onnx::Model;
use regraft_runtime::HostTensor;

use super::case::{Case, DataSet, Datum};
use crate::caught::caught;
use crate::summary::Summary;

/// Allowed absolute difference, as in ONNX's own runner.
const ABSOLUTE: f64 = 1e-7;

/// Runs every case the executor supports.
pub fn run(cases: &[Case], verbose: bool) -> Summary {
    let mut summary = Summary::default();
    let mut undefined: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases {
        match caught(|| agrees(case)) {
            Ok(None) => summary.held += 1,
            Ok(Some(why)) => {
                if verbose {
                    println!("    not run {}: {why}", case.name);
                }
                *undefined.entry(why).or_default() += 1;
                summary.skipped += 1;
            }
            Err(why) => summary.broken.push(format!("{} (reference executor): {why:#}", case.name)),
        }
    }
    println!(
        "reference executor: {} agree with the expected outputs, {} have nodes that are not defined operators, {} broken",
        summary.held,
        summary.skipped,
        summary.broken.len()
    );
    summary
}

/// Fails if the executor disagrees; returns why it cannot run the case, if so.
fn agrees(case: &Case) -> Result<Option<String>> {
    let model = Model::from_proto(case.model.clone()).context("reading")?;
    if let Some(node) = model.opaque_nodes().first() {
        return Ok(Some(format!("{}: {}", node.op_type, node.why)));
    }
    for set in &case.sets {
        let Some(feeds) = feeds(case, set) else { return Ok(Some("values of a type without arithmetic".into())) };
        let have = eval::run::<f64>(model.graph(), &feeds, &mut eval::NoOpaque)?;
        if have.len() != set.outputs.len() {
            bail!("{} outputs instead of {}", have.len(), set.outputs.len());
        }
        for (at, (have, want)) in have.iter().zip(&set.outputs).enumerate() {
            let Some(want) = want.host.as_ref() else { return Ok(Some("values of a type without arithmetic".into())) };
            compare(have, want).with_context(|| format!("output {at}"))?;
        }
    }
    Ok(None)
}

fn feeds(case: &Case, set: &DataSet) -> Option<HashMap<String, Value<f64>>> {
    let inputs = case.model.graph.as_ref()?.input.iter().zip(&set.inputs);
    inputs.map(|(info, datum)| Some((info.name().to_string(), value(datum)?))).collect()
}

fn value(datum: &Datum) -> Option<Value<f64>> {
    let host = datum.host.as_ref()?;
    let shape: Vec<i64> = host.shape().iter().map(|d| *d as i64).collect();
    let constant = Const::new(DType::from_onnx(host.dtype().to_onnx()), &shape, host.bytes().to_vec().into())?;
    Value::from_const(&constant)
}

/// Allowed relative difference: ONNX's own for 32 bits and more, the rounding of a few operations
/// for less.
fn relative(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 4e-3,
        DType::BF16 => 2e-2,
        _ => 1e-3,
    }
}

/// Shapes equal, integers and booleans equal, infinities and NaN in the same places, reals within
/// the tolerance.
fn compare(have: &Value<f64>, want: &HostTensor) -> Result<()> {
    if have.shape() != want.shape() {
        bail!("it has shape {:?} instead of {:?}", have.shape(), want.shape());
    }
    let dtype = DType::from_onnx(want.dtype().to_onnx());
    let have = have.to_const(dtype).with_context(|| format!("it is not of type {dtype}"))?;
    if !dtype.is_float() {
        if have.bytes().as_ref() != want.bytes() {
            let (have, want) = (have.to_i64().unwrap_or_default(), want.to_f64());
            let at = have.iter().zip(&want).position(|(a, b)| *a as f64 != *b).unwrap_or_default();
            bail!("element {at} is {:?} instead of {:?}", have.get(at), want.get(at));
        }
        return Ok(());
    }
    let have = have.to_f64().context("its elements are no numbers")?;
    for (at, (a, b)) in have.iter().zip(want.to_f64()).enumerate() {
        let same = if b.is_finite() && a.is_finite() {
            (a - b).abs() <= ABSOLUTE + relative(dtype) * b.abs()
        } else {
            a.is_nan() == b.is_nan() && (a.is_nan() || *a == b)
        };
        if !same {
            bail!("element {at} is {a} instead of {b}");
        }
    }
    Ok(())
}
