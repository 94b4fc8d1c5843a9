//! Sums of products over labelled axes.

use std::collections::BTreeMap;

use crate::attr::Attr;
use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::operands::{equal_sizes, floats, reals};
use crate::ops::strided::gather;
use crate::scalar::{Scalar, zeros};
use crate::tensor::{Tensor, Value, strides};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(12, Types::FLOATS)];

operator! {
    /// Einstein summation over one or more operands: `ij,jk->ik`. Labels are ASCII letters; no
    /// ellipsis (import writes labels for it).
    ///
    /// Without `->` the result has the labels that occur once, in ASCII order. A label repeated in
    /// an operand takes its diagonal. Sizes with the same label are equal: none is broadcast.
    pub struct Einsum {
        /// The equation; imported ones are explicit and without spaces.
        pub equation: String,
    }
}

/// The labels of each operand of an equation, and after them those of its result; `None` if it is
/// none.
pub fn labels(equation: &str) -> Option<Vec<Vec<u8>>> {
    let Equation { mut operands, result } = Equation::parse(equation).ok()?;
    operands.push(result);
    Some(operands)
}

/// A parsed equation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Equation {
    operands: Vec<Vec<u8>>,
    result: Vec<u8>,
}

impl Equation {
    /// Parses an equation; the error says what is wrong with it.
    fn parse(text: &str) -> Result<Equation, String> {
        let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match plain.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (plain.as_str(), None),
        };
        if let Some(c) = left.chars().chain(right.unwrap_or("").chars()).find(|c| !c.is_ascii_alphabetic() && *c != ',') {
            return Err(format!("Einsum equation `{text}` has `{c}`"));
        }
        let operands: Vec<Vec<u8>> = left.split(',').map(|labels| labels.as_bytes().to_vec()).collect();
        let mut counts: BTreeMap<u8, usize> = BTreeMap::new();
        for label in operands.iter().flatten() {
            *counts.entry(*label).or_default() += 1;
        }
        let Some(right) = right else {
            let result = counts.into_iter().filter(|(_, n)| *n == 1).map(|(label, _)| label).collect();
            return Ok(Equation { operands, result });
        };
        let result = right.as_bytes().to_vec();
        for (at, label) in result.iter().enumerate() {
            if !counts.contains_key(label) || result[..at].contains(label) {
                return Err(format!("Einsum equation `{text}` has an unknown or repeated result label"));
            }
        }
        Ok(Equation { operands, result })
    }

    /// The explicit form without spaces.
    fn explicit(&self) -> String {
        let word = |labels: &Vec<u8>| labels.iter().map(|b| char::from(*b)).collect::<String>();
        let left: Vec<String> = self.operands.iter().map(word).collect();
        format!("{}->{}", left.join(","), word(&self.result))
    }
}

impl Operator for Einsum {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let equation = Equation::parse(&self.equation).map_err(TypeError::Invalid)?;
        let count = equation.operands.len();
        let dtype = floats("Einsum", inputs, count..=count)?;
        let mut sizes: BTreeMap<u8, Dim> = BTreeMap::new();
        let mut equal = Ok(());
        for (labels, t) in equation.operands.iter().zip(inputs) {
            if labels.len() != t.rank() {
                return Err(TypeError::invalid(format!("Einsum `{}` with an operand {t}", self.equation)));
            }
            for (at, (label, d)) in labels.iter().zip(&t.shape).enumerate() {
                let size = sizes.entry(*label).or_insert_with(|| d.clone());
                equal = equal.and(equal_sizes("Einsum", "equal sizes of a label", size, d));
                // Runtimes broadcast between operands, but not along a diagonal.
                if !labels[..at].contains(label) {
                    *size = size.broadcast(d).unwrap_or_else(|| d.clone());
                }
            }
        }
        let shape = equation.result.iter().filter_map(|label| sizes.get(label).cloned()).collect();
        let types = vec![TensorType { dtype, shape }];
        equal.map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let equation = Equation::parse(&self.equation).map_err(EvalError::Value)?;
        let tensors = reals("Einsum", inputs)?;
        summed(&equation, &tensors).map(|t| vec![Value::real(t)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Einsum"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        if !node.ty(0)?.dtype.is_float() {
            return Err(Opaque("Einsum of integers".into()));
        }
        let text = node.str("equation").ok_or_else(|| Opaque("Einsum without equation".into()))?;
        let types = (0..node.inputs.len()).map(|at| node.ty(at)).collect::<Result<Vec<_>, Opaque>>()?;
        let equation = Equation::parse(&without_ellipsis(text, &types)?).map_err(Opaque)?;
        node.import(crate::Op::Einsum(Einsum { equation: equation.explicit() }))
    }

