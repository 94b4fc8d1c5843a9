//! Whether two models are the same, from the models alone: what `check` does if there is no
//! certificate.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use prost::Message;
use regraft_equate::{Effort, Function, Opaques, Side, equate, equate_over};
use regraft_ir::{NodeId, Op, Trust, ValueId};
use regraft_onnx::proto::{AttributeProto, GraphProto, NodeProto};
use regraft_onnx::{Body, Model, Signature, Verbatim};
use regraft_rules::Library;
use serde::Serialize;

use crate::assumptions::clauses;
use crate::error::Failure;
use crate::plain::plain;

/// Failed queries that comparing two bodies may cost.
const INSIDE: usize = 12;
/// Levels of nested bodies that are compared.
const DEPTH: usize = 3;

/// What is known about two models from their graphs.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// How well they are known to be the same.
    #[serde(rename = "word", with = "crate::words")]
    pub trust: Trust,
    /// What the proof assumes, one clause each.
    pub assumptions: Vec<String>,
    /// The same in one line, with what stands behind it.
    pub summary: String,
    /// Values of B computed by the same operator from equal operands as in A.
    pub same: usize,
    /// Values of B proved equal to values of A.
    pub shown: usize,
    /// Constants of B that were computed ahead of time.
    pub rounded: usize,
    /// Bound on their error, relative to the largest magnitude of each.
    pub bound: f64,
    /// Outputs not known to be the same.
    pub open: Vec<String>,
    /// Values of B at which the proof stops.
    pub gaps: Vec<Gap>,
    /// Queries to the prover.
    pub asked: usize,
    /// Seconds taken.
    pub seconds: f64,
}

/// A value at which a proof stops.
#[derive(Clone, Debug, Serialize)]
pub struct Gap {
    /// The value of B.
    pub value: String,
    /// Its presumed counterpart in A, if there is a guess.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Why the two were not shown to be equal.
    pub why: String,
}

/// Proves that `b` equals `a` at all sizes at which `a` runs, as far as this effort allows.
pub fn compare(a: &Model, b: &Model, effort: &Effort) -> Result<Comparison, Failure> {
    let start = Instant::now();
    let rules = Library::shipped()?;
    let other = Signature::of(a.proto()).compare(&Signature::of(b.proto())).0;
    // The question is whether they agree wherever `a` runs.
    let b = &*b.under(a)?;
    let plainer = [plain(a), plain(b)];
    let (a, b) = (plainer[0].as_ref().unwrap_or(a), plainer[1].as_ref().unwrap_or(b));
    let mut found = match other.first() {
        None => {
            let found = Comparer::new(a, b, &rules).compare(effort);
            let declared = [a, b].iter().any(|m| m.proto().graph.as_ref().is_some_and(|g| !g.value_info.is_empty()));
            match (found.trust(), is_opaque(a) || is_opaque(b)) {
                // Where one file declares more types than the other, an operator is known in one
                // but not in the other.
                (Trust::Unproved, true) if declared => match (undeclared(a), undeclared(b)) {
                    (Some(a), Some(b)) => better(found, Comparer::new(&a, &b, &rules).compare(effort)),
                    _ => found,
                },
                _ => found,
            }
        }
        Some(why) => regraft_equate::Equivalence {
            open: b.graph().outputs().iter().map(|o| o.name.to_string()).collect(),
            gaps: vec![regraft_equate::Gap { value: "the inputs and outputs".into(), beside: None, why: why.clone() }],
            ..Default::default()
        },
    };
    let gaps = std::mem::take(&mut found.gaps).into_iter().map(|g| Gap { value: g.value, beside: g.beside, why: g.why });
    let mut comparison = Comparison {
        trust: found.trust(),
        assumptions: if found.trust() == Trust::Unproved || found.asked == 0 { Vec::new() } else { clauses(found.premises, a) },
        summary: String::new(),
        same: found.same,
        shown: found.shown,
        rounded: found.rounded,
        bound: found.bound,
        open: found.open,
        gaps: gaps.collect(),
        asked: found.asked,
        seconds: start.elapsed().as_secs_f64(),
    };
    let sizes = if a.facts().is_empty() { "all sizes of at least 1" } else { "all sizes at which A runs" };
    comparison.summary = comparison.line(sizes);
    Ok(comparison)
}

