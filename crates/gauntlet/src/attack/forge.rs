//! Forged certificates for models that differ, with correct digests and seals. None may count as a
//! proof.

use anyhow::{Context, Result};
use prost::Message;
use regraft::optimize::Rewritten;
use regraft_certify::{Certificate, GraphPath, ModelDigest, Step, Trail};
use regraft_ir::{Graph, NewNode, NodeId, Op, Patch, PatchValue, ValueId, canonical_key};
use regraft_onnx::proto::ModelProto;
use regraft_onnx::{FixedSizes, Model, WriteOptions};
use regraft_search::RandomWalk;

use super::ask::Desk;
use super::claim::Claim;
use crate::generate::random::Random;
use crate::trial::Bench;

/// Steps of an honest trail.
const STEPS: usize = 6;

/// Operators that are swapped in a forged step.
const ALIKE: &[&[&str]] = &[
    &["Add", "Sub", "Mul"],
    &["Max", "Min"],
    &["Relu", "Neg", "Abs", "Tanh", "Sigmoid", "Identity"],
    &["Less", "Greater", "LessOrEqual", "GreaterOrEqual"],
    &["And", "Or", "Xor"],
    &["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"],
];

/// How a certificate is forged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No trail at all.
    Bare,
    /// A trail of no steps.
    Empty,
    /// One step that replaces the first model by the second, under the name of a shipped rule.
    Whole,
    /// Steps that merge operators kept verbatim, as if their results were equal.
    Merged,
    /// The steps of another model.
    Foreign,
    /// No steps, and another operator version.
    Opset,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [Kind::Bare, Kind::Empty, Kind::Whole, Kind::Merged, Kind::Foreign, Kind::Opset];
}

/// An edit to an honest trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Another new operator.
    Operator,
    /// Another number in a new operator.
    Number,
    /// Two operands of a new operator swapped.
    Operands,
    /// A value replaced by another one.
    Redirect,
    /// A step omitted.
    Drop,
    /// A step repeated.
    Twice,
    /// Two steps swapped.
    Order,
}

impl Edit {
    /// All of them.
    pub const ALL: [Edit; 7] = [Edit::Operator, Edit::Number, Edit::Operands, Edit::Redirect, Edit::Drop, Edit::Twice, Edit::Order];
}

/// A certificate from `a` to `b` without steps, if `kind` needs no more, or one with forged steps.
pub fn forged(kind: Kind, bench: &Bench, a: &ModelProto, b: &ModelProto, random: &mut Random) -> Result<Option<Certificate>> {
    let (Ok(before), Ok(after)) = (Model::from_proto(a.clone()), Model::from_proto(b.clone())) else { return Ok(None) };
    let rule = random.pick(bench.library.rules()).name.to_string();
    let steps = match kind {
        Kind::Bare => return Ok(Some(certificate(Vec::new()))),
        Kind::Empty | Kind::Opset => Vec::new(),
        Kind::Whole => match whole(before.graph(), after.graph(), &rule) {
            Some(step) => vec![step],
            None => return Ok(None),
        },
        Kind::Merged => merges(before.graph()),
        Kind::Foreign => {
            let other = crate::generate::case(random.next(), 3);
            honest(bench, &other.model, random)?.map_or_else(Vec::new, |(_, trail)| trail.steps)
        }
    };
    if steps.is_empty() && matches!(kind, Kind::Merged | Kind::Foreign) {
        return Ok(None);
    }
    let opset = if kind == Kind::Opset { after.opset("") } else { None };
    let read = match opset {
        Some(version) => match before.clone().at_opset(version) {
            Ok(converted) => converted,
            Err(_) => return Ok(None),
        },
        None => before,
    };
    let trail = Trail { place: GraphPath::default(), label: String::new(), start: canonical_key(read.graph()), steps };
    Ok(Some(Certificate { opset, ..certificate(vec![trail]) }))
}

fn certificate(trails: Vec<Trail>) -> Certificate {
    let none = ModelDigest(Vec::new());
    Certificate { tool: "regraft 0.1.0".into(), input: none.clone(), output: none, fixed: FixedSizes::default(), opset: None, trails }
}

