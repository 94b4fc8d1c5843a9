//! Rewriting inside bodies: the graphs that `If`, `Loop` and `Scan` carry, inner ones first.

use std::time::Instant;

use regraft_certify::GraphPath;
use regraft_cost::Pricing;
use regraft_ir::{Bindings, Graph};
use regraft_onnx::{Model, WriteOptions};
use regraft_search::Matcher;

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::load::{InModel, clean};
use crate::optimize::observer::Phase;
use crate::optimize::run::Run;
use crate::optimize::script::{Rewrite, Rewritten, Script};
use crate::optimize::tune::propose::{Proposal, propose};
use crate::report::{Applied, NotDone};

/// A body about to be rewritten.
pub struct Inside<'a> {
    /// Its model: captured values are inputs or initializers.
    pub model: &'a Model,
    /// Its graph in normal form: where to start.
    pub start: &'a Graph,
    /// Where it is: `the then-branch of check`.
    pub label: &'a str,
    /// Values of its symbols, where known.
    pub bindings: &'a Bindings,
}

/// A model whose bodies are rewritten, and what was done.
#[derive(Clone, Debug)]
pub struct Bodies {
    /// The model. Its own graph is unchanged.
    pub model: Model,
    /// Bodies with their rewrites, inner ones before outer ones. The report names the body of each
    /// rewrite.
    pub rewritten: Vec<Rewritten>,
    /// Bodies that could not be written with their rewrites.
    pub not_done: Vec<NotDone>,
}

/// Rewrites all bodies of a model as `search` proposes, nested bodies before outer ones.
pub fn rewrite_bodies(
    model: &Model,
    outer: &Bindings,
    options: &WriteOptions,
    search: &mut dyn FnMut(&Inside<'_>) -> Option<Proposal>,
) -> Bodies {
    visit(model, outer, &Around { label: "", place: &GraphPath::default() }, options, search)
}

/// The graph that bodies are in.
struct Around<'a> {
    label: &'a str,
    place: &'a GraphPath,
}

fn visit(
    model: &Model,
    outer: &Bindings,
    around: &Around<'_>,
    options: &WriteOptions,
    search: &mut dyn FnMut(&Inside<'_>) -> Option<Proposal>,
) -> Bodies {
    let mut done = Bodies { model: model.clone(), rewritten: Vec::new(), not_done: Vec::new() };
    let largest = model.largest(options.allow_growth);
    for body in model.bodies() {
        let bindings = body.bindings(outer);
        let label = format!("{}{}", body.label(), around.label);
        let place = around.place.inside(body.place());
        let inner = visit(body.model(), &bindings, &Around { label: &format!(" in {label}"), place: &place }, options, search);
        done.not_done.extend(inner.not_done);
        let (start, _) = clean(inner.model.graph());
        let proposal = search(&Inside { model: &inner.model, start: &start, label: &label, bindings: &bindings });
        if proposal.is_none() && inner.rewritten.is_empty() {
            continue;
        }
        let (graph, rewrites) = proposal.map_or((start, Vec::new()), |p| (p.graph, p.rewrites));
        let refuse = |because: String| NotDone { what: "rewriting a body".into(), at: label.clone(), because };
        let written = match body.write(&inner.model, &graph, options) {
            Ok(written) => written,
            Err(why) => {
                done.not_done.push(refuse(why.to_string()));
                continue;
            }
        };
        let before = done.model.clone();
        done.model.put_body(written);
        if done.model.size() > largest {
            done.model = before;
            done.not_done.push(refuse("the file would grow too much (--allow-growth allows more)".into()));
            continue;
        }
        let inside = |Rewrite { step, place, applied }: Rewrite| {
            let applied = Applied { at: format!("{} in {label}", applied.at), ..applied };
            Rewrite { step, place, applied }
        };
        let rewrites = rewrites.into_iter().map(inside).collect();
        done.rewritten.extend(inner.rewritten);
        done.rewritten.push(Rewritten { place, label, read: body.model().graph().clone(), rewrites });
    }
    done
}

/// A candidate whose bodies are rewritten too: `best`, or else the cleaned input. `None` if no body
/// gets cheaper under the prices.
pub fn with_bodies(run: &mut Run<'_>, best: Option<&Candidate>) -> Result<Option<Candidate>, Failure> {
    let job = run.job;
    if run.is_interrupted() || job.input.model.bodies().is_empty() {
        return Ok(None);
    }
    run.phase(Phase::Search, "bodies of If, Loop and Scan");
    let (options, until, mut refused, mut visited) = (job.write_options(), run.clock.search_ends(), Vec::new(), 0);
    let (prices, timed, observer) = (run.evaluator.prices(), run.evaluator.is_timed(), &*run.observer);
    let bodies = rewrite_bodies(&job.input.model, prices.bindings(), &options, &mut |inside| {
        let prices = prices.at(inside.bindings, Pricing::Pessimistic);
        let mut budget = || (timed && Instant::now() >= until) || observer.interrupted();
        let writable = InModel::new(inside.model, &*job.runtime);
        let mut matcher = Matcher::new(&job.rules.library, &writable);
        let proposals = propose(inside.start, &*prices, &mut matcher, &*job.request.search.strategy(), &mut budget);
        visited += proposals.visited;
        refused.extend(proposals.refused.into_iter().map(|n| NotDone { at: format!("{} in {}", n.at, inside.label), ..n }));
        let cheaper = prices.total(inside.start);
        proposals.best.into_iter().next().filter(|p| p.cost < cheaper)
    });
    run.journal.visited += visited;
    run.journal.not_done.extend(refused.into_iter().chain(bodies.not_done));
    if bodies.rewritten.is_empty() {
        return Ok(None);
    }
    let name = best.map_or("bodies".into(), |best| format!("{} with its bodies", best.name));
    let graph = best.map_or(&job.input.graph, |best| &best.graph).clone();
    let main = best.map_or_else(Vec::new, |best| best.script.main.clone());
    let written = bodies.model.write(&graph, &options).map_err(Failure::from);
    run.candidate(name, graph, Script { main, bodies: bodies.rewritten }, written)
}
