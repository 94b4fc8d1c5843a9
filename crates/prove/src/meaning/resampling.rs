//! Resampling: sums of elements at known positions with known weights, or of all elements with those
//! of a matrix for each axis.

use regraft_ir::ops::resample::{Tap, Taps};
use regraft_ir::ops::resize::Resize;
use regraft_ir::{DType, ValueId};

use crate::equal::EXPANDED;
use crate::index::{Poly, Source};
use crate::meaning::{Meaning, Need};
use crate::value::{Function, Sum, Trouble, apply, product};

/// Elements that one element is written as a sum of.
const MOST_TAPS: usize = 64;

impl Meaning<'_> {
    /// The weighted sum where sizes along the resampled axes are known, and positions if the nearest
    /// is picked; otherwise a function of the operand about which nothing else is known.
    pub(super) fn resampled(&mut self, value: ValueId, op: &Resize, index: &[Poly]) -> Result<Sum, Trouble> {
        let x = self.operand(value.node, 0)?;
        // Other axes do not matter.
        let sizes: Vec<i64> = self.shape(x)?.iter().map(|size| size.known().unwrap_or(0)).collect();
        let Ok(reads) = op.taps(&sizes) else { return self.opaque(value, index) };
        let axes: Vec<usize> = op.axes.iter().filter_map(|axis| usize::try_from(*axis).ok()).collect();
        let along: Vec<Poly> = axes.iter().map(|axis| index[*axis].clone()).collect();
        if let Some(var) = self.short(&along) {
            return self.ask(Need::Value(var));
        }
        let mut rows: Vec<&[Tap]> = Vec::new();
        for (at, taps) in along.iter().zip(&reads) {
            match at.known().and_then(|at| taps.get(usize::try_from(at).ok()?)) {
                Some(Some(row)) => rows.push(row),
                Some(None) => return self.attribute(op.extrapolation_value.0),
                None if op.mode == "nearest" || reads.iter().flatten().any(Option::is_none) => return self.opaque(value, index),
                None => return self.mixed(x, &axes, &sizes, &reads, index),
            }
        }
        if rows.iter().map(|row| row.len()).product::<usize>() > MOST_TAPS {
            return self.opaque(value, index);
        }
        let mut places = vec![(index.to_vec(), Sum::one())];
        for (axis, row) in axes.iter().zip(rows) {
            let mut further = Vec::new();
            for (place, weight) in &places {
                for tap in row {
                    let mut place = place.clone();
                    place[*axis] = Poly::number(tap.at as i64);
                    further.push((place, product(weight, &self.attribute(tap.weight)?, &self.shared.facts)?));
                }
            }
            places = further;
        }
        let mut sum = Sum::default();
        for (place, weight) in places {
            sum = sum.add(&product(&weight, &self.at(x, &place)?, &self.shared.facts)?);
        }
        Ok(sum)
    }

    /// The sum over all elements along the axes, each with its weight at this index. Of the weights,
    /// only those of the same positions of equal resamplings are known to be the same. An element
    /// whose weight is 0 is not read. Short sums are written out, as those over short tables are.
    fn mixed(&mut self, x: ValueId, axes: &[usize], sizes: &[i64], taps: &[Vec<Taps>], index: &[Poly]) -> Result<Sum, Trouble> {
        let weights = taps.iter().zip(axes).map(|(taps, axis)| {
            let name = blake3::hash(format!("weights on {}: {taps:?}", sizes[*axis]).as_bytes()).to_hex();
            Source::Opaque(name.as_str().into(), 0)
        });
        let weights: Vec<(usize, Source)> = axes.iter().copied().zip(weights).collect();
        weights.iter().for_each(|(_, source)| self.shared.facts.all_of(source, DType::F32));
        let extents: Vec<Poly> = axes.iter().map(|axis| Poly::number(sizes[*axis])).collect();
        self.sum_written_out(self.simplifier.expand.max(EXPANDED), &extents, &mut |m, at| {
            let (mut weight, mut place) = (Sum::one(), index.to_vec());
            for ((axis, source), at) in weights.iter().zip(at) {
                let along = Sum::read(source.clone(), vec![index[*axis].clone(), at.clone()]);
                weight = product(&weight, &along, &m.shared.facts)?;
                place[*axis] = at.clone();
            }
            let met = m.met();
            let element = m.at(x, &place)?;
            let is_read = Sum::one().sub(&apply(Function::Zero, vec![weight.clone()], &m.shared.facts)?);
            m.met_where(met, m.met(), &is_read)?;
            product(&weight, &element, &m.shared.facts)
        })
    }
}
