//! Attribution: assigns the time of a profiled run to the nodes of a graph.
//!
//! A runtime fuses, renames and reorders before it runs. Its optimized graph is matched against the
//! graph as written:
//!
//! 1. Names: an optimized node that makes a value of the written model stands for the node behind
//!    that value. Nodes in blocked layout make new values but carry the name of an old one
//!    (`y_nchwc`), and others at least keep the node's name. Some runtimes name all that a node was
//!    made from.
//! 2. Structure: an optimized node without any known name stands for the node with its operator
//!    that reads what it reads.
//! 3. Cover: a node that no optimized node stands for was fused into a neighbour: the one that
//!    reads its results, or else the one that makes its operands.
//!
//! The time of an optimized node goes to the covered node with the most work; layout changes go to
//! the node that needs them.

use std::collections::HashMap;

use regraft_ir::{Bindings, Graph, NodeId, Op, OpKind, ValueId};
use regraft_runtime::{OptimizedGraph, OptimizedNode, Profile, binned_quantile};

use crate::names::NameTable;
use crate::workload::{Workload, is_product};

/// The quantile of a kernel's times over the runs that is used. Profiles are in elapsed time, which
/// other work on the machine only increases, by whole scheduler time slices.
const QUANTILE: f64 = 0.1;

/// The node charged for the time of an optimized node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Charge {
    /// The nodes, in equal shares; empty if none was found.
    pub owners: Vec<NodeId>,
    /// Elapsed time, ns.
    pub ns: f64,
    /// Whether it ran at all.
    pub ran: bool,
    /// Whether it only converts a tensor's layout.
    pub reorder: bool,
}

/// The time of a profiled run, node by node of the written graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attribution {
    /// Time of each node, ns, by node id; 0 for nodes folded or fused into another.
    pub nodes: Vec<f64>,
    /// Time that belongs to no node, ns.
    pub unattributed: f64,
    /// For each optimized node, in order, where its time went.
    pub charges: Vec<Charge>,
}

impl Attribution {
    /// Attributes a profile that includes its optimized graph; `None` if it does not.
    pub fn of(graph: &Graph, bindings: &Bindings, names: &NameTable, profile: &Profile) -> Option<Attribution> {
        let optimized = profile.graph.as_ref()?;
        let places = profile.places_of(optimized);
        let time = |place: usize| {
            let node = &profile.nodes[place];
            binned_quantile(&node.samples, profile.resolution_ns, QUANTILE).unwrap_or(node.q25_ns)
        };
        let times: Vec<f64> = places.iter().map(|place| place.map_or(0.0, time)).collect();
        let owners = Overlay::new(graph, bindings, names, optimized).owners();
        let charges = owners.into_iter().enumerate().map(|(at, owners)| Charge {
            owners,
            ns: times[at],
            ran: places[at].is_some(),
            reorder: is_reorder(&optimized.nodes[at]),
        });
        let mut attribution = Attribution { charges: charges.collect(), ..Attribution::default() };
        attribution.nodes = attribution.spread(graph.capacity(), |charge| charge.ns);
        attribution.unattributed = attribution.charges.iter().filter(|c| c.owners.is_empty()).fold(0.0, |sum, c| sum + c.ns);
        // Nodes that ran but are missing from the optimized graph: bodies of loops are within their
        // loop's time, others are lost.
        let lost: Vec<&str> = optimized.nodes.iter().zip(&places).filter(|(_, p)| p.is_none()).map(|(n, _)| n.op_type.as_str()).collect();
        let known: std::collections::HashSet<usize> = places.iter().flatten().copied().collect();
        let strays =
            (0..profile.nodes.len()).filter(|place| !known.contains(place) && lost.contains(&profile.nodes[*place].op_type.as_str()));
        attribution.unattributed = strays.fold(attribution.unattributed, |sum, place| sum + time(place));
        Some(attribution)
    }

    /// Time of all nodes together, ns.
    pub fn attributed(&self) -> f64 {
        self.nodes.iter().sum()
    }

    /// Time of everything that ran, ns.
    pub fn total(&self) -> f64 {
        self.attributed() + self.unattributed
    }

    /// Kernels that ran for known nodes.
    pub fn kernels(&self) -> impl Iterator<Item = &Charge> {
        self.charges.iter().filter(|c| c.ran && !c.owners.is_empty())
    }

    /// Sums over the kernels of each of `nodes` nodes, by node id; a kernel that serves several
    /// nodes is divided among them.
    pub fn spread(&self, nodes: usize, of: impl Fn(&Charge) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; nodes];
        for charge in self.kernels() {
            let share = of(charge) / charge.owners.len() as f64;
            charge.owners.iter().for_each(|owner| sums[owner.0 as usize] += share);
        }
        sums
    }
}

