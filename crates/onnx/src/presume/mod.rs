//! Result types of nodes that stay opaque and that no definition infers, by the signatures in
//! `signatures.txt`, which explains its notation: true whenever the node runs without an error.
//!
//! With types for their results, the graph below such nodes is still optimized.

use std::collections::HashMap;
use std::sync::OnceLock;

use regraft_ir::{Attr, DType, Dim, PartialType, TensorType};

use crate::stand_in::{with_stand_ins, without_stand_ins};
use crate::symbolic::View;

mod sizes;
#[cfg(test)]
mod tests;

/// Sizes, where known.
pub(crate) type List = Vec<Option<Dim>>;

/// What the definition of a standard operator tells of its first result's shape.
pub(crate) type ShapeOf<'a> = &'a dyn Fn(&View<'_>) -> Option<List>;

/// The types of the node's results, `None` where nothing is sure; there may be fewer or more
/// entries than results.
pub(crate) fn presume(view: &View<'_>, shape_of: ShapeOf<'_>) -> Vec<Option<PartialType>> {
    let signatures = signatures().filter(|(names, _)| names.split(' ').any(|name| name == view.op_type));
    let mut types = signatures.filter_map(|(_, text)| types(text, view, shape_of));
    types.find(|types| types.iter().any(Option::is_some)).unwrap_or_default()
}

/// The signatures: names of operators, and the text from the inputs on.
fn signatures() -> impl Iterator<Item = (&'static str, &'static str)> {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let lines: Vec<&str> = include_str!("signatures.txt").lines().filter(|line| !line.starts_with('#')).collect();
        lines.join("\n").replace("\n  ", " ")
    });
    text.lines().filter_map(|line| line.split_once('('))
}

/// The types of the results by one signature, if the node fits.
fn types(text: &str, view: &View<'_>, shape_of: ShapeOf<'_>) -> Option<Vec<Option<PartialType>>> {
    let (left, results) = text.split_once(" -> ")?;
    let (inputs, conditions) = left.split_once(") if ").or(left.strip_suffix(')').map(|inputs| (inputs, "")))?;
    let items = |text: &'_ str| text.split(", ").filter(|item| !item.is_empty()).map(str::to_string).collect::<Vec<_>>();
    let (inputs, conditions, results) = (items(inputs), items(conditions), items(results));
    let starred = |items: &[String]| items.iter().filter(|item| item.ends_with('*')).count();
    let repeats = match starred(&inputs) {
        0 => (view.results + starred(&results)).saturating_sub(results.len()),
        groups => (view.types.len() + groups).saturating_sub(inputs.len()) / groups,
    };
    let mut types = Vec::new();
    for (result, count) in results.iter().map(|result| result.strip_suffix('*').map_or((result.as_str(), 1), |one| (one, repeats))) {
        for index in 0..count {
            let numbers = [("version", view.version), ("results", view.results as i64), ("index", index as i64)];
            let values = numbers.map(|(name, number)| (name, vec![Some(Dim::from(number))])).into();
            let mut call = Call { view, shape_of, repeats, index, inputs: HashMap::new(), values };
            // An input may need a size that a later one tells.
            let (_, fits) = (call.bind(&inputs), call.bind(&inputs));
            types.push(call.result(result).filter(|_| fits && conditions.iter().all(|text| call.holds(text).unwrap_or(false))));
        }
    }
    Some(types)
}

/// A node under a signature, for one of its repeated inputs or results.
struct Call<'a> {
    view: &'a View<'a>,
    shape_of: ShapeOf<'a>,
    repeats: usize,
    index: usize,
    /// Where the inputs of a name begin, and how many they are.
    inputs: HashMap<&'a str, (usize, usize)>,
    /// What the names of sizes stand for.
    values: HashMap<&'a str, List>,
}

impl<'a> Call<'a> {
    /// Gives the names in the inputs their values; false if an input does not fit.
    fn bind(&mut self, inputs: &'a [String]) -> bool {
        let (mut next, mut fits) = (0, true);
        for text in inputs {
            let (text, count) = text.strip_suffix('*').map_or((text.as_str(), 1), |text| (text, self.repeats));
            let (name, pattern) = text.split_at(text.find(['[', '{']).unwrap_or(text.len()));
            self.inputs.insert(name, (next, count));
            let at = if count == 1 { next } else { next + self.index };
            next += count;
            fits &= if pattern.is_empty() { name != "none" || !self.view.given(at) } else { self.input(at, pattern).is_some() };
        }
        fits
    }

