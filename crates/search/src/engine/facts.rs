//! `Facts`: what the engine knows about every node, and how it finds out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::{Index, IndexMut};

use regraft_cost::layout::Kernels;
use regraft_cost::{CostModel, Ns};
use regraft_ir::{Graph, NodeId, Op, OpKind, ValueId};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::hash::{Scrambled, hash_of_types, mix};

/// Any odd number with many ones in irregular places.
const WIRE: u128 = 0x9e37_79b9_7f4a_7c15;

/// What is known about one node.
#[derive(Clone, Copy, Default)]
pub(super) struct Fact {
    /// Hash of operator, attributes and operand types.
    pub(super) core: u64,
    /// The core; of a constant, a hash of its type alone.
    pub(super) outline: u64,
    /// Structural identity: the core and the identities of the operands at creation. Nodes of a
    /// graph that have the same compute the same.
    pub(super) identity: u128,
    /// What this node adds to the state key under its current wiring.
    pub(super) share: u128,
    /// What this node costs.
    pub(super) price: Ns,
    /// Which of the known kernels it can be computed by, if layouts are to be chosen.
    pub(super) kernels: u32,
    /// Hash of what that depends on: the core and what is around it.
    pub(super) context: u64,
    /// It has a single reader: what its reader costs may depend on that.
    pub(super) has_one_reader: bool,
}

/// A [`Fact`] for every node that the graph has or had.
pub(super) struct Facts<'a> {
    model: &'a dyn CostModel,
    of: Vec<Fact>,
    /// Nodes that read other values than when they were made, by their identities: once for each
    /// operand that was changed by a move that is not undone, in the order of these moves.
    strays: HashMap<u128, SmallVec<[NodeId; 2]>, BuildHasherDefault<Scrambled>>,
    /// Prices obtained from the model so far, by what they depend on, and which kernels come with
    /// them.
    prices: FxHashMap<u64, (Ns, u32)>,
    /// The kernels that nodes can be computed by.
    kernels: Vec<Kernels>,
    /// What states cost in their layouts, by their keys.
    totals: FxHashMap<u128, Ns>,
}

impl<'a> Facts<'a> {
    /// No facts yet.
    pub(super) fn new(model: &'a dyn CostModel) -> Facts<'a> {
        let kernels = vec![Kernels::default()];
        let (strays, prices, totals) = (HashMap::default(), FxHashMap::default(), FxHashMap::default());
        Facts { model, of: Vec::new(), strays, prices, kernels, totals }
    }

    /// Where the prices come from.
    pub(super) fn prices(&self) -> &'a dyn CostModel {
        self.model
    }

    /// Makes room for exactly the nodes of this graph.
    pub(super) fn fit(&mut self, graph: &Graph) {
        self.of.resize(graph.capacity(), Fact::default());
    }

    /// Records what is known of a node by its operands when it is made: all but the price.
    pub(super) fn admit(&mut self, graph: &Graph, id: NodeId, core: u64) {
        let (node, wiring) = (graph.node(id), self.wiring(graph, id));
        let mut identity = mix((u128::from(core) | (u128::from(!core) << 64)) ^ wiring);
        // A node whose operands are others by now may have been made as this one is: then keys must
        // say which of the two is read, and they do so by identities alone.
        while self.is_of_another(graph, id, identity) {
            identity = mix(identity);
        }
        let outline = if matches!(node.op, Op::Constant(_)) { hash_of_types(&node.types) } else { core };
        self[id] = Fact { core, outline, identity, share: share(identity, wiring), ..Fact::default() };
    }

    /// Hash of the values that a node reads: a polynomial of their identities, which are scrambled.
    fn wiring(&self, graph: &Graph, id: NodeId) -> u128 {
        let read = |value: &ValueId| self[value.node].identity.wrapping_add(u128::from(value.port));
        graph.node(id).inputs.iter().fold(0, |wiring: u128, value| wiring.wrapping_add(read(value)).wrapping_mul(WIRE))
    }

    /// Whether a node with this identity reads other values than this one.
    fn is_of_another(&self, graph: &Graph, id: NodeId, identity: u128) -> bool {
        let read = |id: NodeId| graph.node(id).inputs.iter().map(|value| (self[value.node].identity, value.port));
        let is_another = |other: &NodeId| graph.get(*other).is_some() && !read(*other).eq(read(id));
        self.strays.get(&identity).is_some_and(|same| same.iter().any(is_another))
    }

    /// Notes that these operands of nodes are others from now on.
    pub(super) fn stray(&mut self, rewired: &[(NodeId, u32, ValueId)]) {
        for (id, ..) in rewired {
            let identity = self[*id].identity;
            self.strays.entry(identity).or_default().push(*id);
        }
    }