/// Whether some operators are kept verbatim.
fn is_opaque(model: &Model) -> bool {
    model.graph().ids().any(|id| matches!(model.graph().node(id).op, Op::Opaque(_)))
}

/// The model without the types it declares for inner values.
fn undeclared(model: &Model) -> Option<Model> {
    let mut proto = model.proto().clone();
    proto.graph.as_mut()?.value_info.clear();
    Some(Model::from_proto(proto).ok()?.under(model).ok()?.into_owned())
}

fn better(first: regraft_equate::Equivalence, second: regraft_equate::Equivalence) -> regraft_equate::Equivalence {
    let asked = first.asked + second.asked;
    let found = if second.trust() > first.trust() { second } else { first };
    regraft_equate::Equivalence { asked, ..found }
}

impl Comparison {
    fn line(&self, sizes: &str) -> String {
        let constants = if self.rounded == 1 { "folded constant is" } else { "folded constants are" };
        match (self.open.first(), self.gaps.first()) {
            (None, _) if self.rounded > 0 => {
                format!("bounded: proved, if {} {constants} what they stand for, to {:.1e}", self.rounded, self.bound)
            }
            (None, _) if self.assumptions.is_empty() => format!("proved for all inputs and {sizes}"),
            (None, _) => format!("proved {}, for all inputs and {sizes}", self.assumptions.join(", ")),
            (Some(output), Some(gap)) => match &gap.beside {
                Some(beside) => format!("no proof for `{output}`: it stops at {}, beside {beside}", gap.value),
                None => format!("no proof for `{output}`: it stops at {}", gap.value),
            },
            (Some(output), None) => format!("no proof for `{output}`"),
        }
    }
}

/// Two models, or two bodies, and what is known about the bodies nested in them.
struct Comparer<'m> {
    a: &'m Model,
    b: &'m Model,
    rules: &'m Library,
    /// Levels of nested bodies that may still be compared.
    depth: usize,
    /// True for bodies, whose inputs are identified by position and not by name.
    inside: bool,
    /// Distinct bodies, described independently of place: a body's number is its index here.
    bodies: Vec<Known>,
    /// Bodies of both models, read on first use.
    own: Option<[Vec<Body>; 2]>,
}

/// A body that was seen.
struct Known {
    /// Its surroundings, without bodies.
    around: Vec<u8>,
    /// The body with its captured values named by what they stand for.
    bytes: Vec<u8>,
    side: Side,
    /// The node and the attribute.
    place: (usize, usize),
    /// Captured values by what they stand for.
    captured: HashMap<String, ValueId>,
}

