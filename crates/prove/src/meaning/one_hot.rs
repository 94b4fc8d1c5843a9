//! Constants with one element in every row: diagonals, selections and permutations of channels.

use regraft_ir::Const;

use crate::index::{Facts, Poly};
use crate::meaning::table::digits;
use crate::value::{Function, Sum, Trouble, apply, product};

/// A constant whose rows, along its first axis of several elements, hold the same number once and
/// zeros beside it.
#[derive(Debug)]
pub(crate) struct OneHot {
    /// The number, as a constant without axes.
    pub number: Const,
    /// The axis of the rows.
    axis: usize,
    /// For each axis after it, where the number is in each row.
    places: Vec<Vec<i64>>,
}

impl OneHot {
    /// The constant as such rows, if it consists of them.
    pub fn of(constant: &Const) -> Option<OneHot> {
        let shape = constant.shape();
        let axis = shape.iter().position(|size| *size != 1)?;
        let rows = usize::try_from(shape[axis]).ok().filter(|rows| *rows > 1)?;
        let (size, bytes) = (constant.dtype().size(), constant.bytes());
        let row = constant.elements() / rows * size;
        if row <= size {
            return None;
        }
        let is_zero = |element: &[u8]| element.iter().all(|byte| *byte == 0);
        let mut number: Option<&[u8]> = None;
        let mut places = vec![Vec::with_capacity(rows); shape.len() - axis - 1];
        for row in bytes.chunks(row) {
            let mut hot = row.chunks(size).enumerate().filter(|(_, element)| !is_zero(element));
            let (Some((mut at, element)), None) = (hot.next(), hot.next()) else { return None };
            if *number.get_or_insert(element) != element {
                return None;
            }
            for (places, size) in places.iter_mut().zip(&shape[axis + 1..]).rev() {
                let size = usize::try_from(*size).ok()?;
                places.push((at % size) as i64);
                at /= size;
            }
        }
        let number = Const::new(constant.dtype(), &[], number?.to_vec().into())?;
        Some(OneHot { number, axis, places })
    }

    /// The indicator of the number at an index, if its place follows from the row by a rule.
    pub fn indicator(&self, index: &[Poly], facts: &Facts) -> Option<Result<Sum, Trouble>> {
        let along = index[self.axis + 1..].iter().zip(&self.places);
        let distances: Option<Vec<Poly>> = along.map(|(at, places)| Some(digits(places, &index[self.axis])?.sub(at))).collect();
        let is_zero = |distance: &Poly| apply(Function::Zero, vec![Sum::whole(distance)], facts);
        Some(distances?.iter().try_fold(Sum::one(), |all, distance| product(&all, &is_zero(distance)?, facts)))
    }
}

#[cfg(test)]
mod tests {
    use regraft_ir::DType;

    use super::*;

    fn floats(shape: &[i64], at: impl Fn(i64) -> f32) -> Const {
        let bytes: Vec<u8> = (0..shape.iter().product()).flat_map(|i| at(i).to_le_bytes()).collect();
        Const::new(DType::F32, shape, bytes.into()).unwrap()
    }

    #[test]
    fn one_number_in_every_row_is_told_from_others() {
        let diagonal = OneHot::of(&floats(&[1, 3, 3], |i| if i % 4 == 0 { 2.5 } else { 0.0 })).unwrap();
        assert_eq!((diagonal.axis, diagonal.places), (1, vec![vec![0, 1, 2]]));
        let centers = OneHot::of(&floats(&[2, 2, 3, 3], |i| if i == 4 || i == 31 { 1.0 } else { 0.0 })).unwrap();
        assert_eq!(centers.places, vec![vec![0, 1], vec![1, 1], vec![1, 1]]);
        let scaled = |i: i64| if i % 4 == 0 { i as f32 + 1.0 } else { 0.0 };
        let twice = |i: i64| if i % 2 == 0 { 1.0 } else { 0.0 };
        let with_an_empty_row = |i: i64| if i == 0 { 1.0 } else { 0.0 };
        for other in [floats(&[3, 3], scaled), floats(&[3, 3], twice), floats(&[3, 3], with_an_empty_row), floats(&[3], |_| 1.0)] {
            assert!(OneHot::of(&other).is_none(), "{other:?}");
        }
    }
}
