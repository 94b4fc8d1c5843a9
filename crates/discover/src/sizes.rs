//! Numbered sizes of instances of a pair, with cached consequences.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use regraft_ir::Dim;

use crate::expr::substitute;
use crate::general::{Sizes, fitted};
use crate::terms::{Terms, ValueId};
use crate::types::{InstanceId, TypeId};

/// Number of an assignment of sizes to size parameters.
pub type SizesId = u32;

/// An instance applied to operands of other types at some sizes.
type Application = (InstanceId, SmallVec<[TypeId; 3]>, SizesId);

/// No size is fixed yet.
pub const OPEN: SizesId = 0;

/// All assignments so far.
pub struct SizeTable<'a> {
    terms: &'a Terms,
    list: Vec<Sizes>,
    index: FxHashMap<Vec<(String, Dim)>, SizesId>,
    fitted: FxHashMap<(TypeId, TypeId, SizesId), Option<SizesId>>,
    cuts: FxHashMap<(InstanceId, InstanceId, SizesId), bool>,
    instances: FxHashMap<Application, Option<InstanceId>>,
}

impl<'a> SizeTable<'a> {
    /// Works over these terms.
    pub fn new(terms: &'a Terms) -> SizeTable<'a> {
        SizeTable {
            terms,
            list: vec![Sizes::new()],
            index: FxHashMap::from_iter([(Vec::new(), OPEN)]),
            fitted: FxHashMap::default(),
            cuts: FxHashMap::default(),
            instances: FxHashMap::default(),
        }
    }

    /// The sizes for which the type of `general` is that of `special`, given those already fixed.
    pub fn fitted(&mut self, general: ValueId, special: ValueId, sizes: SizesId) -> Option<SizesId> {
        let key = (self.terms.type_id(general), self.terms.type_id(special), sizes);
        if let Some(known) = self.fitted.get(&key) {
            return *known;
        }
        let wider = fitted(self.terms.ty(general), self.terms.ty(special), &self.list[sizes as usize]).map(|sizes| self.id(sizes));
        self.fitted.insert(key, wider);
        wider
    }

    /// Whether `special` cuts where `general` does at these sizes.
    pub fn cuts_alike(&mut self, general: InstanceId, special: InstanceId, sizes: SizesId) -> bool {
        let (g, s) = (self.terms.types.instance(general), self.terms.types.instance(special));
        let (Some(from), Some(to)) = (&g.cut, &s.cut) else { return g.cut.is_none() && s.cut.is_none() };
        let list = &self.list;
        *self.cuts.entry((general, special, sizes)).or_insert_with(|| substitute(from, &list[sizes as usize]).as_ref() == Some(to))
    }

    /// The operator of `general` for operands of other types, cut where `general` cuts at these
    /// sizes; `None` if it did not occur.
    pub fn instance(&mut self, general: InstanceId, operands: &[ValueId], sizes: SizesId) -> Option<InstanceId> {
        let types: SmallVec<[TypeId; 3]> = operands.iter().map(|o| self.terms.type_id(*o)).collect();
        let key = (general, types, sizes);
        if let Some(known) = self.instances.get(&key) {
            return *known;
        }
        let known = self.terms.types.known(self.terms.types.instance(general).operator, &key.1);
        let found = known.iter().copied().find(|special| self.cuts_alike(general, *special, sizes));
        self.instances.insert(key, found);
        found
    }

    fn id(&mut self, sizes: Sizes) -> SizesId {
        let mut key: Vec<(String, Dim)> = sizes.iter().map(|(name, size)| (name.clone(), size.clone())).collect();
        key.sort();
        *self.index.entry(key).or_insert_with(|| {
            self.list.push(sizes);
            (self.list.len() - 1) as SizesId
        })
    }
}
