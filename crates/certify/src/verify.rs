//! Verifies a certificate against its two models.

use std::path::Path;

use regraft_ir::{Graph, NodeId, Op, ValueId};
use regraft_onnx::proto::NodeProto;
use regraft_onnx::{Body, Model, Signature, Verbatim};

use crate::certificate::{Certificate, GraphPath};
use crate::congruence::{Congruence, Rounding, Verbatims};
use crate::digest::ModelDigest;
use crate::error::CertifyError;
use crate::finding::{Finding, Replay};
use crate::replay::{Replayer, Stop};

impl Certificate {
    /// Replays the certificate on the models at `input` and `output`.
    ///
    /// The digests of both are compared first, then their interfaces; then every step is judged on
    /// its own and applied; finally the resulting graphs are compared with those of `output`.
    pub fn verify(&self, input: &Path, output: &Path) -> Result<Finding, CertifyError> {
        if let Some(why) = self.output.difference(&ModelDigest::of(output)?) {
            return Ok(Finding::Tampered(format!("the result is not the model that was certified: {why}")));
        }
        if let Some(why) = self.input.difference(&ModelDigest::of(input)?) {
            return Ok(Finding::OtherInput(format!("the certificate is about another input: {why}")));
        }
        self.replay(&Model::read(input)?, &Model::read(output)?)
    }

    /// The same for models already loaded; their digests are not compared. If the certificate fixes
    /// sizes, they are fixed in the input first of all; then the interfaces of both are compared.
    pub fn replay(&self, input: &Model, output: &Model) -> Result<Finding, CertifyError> {
        self.replay_by(Replayer::default(), input, output)
    }

    /// The same, with this replayer.
    pub fn replay_by(&self, replayer: Replayer<'_>, input: &Model, output: &Model) -> Result<Finding, CertifyError> {
        let fixed = (!self.fixed.is_empty()).then(|| input.clone().at_sizes(&self.fixed)).transpose()?;
        let input = fixed.as_ref().unwrap_or(input);
        // The claim is about the sizes at which the input runs.
        let output = &*output.under(input)?;
        if let Some(why) = Signature::of(input.proto()).difference(&Signature::of(output.proto())) {
            return Ok(Finding::Tampered(format!("the result does not declare what its input does: {why}")));
        }
        let mut reading = Reading { certificate: self, replayer, rounding: Rounding::default() };
        let converted = self.opset.map(|version| input.clone().at_opset(version)).transpose()?;
        // Converting a model to another opset writes it anew: check that it is unchanged, as for
        // the output.
        let main = GraphPath::default();
        let unchanged = converted.as_ref().map_or(Ok(()), |converted| reading.same_models(input, input.graph(), converted, &main, false));
        let arrival = match unchanged.and_then(|()| reading.models(converted.as_ref().unwrap_or(input), output, &main)) {
            Ok(()) => Ok(()),
            Err(Stop::Broken(why)) => return Ok(Finding::Tampered(why)),
            Err(Stop::Differs(why)) => Err(why),
        };
        let (fixed, steps) = (self.fixed.clone(), self.steps());
        Ok(Finding::Replayed(Replay { fixed, steps, judged: reading.replayer.judged, rounding: reading.rounding, arrival }))
    }
}

struct Reading<'c, 'p> {
    certificate: &'c Certificate,
    replayer: Replayer<'p>,
    rounding: Rounding,
}

impl Reading<'_, '_> {
    /// Follows the rewrites of `a` at `place`, and compares the result with `b`.
    fn models(&mut self, a: &Model, b: &Model, place: &GraphPath) -> Result<(), Stop> {
        let mut graph = a.graph().clone();
        if let Some(trail) = self.certificate.trail(place) {
            self.replayer.follow(&mut graph, trail)?;
        }
        self.same_models(a, &graph, b, place, true)
    }

