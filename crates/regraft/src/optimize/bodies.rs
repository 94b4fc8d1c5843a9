//! Rewriting inside of bodies: the graphs that `If`, `Loop` and `Scan` carry, inner ones first.

use regraft_certify::GraphPlace;
use regraft_cost::Stance;
use regraft_ir::{Bindings, Graph};
use regraft_onnx::{Model, WriteOptions};

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::clean;
use crate::optimize::evidence::Rewritten;
use crate::optimize::hunt::{Hunt, InModel};
use crate::optimize::observer::{Observer, Phase};
use crate::optimize::propose::{Proposal, propose};
use crate::report::{Applied, NotDone};

/// A body about to be rewritten.
pub struct Inside<'a> {
    /// Its model: captured values are inputs or initializers.
    pub model: &'a Model,
    /// Its graph in normal form: where to start.
    pub start: &'a Graph,
    /// Where it is: `the then-branch of check`.
    pub label: &'a str,
    /// Values of its symbols, as far as they are known.
    pub bindings: &'a Bindings,
}

/// A model whose bodies are rewritten, and what was done.
#[derive(Clone, Debug)]
pub struct Bodies {
    /// The model. Its own graph is as it was.
    pub model: Model,
    /// Rewrites, each with the body that it is in.
    pub applied: Vec<Applied>,
    /// The same as places.
    pub places: Vec<u64>,
    /// The same as moves, body by body.
    pub rewritten: Vec<Rewritten>,
    /// Bodies that could not be written with their rewrites.
    pub not_done: Vec<NotDone>,
}

/// Rewrites all bodies of a model as `search` proposes. Nested bodies are rewritten before those around them.
pub fn rewrite_bodies(
    model: &Model,
    outer: &Bindings,
    options: &WriteOptions,
    search: &mut dyn FnMut(&Inside<'_>) -> Option<Proposal>,
) -> Bodies {
    visit(model, outer, &Around { label: "", place: &GraphPlace::default() }, options, search)
}

/// The graph that bodies are in.
struct Around<'a> {
    label: &'a str,
    place: &'a GraphPlace,
}

fn visit(
    model: &Model,
    outer: &Bindings,
    around: &Around<'_>,
    options: &WriteOptions,
    search: &mut dyn FnMut(&Inside<'_>) -> Option<Proposal>,
) -> Bodies {
    let mut done = Bodies { model: model.clone(), applied: Vec::new(), places: Vec::new(), rewritten: Vec::new(), not_done: Vec::new() };
    let largest = model.largest(options.allow_growth);
    for body in model.bodies() {
        let bindings = body.bindings(outer);
        let label = format!("{}{}", body.label(), around.label);
        let place = around.place.inside(body.place());
        let inner = visit(body.model(), &bindings, &Around { label: &format!(" in {label}"), place: &place }, options, search);
        done.not_done.extend(inner.not_done);
        let (start, _) = clean(inner.model.graph());
        let proposal = search(&Inside { model: &inner.model, start: &start, label: &label, bindings: &bindings });
        if proposal.is_none() && inner.applied.is_empty() {
            continue;
        }
        let moves = proposal.as_ref().map_or_else(Vec::new, |p| p.moves.clone());
        let (graph, applied, places) = proposal.map_or((start, Vec::new(), Vec::new()), |p| (p.graph, p.applied, p.places));
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
        done.applied.extend(inner.applied);
        done.applied.extend(applied.into_iter().map(|a| Applied { at: format!("{} in {label}", a.at), ..a }));
        done.places.extend(inner.places.into_iter().chain(places));
        done.rewritten.extend(inner.rewritten);
        done.rewritten.push(Rewritten { place, label, read: body.model().graph().clone(), moves });
    }
    done
}

impl Hunt<'_> {
    /// A candidate whose bodies are rewritten too: the best of `candidates`, or else the cleaned input. `None` if nothing in a body gets
    /// cheaper under the price list.
    pub fn with_bodies(
        &mut self,
        start: &Graph,
        candidates: &[Candidate],
        observer: &mut dyn Observer,
    ) -> Result<Option<Candidate>, Failure> {
        if observer.interrupted() || self.model.bodies().is_empty() {
            return Ok(None);
        }
        observer.phase(Phase::Search, "bodies of If, Loop and Scan");
        let options = WriteOptions { allow_growth: self.request.allow_growth, ..WriteOptions::default() };
        let (frozen, slice) = (self.request.frozen, self.pace.search_ends());
        let (library, search) = (self.library, self.request.search);
        let mut refused = Vec::new();
        let mut visited = 0;
        let bodies = rewrite_bodies(self.model, self.prices.bindings(), &options, &mut |inside| {
            let prices = self.prices.at(inside.bindings, Stance::Sober);
            let mut budget = || (!frozen && std::time::Instant::now() >= slice) || observer.interrupted();
            let proposals = propose(inside.start, &*prices, library, &InModel::new(inside.model), search, &mut budget);
            visited += proposals.visited;
            refused.extend(proposals.refused.into_iter().map(|n| NotDone { at: format!("{} in {}", n.at, inside.label), ..n }));
            let cheaper = prices.total(inside.start);
            proposals.best.into_iter().next().filter(|p| p.cost < cheaper)
        });
        self.visited += visited;
        self.not_done.extend(refused);
        self.not_done.extend(bodies.not_done.iter().cloned());
        if bodies.applied.is_empty() {
            return Ok(None);
        }
        let base = candidates.first();
        let name = base.map_or("bodies".into(), |best| format!("{} with its bodies", best.name));
        let graph = base.map_or(start, |best| &best.graph).clone();
        let (rewrites, places) = base.map_or_else(Default::default, |best| (best.applied.clone(), best.places.clone()));
        let moves = base.map_or_else(Vec::new, |best| best.moves.clone());
        let predicted = self.prices.total(&graph);
        let written = match bodies.model.write(&graph, &options) {
            Ok(written) => written,
            Err(why) => {
                self.not_done.push(NotDone { what: "bodies".into(), at: "writing".into(), because: why.to_string() });
                return Ok(None);
            }
        };
        let largest = self.model.largest(self.request.allow_growth);
        if written.size() > largest {
            let because = format!("the file would take {} bytes, {largest} are allowed (--allow-growth allows more)", written.size());
            self.not_done.push(NotDone { what: "bodies".into(), at: "writing".into(), because });
            return Ok(None);
        }
        let applied = rewrites.into_iter().chain(bodies.applied).collect();
        let artifact = self.artifact(&written)?;
        let (bodies, rewritten) = (bodies.places, bodies.rewritten);
        Ok(Some(Candidate { name, graph, applied, places, moves, bodies, rewritten, predicted, profiled: None, artifact, written }))
    }
}