    fn spell(&self, inputs: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("Einsum", TYPES, version, outputs[0].dtype)?;
        Ok(OnnxSpelling::plain("Einsum", inputs.len()).with("equation", Attr::Str(self.equation.clone())))
    }

    fn work(&self, inputs: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        let Ok(equation) = Equation::parse(&self.equation) else { return Work::default() };
        let sizes: BTreeMap<u8, usize> =
            equation.operands.iter().zip(inputs).flat_map(|(labels, shape)| labels.iter().copied().zip(shape.iter().copied())).collect();
        let points: f64 = sizes.values().map(|s| *s as f64).product();
        let kernel = if inputs.len() > 1 { Kernel::Dense } else { Kernel::Window };
        Work { flops: 2.0 * points * inputs.len().saturating_sub(1).max(1) as f64, extra_bytes: 0.0, kernel }
    }
}

/// The equation with labels in place of every ellipsis, which stands for all axes without a label.
///
/// They broadcast: an axis of size 1 beside a longer one gets a label of its own, summed over.
fn without_ellipsis(text: &str, operands: &[&TensorType]) -> Result<String, Opaque> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if !plain.contains("...") {
        return Ok(plain);
    }
    let misfit = || Opaque(format!("Einsum equation `{text}` on these operands"));
    let (left, right) = plain.split_once("->").map_or((plain.as_str(), None), |(left, right)| (left, Some(right)));
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != operands.len() {
        return Err(misfit());
    }
    let mut hidden: Vec<&[Dim]> = Vec::with_capacity(terms.len());
    for (term, ty) in terms.iter().zip(operands) {
        hidden.push(match term.find("...") {
            Some(at) => (ty.rank() + 3).checked_sub(term.len()).and_then(|count| ty.shape.get(at..at + count)).ok_or_else(misfit)?,
            None => &[],
        });
    }
    let mut spare = ('A'..='Z').chain('a'..='z').filter(|letter| !plain.contains(*letter));
    let rank = hidden.iter().map(|axes| axes.len()).max().unwrap_or(0);
    let shared: String = spare.by_ref().take(rank).collect();
    let long = |from_end: usize| hidden.iter().any(|axes| from_end <= axes.len() && !axes[axes.len() - from_end].is(1));
    let mut spelled = Vec::with_capacity(terms.len());
    for (term, axes) in terms.iter().zip(&hidden) {
        let mut labels = String::new();
        for (size, from_end) in axes.iter().zip((1..=axes.len()).rev()) {
            let own = if size.is(1) && long(from_end) { spare.next() } else { shared.chars().nth(rank - from_end) };
            labels.push(own.ok_or_else(misfit)?);
        }
        spelled.push(term.replacen("...", &labels, 1));
    }
    let right = match right {
        Some(right) if right.contains("...") || rank == 0 => right.replacen("...", &shared, 1),
        Some(_) => return Err(misfit()),
        None => {
            let mut once: Vec<char> = left.chars().filter(|c| c.is_ascii_alphabetic() && left.matches(*c).count() == 1).collect();
            once.sort_unstable();
            shared.chars().chain(once).collect()
        }
    };
    Ok(format!("{}->{right}", spelled.join(",")))
}

/// A tensor whose axes have distinct labels.
struct Labelled<S> {
    labels: Vec<u8>,
    tensor: Tensor<S>,
}