    /// Takes that back; what was noted later has been taken back before.
    pub(super) fn return_strays(&mut self, rewired: &[(NodeId, u32, ValueId)]) {
        for (id, ..) in rewired.iter().rev() {
            if let Entry::Occupied(mut same) = self.strays.entry(self[*id].identity) {
                same.get_mut().pop();
                if same.get().is_empty() {
                    same.remove();
                }
            }
        }
    }

    /// Finds out anew what a node adds to the state key, and returns by how much more.
    pub(super) fn rewire(&mut self, graph: &Graph, id: NodeId) -> u128 {
        let share = share(self[id].identity, self.wiring(graph, id));
        share.wrapping_sub(std::mem::replace(&mut self[id].share, share))
    }

    /// What the declared outputs add to the state key.
    pub(super) fn share_of_outputs(&self, graph: &Graph) -> u128 {
        graph.outputs().iter().enumerate().fold(0u128, |sum, (at, output)| {
            let identity = self[output.value.node].identity;
            sum.wrapping_add(mix(identity.wrapping_mul(2 * at as u128 + 3).wrapping_add(u128::from(output.value.port))))
        })
    }

    /// Finds out what a node costs where it is now, and by which kernels, and records it. Both are
    /// cached by its core and the kinds around it.
    pub(super) fn reprice(&mut self, graph: &Graph, id: NodeId) -> Ns {
        let node = graph.node(id);
        let has_layouts = self.model.layouts().is_some();
        let is_free = node.constant || !has_layouts && matches!(node.op.kind(), OpKind::Input);
        let context = if is_free { 0 } else { self.context(graph, id) };
        let (price, kernels) = if is_free {
            (0, 0)
        } else if context == self[id].context {
            (self[id].price, self[id].kernels)
        } else {
            let known = &mut self.kernels;
            *self.prices.entry(context).or_insert_with(|| {
                let price = self.model.price(graph, id);
                let Some(layouts) = self.model.layouts() else { return (price, 0) };
                known.push(layouts.kernels(graph, id, price));
                (price, known.len() as u32 - 1)
            })
        };
        let fact = &mut self[id];
        (fact.price, fact.kernels, fact.context) = (price, kernels, context);
        fact.has_one_reader = node.users.len() == 1;
        price
    }

    /// Hash of what the price of a node depends on.
    fn context(&self, graph: &Graph, id: NodeId) -> u64 {
        let node = graph.node(id);
        let mut hasher = FxHasher::default();
        self[id].core.hash(&mut hasher);
        for value in &node.inputs {
            let producer = graph.node(value.node);
            let has_one_reader = producer.users.len() == 1;
            hasher.write_u32(u32::from(producer.op.kind() as u8) << 2 | u32::from(producer.constant) << 1 | u32::from(has_one_reader));
        }
        let readers = node.users.iter().fold(0u64, |sum, (user, slot)| {
            let mut one = FxHasher::default();
            one.write_u64(u64::from(graph.node(*user).op.kind() as u8) << 32 | u64::from(*slot));
            sum.wrapping_add(one.finish())
        });
        (readers, graph.feeds_output(id)).hash(&mut hasher);
        hasher.finish()
    }

    /// What the state with this key costs in its layouts; `None` if there are none to choose from.
    pub(super) fn total(&mut self, graph: &Graph, key: u128) -> Option<Ns> {
        let layouts = self.model.layouts()?;
        if let Some(total) = self.totals.get(&key) {
            return Some(*total);
        }
        let total = layouts.total_of(graph, &|id| &self.kernels[self[id].kernels as usize]);
        self.totals.insert(key, total);
        Some(total)
    }

    /// Feeds the cores of a node, its producers and its readers to a hasher.
    pub(super) fn surroundings(&self, graph: &Graph, id: NodeId, hasher: &mut impl Hasher) {
        self[id].core.hash(hasher);
        let node = graph.node(id);
        for value in &node.inputs {
            self[value.node].core.hash(hasher);
        }
        let readers =
            node.users.iter().fold(0u64, |sum, (user, slot)| sum.wrapping_add(self[*user].core.wrapping_mul(2 * u64::from(*slot) + 1)));
        readers.hash(hasher);
    }
}

/// What a node adds to the state key under a wiring.
fn share(identity: u128, wiring: u128) -> u128 {
    mix(identity.rotate_left(11) ^ wiring)
}

impl Index<NodeId> for Facts<'_> {
    type Output = Fact;

    fn index(&self, id: NodeId) -> &Fact {
        &self.of[id.0 as usize]
    }
}

impl IndexMut<NodeId> for Facts<'_> {
    fn index_mut(&mut self, id: NodeId) -> &mut Fact {
        &mut self.of[id.0 as usize]
    }
}
