//! Nodes that are equal only to themselves.

use std::collections::HashSet;

use crate::import::standard;
use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto};

/// Operators of the standard domain that draw at random, whatever their attributes: a seed makes a
/// sequence, not a function.
const RANDOM: [&str; 6] = ["RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"];
/// Operators of ONNX Runtime that draw at random or train.
const CONTRIB: [&str; 5] = ["BiasDropout", "BitmaskDropout", "BitmaskBiasDropout", "BatchNormInternal", "Sampling"];
/// Its domain.
const MICROSOFT: &str = "com.microsoft";

/// Knows which nodes of a model have effects: those that draw at random, those in training mode,
/// calls of local functions that contain one, and nodes with a body that does, at any depth. Two of
/// them are never equal, even on equal operands.
///
/// Uncertainty counts as an effect: a training mode that is computed, or passed to a function. Any
/// other operator of a custom domain is assumed to be a function of its operands.
pub(crate) struct Effects<'m> {
    opsets: &'m [OperatorSetIdProto],
    /// Local functions with effects: domain and name. Overloads count together.
    functions: HashSet<(&'m str, &'m str)>,
    /// All local functions: they hide operators of the same name.
    local: HashSet<(&'m str, &'m str)>,
}

impl<'m> Effects<'m> {
    /// The effects of a model.
    pub fn of(model: &'m ModelProto) -> Effects<'m> {
        let local = model.functions.iter().map(|f| (standard(f.domain()), f.name())).collect();
        let mut effects = Effects { opsets: &model.opset_import, functions: HashSet::new(), local };
        loop {
            let found = model.functions.iter().filter(|f| f.node.iter().any(|node| effects.within(node, &f.opset_import)));
            let found: HashSet<(&str, &str)> = found.map(|f| (standard(f.domain()), f.name())).collect();
            if found == effects.functions {
                return effects;
            }
            effects.functions = found;
        }
    }

    /// Whether a node of the model's graph, or of a body in it, has effects.
    pub fn has(&self, node: &NodeProto) -> bool {
        self.within(node, self.opsets)
    }

    fn within(&self, node: &NodeProto, opsets: &[OperatorSetIdProto]) -> bool {
        let called = (standard(node.domain()), node.op_type());
        let own = if self.local.contains(&called) { self.functions.contains(&called) } else { draws_or_trains(node, opsets) };
        let body = |graph: &GraphProto| graph.node.iter().any(|inner| self.within(inner, opsets));
        own || node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs)).any(body)
    }
}

