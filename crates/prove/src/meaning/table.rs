//! Constants: numbers, index tables that follow a rule, and others by their contents.

use regraft_ir::{Class, Const};

use crate::index::{Facts, Poly, Source, Table};
use crate::meaning::{Meaning, Need};
use crate::value::{Factor, Function, Sum, Trouble, apply, number_of, power, product, whole};

/// Constants of more elements are not looked into.
pub(super) const LARGEST: usize = 1 << 16;

impl Meaning<'_> {
    pub(super) fn constant(&mut self, constant: &Const, index: &[Poly]) -> Result<Sum, Trouble> {
        if let Some(value) = constant.splat() {
            return self.real(value);
        }
        if constant.elements() <= LARGEST {
            if constant.dtype().class() == Class::Int
                && let Some(values) = constant.to_i64()
                && let Some(poly) = ruled(constant.shape(), &values, index)
            {
                return Ok(Sum::whole(&poly));
            }
            if let Some(values) = constant.to_f64() {
                let source = Source::Constant(constant.fingerprint());
                if let Some(at) = known(constant.shape(), index) {
                    return values.get(at).map_or_else(|| Trouble::new("an index beyond a constant"), |value| self.real(*value));
                }
                if constant.dtype().class() == Class::Int {
                    self.shared.facts.all_whole(&source);
                }
                if constant.dtype().class() == Class::Real && values.iter().all(|v| *v > 0.0) {
                    self.shared.facts.all_positive(source.clone());
                }
                if let Some(var) = self.short(index) {
                    return self.ask(Need::Value(var));
                }
                self.shared.learn(&source, Table { shape: constant.shape().to_vec(), elements: values });
            }
        }
        Ok(Sum::read(Source::Constant(constant.fingerprint()), index.to_vec()))
    }

    /// The real number that a constant stands for.
    pub(super) fn real(&self, value: f64) -> Result<Sum, Trouble> {
        if let Some(sum) = irrational(value, &self.shared.facts)? {
            return Ok(sum);
        }
        match number_of(value) {
            Some(number) => Ok(Sum::number(number)),
            // Infinities are numbers of which nothing is known.
            None => Ok(Sum::factor(Factor::Apply(Function::Named(format!("{value}").into()), Vec::new()))),
        }
    }
}

/// Multiples of roots that decimals are written for.
fn irrational(value: f64, facts: &Facts) -> Result<Option<Sum>, Trouble> {
    let pi = Sum::factor(Factor::Apply(Function::Named("pi".into()), Vec::new()));
    let two = Sum::number(whole(2));
    let roots =
        [(std::f64::consts::SQRT_2, two.clone()), ((2.0 / std::f64::consts::PI).sqrt(), product(&two, &power(&pi, -1, facts)?, facts)?)];
    // The third one is the factor of the cube in the tanh form of GELU.
    let multiples = [(1, 1), (2, 1), (1, 2), (44_715, 1_000_000), (2 * 44_715, 1_000_000)];
    for (root, square) in roots {
        for (numerator, denominator) in multiples {
            let number = root * numerator as f64 / denominator as f64;
            if value.abs() as f32 == number as f32 {
                let sum = apply(Function::Sqrt, vec![square], facts)?.scale(&(whole(numerator) / whole(denominator)));
                return Ok(Some(if value < 0.0 { sum.negated() } else { sum }));
            }
        }
    }
    Ok(None)
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

/// A list as a sum over digits of the position: `c0 (i mod r) + c1 (i / r mod ..) + ..`, starting at 0.
fn digits(values: &[i64], at: &Poly) -> Option<Poly> {
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
