//! Finds where a rule applies: patterns are anchored at an operator, and further roots joined
//! through shared operands.

use std::cmp::Ordering;

use regraft_ir::{NodeId, OpKind, PatchValue, ValueId, View};
use smallvec::SmallVec;

use crate::builtins::same;
use crate::constants;
use crate::elementwise::Region;
use crate::expr::{Expr, GraphScope, Val};
use crate::rule::{NodePattern, Pattern, Rule, Var};

/// A match: the values of the variables, and the operators it covers.
#[derive(Clone, Debug)]
pub struct Found {
    /// Values of the variables.
    pub env: Vec<Option<Val>>,
    /// Operators covered, roots first in order of the source.
    pub nodes: SmallVec<[NodeId; 6]>,
    /// The value that each root computes.
    pub roots: SmallVec<[ValueId; 2]>,
}

/// An operand with more readers than this is not joined: beyond it a merge is no longer a local
/// rewrite.
const MAX_READERS: usize = 64;

/// All matches of `rule` whose root number `root` is the node `anchor`.
///
/// Guards hold, interior values have no other readers (unless the rule says `shared`). Joins go
/// through operands that the roots share, so the work is bounded by the readers of one value, never
/// by pairs of nodes.
pub fn matches_at(graph: &dyn View, rule: &Rule, root: usize, anchor: NodeId) -> Vec<Found> {
    let mut found = sources_at(graph, rule, root, anchor);
    found.retain_mut(|f| accept(graph, rule, f));
    found
}

/// All matches of the source of `rule` with its root number `root` at `anchor`, before [`accept`].
pub fn sources_at(graph: &dyn View, rule: &Rule, root: usize, anchor: NodeId) -> Vec<Found> {
    if !matches!(&rule.source[root], Pattern::Node(pattern) if plausible(graph, pattern, anchor)) {
        return Vec::new();
    }
    let empty = Found::nothing(rule);
    let order: Vec<usize> = std::iter::once(root).chain((0..rule.source.len()).filter(|i| *i != root)).collect();
    let mut found = Vec::new();
    start(graph, rule, root, anchor, empty, &mut found);
    for next in &order[1..] {
        found = found.into_iter().flat_map(|f| extend(graph, rule, *next, f)).collect();
    }
    for f in &mut found {
        // Roots were collected in matching order; the caller wants source order.
        let mut roots: Vec<(usize, ValueId)> = order.iter().copied().zip(f.roots.iter().copied()).collect();
        roots.sort_by_key(|(at, _)| *at);
        f.roots = roots.into_iter().map(|(_, v)| v).collect();
    }
    found
}

/// True if the interior is private and all guards hold; binds the `where` variables.
pub fn accept(graph: &dyn View, rule: &Rule, found: &mut Found) -> bool {
    let wheres: Vec<Var> = rule.wheres.iter().map(|(var, _)| *var).collect();
    let later = |guard: &Expr| guard.mentions(&|v| wheres.contains(v));
    // Guards over the source alone come first: they are cheap, and most sources fail one.
    (rule.shared || found.is_private(graph, rule))
        && guards_hold(graph, rule, found, &|guard| !later(guard))
        && derive(graph, rule, found)
        && guards_hold(graph, rule, found, &later)
}

impl Found {
    /// No operator covered yet.
    fn nothing(rule: &Rule) -> Found {
        Found { env: rule.environment(), nodes: SmallVec::new(), roots: SmallVec::new() }
    }

    /// What identifies the match: its operators and how their operands were read, in an order of
    /// which nothing else is known.
    ///
    /// The roots of a merge can be found in any order; they count as the same match, so the order
    /// of its operators tells nothing.
    pub fn covers(&self) -> SmallVec<[ValueId; 12]> {
        let mut covers: SmallVec<[ValueId; 12]> = self.nodes.iter().map(|id| id.out()).collect();
        if self.is_merge() {
            return covers;
        }
        covers.extend(self.roots.iter().copied());
        for value in self.env.iter().flatten() {
            match value {
                Val::Value(PatchValue::Old(v)) => covers.push(*v),
                Val::List(items) => {
                    covers.extend(items.iter().filter_map(|v| if let Val::Value(PatchValue::Old(v)) = v { Some(*v) } else { None }));
                }
                _ => {}
            }
        }
        covers
    }