/// Layout changes that a runtime inserts by itself.
fn is_reorder(node: &OptimizedNode) -> bool {
    precedes_reader(node) || node.op_type == "ReorderOutput"
}

/// Layout changes made for the node that reads the result; OpenVINO has no others.
fn precedes_reader(node: &OptimizedNode) -> bool {
    matches!(node.op_type.as_str(), "ReorderInput" | "Reorder")
}

/// Parts of a function that ONNX Runtime wrote out, but for the one that makes its result.
fn is_inlined(node: &OptimizedNode) -> bool {
    node.outputs.iter().any(|name| uncast(name).starts_with("_inlfunc_"))
}

/// A name without the mark of a value that ONNX Runtime keeps in single precision, since it has no
/// kernel for halves.
fn uncast(name: &str) -> &str {
    name.strip_prefix("InsertedPrecisionFreeCast_").or_else(|| name.strip_prefix("InsertedCast_")).unwrap_or(name)
}

/// Nodes that only move data, so that an inserted one belongs to its neighbour.
fn moves_only(node: &OptimizedNode) -> bool {
    is_reorder(node) || matches!(node.op_type.as_str(), "Transpose" | "Reshape" | "Squeeze" | "Unsqueeze" | "Cast" | "Identity")
}

/// Operators that [`moves_only`] is about.
fn is_movement(kind: OpKind) -> bool {
    matches!(kind, OpKind::Transpose | OpKind::Reshape | OpKind::Squeeze | OpKind::Unsqueeze | OpKind::Cast | OpKind::Identity)
}

/// The operator type without a marker of what is fused into it.
fn plain_type(node: &OptimizedNode) -> &str {
    node.op_type.strip_prefix("Fused").unwrap_or(&node.op_type)
}

/// Whether the optimized node goes by this operator.
fn is_named_after(node: &OptimizedNode, kind: OpKind) -> bool {
    let name = plain_type(node);
    // What OpenVINO makes of recurrent layers.
    kind.name() == name.strip_suffix("Sequence").or_else(|| name.strip_suffix("Cell")).unwrap_or(name)
}

/// Weight of a node whose sizes are unknown: products outweigh everything else.
fn nominal(kind: OpKind) -> f64 {
    if is_product(kind) { 1e12 } else { 0.0 }
}

/// The optimized graph matched against the written one.
struct Overlay<'a> {
    graph: &'a Graph,
    optimized: &'a OptimizedGraph,
    names: &'a NameTable,
    /// By node id: amount of arithmetic, to find the heaviest of several.
    weight: Vec<f64>,
    /// The optimized node that produces each tensor.
    makers: HashMap<&'a str, usize>,
    /// The optimized nodes that read each tensor.
    readers: HashMap<&'a str, Vec<usize>>,
    /// For each optimized node, the nodes that it stands for by name or by structure.
    anchors: Vec<Vec<NodeId>>,
    /// By node id: the optimized node that stands for it or was fused from it.
    cover: Vec<Option<usize>>,
}

impl<'a> Overlay<'a> {
    fn new(graph: &'a Graph, bindings: &Bindings, names: &'a NameTable, optimized: &'a OptimizedGraph) -> Overlay<'a> {
        let mut weight = vec![0.0; graph.capacity()];
        for id in graph.ids() {
            weight[id.0 as usize] =
                Workload::of(graph, bindings, id).map_or_else(|| nominal(graph.node(id).op.kind()), |load| load.work.flops);
        }
        let mut makers = HashMap::new();
        let mut readers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, node) in optimized.nodes.iter().enumerate() {
            makers.extend(node.outputs.iter().filter(|n| !n.is_empty()).map(|name| (name.as_str(), at)));
            for name in node.inputs.iter().chain(&node.captures).filter(|n| !n.is_empty()) {
                readers.entry(name).or_default().push(at);
            }
        }
        let (anchors, cover) = (vec![Vec::new(); optimized.nodes.len()], vec![None; graph.capacity()]);
        let mut overlay = Overlay { graph, optimized, names, weight, makers, readers, anchors, cover };
        overlay.anchor_by_name();
        overlay.anchor_by_structure();
        overlay.spread();
        overlay
    }

    /// A node that computes something in the run.
    fn runs(&self, id: NodeId) -> bool {
        self.graph.get(id).is_some_and(|node| !node.constant && !matches!(node.op, Op::Input(_)))
    }

