//! The type rules of foreign operators.

use regraft_ir::Dim;
use smallvec::{SmallVec, smallvec};

use crate::facts::Facts;
use crate::operator::{Operator, Padding};
use crate::reading::Reading;
use crate::size::{Obligation, Size, Sizes};

/// A tensor for typing purposes.
#[derive(Clone, Debug)]
pub struct Typed {
    /// Sizes.
    pub sizes: Sizes,
    /// Along each axis, the position of the last concatenation, if there was one.
    pub cuts: SmallVec<[Option<Size>; 4]>,
    /// Whether it is made of constants sized by their context, so it is not broadcast.
    pub placed: bool,
    /// Old groups per new one, for weights whose groups the convolution that uses them must merge.
    pub merged: Option<i64>,
}

impl Typed {
    /// A tensor of these sizes.
    pub fn new(sizes: Sizes) -> Typed {
        let cuts = sizes.iter().map(|_| None).collect();
        Typed { sizes, cuts, placed: false, merged: None }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }
}

/// Larger tensors are not tried: rules can concatenate a tensor with itself repeatedly.
const MOST_ELEMENTS: i64 = 1 << 18;

/// Why operands do not fit an operator.
pub type Misfit = &'static str;

/// The results of an operator.
pub type Results = SmallVec<[Typed; 2]>;

/// Types operators under one reading; records observations, and constraints on expressions.
pub struct Typing {
    /// The reading.
    pub reading: Reading,
    /// The observations.
    pub facts: Facts,
    /// The constraints on expressions; not collected for concrete sizes.
    pub obligations: Option<Vec<Obligation>>,
}

impl Typing {
    /// Typing of concrete sizes.
    pub fn concrete(reading: Reading) -> Typing {
        Typing { reading, facts: Facts::default(), obligations: None }
    }

    /// Typing of symbolic sizes.
    pub fn symbolic(reading: Reading) -> Typing {
        Typing { obligations: Some(Vec::new()), ..Typing::concrete(reading) }
    }

    fn oblige(&mut self, obligation: impl FnOnce() -> Obligation) {
        if let Some(list) = &mut self.obligations {
            list.push(obligation());
        }
    }

    fn equal(&mut self, a: &Size, b: &Size, misfit: Misfit) -> Result<(), Misfit> {
        if a.n != b.n {
            return Err(misfit);
        }
        self.oblige(|| Obligation::Equal(a.s.clone(), b.s.clone()));
        Ok(())
    }

    fn remainder(&mut self, size: &Size, divisor: i64) {
        if divisor > 1 {
            self.oblige(|| Obligation::Remainder { size: size.s.clone(), divisor, remainder: size.n.rem_euclid(divisor) });
        }
    }

    /// The results of `operator` for these operands.
    pub fn infer(&mut self, operator: &Operator, operands: &[&Typed]) -> Result<Results, Misfit> {
        let results = self.results(operator, operands)?;
        let elements = |t: &Typed| t.sizes.iter().fold(1i64, |product, d| product.saturating_mul(d.n));
        if results.iter().any(|t| elements(t) > MOST_ELEMENTS) {
            return Err("a tensor is too large to be tried");
        }
        Ok(results)
    }

    fn results(&mut self, operator: &Operator, operands: &[&Typed]) -> Result<Results, Misfit> {
        if operands.iter().any(|t| t.merged.is_some()) && !matches!(operator, Operator::Conv { .. }) {
            return Err("weights with merged groups have a meaning in a convolution only");
        }
        match (operator, operands) {
            (Operator::Conv { strides, padding, .. }, [x, w]) => self.conv(x, w, *strides, *padding),
            (Operator::Pool { mean, kernel, strides, padding, .. }, [x]) => self.pool(x, *mean, *kernel, *strides, *padding),
            (Operator::MatMul { .. }, [a, b]) => self.matmul(a, b),
            (Operator::Binary(_), [a, b]) => self.binary(a, b),
            (Operator::Unary(_), [x]) => Ok(smallvec![(*x).clone()]),
            (Operator::Scale, [x, factor]) if factor.rank() == 0 => Ok(smallvec![(*x).clone()]),
            (Operator::Concat { axis, rank }, operands) => self.concat(operands, *axis, *rank),
            (Operator::Split { axis }, [x]) => split(x, *axis),
            (Operator::Transpose { perm }, [x]) if perm.len() == x.rank() => {
                let sizes = perm.iter().map(|a| x.sizes[*a].clone()).collect();
                let cuts = perm.iter().map(|a| x.cuts[*a].clone()).collect();
                Ok(smallvec![Typed { sizes, cuts, placed: x.placed, merged: None }])
            }
            (Operator::Enlarge { kernel: Some([h, w]) }, [x]) => self.enlarge(x, &Size::known(*h), &Size::known(*w)),
            (Operator::Enlarge { kernel: None }, [x, like]) if like.rank() == 4 => {
                let (h, w) = (like.sizes[2].clone(), like.sizes[3].clone());
                self.known(&h);
                self.known(&w);
                self.enlarge(x, &h, &w)
            }
            (Operator::MergeGroups { count }, [w]) if w.rank() == 4 => {
                let mut merged = (*w).clone();
                merged.sizes[1] = merged.sizes[1].times(*count);
                merged.merged = Some(*count);
                Ok(smallvec![merged])
            }
            _ => Err("the ranks of the operands do not fit"),
        }
    }

