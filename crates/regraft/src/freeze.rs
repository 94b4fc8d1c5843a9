//! `--freeze`: a model for some of the sizes that it accepts.

use regraft_onnx::{FixedError, FixedInput, FixedSizes, Model, Signature};
use regraft_runtime::ValueInfo;

use crate::error::Failure;
use crate::sizes::{declared, open_sizes};
use crate::units::{FreezeArg, Size};

/// The model at the sizes asked for, and those of its inputs that had others before.
///
/// # Errors
///
/// Sizes that contradict each other or the model, or that belong to none of its inputs.
pub fn freeze(model: Model, args: &[FreezeArg]) -> Result<(Model, FixedSizes), Failure> {
    if args.is_empty() {
        return Ok((model, FixedSizes::default()));
    }
    let before = declared(&model);
    let fixed = model.at_sizes(&wanted(&before, args)?).map_err(|error| refused(&error, &before))?;
    let changed = changed(&before, declared(&fixed));
    Ok((fixed, changed))
}

/// The sizes at which `b` declares what `a` does, if they are fewer than `a` accepts.
pub fn narrower(a: &Model, b: &Model) -> Option<FixedSizes> {
    let changed = changed(&declared(a), declared(b));
    let fixed = a.clone().at_sizes(&changed).ok().filter(|_| !changed.is_empty())?;
    Signature::of(fixed.proto()).difference(&Signature::of(b.proto())).is_none().then_some(changed)
}

/// All sizes of the inputs that declare others now.
fn changed(before: &[ValueInfo], now: Vec<ValueInfo>) -> FixedSizes {
    let changed = now.into_iter().zip(before).filter(|(now, before)| now.dims != before.dims);
    let changed = changed.map(|(now, _)| {
        let sizes = now.dims.iter().map(|size| size.and_then(|n| i64::try_from(n).ok())).collect();
        FixedInput { name: now.name, sizes }
    });
    FixedSizes(changed.collect())
}

/// The sizes asked for, input by input.
fn wanted(inputs: &[ValueInfo], args: &[FreezeArg]) -> Result<FixedSizes, Failure> {
    let mut wanted: Vec<FixedInput> = Vec::new();
    for arg in args {
        let FreezeArg::Input(shape) = arg else { continue };
        if wanted.iter().any(|input| input.name == shape.input) {
            return Err(Failure::new(format!("--freeze gives `{}` twice", shape.input)).hint("write all its sizes in one"));
        }
        let info = inputs.iter().find(|info| info.name == shape.input);
        let sizes = shape.sizes.iter().enumerate().map(|(axis, size)| match size {
            Size::Known(n) => Ok(i64::try_from(*n).ok()),
            Size::Symbol(name) if info.is_none_or(|info| info.symbols.get(axis).is_none_or(|symbol| symbol == name)) => Ok(None),
            Size::Symbol(name) => Err(Failure::new(format!("--freeze names `{name}` where the model does not, in `{}`", shape.input))
                .hint("a number fixes a size; the model's own name leaves it open")),
        });
        wanted.push(FixedInput { name: shape.input.clone(), sizes: sizes.collect::<Result<_, _>>()? });
    }
    for arg in args {
        let FreezeArg::Symbol(symbol, size) = arg else { continue };
        let carriers: Vec<&ValueInfo> = inputs.iter().filter(|info| info.symbols.contains(symbol)).collect();
        if carriers.is_empty() {
            return Err(Failure::new(format!("--freeze names `{symbol}`, which is no size of an input")).hint(known(inputs)));
        }
        for info in carriers {
            let at = wanted.iter().position(|input| input.name == info.name).unwrap_or_else(|| {
                wanted.push(FixedInput { name: info.name.clone(), sizes: vec![None; info.dims.len()] });
                wanted.len() - 1
            });
            for (slot, _) in wanted[at].sizes.iter_mut().zip(&info.symbols).filter(|(_, name)| *name == symbol) {
                let first = *slot.get_or_insert(*size);
                if first != *size {
                    return Err(refused(&FixedError::Contradiction { symbol: symbol.clone(), first, second: *size }, inputs));
                }
            }
        }
    }
    Ok(FixedSizes(wanted))
}

fn refused(error: &FixedError, inputs: &[ValueInfo]) -> Failure {
    let failure = Failure::new(format!("--freeze: {error}"));
    match error {
        FixedError::Fixed { .. } => failure.hint("sizes that the model fixes cannot be changed"),
        FixedError::Contradiction { .. } => failure.hint("a name stands for one size, wherever it occurs"),
        FixedError::Excluded(_) => failure.hint("the model does not run at such sizes, give others"),
        FixedError::Unsound(_) => failure.hint("does the model run at these sizes?"),
        _ => failure.hint(known(inputs)),
    }
}

/// What can be fixed.
fn known(inputs: &[ValueInfo]) -> String {
    format!("inputs: {}", inputs.iter().map(open_sizes).collect::<Vec<_>>().join(" "))
}