/// Whether the operator itself draws at random or trains, or may do so.
fn draws_or_trains(node: &NodeProto, opsets: &[OperatorSetIdProto]) -> bool {
    let domain = standard(node.domain());
    if !domain.is_empty() {
        return domain == MICROSOFT && CONTRIB.contains(&node.op_type());
    }
    let version = opsets.iter().find(|o| standard(o.domain()).is_empty()).map_or(1, OperatorSetIdProto::version);
    let given = |names: &[String], at: usize| names.get(at).is_some_and(|name| !name.is_empty());
    let attribute = |name: &str| node.attribute.iter().find(|a| a.name() == name);
    let is_test = || attribute("is_test").is_some_and(|a| a.ref_attr_name().is_empty() && a.i() != 0);
    let training = |a: &AttributeProto| !a.ref_attr_name().is_empty() || a.i() != 0;
    match (node.op_type(), version) {
        ("Dropout" | "BatchNormalization", ..7) => !is_test(),
        ("Dropout", 12..) => given(&node.input, 2),
        ("BatchNormalization", 7..14) => (1..node.output.len()).any(|at| given(&node.output, at)),
        ("BatchNormalization", 14..) => attribute("training_mode").is_some_and(training),
        (kind, _) => RANDOM.contains(&kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::FunctionProto;

    fn node(domain: &str, kind: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        NodeProto {
            domain: Some(domain.into()),
            op_type: Some(kind.into()),
            input: names(inputs),
            output: names(outputs),
            ..NodeProto::default()
        }
    }

    fn with(node: NodeProto, name: &str, value: i64) -> NodeProto {
        let attribute = AttributeProto { name: Some(name.into()), r#type: Some(2), i: Some(value), ..AttributeProto::default() };
        NodeProto { attribute: vec![attribute], ..node }
    }

    fn opset(version: i64) -> OperatorSetIdProto {
        OperatorSetIdProto { domain: None, version: Some(version) }
    }

    #[test]
    fn versions_and_modes_decide() {
        let own = |kind: &str, inputs: &[&str], outputs: &[&str]| node("", kind, inputs, outputs);
        let cases = [
            (own("RandomNormalLike", &["x"], &["y"]), 17, true),
            (with(own("RandomUniform", &[], &["y"]), "seed", 1), 17, true),
            (own("Multinomial", &["x"], &["y"]), 7, true),
            (own("Bernoulli", &["x"], &["y"]), 15, true),
            (node("ai.onnx", "RandomNormal", &[], &["y"]), 17, true),
            (own("Relu", &["x"], &["y"]), 17, false),
            (own("Dropout", &["x"], &["y"]), 6, true),
            (with(own("Dropout", &["x"], &["y"]), "is_test", 1), 6, false),
            (own("Dropout", &["x"], &["y", "mask"]), 7, false),
            (own("Dropout", &["x", "r"], &["y"]), 13, false),
            (own("Dropout", &["x", "r", ""], &["y"]), 13, false),
            (own("Dropout", &["x", "", "t"], &["y"]), 13, true),
            (own("BatchNormalization", &["x"], &["y"]), 9, false),
            (own("BatchNormalization", &["x"], &["y", "", "v"]), 9, true),
            (own("BatchNormalization", &["x"], &["y"]), 15, false),
            (with(own("BatchNormalization", &["x"], &["y"]), "training_mode", 0), 15, false),
            (with(own("BatchNormalization", &["x"], &["y"]), "training_mode", 1), 15, true),
            (own("BatchNormalization", &["x"], &["y"]), 1, true),
            (node("com.microsoft", "BitmaskDropout", &["x"], &["y"]), 17, true),
            (node("com.example", "RandomNormal", &["x"], &["y"]), 17, false),
        ];
        for (node, version, want) in cases {
            let model = ModelProto { opset_import: vec![opset(version)], ..ModelProto::default() };
            assert_eq!(Effects::of(&model).has(&node), want, "{node:?} at opset {version}");
        }
    }

    /// `outer` calls `inner` within a body, which draws; `plain` does not, nor does one that shares
    /// a random operator's name.
    #[test]
    fn calls_and_bodies_pass_effects_on() {
        let function = |name: &str, nodes: Vec<NodeProto>| FunctionProto {
            domain: Some("f".into()),
            name: Some(name.into()),
            node: nodes,
            opset_import: vec![opset(17)],
            ..FunctionProto::default()
        };
        let around = |inner: NodeProto| {
            let body = GraphProto { node: vec![inner], ..GraphProto::default() };
            let branch = AttributeProto { name: Some("then_branch".into()), r#type: Some(5), g: Some(body), ..AttributeProto::default() };
            NodeProto { attribute: vec![branch], ..node("", "If", &["c"], &["y"]) }
        };
        let call = |name: &str| node("f", name, &["x"], &["y"]);
        let functions = vec![
            function("outer", vec![around(around(call("inner")))]),
            function("inner", vec![node("", "RandomNormalLike", &["x"], &["y"])]),
            function("plain", vec![node("", "Relu", &["x"], &["y"]), call("Bernoulli")]),
            function("Bernoulli", vec![node("", "Tanh", &["x"], &["y"])]),
            function("circle", vec![call("circle")]),
        ];
        let model = ModelProto { opset_import: vec![opset(17)], functions, ..ModelProto::default() };
        let effects = Effects::of(&model);
        for (node, want) in [
            (call("inner"), true),
            (call("outer"), true),
            (around(around(call("outer"))), true),
            (call("plain"), false),
            (call("Bernoulli"), false),
            (around(call("plain")), false),
            (call("circle"), false),
        ] {
            assert_eq!(effects.has(&node), want, "{node:?}");
        }
    }
}
