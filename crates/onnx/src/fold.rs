//! Folds constant cones created by rewriting into initializers, within the growth budget.
//!
//! Cones of the original model stay as they are: what was small as an expression stays small.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use regraft_ir::key::ValueKeys;
use regraft_ir::{Const, NodeId, Op, TensorType, ValueId, eval, parallel};

use crate::error::WriteError;
use crate::mapped;
use crate::plan::{Form, Plan};

/// Constants with more elements are never folded: computing them takes too much memory.
const MAX_ELEMENTS: i64 = 1 << 27;

/// Bytes that a model may always grow by.
const FREE_GROWTH: u64 = 4 << 20;

/// A model may always grow by its size divided by this.
const FREE_SHARE: u64 = 20;

/// Most constants that are computed at once: each may take a lot of memory meanwhile.
const THREADS: usize = 4;

/// What folding did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folding {
    /// Values that became initializers.
    pub folded: usize,
    /// Values that stay expressions, because folding would exceed the budget or is impossible.
    pub kept: usize,
}

/// Bytes that a model of `size` bytes may grow by: the maximum of 5 %, 4 MiB, and `allow_growth`.
pub(crate) fn allowance(size: u64, allow_growth: Option<u64>) -> u64 {
    (size / FREE_SHARE).max(FREE_GROWTH).max(allow_growth.unwrap_or(0))
}

/// Folds what fits into `plan`: the constants may grow by `allowance` bytes. With `park`, results
/// are kept in files there.
pub(crate) fn fold(plan: &mut Plan<'_>, allowance: u64, park: Option<&Path>) -> Result<Folding, WriteError> {
    let mut ledger = Ledger::new(plan);
    let mut folding = Folding::default();
    if ledger.frontier.is_empty() {
        return Ok(folding);
    }
    let limit = plan.model.constant_bytes() + allowance;
    let mut groups: Vec<(i128, Vec<ValueId>)> = ledger.groups().into_iter().map(|g| (ledger.growth(&g).0, g)).collect();
    groups.sort();
    if park.is_none() {
        ledger.compute(&groups, limit);
    }
    let mut queue: std::collections::VecDeque<Vec<ValueId>> = groups.into_iter().map(|g| g.1).collect();
    while let Some(group) = queue.pop_front() {
        let (growth, counts) = ledger.growth(&group);
        let fits = growth <= 0 || i128::from(ledger.total) + growth <= i128::from(limit);
        let values: Option<Vec<Const>> =
            if fits { group.iter().map(|v| ledger.constant(*v, limit, park)).collect::<Result<Option<_>, _>>()? } else { None };
        match values {
            Some(values) => {
                ledger.total = u64::try_from(i128::from(ledger.total) + growth).unwrap_or(0);
                ledger.counts.extend(counts);
                folding.folded += group.len();
                ledger.done.extend(group.into_iter().zip(values));
                if park.is_some() {
                    mapped::release_weights();
                }
            }
            None if group.len() > 1 => {
                let mut single: Vec<(i128, ValueId)> = group.iter().map(|v| (ledger.growth(&[*v]).0, *v)).collect();
                single.sort();
                for (_, value) in single.into_iter().rev() {
                    queue.push_front(vec![value]);
                }
            }
            None => folding.kept += 1,
        }
    }
    let done = ledger.done;
    plan.folded = done;
    plan.build()?;
    Ok(folding)
}

/// The readers of each constant, and the bytes that the constants take.
struct Ledger<'p, 'a> {
    plan: &'p Plan<'a>,
    /// Values to fold: results of changed constant cones that are read from outside.
    frontier: BTreeSet<ValueId>,
    /// Readers of each node.
    counts: HashMap<NodeId, usize>,
    /// Readers of each value.
    value_counts: HashMap<ValueId, usize>,
    done: BTreeMap<ValueId, Const>,
    total: u64,
    /// What its constants are known by.
    keys: ValueKeys<'a>,
}

