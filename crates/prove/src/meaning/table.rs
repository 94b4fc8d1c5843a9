//! Constants: numbers, regular index tables, and others by their contents.

use regraft_ir::{Class, Const, DType};

use crate::equal::EXPANDED;
use crate::index::{Poly, Source};
use crate::meaning::{Meaning, Need};
use crate::value::{Factor, Function, Number, Root, Sum, Trouble, apply, elements, power, product, whole};

/// Constants with more elements are opaque.
pub(super) const LARGEST: usize = 1 << 16;

impl Meaning<'_> {
    pub(super) fn constant(&mut self, constant: &Const, index: &[Poly]) -> Result<Sum, Trouble> {
        if let Some(one) = splat(constant) {
            return self.scalar(&one);
        }
        if constant.elements() <= LARGEST {
            if constant.dtype().class() == Class::Int
                && constant.dtype() != DType::U64
                && let Some(values) = constant.to_i64()
                && let Some(poly) = ruled(constant.shape(), &values, index)
            {
                return Ok(Sum::whole(&poly));
            }
            if let Some(at) = known(constant.shape(), index) {
                // Single numbers may be multiples of roots.
                let size = constant.dtype().size();
                let bytes = constant.bytes().slice(at * size..(at + 1) * size);
                let one = Const::new(constant.dtype(), &[], bytes).ok_or_else(|| Trouble("an index beyond a constant".into()))?;
                return self.scalar(&one);
            }
            if let Some(sum) = self.one_hot(constant, index)? {
                return Ok(sum);
            }
            if let Some(table) = self.shared.constants.table(constant) {
                let source = Source::Constant(constant.fingerprint());
                self.shared.facts.all_of(&source, constant.dtype());
                if constant.dtype().class() == Class::Real && table.elements.iter().all(Number::is_positive) {
                    self.shared.facts.all_positive(source.clone());
                }
                if let Some(var) = self.short(index) {
                    return self.ask(Need::Value(var));
                }
                self.shared.learn(&source, table);
            }
        }
        let source = Source::Constant(constant.fingerprint());
        self.shared.facts.all_of(&source, constant.dtype());
        Ok(Sum::read(source, index.to_vec()))
    }

    /// The element of a constant with one number in each of its rows, if they are too many to be
    /// written out.
    fn one_hot(&mut self, constant: &Const, index: &[Poly]) -> Result<Option<Sum>, Trouble> {
        if constant.shape().iter().find(|size| **size != 1).is_none_or(|rows| *rows <= EXPANDED) {
            return Ok(None);
        }
        let Some(rows) = self.shared.constants.one_hot(constant) else { return Ok(None) };
        let Some(indicator) = rows.indicator(index, &self.shared.facts) else { return Ok(None) };
        // An infinity is not added up.
        let Ok(number) = self.scalar(&rows.number) else { return Ok(None) };
        product(&number, &indicator?, &self.shared.facts).map(Some)
    }

    /// The number in a constant with one element.
    fn scalar(&self, constant: &Const) -> Result<Sum, Trouble> {
        if constant.dtype().class() == Class::Real {
            let value = constant.splat().ok_or_else(|| Trouble("a constant of no numbers".into()))?;
            return self.real(value, constant.dtype());
        }
        let number = elements(constant).and_then(|all| all.into_iter().next());
        number.map(Sum::number).ok_or_else(|| Trouble("a constant of no numbers".into()))
    }

    /// The real number as which a floating-point value of this type is read.
    pub(super) fn real(&self, value: f64, dtype: DType) -> Result<Sum, Trouble> {
        if let Some((root, ratio)) = self.shared.constants.reading.multiple_of_root(value, dtype) {
            let square = if root == Root::Two { Sum::number(whole(2)) } else { self.two_over_pi()? };
            return Ok(apply(Function::Sqrt, vec![square], &self.shared.facts)?.scale(&ratio));
        }
        let number = self.shared.constants.reading.number(value, dtype);
        // Infinities do not cancel: nothing that contains one is added up.
        number.map(Sum::number).ok_or_else(|| Trouble(format!("the constant {value}")))
    }

    /// The square of the factor in the tanh form of GELU.
    pub(super) fn two_over_pi(&self) -> Result<Sum, Trouble> {
        let pi = Sum::factor(Factor::Apply(Function::Named("pi".into()), Vec::new()));
        product(&Sum::number(whole(2)), &power(&pi, -1, &self.shared.facts)?, &self.shared.facts)
    }

    /// The number in an attribute, in the precision in which files store it.
    pub(super) fn attribute(&self, value: f64) -> Result<Sum, Trouble> {
        self.real(f64::from(value as f32), DType::F32)
    }
}

