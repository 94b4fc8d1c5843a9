//! Operators that move elements: each element of the result is an element of an operand, or a given
//! number.

use regraft_ir::{Class, DType, Op, ValueId};

use crate::index::Poly;
use crate::meaning::Meaning;
use crate::value::{Function, Sum, Trouble, apply, open_condition, product, stored};

/// Maximum number of conditions an index may depend on.
const MOST_CHOICES: u32 = 6;

impl Meaning<'_> {
    /// The element, if the operator moves elements.
    pub(super) fn movement(&mut self, value: ValueId, index: &[Poly]) -> Result<Option<Sum>, Trouble> {
        let node = value.node;
        let op = self.graph.node(node).op.clone();
        let first = |m: &Self| m.operand(node, 0);
        Ok(Some(match &op {
            Op::Transpose(op) => {
                let mut inner = vec![Poly::default(); index.len()];
                for (axis, from) in op.perm.iter().enumerate() {
                    inner[usize::try_from(*from).unwrap_or(0)] = index[axis].clone();
                }
                let x = first(self)?;
                self.at(x, &inner)?
            }
            Op::Reshape(_) | Op::Flatten(_) | Op::Squeeze(_) | Op::Unsqueeze(_) => {
                let x = self.viewed(first(self)?)?;
                let inner = self.reshaped(&self.shape(x)?, &self.shape(value)?, index)?;
                self.at(x, &inner)?
            }
            Op::Expand(_) => {
                let x = first(self)?;
                let shape = self.shape(value)?;
                self.broadcast(x, &shape, index)?
            }
            Op::Tile(_) => {
                let x = first(self)?;
                let sizes = self.shape(x)?;
                let inner: Vec<Poly> = index.iter().zip(&sizes).map(|(i, size)| i.sub(&size.mul(&self.floor(i, size)))).collect();
                self.at(x, &inner)?
            }
            Op::Upsample(op) => {
                let x = first(self)?;
                let inner: Vec<Poly> = index.iter().zip(&op.scales).map(|(i, scale)| self.floor(i, &Poly::number(*scale))).collect();
                self.at(x, &inner)?
            }
            Op::Slice(op) => {
                let x = first(self)?;
                let mut inner = index.to_vec();
                for ((axis, start), step) in op.axes.iter().zip(&op.starts).zip(&op.steps) {
                    let axis = usize::try_from(*axis).unwrap_or(0);
                    inner[axis] = index[axis].scale(*step).add(&Poly::size(start));
                }
                self.at(x, &inner)?
            }
            Op::Pad(op) => self.padded(value, &op.clone(), index)?,
            Op::Concat(op) => {
                let axis = usize::try_from(op.axis).unwrap_or(0);
                self.chosen(&index[axis])?;
                let mut sum = Sum::default();
                let mut start = Poly::default();
                for x in self.operands(node) {
                    let size = self.shape(x)?.get(axis).cloned().unwrap_or_default();
                    let at = index[axis].sub(&start);
                    let end = size.plus(-1).sub(&at);
                    start = start.add(&size);
                    if self.never(&at) || self.never(&end) {
                        continue;
                    }
                    self.decided(&at)?;
                    self.decided(&end)?;
                    let mut inner = index.to_vec();
                    inner[axis] = at.clone();
                    let met = self.met();
                    let part = self.at(x, &inner)?;
                    self.met_under(met, &[], &[at.clone(), end.clone()]);
                    sum = sum.add(&part.only_where(&at).only_where(&end));
                }
                sum
            }
            Op::Split(op) => {
                let axis = usize::try_from(op.axis).unwrap_or(0);
                let before: i64 = op.sizes.iter().take(value.port as usize).sum();
                let mut inner = index.to_vec();
                inner[axis] = index[axis].plus(before);
                let x = first(self)?;
                self.at(x, &inner)?
            }
            Op::Gather(op) => {
                let axis = usize::try_from(op.axis).unwrap_or(0);
                let (x, indices) = (first(self)?, self.operand(node, 1)?);
                let rank = self.shape(indices)?.len();
                let chosen = self.at(indices, &index[axis..axis + rank])?;
                let after = index[axis + rank..].to_vec();
                self.gathered(x, (&index[..axis], &after), &chosen, MOST_CHOICES)?
            }
            Op::GatherElements(op) => {
                let axis = usize::try_from(op.axis).unwrap_or(0);
                let (x, indices) = (first(self)?, self.operand(node, 1)?);
                let chosen = self.at(indices, index)?;
                let after = index[axis + 1..].to_vec();
                self.gathered(x, (&index[..axis], &after), &chosen, MOST_CHOICES)?
            }
            Op::Trilu(op) => {
                let x = first(self)?;
                let [.., row, column] = index else { return Trouble::new("Trilu of fewer than 2 axes") };
                let above = column.sub(row).plus(-op.k);
                let kept = if op.upper { above } else { above.scale(-1) };
                self.where_inside(vec![kept], |m| m.at(x, index))?
            }
            Op::OneHot(op) => {
                let axis = usize::try_from(op.axis).unwrap_or(0);
                let (indices, values) = (first(self)?, self.operand(node, 1)?);
                let mut inner = index.to_vec();
                let position = Sum::whole(&inner.remove(axis));
                let chosen = self.at(indices, &inner)?;
                let (off, on) = (self.at(values, &[Poly::number(0)])?, self.at(values, &[Poly::number(1)])?);
                let facts = &self.shared.facts;
                let same = apply(Function::Zero, vec![chosen.sub(&position)], facts)?;
                let depth = Sum::number(crate::value::whole(op.depth));
                let from_end = apply(Function::Zero, vec![chosen.sub(&position).add(&depth)], facts)?;
                off.add(&product(&same.add(&from_end), &on.sub(&off), facts)?)
            }
            Op::DepthToSpace(op) => {
                let x = first(self)?;
                let b = Poly::number(op.blocksize);
                let [n, c, h, w] = index else { return Trouble::new("DepthToSpace of other than 4 axes") };
                let depth = self.shape(value)?.get(1).cloned().unwrap_or_default();
                let (high_h, high_w) = (self.floor(h, &b), self.floor(w, &b));
                let block = h.sub(&high_h.mul(&b)).mul(&b).add(&w.sub(&high_w.mul(&b)));
                let channel = if op.mode == "DCR" { block.mul(&depth).add(c) } else { c.mul(&b).mul(&b).add(&block) };
                self.at(x, &[n.clone(), channel, high_h, high_w])?
            }
            Op::SpaceToDepth(op) => {
                let x = first(self)?;
                let b = Poly::number(op.blocksize);
                let [n, c, h, w] = index else { return Trouble::new("SpaceToDepth of other than 4 axes") };
                let depth = self.shape(x)?.get(1).cloned().unwrap_or_default();
                let block = self.floor(c, &depth);
                let channel = c.sub(&block.mul(&depth));
                let row = self.floor(&block, &b);
                let column = block.sub(&row.mul(&b));
                self.at(x, &[n.clone(), channel, h.mul(&b).add(&row), w.mul(&b).add(&column)])?
            }
            Op::Shape(op) => {
                let x = first(self)?;
                let shape = self.shape(x)?;
                let sizes = shape.get(op.start as usize..op.end as usize).unwrap_or_default().to_vec();
                self.one_of(&sizes.iter().map(Sum::whole).collect::<Vec<_>>(), &index[0])
            }
            Op::Size(_) => {
                let x = first(self)?;
                Sum::whole(&self.shape(x)?.iter().fold(Poly::number(1), |product, size| product.mul(size)))
            }
            Op::Range(_) => {
                let (start, delta) = (first(self)?, self.operand(node, 2)?);
                let (start, delta) = (self.at(start, &[])?, self.at(delta, &[])?);
                start.add(&product(&Sum::whole(&index[0]), &delta, &self.shared.facts)?)
            }
            Op::ConstantOfShape(op) => self.constant(&op.value.clone(), &[Poly::default()])?,
            _ => return Ok(None),
        }))
    }

    /// The element of `x` at a computed index, counted from the end if negative, between known
    /// indices. Where conditions choose between index expressions, they choose between elements
    /// too.
    fn gathered(&mut self, x: ValueId, around: (&[Poly], &[Poly]), chosen: &Sum, choices: u32) -> Result<Sum, Trouble> {
        let Some(position) = chosen.as_poly() else {
            let (Some(condition), Some(choices)) = (open_condition(chosen), choices.checked_sub(1)) else {
                return Trouble::new(format!("an index that is no index expression: {chosen}"));
            };
            self.decided(&condition)?;
            let mut sum = Sum::default();
            for condition in [condition.clone(), condition.scale(-1).plus(-1)] {
                sum = sum.add(&self.where_holds(&condition, &mut |m| {
                    let chosen = m.simplifier.sum(chosen, &m.shared.facts)?;
                    m.gathered(x, around, &chosen, choices)
                })?);
            }
            return Ok(sum);
        };
        let position = self.shared.facts.reduce(&position);
        let at = |position: Poly| {
            let (before, after) = around;
            before.iter().cloned().chain([position]).chain(after.iter().cloned()).collect::<Vec<Poly>>()
        };
        if self.shared.facts.nonnegative(&position) {
            return self.at(x, &at(position));
        }
        let axis = around.0.len();
        let size = self.shape(x)?.get(axis).cloned().unwrap_or_default();
        let (from_end, negative) = (position.add(&size), position.scale(-1).plus(-1));
        if self.shared.facts.nonnegative(&negative) {
            return self.at(x, &at(from_end));
        }
        let mut sum = Sum::default();
        for (position, condition) in [(position.clone(), position), (from_end, negative)] {
            let met = self.met();
            let element = self.at(x, &at(position))?;
            self.met_under(met, &[], std::slice::from_ref(&condition));
            sum = sum.add(&element.only_where(&condition));
        }
        Ok(sum)
    }

    pub(super) fn floor(&self, a: &Poly, b: &Poly) -> Poly {
        self.shared.facts.reduce(&a.floor(b))
    }

    /// Whether a condition is known to fail.
    pub(super) fn never(&self, condition: &Poly) -> bool {
        self.shared.facts.nonnegative(&condition.scale(-1).plus(-1))
    }

    /// One of several elements, by position.
    fn one_of(&self, elements: &[Sum], at: &Poly) -> Sum {
        if let Some(at) = at.known().and_then(|at| usize::try_from(at).ok()) {
            return elements.get(at).cloned().unwrap_or_default();
        }
        elements.iter().enumerate().fold(Sum::default(), |sum, (position, element)| {
            let offset = at.plus(-(position as i64));
            sum.add(&element.only_where(&offset).only_where(&offset.scale(-1)))
        })
    }

    /// The index into `from` of the element at `index` in `to`, for shapes with the same number of
    /// elements.
    fn reshaped(&self, from: &[Poly], to: &[Poly], index: &[Poly]) -> Result<Vec<Poly>, Trouble> {
        let one = |size: &Poly| size.known() == Some(1);
        let inner: Vec<usize> = (0..from.len()).filter(|axis| !one(&from[*axis])).collect();
        let outer: Vec<usize> = (0..to.len()).filter(|axis| !one(&to[*axis])).collect();
        let mut result = vec![Poly::default(); from.len()];
        let (mut i, mut o) = (0, 0);
        while i < inner.len() || o < outer.len() {
            let Some((ni, no)) = self.group(from, to, &inner[i..], &outer[o..]) else {
                return Trouble::new("a reshape whose sizes do not show what becomes of them");
            };
            let flat = outer[o..o + no].iter().fold(Poly::default(), |flat, axis| flat.mul(&to[*axis]).add(&index[*axis]));
            let mut stride = Poly::number(1);
            for (position, axis) in inner[i..i + ni].iter().enumerate().rev() {
                let digit = self.floor(&flat, &stride);
                stride = stride.mul(&from[*axis]);
                result[*axis] = if position == 0 { digit } else { digit.sub(&self.floor(&flat, &stride).mul(&from[*axis])) };
            }
            (i, o) = (i + ni, o + no);
        }
        Ok(result)
    }

    /// The shortest prefixes of the axes, at least one of each, with equal element counts.
    fn group(&self, from: &[Poly], to: &[Poly], inner: &[usize], outer: &[usize]) -> Option<(usize, usize)> {
        let product = |sizes: &[Poly], axes: &[usize]| axes.iter().fold(Poly::number(1), |p, axis| p.mul(&sizes[*axis]));
        let equal = |a: usize, b: usize| product(from, &inner[..a]) == product(to, &outer[..b]);
        let pairs = (2..=inner.len() + outer.len()).flat_map(|total| (1..total).map(move |a| (a, total - a)));
        pairs.filter(|(a, b)| *a <= inner.len() && *b <= outer.len()).find(|(a, b)| equal(*a, *b))
    }

    /// The value behind any number of views.
    fn viewed(&self, value: ValueId) -> Result<ValueId, Trouble> {
        match self.graph.node(value.node).op {
            Op::Reshape(_) | Op::Flatten(_) | Op::Squeeze(_) | Op::Unsqueeze(_) => self.viewed(self.operand(value.node, 0)?),
            _ => Ok(value),
        }
    }

    fn padded(&mut self, value: ValueId, op: &regraft_ir::ops::pad::Pad, index: &[Poly]) -> Result<Sum, Trouble> {
        let x = self.operand(value.node, 0)?;
        let sizes = self.shape(x)?;
        if op.mode != "constant" && op.pads.iter().any(|p| *p != 0) {
            return self.opaque(value, index);
        }
        let inner: Vec<Poly> = index.iter().zip(&op.pads).map(|(i, before)| i.plus(-before)).collect();
        let (mut inside, mut open) = (Sum::one(), Vec::new());
        for (at, size) in inner.iter().zip(&sizes) {
            let end = size.plus(-1).sub(at);
            if self.never(at) || self.never(&end) {
                inside = Sum::default();
                break;
            }
            self.decided(at)?;
            self.decided(&end)?;
            let conditions: Vec<Poly> = [at.clone(), end].into_iter().filter(|c| !self.shared.facts.nonnegative(c)).collect();
            inside = conditions.iter().fold(inside, |inside, c| inside.only_where(c));
            open.extend(conditions);
        }
        let met = self.met();
        let element = if inside.is_zero() { Sum::default() } else { self.at(x, &inner)? };
        self.met_under(met, &[], &open);
        let facts = &self.shared.facts;
        let dtype = self.ty(value)?.dtype;
        let filled = match dtype.class() {
            Class::Real if dtype == DType::F64 => self.real(op.value.0, dtype)?,
            Class::Real => self.attribute(op.value.0)?,
            _ => stored(op.value.0.trunc()).map(Sum::number).ok_or_else(|| Trouble("an infinite pad".into()))?,
        };
        let outside = product(&Sum::one().sub(&inside), &filled, facts)?;
        Ok(product(&inside, &element, facts)?.add(&outside))
    }
}