    /// Whether nothing but the match of `rule` reads what is within it: values of its operators,
    /// those aside that change.
    pub fn is_private(&self, graph: &dyn View, rule: &Rule) -> bool {
        let all = rule.any_result().is_some();
        self.nodes.iter().all(|id| {
            let is_root = |v: ValueId| self.roots.iter().any(|root| *root == v || (all && root.node == v.node));
            graph.depends_on_constants_only(*id)
                || (0..graph.types(*id).len() as u32).all(|port| {
                    let value = id.port(port);
                    is_root(value) || (!graph.is_output(value) && graph.users(value).iter().all(|(user, _)| self.nodes.contains(user)))
                })
        })
    }

    /// The order of two matches of one rule by their roots, as the graph orders nodes.
    pub fn in_order(&self, other: &Found, graph: &dyn View) -> Ordering {
        let pairs = self.roots.iter().zip(&other.roots);
        let mut by_root = pairs.map(|(a, b)| in_order(graph, a.node, b.node).then(a.port.cmp(&b.port)));
        by_root.find(|order| order.is_ne()).unwrap_or_else(|| self.roots.len().cmp(&other.roots.len()))
    }

    /// Whether several roots become one rewrite.
    pub fn is_merge(&self) -> bool {
        self.roots.len() > 1
    }
}

/// Binds the `where` variables; false if one has no value here.
fn derive(graph: &dyn View, rule: &Rule, found: &mut Found) -> bool {
    let scope = GraphScope(graph);
    rule.wheres.iter().all(|(var, body)| match body.eval(&found.env, &scope) {
        Ok(value) => {
            found.env[*var] = Some(value);
            true
        }
        Err(_) => false,
    })
}

fn guards_hold(graph: &dyn View, rule: &Rule, found: &Found, which: &dyn Fn(&Expr) -> bool) -> bool {
    let scope = GraphScope(graph);
    // A guard without a value here (an unknown type, a list too short) is not shown, so it does not
    // hold. Guards over `let` values wait for the instantiation.
    let due = rule.guards.iter().chain(&rule.profitable).filter(|g| !mentions_let(rule, g) && which(g));
    due.into_iter().all(|g| g.holds(&found.env, &scope).unwrap_or(false))
}

/// True if the guard reads a `let` variable.
pub(crate) fn mentions_let(rule: &Rule, expr: &Expr) -> bool {
    !rule.lets.is_empty() && expr.mentions(&|v| rule.lets.iter().any(|(l, _)| l == v))
}

/// Matches a root at a node, at any result accepted by its port condition.
fn start(graph: &dyn View, rule: &Rule, root: usize, anchor: NodeId, from: Found, into: &mut Vec<Found>) {
    let Pattern::Node(pattern) = &rule.source[root] else { return };
    if graph.kind(anchor) != pattern.kind || from.nodes.contains(&anchor) {
        return;
    }
    let results = graph.types(anchor).len();
    for port in 0..results as u32 {
        let value = anchor.port(port);
        // Replacing a result without readers is not worthwhile and would change nothing.
        if results > 1 && !is_read(graph, value) {
            continue;
        }
        let mut state = from.clone();
        state.roots.push(value);
        solve(graph, vec![Goal::One(&rule.source[root], value)], state, into);
        if rule.any_result().is_some() {
            break;
        }
    }
}

/// Whether an operator reads a value, or the graph returns it.
pub(crate) fn is_read(graph: &dyn View, value: ValueId) -> bool {
    graph.is_output(value) || !graph.users(value).is_empty()
}