impl<'p, 'a> Ledger<'p, 'a> {
    fn new(plan: &'p Plan<'a>) -> Ledger<'p, 'a> {
        let graph = plan.graph;
        let mut ledger = Ledger {
            plan,
            frontier: BTreeSet::new(),
            counts: HashMap::new(),
            value_counts: HashMap::new(),
            done: BTreeMap::new(),
            total: 0,
            keys: ValueKeys::of(graph),
        };
        let mut changed: BTreeSet<NodeId> = BTreeSet::new();
        for id in graph.topological() {
            let Some(form) = plan.forms.get(&id) else { continue };
            let node = graph.node(id);
            ledger.total += bytes_of(plan, form);
            let reads = plan.reads(id, form);
            let cone = node.constant && !matches!(node.op, Op::Constant(_));
            if matches!(form, Form::Spelled(_) | Form::Constant(_)) || (cone && reads.iter().any(|v| changed.contains(&v.node))) {
                changed.insert(id);
            }
            for value in reads {
                *ledger.counts.entry(value.node).or_default() += 1;
                *ledger.value_counts.entry(value).or_default() += 1;
                if !cone && changed.contains(&value.node) && ledger.foldable(value) {
                    ledger.frontier.insert(value);
                }
            }
        }
        for output in graph.outputs() {
            *ledger.counts.entry(output.value.node).or_default() += 1;
            *ledger.value_counts.entry(output.value).or_default() += 1;
            if changed.contains(&output.value.node) && ledger.foldable(output.value) {
                ledger.frontier.insert(output.value);
            }
        }
        ledger
    }

