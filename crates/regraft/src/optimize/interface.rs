//! What callers see of a model: what its file declares, and what the runtime reports.
//!
//! The declaration never changes. What the runtime reports may: it merges the declaration with what
//! it infers itself, and it infers more where a rewrite made sizes plain. A report may become more
//! precise, and it may correct a declaration that the original breaks when it runs.

use regraft_onnx::Signature;
use regraft_onnx::proto::ModelProto;
use regraft_runtime::{HostTensor, ValueInfo};

use crate::sizes::{open_sizes, value_info};

/// How a rewritten model is declared differently from the original: its file, or its inputs and the
/// names and element types of its outputs as the runtime reports them. Each pair has the original
/// first.
pub fn declared_differently(
    files: (&ModelProto, &ModelProto),
    inputs: (&[ValueInfo], &[ValueInfo]),
    outputs: (&[ValueInfo], &[ValueInfo]),
) -> Option<String> {
    let [before, after] = [files.0, files.1].map(Signature::of);
    let kinds = |infos: &[ValueInfo]| infos.iter().map(|i| (i.name.clone(), i.dtype)).collect::<Vec<_>>();
    before.difference(&after).or_else(|| {
        let changed = if inputs.0 != inputs.1 {
            "inputs"
        } else if kinds(outputs.0) != kinds(outputs.1) {
            "outputs"
        } else {
            return None;
        };
        Some(format!("the runtime reports other {changed}, although the file declares the same"))
    })
}

/// The first output that the runtime reports with other sizes than before, where that is no
/// correction; `results` are what the original gives.
pub fn reported_differently(original: &ModelProto, before: &[ValueInfo], after: &[ValueInfo], results: &[HostTensor]) -> Option<String> {
    let declared = original.graph.iter().flat_map(|graph| &graph.output).map(value_info);
    let outputs = declared.zip(before).zip(after).zip(results);
    outputs.into_iter().find_map(|(((declared, before), after), result)| {
        let shape = result.shape();
        let changed = !may_become(&declared, before, after, shape);
        changed
            .then(|| format!("the runtime reports `{}` and not `{}`, and the result is {shape:?}", open_sizes(after), open_sizes(before)))
    })
}

/// Whether a size that was open is now reported as a number. That is a correction only if it is
/// this number at all sizes of the inputs.
pub fn is_narrowed(before: &[ValueInfo], after: &[ValueInfo]) -> bool {
    let is_new = |before: &ValueInfo, at: usize| before.dims.get(at).copied().flatten().is_none();
    let narrowed =
        |(before, after): (&ValueInfo, &ValueInfo)| (0..after.dims.len()).any(|at| after.dims[at].is_some() && is_new(before, at));
    before.iter().zip(after).any(narrowed)
}

/// Whether what is reported of a value of this shape may change so.
fn may_become(declared: &ValueInfo, before: &ValueInfo, after: &ValueInfo, shape: &[usize]) -> bool {
    let same = before.dims == after.dims && before.symbols == after.symbols;
    let was_right = fits(declared, shape) && fits(before, shape);
    same || fits(after, shape) && (refines(before, after) || !was_right)
}

/// Whether a value of this shape is as reported. No sizes stand for an unknown rank, too.
fn fits(info: &ValueInfo, shape: &[usize]) -> bool {
    let is_open = info.dims.is_empty();
    is_open || info.dims.len() == shape.len() && info.dims.iter().zip(shape).all(|(dim, size)| dim.is_none_or(|dim| dim == *size))
}

/// Whether `after` says all that `before` says. An open size may become a number; its name tells
/// which sizes are equal, and stays while it is open.
fn refines(before: &ValueInfo, after: &ValueInfo) -> bool {
    let unknown = before.dims.is_empty();
    let size = |at: usize| {
        let named = |info: &ValueInfo| info.symbols.get(at).cloned().unwrap_or_default();
        match (before.dims[at], after.dims[at]) {
            (Some(before), after) => after == Some(before),
            (None, Some(_)) => true,
            (None, None) => named(before).is_empty() || named(before) == named(after),
        }
    };
    unknown || before.dims.len() == after.dims.len() && (0..before.dims.len()).all(size)
}

#[cfg(test)]
mod tests {
    use regraft_runtime::DType;

    use super::*;

    /// A value reported with these sizes: numbers, names, or `?`.
    fn info(sizes: &str) -> ValueInfo {
        let sizes: Vec<&str> = sizes.split(',').filter(|size| !size.is_empty()).collect();
        let symbol = |size: &&str| if *size == "?" || size.parse::<usize>().is_ok() { String::new() } else { (*size).to_string() };
        ValueInfo {
            name: "y".into(),
            dtype: Some(DType::F32),
            dims: sizes.iter().map(|size| size.parse().ok()).collect(),
            symbols: sizes.iter().map(symbol).collect(),
        }
    }

    #[test]
    fn open_sizes_that_become_numbers_are_noticed() {
        for (before, after, narrowed) in
            [("N,8", "N,8", false), ("N,8", "3,8", true), ("3,8", "N,8", false), ("", "N,8", true), ("", "N,M", false), ("N,8", "", false)]
        {
            assert_eq!(is_narrowed(&[info(before)], &[info(after)]), narrowed, "[{before}] to [{after}]");
        }
    }

    #[test]
    fn a_report_may_only_get_more_precise_or_right() {
        for (declared, before, after, shape, may) in [
            ("N,8", "N,8", "N,8", &[3, 8][..], true),
            ("?,8", "?,8", "3,8", &[3, 8], true),
            ("?,8", "?,8", "N,8", &[3, 8], true),
            ("", "", "N,8", &[3, 8], true),
            ("", "", "", &[], true),
            // Wrong from the start, and wrong no longer.
            ("N,8", "N,8", "1,N,8", &[1, 3, 8], true),
            ("N,8", "N,8", "", &[1, 3, 8], true),
            ("4,8", "4,8", "3,8", &[3, 8], true),
            // The runtime has seen that the declaration is wrong, more or less of it.
            ("N,8", "?,2,4", "", &[3, 2, 4], true),
            ("N,8", "", "?,2,4", &[3, 2, 4], true),
            ("N,8", "?,2,4", "?,2,5", &[3, 2, 4], false),
            // Wrong before and after, in different ways.
            ("4,8", "4,8", "5,8", &[3, 8], false),
            ("N,8", "N,8", "N,M,7", &[1, 3, 8], false),
            // Right before, and now wrong or vague.
            ("N,8", "N,8", "4,8", &[3, 8], false),
            ("N,8", "N,8", "N,M,8", &[3, 8], false),
            ("N,8", "N,8", "N,?", &[3, 8], false),
            ("N,8", "N,8", "", &[3, 8], false),
            ("N,8", "N,8", "?,8", &[3, 8], false),
            ("N,8", "N,8", "M,8", &[3, 8], false),
        ] {
            let fate = may_become(&info(declared), &info(before), &info(after), shape);
            assert_eq!(fate, may, "[{declared}], [{before}] to [{after}] where it is {shape:?}");
        }
    }
}