impl<'m> Comparer<'m> {
    fn new(a: &'m Model, b: &'m Model, rules: &'m Library) -> Comparer<'m> {
        Comparer { a, b, rules, depth: DEPTH, inside: false, bodies: Vec::new(), own: None }
    }

    fn compare(&mut self, effort: &Effort) -> regraft_equate::Equivalence {
        let (a, b, rules) = (self.a, self.b, self.rules);
        equate(a.graph(), b.graph(), self, rules, effort)
    }

    fn model(&self, side: Side) -> &Model {
        if side == Side::A { self.a } else { self.b }
    }

    /// The number of a body: equal bodies share one.
    fn number(&mut self, known: Known) -> usize {
        let alike = |other: &Known| other.around == known.around;
        if let Some(at) = self.bodies.iter().position(|other| alike(other) && other.bytes == known.bytes) {
            return at;
        }
        let candidates: Vec<usize> = (0..self.bodies.len()).filter(|at| alike(&self.bodies[*at])).collect();
        for at in candidates {
            if self.depth > 0 && self.bodies_are_equal(at, &known) {
                return at;
            }
        }
        self.bodies.push(known);
        self.bodies.len() - 1
    }

    /// Whether two bodies compute the same function of the same formal and captured values.
    fn bodies_are_equal(&mut self, at: usize, y: &Known) -> bool {
        let (a, b) = (self.a, self.b);
        let own = self.own.get_or_insert_with(|| [a.bodies(), b.bodies()]);
        let x = &self.bodies[at];
        let find = |known: &Known| own[known.side as usize].iter().find(|body| body.place() == known.place);
        let (Some(p), Some(q)) = (find(x), find(y)) else { return false };
        let (p, q) = (p.model(), q.model());
        let Some(inputs) = paired(p, &x.captured, q, &y.captured) else { return false };
        let mut inner = Comparer { depth: self.depth - 1, inside: true, ..Comparer::new(p, q, self.rules) };
        let effort = Effort { failures: INSIDE, ..Effort::default() };
        equate_over(p.graph(), q.graph(), &inputs, &mut inner, self.rules, &effort).trust() == Trust::Proved
    }

    /// What an opaque node computes, apart from its operands.
    fn node(&mut self, side: Side, at: usize, node: &NodeProto, captured: &HashMap<String, ValueId>) -> Option<Vec<u8>> {
        let model = self.model(side);
        let functions = &model.proto().functions;
        let mut shell = NodeProto {
            input: presence(&node.input),
            output: presence(&node.output),
            op_type: node.op_type.clone(),
            domain: Some(node.domain().to_string()).filter(|d| d != "ai.onnx"),
            overload: node.overload.clone(),
            ..NodeProto::default()
        };
        let mut attributes: Vec<(usize, &AttributeProto)> = node.attribute.iter().enumerate().collect();
        attributes.sort_by(|(_, x), (_, y)| x.name().cmp(y.name()));
        let bare = |a: &AttributeProto| AttributeProto { g: None, doc_string: None, ..a.clone() };
        shell.attribute = attributes.iter().map(|(_, a)| bare(a)).collect();
        if attributes.iter().any(|(_, a)| !a.graphs.is_empty()) {
            return None;
        }
        // What a function computes depends on all functions that it may call, and on the versions
        // that they import.
        let called = functions.iter().any(|f| f.name() == node.op_type() && f.domain() == node.domain());
        let opsets: BTreeMap<&str, i64> = model.proto().opset_import.iter().map(|o| (o.domain(), o.version())).collect();
        let mut around = shell.encode_to_vec();
        around.extend(format!("{:?}", model.opset(node.domain())).bytes());
        if called || (attributes.iter().any(|(_, a)| a.g.is_some()) && !functions.is_empty()) {
            let mut functions: Vec<Vec<u8>> = functions.iter().map(Message::encode_to_vec).collect();
            functions.sort();
            around.extend(functions.into_iter().flatten());
            around.extend(format!("{opsets:?}").bytes());
        }
        let mut name = around.clone();
        for (attribute, a) in attributes {
            let Some(body) = &a.g else { continue };
            let names = captured.iter().map(|(name, value)| (name.clone(), format!("\u{0}{}.{}", value.node.0, value.port))).collect();
            let mut around = around.clone();
            around.extend(a.name().bytes());
            let bytes = renamed(body, &names).encode_to_vec();
            let known = Known { around, bytes, side, place: (at, attribute), captured: captured.clone() };
            name.extend(self.number(known).to_le_bytes());
        }
        Some(name)
    }
}

impl Opaques for Comparer<'_> {
    fn function(&mut self, side: Side, id: NodeId, operands: &[ValueId]) -> Option<Function> {
        let (a, b) = (self.a, self.b);
        let model = if side == Side::A { a } else { b };
        let Op::Opaque(opaque) = &model.graph().node(id).op else { return None };
        if opaque.effects {
            return None;
        }
        let (kind, name, own) = match model.verbatim(opaque)? {
            Verbatim::Node { at, proto, captured } => {
                let own = proto.input.iter().filter(|n| !n.is_empty()).count();
                let outer: HashMap<String, ValueId> = captured.iter().cloned().zip(operands.iter().skip(own).copied()).collect();
                if outer.len() != captured.len() || operands.len() != own + captured.len() {
                    return None;
                }
                (0, self.node(side, at, proto, &outer)?, own)
            }
            Verbatim::Initializer(tensor) => {
                (1, regraft_onnx::proto::TensorProto { name: None, doc_string: None, ..tensor.clone() }.encode_to_vec(), 0)
            }
            Verbatim::Sparse(tensor) => (2, tensor.encode_to_vec(), 0),
            Verbatim::Input(_) if self.inside => return None,
            Verbatim::Input(input) => (3, input.encode_to_vec(), 0),
        };
        let mut name = name;
        name.push(kind);
        // Captured values are operands in their own right: the name says where each of them goes,
        // and they count once, in a fixed order. Constants stay what they are in the body too: a
        // captured one equals the body's own, and the name stands for the body with its constants.
        let mut order: Vec<usize> = (0..own).collect();
        let graph = model.graph();
        let is_constant = |at: &usize| graph.node(id).inputs.get(*at).is_some_and(|value| graph.constant(*value).is_some());
        let mut captured: Vec<usize> = (own..operands.len()).filter(|at| !is_constant(at)).collect();
        captured.sort_by_key(|at| operands[*at]);
        captured.dedup_by_key(|at| operands[*at]);
        order.extend(captured);
        Some(Function { name, operands: order })
    }
}