    /// A result of a constant expression of known, acceptable size.
    fn foldable(&self, value: ValueId) -> bool {
        let graph = self.plan.graph;
        let node = graph.node(value.node);
        if !node.constant || matches!(node.op, Op::Constant(_)) {
            return false;
        }
        let mut seen = BTreeSet::new();
        let mut stack = vec![value.node];
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            let small = |ty: &Option<TensorType>| ty.as_ref().and_then(|t| t.elements().known()).is_some_and(|n| n <= MAX_ELEMENTS);
            if !graph.node(id).types.iter().all(small) {
                return false;
            }
            stack.extend(graph.node(id).inputs.iter().map(|v| v.node));
        }
        true
    }

    /// Frontier values grouped by shared constants: what they share is freed only when all are
    /// folded.
    fn groups(&self) -> Vec<Vec<ValueId>> {
        let mut owner: HashMap<NodeId, usize> = HashMap::new();
        let mut groups: Vec<Vec<ValueId>> = Vec::new();
        for value in &self.frontier {
            let mut nodes = BTreeSet::new();
            let mut stack = vec![value.node];
            while let Some(id) = stack.pop() {
                if nodes.insert(id) {
                    stack.extend(self.plan.graph.node(id).inputs.iter().map(|v| v.node));
                }
            }
            let mut joined: BTreeSet<usize> = nodes.iter().filter_map(|id| owner.get(id).copied()).collect();
            let target = match joined.pop_first() {
                Some(first) => first,
                None => {
                    groups.push(Vec::new());
                    groups.len() - 1
                }
            };
            for other in joined {
                let moved = std::mem::take(&mut groups[other]);
                groups[target].extend(moved);
                owner.values_mut().filter(|g| **g == other).for_each(|g| *g = target);
            }
            groups[target].push(*value);
            owner.extend(nodes.into_iter().map(|id| (id, target)));
        }
        groups.retain(|g| !g.is_empty());
        groups
    }

    /// Bytes by which the constants grow if these values are folded too, and the reader counts that
    /// change with that.
    fn growth(&self, group: &[ValueId]) -> (i128, HashMap<NodeId, usize>) {
        let mut counts = HashMap::new();
        let mut growth = 0i128;
        let mut freed: Vec<NodeId> = Vec::new();
        let drop = |id: NodeId, readers: usize, counts: &mut HashMap<NodeId, usize>, freed: &mut Vec<NodeId>| {
            let left = counts.entry(id).or_insert_with(|| self.counts.get(&id).copied().unwrap_or(0));
            *left = left.saturating_sub(readers);
            if *left == 0 {
                freed.push(id);
            }
        };
        for value in group {
            growth += i128::from(bytes_of_value(self.plan, *value));
            drop(value.node, self.value_counts.get(value).copied().unwrap_or(0), &mut counts, &mut freed);
        }
        let group: HashSet<ValueId> = group.iter().copied().collect();
        while let Some(id) = freed.pop() {
            let Some(form) = self.plan.forms.get(&id) else { continue };
            if !pinned(self.plan, form) {
                growth -= i128::from(bytes_of(self.plan, form));
            }
            for read in self.plan.reads(id, form) {
                if !group.contains(&read) && !self.done.contains_key(&read) {
                    drop(read.node, 1, &mut counts, &mut freed);
                }
            }
        }
        (growth, counts)
    }

    /// Computes what will probably be folded of these groups, which come with the bytes that they
    /// add, on several threads: it is known when it is asked for.
    fn compute(&mut self, groups: &[(i128, Vec<ValueId>)], limit: u64) {
        let mut total = i128::from(self.total);
        let mut wanted: Vec<(u128, ValueId)> = Vec::new();
        for (growth, group) in groups {
            if *growth <= 0 || total + growth <= i128::from(limit) {
                total += growth;
                wanted.extend(group.iter().map(|value| (self.keys.key(*value), *value)));
            }
        }
        wanted.sort();
        wanted.dedup_by_key(|(key, _)| *key);
        let Plan { graph, model, .. } = self.plan;
        parallel::map(&wanted, parallel::cores().min(THREADS), |(key, value)| {
            model.folds.get(*key, limit, || eval::constant_value(graph, *value)).is_ok()
        });
    }

    /// What a value is folded to, in a file in `park` on request; `None` if it is not computed. So
    /// many bytes of such constants are kept for the next time.
    fn constant(&mut self, value: ValueId, most: u64, park: Option<&Path>) -> Result<Option<Const>, WriteError> {
        let Plan { graph, model, .. } = self.plan;
        let key = self.keys.key(value);
        let made = model.folds.get(key, most, || {
            let constant = eval::constant_value(graph, value).map_err(|_| None)?;
            let Some(folder) = park else { return Ok(constant) };
            mapped::park(constant, folder).map_err(|source| Some(WriteError::Io { path: folder.to_path_buf(), source }))
        });
        match made {
            Ok(constant) => Ok(Some(constant)),
            Err(None) => Ok(None),
            Err(Some(failure)) => Err(failure),
        }
    }
}

fn bytes_of_value(plan: &Plan<'_>, value: ValueId) -> u64 {
    let ty = plan.graph.ty(value);
    ty.and_then(|t| Some(t.elements().known()?.unsigned_abs() * t.dtype.size() as u64)).unwrap_or(u64::MAX >> 8)
}

/// Payload of a constant as written.
fn bytes_of(plan: &Plan<'_>, form: &Form) -> u64 {
    match form {
        Form::Initializer(at) => crate::tensor::payload(&plan.model.graph_proto().initializer[*at]),
        Form::Constant(value) => value.bytes().len() as u64,
        Form::Verbatim { at, .. } => match &plan.model.imports[*at] {
            Some(crate::import::Import::Constant(value)) => value.bytes().len() as u64,
            _ => 0,
        },
        _ => 0,
    }
}

/// Initializers that stay even if unread: they are declared as inputs.
fn pinned(plan: &Plan<'_>, form: &Form) -> bool {
    let Form::Initializer(at) = form else { return false };
    let graph = plan.model.graph_proto();
    let name = graph.initializer[*at].name();
    graph.input.iter().any(|i| i.name() == name)
}
