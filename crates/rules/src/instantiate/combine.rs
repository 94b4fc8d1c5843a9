//! Sums and differences of values, as a table of coefficients says.

use regraft_ir::ops::arithmetic::{Add, Sub};
use regraft_ir::{Op, PatchValue};
use smallvec::SmallVec;

use super::{Builder, Refusal};

impl Builder<'_> {
    /// `values`, and after them one sum for each row of coefficients, each 1, 0 or -1: of the
    /// values and of the sums before it.
    pub(super) fn combine(
        &mut self,
        rows: &[Vec<i64>],
        mut values: SmallVec<[PatchValue; 4]>,
    ) -> Result<SmallVec<[PatchValue; 4]>, Refusal> {
        for row in rows {
            let sum = self.combination(row, &values)?;
            values.push(sum);
        }
        Ok(values)
    }

    fn combination(&mut self, row: &[i64], values: &[PatchValue]) -> Result<PatchValue, Refusal> {
        let wrong = |why: &str| Refusal::Type(format!("`combine`: {why}"));
        if let Some(other) = row.iter().find(|c| !matches!(c, -1..=1)) {
            return Err(wrong(&format!("{other} is no coefficient")));
        }
        let of = |sign: i64| row.iter().enumerate().filter(move |(_, c)| **c == sign).map(|(at, _)| at);
        let value = |at: usize| values.get(at).copied().ok_or_else(|| wrong("a row refers to a later one"));
        let mut added = of(1);
        let mut sum = value(added.next().ok_or_else(|| wrong("a row has no positive coefficient"))?)?;
        for at in added {
            sum = self.node(Op::Add(Add {}), SmallVec::from_slice(&[sum, value(at)?]))?[0];
        }
        for at in of(-1) {
            sum = self.node(Op::Sub(Sub {}), SmallVec::from_slice(&[sum, value(at)?]))?[0];
        }
        Ok(sum)
    }
}
