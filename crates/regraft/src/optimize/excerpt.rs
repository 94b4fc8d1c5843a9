//! An excerpt of a model: one of each kind of place, as a model of its own. It runs in a fraction
//! of the time, so that within the same time more of what could be done is measured.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use regraft_cost::{Ns, is_priced};
use regraft_ir::{Graph, NodeId, TensorType, ValueId};
use regraft_onnx::{Model, Written};
use regraft_runtime::{DType, Fill, InputSpec};

use crate::error::Failure;
use crate::optimize::binding::Binding;
use crate::optimize::cut::{Cutter, End};
use crate::optimize::load::Job;
use crate::sizes::Sizes;
use crate::units::Size;

/// Places are alike if all within so many edges is.
const RADIUS: usize = 3;
/// Largest share of the model's time that an excerpt may take.
const WORTHWHILE: f64 = 0.4;

/// A part of a model with one of each kind of place.
pub struct Excerpt {
    /// The part as a model.
    pub model: Model,
    /// The sizes of its inputs where the model is measured, and values to run it with.
    pub bindings: Vec<Binding>,
    /// Share of the model's time that its nodes take.
    pub share: f64,
}

impl Excerpt {
    /// An excerpt of a job's model, under these prices of its nodes; `None` if little is repeated,
    /// or if the part cannot be run alone.
    pub fn of(job: &Job, price: &dyn Fn(NodeId) -> Ns) -> Option<Excerpt> {
        let graph = &job.input.graph;
        let known = |ty: &TensorType| job.bindings.iter().all(|binding| ty.bind(&binding.sizes.symbols).is_some());
        // What integers may be, a node that reads them may ask.
        let can_be_made_up = |value| graph.ty(value).is_some_and(|ty| ty.dtype.is_float() && known(ty));
        let chosen = representatives(graph, &can_be_made_up);
        let total = |ids: &mut dyn Iterator<Item = NodeId>| ids.map(price).sum::<Ns>() as f64;
        let share = total(&mut chosen.iter().copied()) / total(&mut graph.ids()).max(1.0);
        if share > WORTHWHILE {
            return None;
        }
        let written = job.write(graph).ok()?;
        let (model, ends) = cut(graph, &written, &chosen)?;
        let bindings = job.bindings.iter().map(|binding| bound(job, binding, &ends, &model)).collect::<Result<_, _>>().ok()?;
        Some(Excerpt { model, bindings, share })
    }
}

/// The first place of each kind, what is around it, and what makes values that cannot be made up.
fn representatives(graph: &Graph, can_be_made_up: &dyn Fn(ValueId) -> bool) -> BTreeSet<NodeId> {
    let computed: Vec<NodeId> = graph.topological().into_iter().filter(|id| is_priced(graph, *id)).collect();
    let kinds = kinds(graph, &computed);
    let mut seen = HashSet::new();
    let first: Vec<NodeId> = computed.iter().copied().filter(|id| seen.insert(kinds[id])).collect();
    let mut chosen: BTreeSet<NodeId> = first.iter().copied().collect();
    for id in &first {
        chosen.extend(makers(graph, *id).chain(graph.node(*id).users.iter().map(|(user, _)| *user)));
    }
    let mut open: VecDeque<NodeId> = chosen.iter().copied().collect();
    while let Some(id) = open.pop_front() {
        for value in &graph.node(id).inputs {
            if is_priced(graph, value.node) && !can_be_made_up(*value) && chosen.insert(value.node) {
                open.push_back(value.node);
            }
        }
    }
    chosen
}

/// The computed nodes that a node reads.
fn makers(graph: &Graph, id: NodeId) -> impl Iterator<Item = NodeId> {
    graph.node(id).inputs.iter().map(|value| value.node).filter(|maker| is_priced(graph, *maker))
}

/// A hash for each node that is equal where everything within the radius is alike, up to what
/// weights hold.
fn kinds(graph: &Graph, computed: &[NodeId]) -> HashMap<NodeId, u64> {
    let hash = |parts: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        parts(&mut hasher);
        hasher.finish()
    };
    let own = |id: NodeId| {
        let node = graph.node(id);
        hash(&|h| {
            node.op.hash(h);
            for value in &node.inputs {
                (graph.ty(*value), graph.is_constant(*value)).hash(h);
            }
            graph.feeds_output(id).hash(h);
        })
    };
    let mut kinds: HashMap<NodeId, u64> = computed.iter().map(|id| (*id, own(*id))).collect();
    for _ in 0..RADIUS {
        let wider = |id: NodeId| {
            let makers: Vec<Option<&u64>> = graph.node(id).inputs.iter().map(|value| kinds.get(&value.node)).collect();
            let mut readers: Vec<(Option<&u64>, u32)> = graph.node(id).users.iter().map(|(user, slot)| (kinds.get(user), *slot)).collect();
            readers.sort_unstable();
            hash(&|h| (kinds[&id], &makers, &readers).hash(h))
        };
        kinds = computed.iter().map(|id| (*id, wider(*id))).collect();
    }
    kinds
}