    fn known(&mut self, size: &Size) {
        self.oblige(|| Obligation::Known(size.s.clone()));
    }

    /// The size of a result along one spatial axis.
    fn window(&mut self, size: &Size, kernel: i64, stride: i64, padding: Padding, mean: bool) -> Result<Size, Misfit> {
        self.facts.even_kernel |= kernel % 2 == 0;
        match padding {
            Padding::Same => {
                let (before, after) = self.reading.same(size.n, kernel, stride).ok_or("this padding is not defined for an even window")?;
                let other = Reading { symmetric: !self.reading.symmetric, ..self.reading };
                self.facts.uneven_padding |= other.same(size.n, kernel, stride) != Some((before, after));
                self.facts.padded_average |= mean && before + after > 0;
                self.remainder(size, stride);
                Ok(size.ceil_div(stride))
            }
            Padding::Valid if size.n < kernel => Err("the window is larger than the image"),
            Padding::Valid => {
                self.oblige(|| Obligation::AtLeast(size.s.clone(), kernel));
                self.remainder(size, stride);
                Ok(size.minus(&Size::known(kernel - 1)).ceil_div(stride))
            }
        }
    }

    fn conv(&mut self, x: &Typed, w: &Typed, strides: [i64; 2], padding: Padding) -> Result<Results, Misfit> {
        if x.rank() != 4 || w.rank() != 4 || x.merged.is_some() {
            return Err("a convolution takes an image and weights");
        }
        let (channels, inputs, outputs) = (&x.sizes[1], &w.sizes[1], &w.sizes[0]);
        if inputs.n < 1 || channels.n % inputs.n != 0 {
            return Err("the channels are no multiple of those of the weights");
        }
        if w.placed && outputs.n != channels.n {
            return Err("a constant kernel has as many output channels as the image has channels");
        }
        let group = channels.n / inputs.n;
        // Weights with groups still to be merged have more groups.
        let inner = group * w.merged.unwrap_or(1);
        if outputs.n % inner != 0 {
            return Err("the output channels are no multiple of the groups");
        }
        self.facts.convolutions.push((group, outputs.n));
        self.oblige(|| Obligation::Equal(channels.s.clone(), inputs.s.clone() * Dim::from(group)));
        if w.placed {
            self.oblige(|| Obligation::Equal(channels.s.clone(), outputs.s.clone()));
        }
        self.remainder(outputs, inner);
        self.known(&w.sizes[2]);
        self.known(&w.sizes[3]);
        let height = self.window(&x.sizes[2], w.sizes[2].n, strides[0], padding, false)?;
        let width = self.window(&x.sizes[3], w.sizes[3].n, strides[1], padding, false)?;
        let sizes = smallvec![x.sizes[0].clone(), outputs.clone(), height, width];
        let cuts = smallvec![x.cuts[0].clone(), w.cuts[0].clone(), None, None];
        Ok(smallvec![Typed { sizes, cuts, placed: x.placed && w.placed, merged: None }])
    }

    fn pool(&mut self, x: &Typed, mean: bool, kernel: [i64; 2], strides: [i64; 2], padding: Padding) -> Result<Results, Misfit> {
        if x.rank() != 4 {
            return Err("a pool takes an image");
        }
        let mut result = x.clone();
        for axis in 0..2 {
            result.sizes[2 + axis] = self.window(&x.sizes[2 + axis], kernel[axis], strides[axis], padding, mean)?;
            result.cuts[2 + axis] = None;
        }
        Ok(smallvec![result])
    }