impl<S: Scalar> Labelled<S> {
    /// An operand: repeated labels take diagonals.
    fn operand(labels: &[u8], tensor: &Tensor<S>) -> Result<Labelled<S>, EvalError> {
        if labels.len() != tensor.shape.len() {
            return Err(EvalError::value(format!("Einsum of {} labels on {:?}", labels.len(), tensor.shape)));
        }
        let mut distinct: Vec<(u8, usize, usize)> = Vec::with_capacity(labels.len());
        for ((label, size), stride) in labels.iter().zip(&tensor.shape).zip(strides(&tensor.shape)) {
            match distinct.iter_mut().find(|d| d.0 == *label) {
                Some(seen) if seen.1 == *size => seen.2 += stride,
                Some(seen) => return Err(EvalError::value(format!("Einsum takes a diagonal of {} and {size}", seen.1))),
                None => distinct.push((*label, *size, stride)),
            }
        }
        let labels: Vec<u8> = distinct.iter().map(|d| d.0).collect();
        let shape: Vec<usize> = distinct.iter().map(|d| d.1).collect();
        let steps: Vec<usize> = distinct.iter().map(|d| d.2).collect();
        let data = if distinct.len() == tensor.shape.len() { tensor.data.clone() } else { gather(&tensor.data, &shape, &steps) };
        Ok(Labelled { labels, tensor: Tensor::new(shape, data) })
    }

    fn size(&self, label: u8) -> usize {
        self.labels.iter().position(|l| *l == label).map_or(1, |axis| self.tensor.shape[axis])
    }

    fn sizes(&self, labels: &[u8]) -> Vec<usize> {
        labels.iter().map(|l| self.size(*l)).collect()
    }

    /// The elements with axes in the order `labels`, all from this tensor.
    fn ordered(&self, labels: &[u8]) -> Vec<S> {
        if self.labels == labels {
            return self.tensor.data.clone();
        }
        let own = self.tensor.strides();
        let steps: Vec<usize> = labels.iter().map(|l| self.labels.iter().position(|m| m == l).map_or(0, |axis| own[axis])).collect();
        gather(&self.tensor.data, &self.sizes(labels), &steps)
    }

    /// Sums over all labels that `keep` rejects.
    fn reduced(self, keep: impl Fn(u8) -> bool) -> Labelled<S> {
        let (kept, gone): (Vec<u8>, Vec<u8>) = self.labels.iter().partition(|l| keep(**l));
        if gone.is_empty() {
            return self;
        }
        let run: usize = self.sizes(&gone).iter().product();
        let shape = self.sizes(&kept);
        let count: usize = shape.iter().product();
        let data = self.ordered(&[kept.as_slice(), &gone].concat());
        let sums = (0..count).map(|at| crate::ops::moments::sum(&data[at * run..][..run], S::clone)).collect();
        Labelled { labels: kept, tensor: Tensor::new(shape, sums) }
    }

    /// The product with `other`, summed over the shared labels that `keep` rejects; batched matrix
    /// products.
    fn contracted(&self, other: &Labelled<S>, keep: impl Fn(u8) -> bool) -> Result<Labelled<S>, EvalError> {
        let shared = |l: &&u8| other.labels.contains(l);
        if let Some(label) = self.labels.iter().filter(shared).find(|l| self.size(**l) != other.size(**l)) {
            return Err(EvalError::value(format!("Einsum label `{}` has two sizes", char::from(*label))));
        }
        let batch: Vec<u8> = self.labels.iter().filter(|l| shared(l) && keep(**l)).copied().collect();
        let inner: Vec<u8> = self.labels.iter().filter(|l| shared(l) && !keep(**l)).copied().collect();
        let rows: Vec<u8> = self.labels.iter().filter(|l| !shared(l)).copied().collect();
        let columns: Vec<u8> = other.labels.iter().filter(|l| !self.labels.contains(l)).copied().collect();
        let a = self.ordered(&[batch.as_slice(), &rows, &inner].concat());
        let b = other.ordered(&[batch.as_slice(), &inner, &columns].concat());
        let shape = [self.sizes(&batch), self.sizes(&rows), other.sizes(&columns)].concat();
        let count: usize = self.sizes(&batch).iter().product();
        let [m, k, n] = [self.sizes(&rows), self.sizes(&inner), other.sizes(&columns)].map(|s| s.iter().product::<usize>());
        let mut data = zeros(count * m * n);
        for at in 0..count {
            S::gemm(m, k, n, &a[at * m * k..][..m * k], &b[at * k * n..][..k * n], &mut data[at * m * n..][..m * n]);
        }
        Ok(Labelled { labels: [batch, rows, columns].concat(), tensor: Tensor::new(shape, data) })
    }
}