/// The chosen nodes as a model: what they read of others are inputs, what others read of them are
/// outputs, under their names. With it, the types of its inputs in the whole.
fn cut(graph: &Graph, written: &Written, chosen: &BTreeSet<NodeId>) -> Option<(Model, Vec<(String, TensorType)>)> {
    let cutter = Cutter::new(written);
    let inside = |value: &ValueId| chosen.contains(&value.node);
    let read: BTreeSet<ValueId> = chosen.iter().flat_map(|id| &graph.node(*id).inputs).copied().collect();
    let free = read.into_iter().filter(|value| !inside(value) && !graph.node(value.node).constant);
    let left = chosen.iter().flat_map(|id| (0..graph.node(*id).types.len()).map(|port| id.port(port as u32))).filter(|value| {
        let mut readers = graph.users(*value).peekable();
        graph.is_output(*value) || readers.peek().is_some() && readers.any(|(user, _)| !chosen.contains(&user))
    });
    let end = |value: ValueId| {
        let ty = graph.ty(value)?;
        let shape = ty.shape.iter().map(|dim| dim.known().map_or_else(|| Size::Symbol(dim.to_string()), |size| Size::Known(size as usize)));
        Some(End { name: cutter.name(value)?.to_owned(), value, ty: ty.clone(), shape: Some(shape.collect()) })
    };
    let inputs: Vec<End> = free.map(end).collect::<Option<_>>()?;
    let outputs: Vec<End> = left.map(end).collect::<Option<_>>()?;
    let model = Model::from_proto(cutter.cut(&inputs, &outputs).ok()?).ok()?;
    Some((model, inputs.into_iter().map(|end| (end.name, end.ty)).collect()))
}

/// The sizes of an excerpt's inputs at a binding of the whole, and values: those of the model's own
/// inputs, made up for others.
fn bound(job: &Job, whole: &Binding, ends: &[(String, TensorType)], excerpt: &Model) -> Result<Binding, Failure> {
    let mut sizes = Sizes { ranges: whole.sizes.ranges.clone(), ..Sizes::default() };
    for (name, ty) in ends {
        let shape = ty.bind(&whole.sizes.symbols).ok_or_else(|| Failure::new(format!("the sizes of `{name}` are not known")))?;
        sizes.inputs.push(InputSpec { name: name.clone(), dtype: DType::from_onnx(ty.dtype.to_onnx()), shape });
    }
    let known = |shape: &[usize]| shape.iter().map(|size| Some(*size as i64)).collect::<Vec<_>>();
    let shapes: Vec<(&str, Vec<Option<i64>>)> = sizes.inputs.iter().map(|spec| (spec.name.as_str(), known(&spec.shape))).collect();
    let (symbols, excluded) = excerpt.bind(shapes.iter().map(|(name, shape)| (*name, shape.as_slice())));
    if let Some(excluded) = excluded {
        return Err(Failure::new(excluded));
    }
    sizes.symbols = symbols;
    let made_up = sizes.feeds(Fill::Normal, job.request.seed)?;
    let feeds = made_up.iter().map(|(name, value)| (name, whole.feeds.get(name).unwrap_or(value).clone())).collect();
    Ok(Binding { label: whole.label.clone(), sizes, feeds, data: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::text::parse;

    fn graph(text: &str) -> Graph {
        parse(text).expect("a graph")
    }

    #[test]
    fn of_blocks_that_are_alike_one_is_chosen_with_what_is_around_it() {
        let block = |at: usize, from: &str| format!("a{at} = Relu({from}) b{at} = Tanh(a{at}) c{at} = Sigmoid(b{at}) ");
        let blocks = |count: usize| {
            let chain = (0..count).map(|at| block(at, &if at == 0 { "x".into() } else { format!("c{}", at - 1) })).collect::<String>();
            graph(&format!("graph (x: f32[4,8]) {{ {chain} output c{} }}", count - 1))
        };
        let chosen = |count| representatives(&blocks(count), &|_| true).len();
        // However many there are, it is as many nodes: the first ones, one in the middle, the last
        // ones.
        assert_eq!(chosen(40), chosen(20));
        assert!(chosen(20) < 20, "{}", chosen(20));
        assert_eq!(chosen(2), 6);
    }

    #[test]
    fn what_cannot_be_made_up_is_priced() {
        let graph = graph(
            "graph (x: f32[4,8]) { a = Relu(x) b = Tanh(a) c = Tanh(b) d = Tanh(c) e = Tanh(d) f = Tanh(e) g = Tanh(f) h = Tanh(g) i = Tanh(h) j = Tanh(i) k = Tanh(j) l = Tanh(k) m = Tanh(l) n = Tanh(m) output n }",
        );
        let all = graph.ids().filter(|id| is_priced(&graph, *id)).count();
        assert!(representatives(&graph, &|_| true).len() < all);
        assert_eq!(representatives(&graph, &|_| false).len(), all);
    }
}