    /// Whether `graph`, derived from that of `a`, is the graph of `b` up to names, order and
    /// rounding, and the rest of the models agrees.
    fn same_models(&mut self, a: &Model, graph: &Graph, b: &Model, place: &GraphPath, same_opset: bool) -> Result<(), Stop> {
        let differs = |what: &str| Err(Stop::Differs(format!("{what} of graph {place} are not those of the input")));
        let names = |graph: &Graph| graph.outputs().iter().map(|o| o.name.clone()).collect::<Vec<_>>();
        if names(graph) != names(b.graph()) {
            return differs("the outputs");
        }
        if a.proto().functions != b.proto().functions {
            return differs("the functions");
        }
        let imported = |m: &Model, domain: &str| m.opset(domain);
        if same_opset && a.proto().opset_import.iter().any(|o| imported(b, o.domain()) != imported(a, o.domain())) {
            return differs("the opset versions");
        }
        let mut sides = Sides { reading: self, place, a, graph, b, bodies: None };
        let mut congruence = Congruence::new(graph, b.graph());
        let mut outputs = graph.outputs().iter().zip(b.graph().outputs());
        let same = outputs.try_for_each(|(x, y)| congruence.values(x.value, y.value, &mut sides));
        let elsewhere = |why| Stop::Differs(format!("the steps lead to another model than the one written, at {why}"));
        same.and_then(|()| congruence.settle(&mut *self.replayer.oracle)).map_err(elsewhere)?;
        self.rounding.join(congruence.rounding);
        Ok(())
    }
}

/// Operators kept verbatim, in a rewritten graph and in the output model.
struct Sides<'r, 'c, 'p, 'm> {
    reading: &'r mut Reading<'c, 'p>,
    place: &'m GraphPath,
    a: &'m Model,
    graph: &'m Graph,
    b: &'m Model,
    /// Bodies of both models, read when two differ.
    bodies: Option<(Vec<Body>, Vec<Body>)>,
}

impl Verbatims for Sides<'_, '_, '_, '_> {
    fn same(&mut self, x: NodeId, y: NodeId) -> Result<Vec<(ValueId, ValueId)>, String> {
        let (a, b) = (self.a, self.b);
        let (Op::Opaque(p), Op::Opaque(q)) = (&self.graph.node(x).op, &b.graph().node(y).op) else {
            return Err("another operator".into());
        };
        let (p, q) = (a.verbatim(p).ok_or("an operator of no model")?, b.verbatim(q).ok_or("an operator of no model")?);
        if !p.alike(&q) {
            return Err("it is not the original one".into());
        }
        let (at, node, captured) = match (p, q) {
            (Verbatim::Node { at, proto, captured }, Verbatim::Node { at: at_b, proto: node_b, captured: captured_b }) => {
                ((at, at_b), (proto, node_b), (captured, captured_b))
            }
            _ => return Ok(Vec::new()),
        };
        let given = |node: &NodeProto| node.input.iter().filter(|n| !n.is_empty()).count();
        let (own, own_b) = (given(node.0), given(node.1));
        let (inputs, inputs_b) = (&self.graph.node(x).inputs, &b.graph().node(y).inputs);
        if inputs.len() != own + captured.0.len() || inputs_b.len() != own_b + captured.1.len() {
            return Err("other operands".into());
        }
        let mut pairs: Vec<(ValueId, ValueId)> = inputs.iter().copied().zip(inputs_b.iter().copied()).take(own).collect();
        for (name, value) in captured.1.iter().zip(&inputs_b[own_b..]) {
            let outer = captured.0.iter().position(|n| n == name).ok_or_else(|| format!("it captures `{name}`, which it did not"))?;
            pairs.push((inputs[own + outer], *value));
        }
        for (attribute, (p, q)) in node.0.attribute.iter().zip(&node.1.attribute).enumerate() {
            if p.g != q.g {
                if let (Some(p), Some(q)) = (&p.g, &q.g)
                    && let Some(why) = Signature::of_body(p).difference(&Signature::of_body(q))
                {
                    return Err(format!("a body does not declare what it did: {why}"));
                }
                self.body((at.0, attribute), (at.1, attribute))?;
            }
        }
        Ok(pairs)
    }
}

impl Sides<'_, '_, '_, '_> {
    /// Compares two bodies that are not byte for byte the same.
    fn body(&mut self, a: (usize, usize), b: (usize, usize)) -> Result<(), String> {
        let bodies = self.bodies.get_or_insert_with(|| (self.a.bodies(), self.b.bodies()));
        let find = |bodies: &[Body], place| bodies.iter().find(|body| body.place() == place).cloned();
        let (Some(x), Some(y)) = (find(&bodies.0, a), find(&bodies.1, b)) else {
            return Err("a body is another one, and cannot be read".into());
        };
        self.reading.models(x.model(), y.model(), &self.place.inside(a)).map_err(|stop| match stop {
            Stop::Broken(why) | Stop::Differs(why) => format!("{}: {why}", x.label()),
        })
    }
}