/// The one element, if all elements of a constant are alike.
fn splat(constant: &Const) -> Option<Const> {
    let size = constant.dtype().size();
    let bytes = constant.bytes();
    (constant.elements() > 0 && bytes.chunks(size).all(|element| element == &bytes[..size]))
        .then(|| Const::new(constant.dtype(), &[], bytes.slice(..size)))
        .flatten()
}

/// The position of a known index.
fn known(shape: &[i64], index: &[Poly]) -> Option<usize> {
    let flat = shape.iter().zip(index).try_fold(0i64, |flat, (size, at)| {
        let at = at.known().filter(|at| (0..*size).contains(at))?;
        Some(flat * size + at)
    })?;
    usize::try_from(flat).ok()
}

/// The element as an expression of its index: a sum over axes, each a sum over digits of the index.
fn ruled(shape: &[i64], values: &[i64], index: &[Poly]) -> Option<Poly> {
    let first = *values.first()?;
    let mut sum = Poly::number(first);
    let mut stride = values.len() as i64;
    let mut parts = Vec::new();
    for (size, at) in shape.iter().zip(index) {
        stride /= size;
        let along: Vec<i64> = (0..*size).map(|i| values[(i * stride) as usize].wrapping_sub(first)).collect();
        sum = sum.add(&digits(&along, at)?);
        parts.push((*size, stride, along));
    }
    let separable = values.iter().enumerate().all(|(flat, value)| {
        let rest: i64 = parts.iter().map(|(size, stride, along)| along[(flat as i64 / stride % size) as usize]).sum();
        first.wrapping_add(rest) == *value
    });
    separable.then_some(sum)
}

/// A list as a sum over digits of the position: `c0 (i mod r) + c1 (i / r mod ..) + ..`, starting
/// at 0.
pub(super) fn digits(values: &[i64], at: &Poly) -> Option<Poly> {
    let first = *values.first()?;
    if values.len() == 1 {
        return Some(Poly::number(first));
    }
    let step = values[1].checked_sub(first)?;
    let run = values.windows(2).take_while(|pair| pair[1].wrapping_sub(pair[0]) == step).count() + 1;
    if run == values.len() {
        return Some(at.scale(step).plus(first));
    }
    if run < 2 || !values.len().is_multiple_of(run) {
        return None;
    }
    let heads: Vec<i64> = values.iter().step_by(run).copied().collect();
    let regular = values.chunks(run).all(|chunk| chunk.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step));
    let high = at.floor(&Poly::number(run as i64));
    regular.then_some(())?;
    Some(digits(&heads, &high)?.add(&at.sub(&high.scale(run as i64)).scale(step)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::fresh;

    #[test]
    fn index_tables_follow_a_rule_or_are_left_alone() {
        let var = fresh();
        let i = Poly::var(var);
        for values in [vec![3, 4, 5, 6], vec![0, 1, 4, 5, 8, 9], vec![0, 0, 0], vec![5, 3, 1, 6, 4, 2], vec![0, 2, 1, 3, 10, 12, 11, 13]] {
            let poly = ruled(&[values.len() as i64], &values, std::slice::from_ref(&i)).unwrap_or_else(|| panic!("{values:?}"));
            for (at, value) in values.iter().enumerate() {
                assert_eq!(poly.with(var, &Poly::number(at as i64)).known(), Some(*value), "{values:?} at {at}");
            }
        }
        for values in [vec![0, 1, 3], vec![0, 1, 2, 5, 6, 8]] {
            assert_eq!(ruled(&[values.len() as i64], &values, std::slice::from_ref(&i)), None);
        }
        assert_eq!(ruled(&[2, 2], &[0, 1, 1, 0], &[i.clone(), i]), None);
    }
}