/// A quick check without bindings: the operators of the pattern are where they must be. Most
/// anchors fail here.
fn plausible(graph: &dyn View, pattern: &NodePattern, id: NodeId) -> bool {
    if graph.kind(id) != pattern.kind {
        return false;
    }
    let inputs = graph.inputs(id);
    let inner = |operand: &Pattern, value: ValueId| match operand {
        Pattern::Node(inner) => plausible(graph, inner, value.node),
        Pattern::Number(_) => graph.is_constant(value),
        Pattern::Elementwise(..) => graph.kind(value.node).elementwise(),
        _ => true,
    };
    let fixed = pattern.operands.iter().take_while(|p| !matches!(p, Pattern::Optional(_) | Pattern::Rest(_) | Pattern::Each(..)));
    if pattern.kind.commutative()
        && let ([a, b], [x, y]) = (pattern.operands.as_slice(), inputs)
    {
        return (inner(a, *x) && inner(b, *y)) || (inner(a, *y) && inner(b, *x));
    }
    let mut count = 0;
    for (operand, value) in fixed.zip(inputs) {
        if !inner(operand, *value) {
            return false;
        }
        count += 1;
    }
    if let (Some(Pattern::Each(each, _)), Some(first)) = (pattern.operands.get(count), inputs.get(count)) {
        return inner(each, *first);
    }
    true
}

/// The fixed order of two nodes.
fn in_order(graph: &dyn View, a: NodeId, b: NodeId) -> Ordering {
    match (graph.is_before(a, b), a == b) {
        (true, _) => Ordering::Less,
        (false, true) => Ordering::Equal,
        (false, false) => Ordering::Greater,
    }
}

/// Where the other root of a rule with two roots may be: it reads a value, directly or by way of
/// these operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// What both roots depend on.
    pub shared: ValueId,
    /// The operators from it up to the other root, which is the last.
    pub path: SmallVec<[OpKind; 2]>,
}

impl Join {
    /// The nodes where the other root may be, and to `asked` those whose readers tell.
    pub fn partners(&self, graph: &dyn View, asked: &mut Vec<NodeId>) -> SmallVec<[NodeId; 8]> {
        let mut frontier: SmallVec<[ValueId; 8]> = SmallVec::from_iter([self.shared]);
        for kind in &self.path {
            let mut next: SmallVec<[ValueId; 8]> = SmallVec::new();
            for value in frontier {
                asked.push(value.node);
                for (user, _) in graph.users(value).into_iter().take(MAX_READERS) {
                    if graph.kind(user) == *kind && !next.iter().any(|v| v.node == user) {
                        next.extend((0..graph.types(user).len() as u32).map(|port| user.port(port)));
                    }
                }
            }
            frontier = next;
        }
        let mut partners: SmallVec<[NodeId; 8]> = frontier.into_iter().map(|value| value.node).collect();
        partners.dedup();
        partners
    }
}

/// Where the other root of `rule`, which has two, may be if its root number `root` is the node
/// `anchor`.
pub fn joins_at(graph: &dyn View, rule: &Rule, root: usize, anchor: NodeId) -> Vec<Join> {
    let other = rule.source.len() - 1 - root;
    let (Pattern::Node(own), Pattern::Node(pattern)) = (&rule.source[root], &rule.source[other]) else { return Vec::new() };
    if !plausible(graph, own, anchor) {
        return Vec::new();
    }
    let mut found = Vec::new();
    start(graph, rule, root, anchor, Found::nothing(rule), &mut found);
    found.iter().filter_map(|found| join(pattern, found)).collect()
}

/// All matches of the source of `rule` whose roots are these two nodes, in either order, before
/// [`accept`].
pub fn sources_at_both(graph: &dyn View, rule: &Rule, a: NodeId, b: NodeId) -> Vec<Found> {
    let mut found = Vec::new();
    for (first, second) in [(a, b), (b, a)] {
        let mut begun = Vec::new();
        start(graph, rule, 0, first, Found::nothing(rule), &mut begun);
        begun.into_iter().for_each(|begun| start(graph, rule, 1, second, begun, &mut found));
    }
    found
}