    fn anchor(&mut self, at: usize, id: NodeId) {
        if self.runs(id) {
            self.cover[id.0 as usize].get_or_insert(at);
            self.anchors[at].push(id);
        }
    }

    /// The value behind a name, which may be kept in another precision.
    fn value(&self, name: &str) -> Option<ValueId> {
        self.names.value(name).or_else(|| self.names.value(uncast(name)))
    }

    /// The nodes of the values that an optimized node makes, and those that it was made from.
    fn named(&self, node: &'a OptimizedNode) -> impl Iterator<Item = NodeId> {
        let values = node.outputs.iter().filter_map(|name| Some(self.value(name)?.node));
        let origins = node.origins.iter().filter_map(|name| self.names.node(name).or_else(|| Some(self.value(name)?.node)));
        values.chain(origins)
    }

    /// Whether an optimized node that is named after this node only moves what another one
    /// computed.
    fn restores(&self, node: &OptimizedNode, id: NodeId) -> bool {
        let kind = self.graph.node(id).op.kind();
        node.op_type == "ReorderOutput" || moves_only(node) && !is_named_after(node, kind) && !is_movement(kind)
    }

    fn anchor_by_name(&mut self) {
        let optimized = self.optimized;
        for (at, node) in optimized.nodes.iter().enumerate() {
            // The result of a reorder was computed by the node before it.
            if is_reorder(node) {
                continue;
            }
            let mut ids: Vec<NodeId> = self.named(node).filter(|id| !self.restores(node, *id)).collect();
            // After conversion back from another layout, the value has its old name again.
            for reader in node.outputs.iter().flat_map(|name| self.readers_of(name)).map(|reader| &optimized.nodes[*reader]) {
                ids.extend(self.named(reader).filter(|id| self.restores(reader, *id)));
            }
            ids.extend(self.blocked_name(&node.name));
            if ids.is_empty() {
                ids.extend(self.names.node(plain_name(&node.name)));
            }
            ids.sort_unstable();
            ids.dedup();
            ids.into_iter().for_each(|id| self.anchor(at, id));
        }
    }

    fn readers_of(&self, name: &str) -> &[usize] {
        self.readers.get(name).map_or(&[], Vec::as_slice)
    }

    /// The node behind the name of a node in blocked layout: `y_nchwc`, or `y_bn_nchwc` and the
    /// like, for the value `y`.
    fn blocked_name(&self, name: &str) -> Option<NodeId> {
        let stem = plain_name(name).strip_suffix("_nchwc")?;
        let value = self.value(stem).or_else(|| self.value(stem.rsplit_once('_')?.0))?;
        Some(value.node)
    }

    /// Nodes without a known name, operands first: the node with this operator that reads the same
    /// values.
    fn anchor_by_structure(&mut self) {
        let optimized = self.optimized;
        let order = self.graph.topological();
        for (at, node) in optimized.nodes.iter().enumerate() {
            if !self.anchors[at].is_empty() || is_reorder(node) || is_inlined(node) {
                continue;
            }
            let mut sources: Vec<NodeId> = node.inputs.iter().flat_map(|name| self.sources(name)).collect();
            sources.sort_unstable();
            sources.dedup();
            let mut below = vec![false; self.graph.capacity()];
            sources.iter().for_each(|id| below[id.0 as usize] = true);
            // Looks through nodes that nothing stands for, operands first: a node with this
            // operator, or else the first one (a fused node has no operator of its own); data
            // movement that a runtime inserts stands for nothing.
            let mut first = None;
            let same = order.iter().copied().find(|id| {
                let free = self.runs(*id) && self.cover[id.0 as usize].is_none();
                if !free || !self.graph.node(*id).inputs.iter().any(|v| below[v.node.0 as usize]) {
                    return false;
                }
                below[id.0 as usize] = true;
                first.get_or_insert(*id);
                is_named_after(node, self.graph.node(*id).op.kind())
            });
            if let Some(id) = same.or(first.filter(|_| !moves_only(node))) {
                self.anchor(at, id);
            }
        }
    }

    /// The nodes whose results an optimized tensor holds.
    fn sources(&self, name: &str) -> Vec<NodeId> {
        if let Some(value) = self.value(name) {
            return vec![value.node];
        }
        let mut name = name;
        // A chain of reorders is at most as long as the graph.
        for _ in 0..self.optimized.nodes.len() {
            let Some(maker) = self.makers.get(name) else { return Vec::new() };
            if !self.anchors[*maker].is_empty() {
                return self.anchors[*maker].clone();
            }
            let node = &self.optimized.nodes[*maker];
            let Some(input) = node.inputs.first().filter(|_| moves_only(node)) else { return Vec::new() };
            if let Some(value) = self.value(input) {
                return vec![value.node];
            }
            name = input;
        }
        Vec::new()
    }

