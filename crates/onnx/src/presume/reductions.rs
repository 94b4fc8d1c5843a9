//! Operators that sum or reduce over axes.

use std::collections::HashMap;

use regraft_ir::{DType, Dim};

use super::Presumed;
use crate::symbolic::View;

/// The types of the results; empty for operators of other families.
pub(super) fn presume(view: &View<'_>) -> Vec<Option<Presumed>> {
    match view.op_type {
        name if name.starts_with("Reduce") => vec![reduce(view)],
        "Einsum" => vec![einsum(view)],
        "Det" => vec![view.ty(0).and_then(|x| Some(Presumed::sized(x.dtype, x.shape.get(..x.rank().checked_sub(2)?)?.to_vec())))],
        "DynamicQuantizeLinear" => vec![
            view.ty(0).map(|x| Presumed::from(x).with_dtype(DType::U8)),
            Some(Presumed::ranked(DType::F32, 0)),
            Some(Presumed::ranked(DType::U8, 0)),
        ],
        _ => Vec::new(),
    }
}

fn reduce(view: &View<'_>) -> Option<Presumed> {
    let x = view.ty(0)?;
    let keep = view.int("keepdims").unwrap_or(1) != 0;
    let noop = view.int("noop_with_empty_axes").is_some_and(|v| v != 0);
    let axes = if view.given(1) { view.numbers(1) } else { Some(view.ints("axes").unwrap_or_default()) };
    let Some(axes) = axes else {
        let removed = if keep { 0 } else { view.length(1).filter(|n| *n > 0)? };
        return Some(Presumed::ranked(x.dtype, x.rank().checked_sub(removed)?));
    };
    let axes: Vec<usize> = match axes.is_empty() {
        true if noop => Vec::new(),
        true => (0..x.rank()).collect(),
        false => axes.into_iter().map(|a| view.axis(a, x.rank())).collect::<Option<_>>()?,
    };
    let sizes = x.shape.iter().enumerate().filter(|(at, _)| keep || !axes.contains(at));
    Some(Presumed::sized(x.dtype, sizes.map(|(at, d)| if axes.contains(&at) { Dim::from(1) } else { d.clone() })))
}

/// Equations with a stated result.
fn einsum(view: &View<'_>) -> Option<Presumed> {
    let equation = view.word("equation")?.replace(' ', "");
    let (terms, result) = equation.split_once("->")?;
    let mut sizes: HashMap<char, Dim> = HashMap::new();
    let mut hidden = 0;
    for (at, term) in terms.split(',').enumerate() {
        let ty = view.ty(at)?;
        let open = if term.contains("...") { ty.rank().checked_sub(term.chars().count() - 3)? } else { 0 };
        hidden = hidden.max(open);
        let term: Vec<char> = spelled_out(term, open)?;
        if term.len() != ty.rank() {
            return None;
        }
        for (letter, size) in term.into_iter().zip(&ty.shape) {
            let known = sizes.entry(letter).or_insert_with(|| size.clone());
            if known.known().is_none_or(|n| n == 1) && size.known().is_some() {
                *known = size.clone();
            }
        }
    }
    let result = spelled_out(result, hidden)?;
    let shape: Vec<Dim> = result.into_iter().map(|letter| sizes.get(&letter).cloned()).collect::<Option<_>>()?;
    Some(Presumed::sized(view.ty(0)?.dtype, shape))
}

/// The letters of a term, with digits for the `hidden` axes of its ellipsis; 0 is the last of them.
fn spelled_out(term: &str, hidden: usize) -> Option<Vec<char>> {
    let digits = (0..hidden).rev().map(|n| char::from_digit(u32::try_from(n).ok()?, 10));
    let digits: String = digits.collect::<Option<_>>()?;
    Some(term.replacen("...", &digits, 1).chars().collect())
}
