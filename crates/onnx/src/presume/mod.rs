//! Result types of opaque nodes that no definition infers, by the signatures in `signatures.txt`,
//! which explains its notation: correct whenever the node runs without an error.
//!
//! With their result types known, the graph below such nodes can still be optimized.

use std::collections::HashMap;
use std::sync::LazyLock;

use regraft_ir::{Attr, DType, Dim, PartialType, TensorType};

use crate::symbolic::View;

mod sizes;
#[cfg(test)]
mod tests;

/// The first result's type by the definition of a standard operator.
pub(crate) type Defined<'a> = &'a dyn Fn(&View<'_>) -> Option<PartialType>;

/// The types of the node's results, `None` where nothing is certain; there may be fewer or more
/// entries than results.
pub(crate) fn presume(view: &View<'_>, defined: Defined<'_>) -> Vec<Option<PartialType>> {
    let signatures = signatures().filter(|(names, _)| names.split(' ').any(|name| name == view.op_type));
    let mut types = signatures.filter_map(|(_, text)| types(text, view, defined));
    types.find(|types| types.iter().any(Option::is_some)).unwrap_or_default()
}

/// The signatures: names of operators, and the text from the inputs on.
fn signatures() -> impl Iterator<Item = (&'static str, &'static str)> {
    static TEXT: LazyLock<String> = LazyLock::new(|| include_str!("signatures.txt").replace("\n  ", " "));
    TEXT.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('('))
}

/// The types of the results by one signature, if it applies.
fn types(text: &str, view: &View<'_>, defined: Defined<'_>) -> Option<Vec<Option<PartialType>>> {
    let (left, results) = text.split_once(" -> ")?;
    let (inputs, conditions) = left.split_once(") if ").or_else(|| Some((left.strip_suffix(')')?, "")))?;
    let [inputs, conditions, results] =
        [inputs, conditions, results].map(|list| list.split(", ").filter(|item| !item.is_empty()).collect::<Vec<_>>());
    let starred = |items: &[&str]| items.iter().filter(|item| item.ends_with('*')).count();
    let repeats = match starred(&inputs) {
        0 => (view.results + starred(&results)).saturating_sub(results.len()),
        groups => (view.types.len() + groups).saturating_sub(inputs.len()) / groups,
    };
    let mut types = Vec::new();
    for (result, count) in results.iter().map(|result| result.strip_suffix('*').map_or((*result, 1), |one| (one, repeats))) {
        for index in 0..count {
            let numbers = [("version", view.version), ("results", view.results as i64), ("index", index as i64)];
            let values = numbers.map(|(name, number)| (name, vec![Dim::from(number)])).into();
            let mut call = Call { view, defined, repeats, index, inputs: HashMap::new(), values };
            // An input may need a size that a later one determines.
            let (_, fits) = (call.bind(&inputs), call.bind(&inputs));
            let fits = fits && conditions.iter().all(|condition| call.holds(condition) == Some(true));
            types.push(call.ty(result).filter(|_| fits).map(sizes::sure));
        }
    }
    Some(types)
}

/// A node under a signature, for one of its repeated inputs or results.
struct Call<'a> {
    view: &'a View<'a>,
    defined: Defined<'a>,
    repeats: usize,
    index: usize,
    /// Where the inputs of a name begin, and their number.
    inputs: HashMap<&'a str, (usize, usize)>,
    /// What the size names stand for.
    values: HashMap<&'a str, Vec<Dim>>,
}