/// Extends a match by another root that shares an operand.
fn extend(graph: &dyn View, rule: &Rule, root: usize, found: Found) -> Vec<Found> {
    let Pattern::Node(pattern) = &rule.source[root] else { return Vec::new() };
    let Some(join) = join(pattern, &found) else { return Vec::new() };
    let mut anchors = join.partners(graph, &mut Vec::new());
    anchors.sort_by(|a, b| in_order(graph, *a, *b));
    anchors.dedup();
    let mut results = Vec::new();
    for anchor in anchors {
        start(graph, rule, root, anchor, found.clone(), &mut results);
    }
    results
}

/// Where a root with this pattern may be, which shares an operand with a match.
fn join(pattern: &NodePattern, found: &Found) -> Option<Join> {
    let mut path = SmallVec::new();
    let shared = shared_leaf(pattern, &found.env, &mut path)?;
    Some(Join { shared, path })
}

/// A variable of the pattern that is already bound to a value, and the operators from it up to the
/// root.
fn shared_leaf(pattern: &NodePattern, env: &[Option<Val>], path: &mut SmallVec<[OpKind; 2]>) -> Option<ValueId> {
    for operand in &pattern.operands {
        let hit = match operand {
            Pattern::Any(v) | Pattern::Constant(v) => match env[*v] {
                Some(Val::Value(PatchValue::Old(value))) => Some(value),
                _ => None,
            },
            Pattern::Node(inner) => shared_leaf(inner, env, path),
            _ => None,
        };
        if hit.is_some() {
            path.push(pattern.kind);
            return hit;
        }
    }
    None
}

#[derive(Clone)]
enum Goal<'a> {
    /// This value matches this pattern.
    One(&'a Pattern, ValueId),
    /// Each of these values matches this pattern, whose own variables become lists.
    Each(&'a Pattern, &'a [Var], SmallVec<[ValueId; 4]>),
}

/// Solves the goals, branching where a commutative operator can match both ways.
fn solve(graph: &dyn View, mut goals: Vec<Goal<'_>>, mut state: Found, into: &mut Vec<Found>) {
    while let Some(goal) = goals.pop() {
        let (pattern, value) = match goal {
            Goal::One(pattern, value) => (pattern, value),
            Goal::Each(inner, vars, values) => {
                if !each(graph, inner, vars, &values, &mut state) {
                    return;
                }
                continue;
            }
        };
        match pattern {
            Pattern::Any(var) => {
                if !bind(&mut state.env, *var, Val::Value(PatchValue::Old(value))) {
                    return;
                }
            }
            Pattern::Constant(var) => {
                if !graph.is_constant(value) || !bind(&mut state.env, *var, Val::Value(PatchValue::Old(value))) {
                    return;
                }
            }
            Pattern::Number(wanted) => {
                let fits = constants::splat(graph, value).is_some_and(|v| constants::near(v, *wanted));
                if !fits || !graph.ty(value).is_some_and(|t| t.elements().is(1)) {
                    return;
                }
            }
            Pattern::Node(node_pattern) => {
                let covered = state.nodes.contains(&value.node);
                // Two operators of a source match two operators of the graph, but may match several
                // results of one.
                if graph.kind(value.node) != node_pattern.kind || (covered && graph.types(value.node).len() == 1) {
                    return;
                }
                if !covered {
                    state.nodes.push(value.node);
                }
                if let Some(var) = node_pattern.bind
                    && !bind(&mut state.env, var, Val::Value(PatchValue::Old(value)))
                {
                    return;
                }
                if !fits(graph, &node_pattern.port, Val::int(i64::from(value.port)), &mut state.env) {
                    return;
                }
                for (name, expected) in &node_pattern.attrs {
                    let actual = graph.op(value.node).attr(name).map_or(Val::Absent, |a| Val::from_attr(&a));
                    if !fits(graph, expected, actual, &mut state.env) {
                        return;
                    }
                }
                let inputs: SmallVec<[ValueId; 3]> = SmallVec::from_slice(graph.inputs(value.node));
                if node_pattern.kind.commutative() && inputs.len() == 2 && node_pattern.operands.len() == 2 && inputs[0] != inputs[1] {
                    let (mut swapped_goals, mut swapped) = (goals.clone(), state.clone());
                    if operands(&node_pattern.operands, &[inputs[1], inputs[0]], &mut swapped_goals, &mut swapped) {
                        solve(graph, swapped_goals, swapped, into);
                    }
                }
                if !operands(&node_pattern.operands, &inputs, &mut goals, &mut state) {
                    return;
                }
            }
            Pattern::Elementwise(var, axis, inner) => {
                let Some(axis) = axis.eval(&state.env, &GraphScope(graph)).ok().and_then(|axis| axis.as_int()) else { return };
                let Some(region) = Region::above(graph, value, axis) else { return };
                if region.nodes.iter().any(|id| state.nodes.contains(id)) || !bind(&mut state.env, *var, region.value()) {
                    return;
                }
                state.nodes.extend(region.nodes);
                goals.push(Goal::One(inner, region.operand));
            }
            Pattern::Optional(_) | Pattern::Rest(_) | Pattern::Each(..) => return,
        }
    }
    into.push(state);
}

