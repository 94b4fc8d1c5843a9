//! What a certificate says of a rewrite: the edit as data, what the rule's variables stood for, and the guards that held.

use regraft_certify::{GraphPlace, Step, Trail};
use regraft_ir::{Graph, NodeId, PatchValue, canonical_key, normal};
use regraft_rules::expr::Val;
use regraft_rules::{Found, Library, Rule, accept, sexp, sources_at};
use regraft_search::Move;

/// The rewrite that `step` makes in `graph`; `None` if it cannot be said as data.
pub fn evidence(graph: &Graph, library: &Library, step: &Move) -> Option<Step> {
    let rule = &library.rules()[step.rule];
    let mut certified = Step::of(graph, &step.nodes, &step.patch)?;
    if let Some(found) = found(graph, rule, step) {
        let bound = rule.variables.iter().zip(&found.env).filter_map(|(name, value)| Some((name, value.as_ref()?)));
        certified.bindings = bound.map(|(name, value)| format!("{name} = {}", show(graph, value))).collect();
    }
    certified.guards = guards(rule);
    Some(certified)
}

/// The match behind a move: the reading of the operands that has its identity.
fn found(graph: &Graph, rule: &Rule, step: &Move) -> Option<Found> {
    let sources = sources_at(graph, rule, 0, *step.nodes.first()?);
    let mut found = sources.into_iter().find(|f| step.is_at(f))?;
    accept(graph, rule, &mut found).then_some(found)
}

/// The rule's conditions as they are written.
fn guards(rule: &Rule) -> Vec<String> {
    let forms = sexp::parse(&rule.file, &rule.text).unwrap_or_default();
    let clauses = forms.iter().filter_map(sexp::Sexp::list).flatten().filter(|form| form.head() == Some("when"));
    clauses.filter_map(sexp::Sexp::list).flat_map(|items| &items[1..]).map(ToString::to_string).collect()
}

fn show(graph: &Graph, value: &Val) -> String {
    match value {
        Val::Dim(dim) => dim.to_string(),
        Val::Float(number) => format!("{number:?}"),
        Val::Bool(truth) => truth.to_string(),
        Val::Str(word) => format!("{word:?}"),
        Val::DType(dtype) => dtype.to_string(),
        Val::List(items) => format!("[{}]", items.iter().map(|item| show(graph, item)).collect::<Vec<_>>().join(", ")),
        Val::Value(PatchValue::Old(value)) => {
            let ty = graph.ty(*value).map_or_else(|| "?".into(), ToString::to_string);
            format!("n{}.{}: {ty}", value.node.0, value.port)
        }
        Val::Value(PatchValue::New { .. }) => "a new value".into(),
        Val::Absent => "none".into(),
    }
}

/// The trail of a graph: how it was brought to its normal form, and what was rewritten then. Dropping what no output needs is no step: the
/// outputs do not depend on it.
pub fn trail(place: GraphPlace, label: &str, read: &Graph, rewrites: &[Step]) -> Trail {
    let mut graph = read.clone();
    let merge = |step: normal::Step| {
        let merged: Vec<NodeId> = step.patch.replace.first().map(|(old, _)| old.node).into_iter().collect();
        Step::of(read, &merged, &step.patch).map(|step| Step { rule: "cse".into(), ..step })
    };
    let mut steps: Vec<Step> = normal::cse_steps(&mut graph).into_iter().filter_map(merge).collect();
    steps.extend(rewrites.iter().cloned());
    Trail { place, label: label.into(), start: canonical_key(read), steps }
}