    /// Covers nodes that no optimized node stands for.
    fn spread(&mut self) {
        let order = self.graph.topological();
        let mut open = Vec::new();
        for id in order.iter().rev().copied() {
            if !self.runs(id) || self.cover[id.0 as usize].is_some() {
                continue;
            }
            let mut below = self.graph.node(id).users.iter().filter_map(|(user, _)| self.cover[user.0 as usize]);
            let first = below.next();
            if first.is_some() && below.all(|other| Some(other) == first) {
                self.cover[id.0 as usize] = first;
            } else {
                open.push(id);
            }
        }
        for id in open.into_iter().rev() {
            let above = self.graph.node(id).inputs.iter().filter_map(|v| self.cover[v.node.0 as usize]);
            // The latest: a fused node runs once all its operands are available.
            self.cover[id.0 as usize] = above.max();
        }
    }

    /// For each optimized node, the nodes that its time goes to.
    fn owners(&self) -> Vec<Vec<NodeId>> {
        let mut heaviest: Vec<Option<NodeId>> = vec![None; self.optimized.nodes.len()];
        // A node with the same operator takes precedence: others may only seem to be part of it
        // (one of two equal products, say).
        let rank = |at: usize, id: NodeId| {
            let same = is_named_after(&self.optimized.nodes[at], self.graph.node(id).op.kind());
            (same, self.weight[id.0 as usize], std::cmp::Reverse(id))
        };
        let mut offer = |at: usize, id: NodeId| {
            if heaviest[at].is_none_or(|best| rank(at, id).partial_cmp(&rank(at, best)).is_some_and(std::cmp::Ordering::is_gt)) {
                heaviest[at] = Some(id);
            }
        };
        for id in self.graph.ids() {
            if let Some(at) = self.cover[id.0 as usize] {
                offer(at, id);
            }
        }
        for (at, ids) in self.anchors.iter().enumerate() {
            ids.iter().for_each(|id| offer(at, *id));
        }
        (0..self.optimized.nodes.len())
            .map(|at| match heaviest[at] {
                Some(id) => vec![id],
                None => self.neighbours(at, &heaviest),
            })
            .collect()
    }

    /// For a node that stands for nothing: the node that makes its tensor, or else the one that the
    /// tensor is made for; the other way round for a reorder, which precedes its reader, and for a
    /// part of a function, whose last part makes its result.
    fn neighbours(&self, at: usize, heaviest: &[Option<NodeId>]) -> Vec<NodeId> {
        let before =
            || self.nearest(at, heaviest, |node| node.inputs.iter().filter_map(|name| self.makers.get(name.as_str()).copied()).collect());
        let after = || self.nearest(at, heaviest, |node| node.outputs.iter().flat_map(|name| self.readers_of(name).to_vec()).collect());
        let node = &self.optimized.nodes[at];
        let reads_on = precedes_reader(node) || is_inlined(node);
        let first = if reads_on { after() } else { before() };
        if !first.is_empty() {
            return first;
        }
        if reads_on { before() } else { after() }
    }

    /// The nearest located nodes in one direction, breadth first.
    fn nearest(&self, at: usize, heaviest: &[Option<NodeId>], step: impl Fn(&OptimizedNode) -> Vec<usize>) -> Vec<NodeId> {
        let mut seen = vec![false; heaviest.len()];
        let mut ring = step(&self.optimized.nodes[at]);
        while !ring.is_empty() {
            let mut found: Vec<NodeId> = ring.iter().filter_map(|o| heaviest[*o]).collect();
            if !found.is_empty() {
                found.sort_unstable();
                found.dedup();
                return found;
            }
            ring.retain(|o| !std::mem::replace(&mut seen[*o], true));
            ring = ring.iter().flat_map(|o| step(&self.optimized.nodes[*o])).filter(|o| !seen[*o]).collect();
        }
        Vec::new()
    }
}

/// A name without the suffixes of a runtime: `_token_7` to keep names apart, `/QuickGeluFusion/`
/// and the like on the name of the last of the nodes that it fused.
fn plain_name(name: &str) -> &str {
    let name = match name.rsplit_once("_token_") {
        Some((stem, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => name,
    };
    match name.trim_end_matches('/').rsplit_once('/') {
        Some((stem, fusion)) if fusion.ends_with("Fusion") => stem,
        _ => name,
    }
}
