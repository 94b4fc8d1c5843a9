//! Where the elements of a tensor are, layout by layout: when two layouts of a tensor are the same
//! bytes, and when a transpose moves none.

use smallvec::SmallVec;

use super::target::{LayoutId, LayoutTarget, PLAIN};
use crate::model::Ns;

/// The axes of a tensor that have more than one place, in the order in which they are stored.
type Stored = SmallVec<[usize; 5]>;

/// A tensor, as far as layouts matter.
#[derive(Clone, Copy, Debug)]
pub struct Storage<'t> {
    /// The layouts.
    pub target: &'t LayoutTarget,
    /// Its element type.
    pub dtype: regraft_ir::DType,
    /// Its sizes.
    pub shape: &'t [usize],
}

impl Storage<'_> {
    /// Whether the tensor can be stored in a layout.
    pub fn admits(&self, id: LayoutId) -> bool {
        let Some(layout) = self.target.layout(id) else { return id == PLAIN };
        let is_of_type = layout.types.is_empty() || layout.types.iter().any(|name| regraft_ir::DType::from_name(name) == Some(self.dtype));
        let rank = self.shape.len();
        is_of_type && (layout.order(rank).is_some() || layout.block.is_some_and(|block| block.rank == rank))
    }

    /// Whether a layout is as good as any other: there is one element.
    pub fn is_single(&self) -> bool {
        self.shape.iter().all(|size| *size == 1)
    }

    /// The layout with the smallest number that stores the same bytes.
    pub fn canonical(&self, id: LayoutId) -> LayoutId {
        let Some(own) = self.stored(id) else { return id };
        (PLAIN..id).find(|other| self.stored(*other).as_ref() == Some(&own)).unwrap_or(id)
    }

    /// What it costs to change the layout, ns.
    pub fn change(&self, from: LayoutId, to: LayoutId) -> Ns {
        if self.canonical(from) == self.canonical(to) {
            return 0;
        }
        let via_plain = || self.direct(from, PLAIN)?.checked_add(self.direct(PLAIN, to)?);
        self.direct(from, to).or_else(via_plain).unwrap_or(Ns::MAX)
    }

    /// The axes of more than one place in the order in which they are stored; `None` if some are
    /// divided, or the layout cannot be.
    fn stored(&self, id: LayoutId) -> Option<Stored> {
        let is_long = |axis: &usize| self.shape[*axis] != 1;
        if id == PLAIN {
            return Some((0..self.shape.len()).filter(is_long).collect());
        }
        let layout = self.target.layout(id).filter(|_| self.admits(id))?;
        Some(layout.order(self.shape.len())?.iter().copied().filter(is_long).collect())
    }

    fn direct(&self, from: LayoutId, to: LayoutId) -> Option<Ns> {
        let fits = |name: &Option<String>, id| name.as_ref().is_none_or(|name| self.target.id(name) == Some(id));
        let change = self.target.changes.iter().find(|change| fits(&change.from, from) && fits(&change.to, to))?;
        Some(change.rate.of(self.dtype.bytes(self.shape)))
    }
}

/// Whether `perm` moves nothing of a tensor stored in layout `from`, if its result, whose axis `i`
/// is axis `perm[i]` of it, is to be stored in layout `to`.
pub fn is_view(operand: Storage<'_>, from: LayoutId, perm: &[i64], result: Storage<'_>, to: LayoutId) -> bool {
    let (Some(from), Some(to)) = (operand.stored(from), result.stored(to)) else { return false };
    from.len() == to.len() && from.iter().zip(&to).all(|(from, to)| perm.get(*to) == Some(&(*from as i64)))
}
