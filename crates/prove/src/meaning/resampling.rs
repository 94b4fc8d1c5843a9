//! Resampling: sums of elements at known positions with known weights.

use regraft_ir::ValueId;
use regraft_ir::ops::resample::Tap;
use regraft_ir::ops::resize::Resize;

use crate::index::Poly;
use crate::meaning::{Meaning, Need};
use crate::value::{Sum, Trouble, product};

/// Elements that one element is written as a sum of.
const MOST_TAPS: usize = 64;

impl Meaning<'_> {
    /// The weighted sum where sizes and positions along the resampled axes are known; otherwise a
    /// function of the operand about which nothing else is known.
    pub(super) fn resampled(&mut self, value: ValueId, op: &Resize, index: &[Poly]) -> Result<Sum, Trouble> {
        let x = self.operand(value.node, 0)?;
        // Other axes do not matter.
        let sizes: Vec<i64> = self.shape(x)?.iter().map(|size| size.known().unwrap_or(0)).collect();
        let Ok(taps) = op.taps(&sizes) else { return self.opaque(value, index) };
        let axes: Vec<usize> = op.axes.iter().filter_map(|axis| usize::try_from(*axis).ok()).collect();
        let along: Vec<Poly> = axes.iter().map(|axis| index[*axis].clone()).collect();
        if let Some(var) = self.short(&along) {
            return self.ask(Need::Value(var));
        }
        let mut rows: Vec<&[Tap]> = Vec::new();
        for (at, taps) in along.iter().zip(&taps) {
            match at.known().and_then(|at| taps.get(usize::try_from(at).ok()?)) {
                Some(Some(row)) => rows.push(row),
                Some(None) => return self.attribute(op.extrapolation_value.0),
                None => return self.opaque(value, index),
            }
        }
        if rows.iter().map(|row| row.len()).product::<usize>() > MOST_TAPS {
            return self.opaque(value, index);
        }
        let mut sum = Sum::default();
        let mut places: Vec<(Vec<Poly>, f64)> = vec![(index.to_vec(), 1.0)];
        for (axis, row) in axes.iter().zip(rows) {
            let reads = |(place, weight): &(Vec<Poly>, f64)| {
                let read = |tap: &Tap| {
                    let mut place = place.clone();
                    place[*axis] = Poly::number(tap.at as i64);
                    (place, weight * tap.weight)
                };
                row.iter().map(read).collect::<Vec<_>>()
            };
            places = places.iter().flat_map(reads).collect();
        }
        for (place, weight) in places {
            let element = self.at(x, &place)?;
            sum = sum.add(&product(&self.attribute(weight)?, &element, &self.shared.facts)?);
        }
        Ok(sum)
    }
}