/// Contracts the operands from left to right, summing each label as soon as nothing to the right
/// needs it.
fn summed<S: Scalar>(equation: &Equation, tensors: &[&Tensor<S>]) -> Result<Tensor<S>, EvalError> {
    let operands = &equation.operands;
    if operands.len() != tensors.len() {
        return Err(EvalError::value(format!("Einsum of {} operands, not {}", operands.len(), tensors.len())));
    }
    let mut sum: Option<Labelled<S>> = None;
    for (at, tensor) in tensors.iter().enumerate() {
        let later = |l: u8| equation.result.contains(&l) || operands[at + 1..].iter().any(|o| o.contains(&l));
        let operand = Labelled::operand(&operands[at], tensor)?;
        sum = Some(match sum {
            None => operand.reduced(later),
            Some(left) => {
                let operand = operand.reduced(|l| later(l) || left.labels.contains(&l));
                left.contracted(&operand, later)?
            }
        });
    }
    let Some(sum) = sum else { return Err(EvalError::value("Einsum without operands")) };
    let data = sum.ordered(&equation.result);
    Ok(Tensor::new(sum.sizes(&equation.result), data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn an_ellipsis_becomes_labels() {
        let check = |text: &str, shapes: &[&[i64]]| {
            let types: Vec<TensorType> = shapes.iter().map(|shape| TensorType::new(DType::F32, shape.iter().copied())).collect();
            without_ellipsis(text, &types.iter().collect::<Vec<_>>()).map_err(|_| ())
        };
        for (text, shapes, want) in [
            ("ij, jk -> ik", &[&[2, 3][..], &[3, 4]][..], "ij,jk->ik"),
            ("...ij->...ji", &[&[5, 6, 2, 3]], "ABij->ABji"),
            ("...ij,...jk->...ik", &[&[5, 6, 2, 3], &[6, 3, 4]], "ABij,Bjk->ABik"),
            ("...ij,...jk->...ik", &[&[1, 6, 2, 3], &[5, 1, 3, 4]], "CBij,ADjk->ABik"),
            ("...i,...i", &[&[1, 2], &[1, 2]], "Ai,Ai->A"),
            ("b...a", &[&[2, 3, 4]], "bAa->Aab"),
            ("...i->i", &[&[2]], "i->i"),
        ] {
            assert_eq!(check(text, shapes).as_deref(), Ok(want), "{text}");
        }
        for (text, shapes) in [("...ij->ij", &[&[5, 2, 3][..]][..]), ("...ijk->i", &[&[2, 3]]), ("...i,...i->i", &[&[2]])] {
            assert_eq!(check(text, shapes), Err(()), "{text}");
        }
    }

    #[test]
    fn implicit_equations_become_explicit() {
        for (text, want) in [(" bA , Ac", "bA,Ac->bc"), ("ii", "ii->"), ("ij->ji", "ij->ji"), ("ba,ca", "ba,ca->bc"), (",i", ",i->i")] {
            assert_eq!(Equation::parse(text).unwrap().explicit(), want);
        }
        for bad in ["...i->i", "i->ii", "i->j", "i1", "i->j->k"] {
            assert!(Equation::parse(bad).is_err(), "{bad}");
        }
    }
}