/// Corresponding inputs of two body models: formal ones by position, captured ones by what they
/// stand for.
fn paired(a: &Model, ours: &HashMap<String, ValueId>, b: &Model, theirs: &HashMap<String, ValueId>) -> Option<Vec<(NodeId, NodeId)>> {
    let inputs = |model: &Model, outer: &HashMap<String, ValueId>| {
        let graph = model.graph();
        let (mut formal, mut captured) = (Vec::new(), BTreeMap::new());
        for id in graph.inputs() {
            let Op::Input(input) = &graph.node(*id).op else { continue };
            match outer.get(input.name.as_ref()) {
                Some(value) => drop(captured.insert(*value, *id)),
                None => formal.push(*id),
            }
        }
        (formal, captured)
    };
    // An input of unknown rank is not the graph's, and would shift the positions of the others.
    let all_are_typed = |model: &Model| model.proto().graph.as_ref().is_some_and(|g| g.input.len() == model.graph().inputs().len());
    let ((formal, captured), (formal_b, captured_b)) = (inputs(a, ours), inputs(b, theirs));
    if formal.len() != formal_b.len() || !all_are_typed(a) || !all_are_typed(b) {
        return None;
    }
    let mut pairs: Vec<(NodeId, NodeId)> = formal.into_iter().zip(formal_b).collect();
    for (value, id) in captured_b {
        pairs.push((*captured.get(&value)?, id));
    }
    Some(pairs)
}

/// Which names are left out, regardless of what the others are.
fn presence(names: &[String]) -> Vec<String> {
    names.iter().map(|name| if name.is_empty() { String::new() } else { "+".into() }).collect()
}

/// A body with outer names replaced and everything meaningless removed.
pub(crate) fn renamed(body: &GraphProto, names: &HashMap<String, String>) -> GraphProto {
    let defined = body.input.iter().map(|i| i.name()).chain(body.initializer.iter().map(|t| t.name()));
    let defined = defined.chain(body.node.iter().flat_map(|n| n.output.iter().map(String::as_str)));
    let mut names = names.clone();
    defined.for_each(|name| drop(names.remove(name)));
    let rename = |name: &String| names.get(name).unwrap_or(name).clone();
    let node = |node: &NodeProto| NodeProto {
        input: node.input.iter().map(rename).collect(),
        attribute: node
            .attribute
            .iter()
            .map(|a| AttributeProto { g: a.g.as_ref().map(|g| renamed(g, &names)), doc_string: None, ..a.clone() })
            .collect(),
        name: None,
        doc_string: None,
        metadata_props: Vec::new(),
        ..node.clone()
    };
    let mut result = GraphProto { name: None, doc_string: None, value_info: Vec::new(), metadata_props: Vec::new(), ..body.clone() };
    result.node = body.node.iter().map(node).collect();
    for output in &mut result.output {
        output.name = output.name.as_ref().map(rename);
    }
    result
}