/// The claim about two models that rests on a certificate, whose digests are adjusted to match.
pub fn ask(desk: &Desk, a: &ModelProto, b: &ModelProto, certificate: Certificate) -> Result<Claim> {
    let (a, b) = (desk.put("a.onnx", a)?, desk.put("b.onnx", b)?);
    let sealed = Certificate { input: ModelDigest::of(&a)?, output: ModelDigest::of(&b)?, ..certificate };
    desk.ask_certificate(&a, &b, &sealed.to_text())
}

/// The step that computes the outputs of `b` instead of those of `a`; `None` if `b` has
/// uninterpreted operators, or other inputs.
fn whole(a: &Graph, b: &Graph, rule: &str) -> Option<Step> {
    let input = |name: &str| a.inputs().iter().find(|id| matches!(&a.node(**id).op, Op::Input(i) if i.name.as_ref() == name));
    let mut patch = Patch { cause: rule.into(), create: Vec::new(), replace: Default::default() };
    let mut made: Vec<(NodeId, Result<ValueId, u32>)> = Vec::new();
    let resolve = |made: &[(NodeId, Result<ValueId, u32>)], value: ValueId| {
        let (_, found) = made.iter().find(|(id, _)| *id == value.node)?;
        Some(match found {
            Ok(old) => PatchValue::Old(*old),
            Err(index) => PatchValue::New { index: *index, port: value.port },
        })
    };
    for id in b.topological() {
        let node = b.node(id);
        match &node.op {
            Op::Input(i) => made.push((id, Ok(input(&i.name)?.out()))),
            Op::Opaque(_) => return None,
            _ => {
                let inputs = node.inputs.iter().map(|v| resolve(&made, *v)).collect::<Option<_>>()?;
                made.push((id, Err(patch.create.len() as u32)));
                patch.create.push(NewNode { computation: node.computation.clone(), inputs });
            }
        }
    }
    let mut matched = Vec::new();
    for (x, y) in a.outputs().iter().zip(b.outputs()) {
        if a.ty(x.value) != b.ty(y.value) || patch.replace.iter().any(|(old, _)| *old == x.value) {
            return None;
        }
        matched.push(x.value.node);
        patch.replace.push((x.value, resolve(&made, y.value)?));
    }
    Step::of(a, &matched, &patch)
}

/// A step for every operator kept verbatim whose result type equals an earlier one's.
fn merges(graph: &Graph) -> Vec<Step> {
    let opaque = |id: &NodeId| matches!(graph.node(*id).op, Op::Opaque(_)) && graph.ty(id.out()).is_some();
    let opaque: Vec<NodeId> = graph.topological().into_iter().filter(opaque).collect();
    let twin = |at: usize| opaque[..at].iter().find(|id| graph.ty(id.out()) == graph.ty(opaque[at].out()));
    let merge = |at: usize| {
        let redirects = vec![(opaque[at].out(), twin(at)?.out())];
        Some(Step { rule: "cse".into(), replaces: vec![opaque[at]], redirects, ..Step::default() })
    };
    (1..opaque.len()).filter_map(merge).collect()
}

/// A model, and a random trail of rules applied to it; `None` if no rule fits.
fn honest(bench: &Bench, proto: &ModelProto, random: &mut Random) -> Result<Option<(Model, Trail)>> {
    let model = Model::from_bytes(proto.encode_to_vec().into(), None)?;
    let walk = RandomWalk { steps: STEPS, seed: random.next() };
    let Some(rewrites) = bench.rewrites(&model, walk) else { return Ok(None) };
    let read = model.graph().clone();
    let trail = Rewritten { place: GraphPath::default(), label: String::new(), read, rewrites }.trail(&bench.library);
    Ok(trail.map(|trail| (model, trail)))
}