impl<'a> Call<'a> {
    /// Binds the names in the inputs; false if an input does not fit.
    fn bind(&mut self, inputs: &[&'a str]) -> bool {
        let (mut next, mut fits) = (0, true);
        for text in inputs {
            let (text, count) = text.strip_suffix('*').map_or((*text, 1), |text| (text, self.repeats));
            let (name, pattern) = text.split_at(text.find(['[', '{']).unwrap_or(text.len()));
            self.inputs.insert(name, (next, count));
            let at = if count == 1 { next } else { next + self.index };
            fits &= if pattern.is_empty() { name != "none" || !self.view.given(at) } else { self.fit(at, pattern).is_some() };
            next += count;
        }
        fits
    }

    /// Names the sizes of a tensor, `[n *s m@2]`, or the elements of one, `{m=1}`.
    fn fit(&mut self, at: usize, pattern: &'a str) -> Option<()> {
        let ty = self.view.ty(at);
        let (pattern, have) = if let Some(axes) = pattern.strip_prefix('[') {
            (axes.strip_suffix(']')?, ty?.shape.to_vec())
        } else {
            let elements = pattern.strip_prefix('{')?.strip_suffix('}')?;
            let (axes, default) = elements.split_once('=').unwrap_or((elements, ""));
            let length = || match ty.map(|ty| ty.shape.as_slice()) {
                Some([length]) if length.known().is_some() => usize::try_from(length.known()?).ok(),
                _ => (!axes.contains('*')).then(|| axes.split(' ').count()),
            };
            let known = self.view.sizes.get(at).and_then(Option::as_ref).map(|sizes| sizes.dims.clone());
            (axes, if self.view.given(at) { known.or_else(|| sizes::open(at, length()?))? } else { self.value(default)? })
        };
        let axes: Vec<&str> = pattern.split_whitespace().collect();
        let lists = match axes.iter().enumerate().find_map(|(at, axis)| Some((at, axis.split_once('@')?))) {
            None => sizes::spread(&axes, &have)?,
            Some((marked, (name, at))) => {
                let width = usize::from(!name.is_empty());
                let at = sizes::index(&self.value(at)?, have.len() + 1 - width)?;
                let (before, after) = (&have[..at], &have[at + width..]);
                [sizes::spread(&axes[..marked], before)?, vec![have[at..at + width].to_vec()], sizes::spread(&axes[marked + 1..], after)?]
                    .concat()
            }
        };
        let name = |axis: &'a str| axis.trim_start_matches('*').split('@').next().unwrap_or_default();
        self.values.extend(axes.into_iter().map(name).zip(lists));
        Some(())
    }

    fn holds(&self, condition: &str) -> Option<bool> {
        if let Some((left, right)) = condition.split_once("==") {
            return Some(self.value(left)? == self.value(right)?);
        }
        let Some((left, right)) = condition.split_once('<') else { return Some((self.view.attr)(condition.strip_prefix('$')?).is_some()) };
        let number = |text: &str| self.value(text)?.first()?.known();
        Some(number(left)? < number(right)?)
    }

    fn input(&self, name: &str) -> Option<&TensorType> {
        let (at, count) = self.inputs.get(name)?;
        self.view.ty(if *count == 1 { *at } else { at + self.index })
    }

    /// A type, `x[n ?]`, or that of an operator's result, `x Op(y,z)`.
    fn ty(&self, text: &str) -> Option<TensorType> {
        let (element, sizes) = text.split_at(text.find([' ', '[']).unwrap_or(text.len()));
        let shape = match (sizes.strip_prefix('['), sizes.strip_prefix(' ')) {
            (Some(sizes), _) => {
                let lists = sizes.strip_suffix(']')?.split_whitespace().map(|item| self.value(item.strip_prefix('*').unwrap_or(item)));
                lists.collect::<Option<Vec<_>>>()?.concat()
            }
            (_, Some(operator)) => sizes::complete(self.operator(operator)?.shape)?,
            _ => self.input(element)?.shape.to_vec(),
        };
        Some(TensorType::new(self.dtype(element)?, shape))
    }

    /// `f32`, `x`, `$attr`, `$attr=x`.
    fn dtype(&self, text: &str) -> Option<DType> {
        let Some(attr) = text.strip_prefix('$') else { return DType::from_name(text).or_else(|| Some(self.input(text)?.dtype)) };
        let (attr, default) = attr.split_once('=').unwrap_or((attr, ""));
        match (self.view.attr)(attr) {
            Some(Attr::Int(code)) if code > 0 => i32::try_from(code).ok().map(DType::from_onnx),
            Some(Attr::Tensor(value)) => Some(value.dtype()),
            _ => self.dtype(default),
        }
    }

    /// The result of `Op(x,y[n],z*)`: by its definition, or else by its signatures.
    fn operator(&self, text: &str) -> Option<PartialType> {
        let (name, arguments) = text.strip_suffix(')')?.split_once('(')?;
        let (mut types, mut sizes, mut given) = (Vec::new(), Vec::new(), Vec::new());
        for argument in arguments.split(',') {
            // An index past the inputs refers to none of them.
            let made = argument.contains('[').then_some((self.view.types.len(), 1));
            let (first, count) = made.or_else(|| self.inputs.get(argument.trim_end_matches('*')).copied())?;
            for at in first..first + count {
                types.push(if made.is_some() { self.ty(argument) } else { self.view.ty(at).cloned() });
                sizes.push(self.view.sizes.get(at).cloned().flatten());
                given.push(made.is_some() || self.view.given(at));
            }
        }
        let op_type = if name == "self" { self.view.op_type } else { name };
        let view = View { op_type, types: &types, sizes: &sizes, given: &given, results: 1, ..*self.view };
        let presumed = || presume(&view, self.defined).into_iter().next()?;
        (self.defined)(&view).or_else(|| if name == "self" { None } else { presumed() })
    }
}