    fn matmul(&mut self, a: &Typed, b: &Typed) -> Result<Results, Misfit> {
        let rank = a.rank();
        if rank < 2 || b.rank() != rank {
            return Err("a product takes matrices, or stacks of as many");
        }
        for axis in 0..rank - 2 {
            self.equal(&a.sizes[axis], &b.sizes[axis], "the leading sizes of a product differ")?;
        }
        self.equal(&a.sizes[rank - 1], &b.sizes[rank - 2], "the inner sizes of a product differ")?;
        let mut result = a.clone();
        result.sizes[rank - 1] = b.sizes[rank - 1].clone();
        result.cuts[rank - 1] = b.cuts[rank - 1].clone();
        result.placed = a.placed && b.placed;
        Ok(smallvec![result])
    }

    fn binary(&mut self, a: &Typed, b: &Typed) -> Result<Results, Misfit> {
        if (a.placed || b.placed) && a.rank() != b.rank() {
            return Err("a constant has the shape of the other operand");
        }
        let (long, short) = if a.rank() >= b.rank() { (a, b) } else { (b, a) };
        let shift = long.rank() - short.rank();
        let mut result = long.clone();
        result.placed = a.placed && b.placed;
        self.facts.broadcast |= shift > 0;
        for at in 0..short.rank() {
            let (x, y) = (&long.sizes[shift + at], &short.sizes[at]);
            self.facts.ways.push(u8::from(x.n != y.n) + u8::from(x.n < y.n));
            if x.n == y.n {
                self.oblige(|| Obligation::Equal(x.s.clone(), y.s.clone()));
            } else {
                self.facts.broadcast = true;
                let (one, size) = if x.n == 1 { (x, y) } else { (y, x) };
                if one.n != 1 || a.placed || b.placed {
                    return Err("the shapes do not broadcast");
                }
                self.oblige(|| Obligation::Equal(one.s.clone(), Dim::from(1)));
                result.sizes[shift + at] = size.clone();
            }
            let agreed = match (&long.cuts[shift + at], &short.cuts[at]) {
                (Some(x), Some(y)) if x.n == y.n => Some(x.clone()),
                _ => None,
            };
            result.cuts[shift + at] = agreed;
        }
        Ok(smallvec![result])
    }

    fn concat(&mut self, operands: &[&Typed], axis: usize, rank: Option<usize>) -> Result<Results, Misfit> {
        let Some((first, rest)) = operands.split_first() else { return Err("a concatenation takes operands") };
        if axis >= first.rank() || rank.is_some_and(|r| r != first.rank()) {
            return Err("the rank does not fit the concatenation");
        }
        let mut result = (*first).clone();
        for next in rest {
            if next.rank() != first.rank() {
                return Err("the ranks of the operands do not fit");
            }
            for at in 0..first.rank() {
                if at != axis {
                    self.equal(&first.sizes[at], &next.sizes[at], "the other sizes of a concatenation differ")?;
                    let agree = matches!((&result.cuts[at], &next.cuts[at]), (Some(x), Some(y)) if x.n == y.n);
                    if !agree {
                        result.cuts[at] = None;
                    }
                }
            }
            result.cuts[axis] = Some(result.sizes[axis].clone());
            result.sizes[axis] = result.sizes[axis].plus(&next.sizes[axis]);
            result.placed &= next.placed;
        }
        Ok(smallvec![result])
    }

    fn enlarge(&mut self, x: &Typed, height: &Size, width: &Size) -> Result<Results, Misfit> {
        if x.rank() != 4 || x.sizes[2].n > height.n || x.sizes[3].n > width.n {
            return Err("weights can only become larger");
        }
        self.facts.even_kernel |= height.n % 2 == 0 || width.n % 2 == 0 || x.sizes[2].n % 2 == 0 || x.sizes[3].n % 2 == 0;
        self.known(&x.sizes[2]);
        self.known(&x.sizes[3]);
        let mut result = x.clone();
        (result.sizes[2], result.sizes[3]) = (height.clone(), width.clone());
        (result.cuts[2], result.cuts[3]) = (None, None);
        Ok(smallvec![result])
    }
}

fn split(x: &Typed, axis: usize) -> Result<Results, Misfit> {
    let Some(cut) = x.cuts.get(axis).cloned().flatten() else {
        return Err("nothing says where to split: no concatenation joined the operand along this axis");
    };
    let (mut low, mut high) = (x.clone(), x.clone());
    high.sizes[axis] = x.sizes[axis].minus(&cut);
    low.sizes[axis] = cut;
    (low.cuts[axis], high.cuts[axis]) = (None, None);
    Ok(smallvec![low, high])
}