/// A random trail with one edit, and the resulting model; `None` if there was nothing to edit, or
/// the result does not fit.
pub fn edited(bench: &Bench, proto: &ModelProto, edit: Edit, random: &mut Random) -> Result<Option<(ModelProto, Certificate)>> {
    let Some((model, mut trail)) = honest(bench, proto, random)? else { return Ok(None) };
    let at = random.below(trail.steps.len());
    let step = &mut trail.steps[at];
    let changed = match edit {
        Edit::Operator => operator(&mut step.fragment, random),
        Edit::Number => number(&mut step.fragment, random),
        Edit::Operands => operands(&mut step.fragment, random),
        Edit::Redirect => redirect(model.graph(), step, random),
        Edit::Drop => {
            trail.steps.remove(at);
            true
        }
        Edit::Twice => {
            let again = step.clone();
            trail.steps.insert(at, again);
            true
        }
        Edit::Order if at > 0 => {
            trail.steps.swap(at - 1, at);
            true
        }
        Edit::Order => false,
    };
    if !changed {
        return Ok(None);
    }
    let mut graph = model.graph().clone();
    for step in &trail.steps {
        let Ok(patch) = step.patch(&graph) else { return Ok(None) };
        graph.apply(&patch);
        if graph.topological().len() != graph.len() {
            return Ok(None);
        }
    }
    let Ok(written) = model.write(&graph, &WriteOptions::default()) else { return Ok(None) };
    let written = ModelProto::decode(written.to_bytes()?.as_slice()).context("what was written cannot be read")?;
    Ok(Some((written, certificate(vec![trail]))))
}

fn operator(fragment: &mut String, random: &mut Random) -> bool {
    let calls = ALIKE.iter().flat_map(|family| family.iter().map(move |op| (op, family)));
    let found: Vec<(usize, &str, &[&str])> = calls
        .flat_map(|(op, family)| {
            let places = fragment.match_indices(&format!(" {op}(")).map(|(at, _)| at + 1).collect::<Vec<_>>();
            places.into_iter().map(move |at| (at, *op, *family))
        })
        .collect();
    if found.is_empty() {
        return false;
    }
    let (at, op, family) = random.pick(&found);
    let others: Vec<&str> = family.iter().copied().filter(|other| *other != op).collect();
    fragment.replace_range(at..at + op.len(), random.pick(&others));
    true
}

fn number(fragment: &mut String, random: &mut Random) -> bool {
    let attribute =
        |at: &usize| matches!(fragment[..*at].chars().next_back(), Some('=' | '[' | ' ')) && fragment[..*at].rfind('=').is_some();
    let digits = fragment.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).filter(attribute);
    let digits: Vec<usize> = digits.filter(|at| fragment[..*at].rfind('(').is_some_and(|open| fragment[open..*at].contains('='))).collect();
    if digits.is_empty() {
        return false;
    }
    let at = random.pick(&digits);
    let digit = fragment.as_bytes()[at] - b'0';
    let other = if digit > 0 && random.once_in(2) { digit - 1 } else { (digit + 1) % 10 };
    fragment.replace_range(at..=at, &other.to_string());
    true
}

fn operands(fragment: &mut String, random: &mut Random) -> bool {
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '`'));
    let mut found = Vec::new();
    for (open, _) in fragment.match_indices('(') {
        let rest = &fragment[open + 1..];
        let end = rest.find(')').unwrap_or(0);
        let mut parts = rest[..end].split(", ");
        if let (Some(x), Some(y)) = (parts.next(), parts.next())
            && plain(x)
            && plain(y)
            && x != y
        {
            found.push((open + 1, x.to_string(), y.to_string()));
        }
    }
    if found.is_empty() {
        return false;
    }
    let (at, x, y) = random.pick(&found);
    fragment.replace_range(at..at + x.len() + 2 + y.len(), &format!("{y}, {x}"));
    true
}

fn redirect(graph: &Graph, step: &mut Step, random: &mut Random) -> bool {
    let values: Vec<ValueId> = graph.ids().map(NodeId::out).filter(|v| graph.ty(*v).is_some()).collect();
    let old = match step.redirects.first() {
        Some((old, _)) => *old,
        None => random.pick(&values),
    };
    // Results of earlier steps are not known here.
    if graph.get(old.node).is_none() {
        return false;
    }
    let others: Vec<ValueId> = values.into_iter().filter(|v| *v != old && graph.ty(*v) == graph.ty(old)).collect();
    if others.is_empty() {
        return false;
    }
    let new = random.pick(&others);
    match step.redirects.first_mut() {
        Some(first) => first.1 = new,
        None => step.redirects.push((old, new)),
    }
    true
}
