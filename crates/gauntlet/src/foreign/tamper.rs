//! Models made wrong on purpose.

use regraft_onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto};

use crate::generate::random::Random;

/// Operators that are swapped. None divides: a runtime may crash on an integer division by 0.
const FAMILIES: &[&[&str]] = &[
    &["Relu", "Tanh", "Sigmoid", "Exp", "Neg", "Abs", "Sin", "Softplus", "Erf", "HardSigmoid", "Elu"],
    &["Add", "Sub", "Mul"],
    &["Max", "Min", "Sum", "Mean"],
    &["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"],
    &["MaxPool", "AveragePool"],
    &["GlobalMaxPool", "GlobalAveragePool"],
    &["Floor", "Ceil", "Round"],
    &["Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"],
    &["And", "Or", "Xor"],
    &["ArgMax", "ArgMin"],
    &["Softmax", "LogSoftmax"],
];

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A number in an attribute.
    Attribute,
    /// An element of a weight.
    Weight,
    /// An operator.
    Operator,
    /// The order of two operands.
    Swap,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Attribute, Kind::Weight, Kind::Operator, Kind::Swap];
}

/// The model with one change, and its description; `None` if it has nothing of that kind.
pub fn tampered(model: &ModelProto, kind: Kind, random: &mut Random) -> Option<(ModelProto, String)> {
    let mut model = model.clone();
    let graph = model.graph.as_mut()?;
    let what = match kind {
        Kind::Attribute => attribute(graph, random),
        Kind::Weight => weight(graph, random),
        Kind::Operator => operator(graph, random),
        Kind::Swap => swap(graph, random),
    }?;
    Some((model, what))
}

/// One of the matching items.
fn pick<'g, T>(items: impl Iterator<Item = &'g mut T>, random: &mut Random) -> Option<&'g mut T> {
    let mut items: Vec<&mut T> = items.collect();
    if items.is_empty() {
        return None;
    }
    let at = random.below(items.len());
    Some(items.swap_remove(at))
}

fn place(node: &NodeProto) -> String {
    format!("{} `{}`", node.op_type(), node.output.first().map_or("", String::as_str))
}

fn attribute(graph: &mut GraphProto, random: &mut Random) -> Option<String> {
    let changeable = |a: &AttributeProto| a.i.is_some() || a.f.is_some() || !a.ints.is_empty() || !a.floats.is_empty();
    let nodes = graph.node.iter_mut().filter(|n| n.op_type() != "Constant" && n.attribute.iter().any(changeable));
    let node = pick(nodes, random)?;
    let place = place(node);
    let attribute = pick(node.attribute.iter_mut().filter(|a| changeable(a)), random)?;
    if let Some(i) = &mut attribute.i {
        // Groups, strides and blocks must not be 0.
        *i += if *i > 1 && random.once_in(2) { -1 } else { 1 };
    } else if let Some(f) = &mut attribute.f {
        *f = *f * 1.5 + 0.125;
    } else if !attribute.ints.is_empty() {
        let at = random.below(attribute.ints.len());
        let other = random.below(attribute.ints.len());
        if attribute.ints[at] != attribute.ints[other] {
            attribute.ints.swap(at, other);
        } else {
            attribute.ints[at] += 1;
        }
    } else {
        let at = random.below(attribute.floats.len());
        attribute.floats[at] = attribute.floats[at] * 1.5 + 0.125;
    }
    Some(format!("{} of {place}", attribute.name()))
}

fn weight(graph: &mut GraphProto, random: &mut Random) -> Option<String> {
    let single = |t: &&mut regraft_onnx::proto::TensorProto| t.data_type() == 1 && (t.raw_data().len() >= 4 || !t.float_data.is_empty());
    let tensor = pick(graph.initializer.iter_mut().filter(single), random)?;
    // Nothing is mapped to itself, as -1, infinities and NaN would be.
    let changed = |v: f32| if v == -1.0 || !v.is_finite() { 1.0 } else { v * 1.25 + 0.25 };
    if let Some(raw) = tensor.raw_data.take().filter(|raw| raw.len() >= 4) {
        let mut raw = raw.to_vec();
        let at = random.below(raw.len() / 4) * 4;
        let value = changed(f32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]));
        raw[at..at + 4].copy_from_slice(&value.to_le_bytes());
        tensor.raw_data = Some(raw.into());
    } else {
        let at = random.below(tensor.float_data.len());
        tensor.float_data[at] = changed(tensor.float_data[at]);
    }
    Some(format!("an element of `{}`", tensor.name()))
}

fn operator(graph: &mut GraphProto, random: &mut Random) -> Option<String> {
    let family = |node: &NodeProto| FAMILIES.iter().find(|f| f.contains(&node.op_type()) && node.domain().is_empty());
    let node = pick(graph.node.iter_mut().filter(|n| family(n).is_some()), random)?;
    let place = place(node);
    let others: Vec<&str> = family(node)?.iter().copied().filter(|op| *op != node.op_type()).collect();
    let other = *others.get(random.below(others.len()))?;
    node.op_type = Some(other.into());
    Some(format!("{place} is {other}"))
}

fn swap(graph: &mut GraphProto, random: &mut Random) -> Option<String> {
    let different = |n: &NodeProto| n.input.len() >= 2 && n.input[0] != n.input[1] && !n.input[1].is_empty();
    let divides = |n: &NodeProto| matches!(n.op_type(), "Div" | "Mod");
    let node = pick(graph.node.iter_mut().filter(|n| different(n) && !divides(n)), random)?;
    node.input.swap(0, 1);
    Some(format!("operands of {}", place(node)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn one_thing_is_changed() {
        let mut random = Random::new(7, 0);
        let mut counts = [0; Kind::ALL.len()];
        for number in 0..60 {
            let model = generate::case(5, number).model;
            for (kind, count) in Kind::ALL.into_iter().zip(&mut counts) {
                let Some((wrong, what)) = tampered(&model, kind, &mut random) else { continue };
                let (a, b) = (model.graph.clone().unwrap_or_default(), wrong.graph.clone().unwrap_or_default());
                let nodes = a.node.iter().zip(&b.node).filter(|(x, y)| x != y).count();
                let weights = a.initializer.iter().zip(&b.initializer).filter(|(x, y)| x != y).count();
                assert_eq!((nodes + weights, weights == 1), (1, kind == Kind::Weight), "{what}");
                *count += 1;
            }
        }
        assert!(counts.iter().all(|count| *count >= 20), "{counts:?}");
    }
}
