//! What a certificate says about a rewritten graph: every edit as data, the bindings of the rule's
//! variables, and the guards that held.

use regraft_audit::coverage;
use regraft_certify::{Step, Trail};
use regraft_ir::{Graph, NodeId, PatchValue, canonical_key, normal};
use regraft_rules::expr::Val;
use regraft_rules::{Found, Library, Proofs, Rule, accept, sexp, sources_at};
use regraft_search::Move;

use crate::optimize::script::{Rewrite, Rewritten};

impl Rewritten {
    /// Its part of a certificate: how the graph was brought to normal form, and what was rewritten
    /// then. Removing dead nodes is not a step: the outputs do not depend on them. `library` has
    /// the rules, in any order. `None` if an edit cannot be expressed as data.
    pub fn trail(&self, library: &Library) -> Option<Trail> {
        let mut graph = self.read.clone();
        let merges = normal::cse_steps(&mut graph);
        normal::dce(&mut graph);
        let merge = |step: &normal::Step| {
            let merged: Vec<NodeId> = step.patch.replace.first().map(|(old, _)| old.node).into_iter().collect();
            Step::of(&self.read, &merged, &step.patch).map(|step| Step { rule: "cse".into(), ..step })
        };
        let mut steps: Vec<Step> = merges.iter().map(merge).collect::<Option<_>>()?;
        for Rewrite { step, .. } in &self.rewrites {
            steps.push(evidence(&graph, library, step)?);
            graph.apply(step.patch());
        }
        Some(Trail { place: self.place.clone(), label: self.label.clone(), start: canonical_key(&self.read), steps })
    }

    /// Why its rule's proof does not cover step `number` (from 1) of the trail; `None` if it does,
    /// or if the step applies no rule.
    pub fn uncovered(&self, library: &Library, number: usize) -> Option<String> {
        let mut graph = self.read.clone();
        let merges = normal::cse_steps(&mut graph).len();
        normal::dce(&mut graph);
        let at = number.checked_sub(merges + 1)?;
        for rewrite in self.rewrites.get(..at)? {
            graph.apply(rewrite.step.patch());
        }
        let step = &self.rewrites.get(at)?.step;
        let Some(rule) = library.get(&step.patch().cause) else { return Some("nobody knows its rule".into()) };
        let Some(proof) = Proofs::shipped().of(rule).cloned() else { return Some("its rule has no proof that is kept".into()) };
        match found(&graph, rule, step) {
            Some(found) => coverage(rule, &proof).lacks(rule, &graph, &found),
            None => Some("its match is not found again".into()),
        }
    }
}

/// The rewrite that `step` makes in `graph`; `None` if it cannot be expressed as data.
fn evidence(graph: &Graph, library: &Library, step: &Move) -> Option<Step> {
    let mut certified = Step::of(graph, &step.nodes, step.patch())?;
    let Some(rule) = library.rules().iter().find(|rule| rule.name == step.patch().cause) else { return Some(certified) };
    if let Some(found) = found(graph, rule, step) {
        let bound = rule.variables.iter().zip(&found.env).filter_map(|(name, value)| Some((name, value.as_ref()?)));
        certified.bindings = bound.map(|(name, value)| format!("{name} = {}", show(graph, value))).collect();
    }
    certified.guards = guards(rule);
    Some(certified)
}

/// The match behind a move: the operand order that has its identity.
fn found(graph: &Graph, rule: &Rule, step: &Move) -> Option<Found> {
    let sources = sources_at(graph, rule, 0, *step.nodes.first()?);
    let mut found = sources.into_iter().find(|f| step.is_at(rule, f))?;
    accept(graph, rule, &mut found).then_some(found)
}

/// The rule's conditions as written.
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