    /// Names the sizes of a tensor, `[n *s m@2]`, or the elements of one, `{m=1}`.
    fn input(&mut self, at: usize, pattern: &'a str) -> Option<()> {
        if let Some(axes) = pattern.strip_prefix('[') {
            let shape = shape(self.view.ty(at)?);
            return self.fit(axes.strip_suffix(']')?, shape);
        }
        let (axes, default) = pattern.strip_prefix('{')?.strip_suffix('}')?.split_once('=').unwrap_or((&pattern[1..pattern.len() - 1], ""));
        let known = self.view.sizes.get(at).and_then(Option::as_ref).map(|sizes| sizes.dims.iter().cloned().map(Some).collect());
        let length = match self.view.ty(at).map(|ty| ty.shape.as_slice()) {
            Some([length]) => length.known().and_then(|n| usize::try_from(n).ok()),
            _ => (!axes.contains('*')).then(|| axes.split(' ').count()),
        };
        let elements = if self.view.given(at) { known.or_else(|| Some(vec![None; length?])) } else { self.value(default) };
        self.fit(axes, elements?)
    }

    fn fit(&mut self, pattern: &'a str, have: List) -> Option<()> {
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
        let number = |text: &str| self.value(text)?.first()?.as_ref()?.known();
        let Some(attr) = condition.strip_prefix('$') else {
            let (left, right) = condition.split_once("==").or(condition.split_once('<'))?;
            return Some(if condition.contains('<') { number(left)? < number(right)? } else { number(left)? == number(right)? });
        };
        let Some((attr, word)) = attr.split_once("==") else { return Some((self.view.attr)(attr).is_some()) };
        let (attr, default) = attr.split_once('=').unwrap_or((attr, ""));
        Some(match (self.view.attr)(attr) {
            None => default == word,
            Some(Attr::Str(text)) => text == word,
            Some(other) => other.to_string() == word,
        })
    }

    /// The type of a result, or of a tensor that an operator is asked about.
    fn result(&self, text: &str) -> Option<PartialType> {
        let (element, sizes) = text.split_at(text.find([' ', '[']).unwrap_or(text.len()));
        let shape = match (sizes.strip_prefix('['), sizes.strip_prefix(' ')) {
            (Some(sizes), _) => self.list(sizes.strip_suffix(']')?)?,
            (_, Some(operator)) => self.shape_of(operator)?,
            _ => shape(self.ty(element)?),
        };
        let shape = shape.into_iter().map(|size| size.filter(|size| size.known().is_none_or(|n| n >= 0))).collect();
        Some(PartialType { dtype: self.dtype(element)?, shape })
    }

    fn ty(&self, name: &str) -> Option<&TensorType> {
        let (at, count) = self.inputs.get(name)?;
        self.view.ty(if *count == 1 { *at } else { at + self.index })
    }

    /// `f32`, `x`, `$attr`, `$attr=x`.
    fn dtype(&self, text: &str) -> Option<DType> {
        let Some(attr) = text.strip_prefix('$') else { return DType::from_name(text).or_else(|| Some(self.ty(text)?.dtype)) };
        let (attr, default) = attr.split_once('=').unwrap_or((attr, ""));
        match (self.view.attr)(attr) {
            Some(Attr::Int(code)) if code > 0 => i32::try_from(code).ok().map(DType::from_onnx),
            Some(Attr::Tensor(value)) => Some(value.dtype()),
            _ => self.dtype(default),
        }
    }

    /// The shape of `Op(x,y[n],z*)`: by its definition, or else by its signatures.
    fn shape_of(&self, text: &str) -> Option<List> {
        let (op_type, arguments) = text.strip_suffix(')')?.split_once('(')?;
        let (mut types, mut sizes, mut given) = (Vec::new(), Vec::new(), Vec::new());
        for argument in arguments.split(',') {
            if argument.contains('[') {
                types.push(self.result(argument).map(with_stand_ins));
                sizes.push(None);
                given.push(true);
                continue;
            }
            let (at, count) = *self.inputs.get(argument.trim_end_matches('*'))?;
            types.extend((at..at + count).map(|at| self.view.ty(at).cloned()));
            sizes.extend((at..at + count).map(|at| self.view.sizes.get(at).cloned().flatten()));
            given.extend((at..at + count).map(|at| self.view.given(at)));
        }
        let asked = if op_type == "self" { self.view.op_type } else { op_type };
        let view = View { op_type: asked, types: &types, sizes: &sizes, given: &given, results: 1, ..*self.view };
        let presumed = || presume(&view, self.shape_of).into_iter().next()?.map(|ty| ty.shape);
        let shape = (self.shape_of)(&view).or_else(|| if op_type == "self" { None } else { presumed() })?;
        Some(without_stand_ins(shape))
    }
}

fn shape(ty: &TensorType) -> List {
    ty.shape.iter().cloned().map(Some).collect()
}