/// Pairs patterns with operands: goals for the fixed ones, bindings for the rest.
fn operands<'a>(patterns: &'a [Pattern], inputs: &[ValueId], goals: &mut Vec<Goal<'a>>, state: &mut Found) -> bool {
    let fixed = patterns.iter().take_while(|p| !matches!(p, Pattern::Optional(_) | Pattern::Rest(_) | Pattern::Each(..))).count();
    if inputs.len() < fixed {
        return false;
    }
    let rest = &inputs[fixed..];
    match patterns.get(fixed) {
        None if !rest.is_empty() => return false,
        None => {}
        Some(Pattern::Optional(var)) => {
            let bound = match rest {
                [] => Val::Absent,
                [one] => Val::Value(PatchValue::Old(*one)),
                _ => return false,
            };
            if !bind(&mut state.env, *var, bound) {
                return false;
            }
        }
        Some(Pattern::Rest(var)) => {
            let list = rest.iter().map(|v| Val::Value(PatchValue::Old(*v))).collect();
            if !bind(&mut state.env, *var, Val::List(list)) {
                return false;
            }
        }
        Some(Pattern::Each(inner, vars)) if !rest.is_empty() => {
            // Below the fixed operands on the stack: those bind the variables that all have in
            // common.
            goals.push(Goal::Each(inner, vars, SmallVec::from_slice(rest)));
        }
        Some(_) => return false,
    }
    // Pushed in reverse, so that operands are matched left to right.
    for (pattern, value) in patterns[..fixed].iter().zip(inputs).rev() {
        goals.push(Goal::One(pattern, *value));
    }
    true
}

/// Matches every value against one pattern; the pattern's own variables become lists.
fn each(graph: &dyn View, inner: &Pattern, vars: &[Var], values: &[ValueId], state: &mut Found) -> bool {
    let mut lists: Vec<Vec<Val>> = vec![Vec::new(); vars.len()];
    for value in values {
        let mut local = state.clone();
        // The pattern's own variables start unbound; all others keep their earlier bindings.
        for var in vars {
            local.env[*var] = None;
        }
        let mut solutions = Vec::new();
        solve(graph, vec![Goal::One(inner, *value)], local, &mut solutions);
        // The last solution has commutative operands in their written order.
        let Some(found) = solutions.pop() else { return false };
        for (list, var) in lists.iter_mut().zip(vars) {
            list.push(found.env[*var].clone().unwrap_or(Val::Absent));
        }
        *state = found;
    }
    for (list, var) in lists.into_iter().zip(vars) {
        state.env[*var] = Some(Val::List(list));
    }
    true
}

fn bind(env: &mut [Option<Val>], var: Var, value: Val) -> bool {
    match &env[var] {
        None => {
            env[var] = Some(value);
            true
        }
        Some(before) => same(before, &value),
    }
}

/// An attribute condition: an unbound variable takes the value, anything else must equal it.
fn fits(graph: &dyn View, expected: &Expr, actual: Val, env: &mut [Option<Val>]) -> bool {
    if let Expr::Var(var) = expected {
        return bind(env, *var, actual);
    }
    expected.eval(env, &GraphScope(graph)).is_ok_and(|v| same(&v, &actual))
}
