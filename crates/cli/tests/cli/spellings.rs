//! The same computation in the words of several exporters becomes the same graph, and what
//! surrounds it does not matter.

use std::collections::BTreeMap;

use regraft::optimize::{Proposal, Search, SearchKind, clean, propose};
use regraft_cost::Roofline;
use regraft_ir::{Bindings, Graph, OpKind};
use regraft_onnx::{Model, proto};
use regraft_rules::{AtOpset, Library};
use regraft_search::Matcher;

use crate::models::{Builder, twin_products, value, weights};

/// One block: what it is written to, and the ways of exporters to write it, each a list of
/// `Operator inputs > result`.
struct Block {
    name: &'static str,
    opset: i64,
    becomes: &'static [OpKind],
    spellings: &'static [&'static str],
}

/// Numbers that spellings name.
const NUMBERS: [(&str, f32); 10] = [
    ("half", 0.5),
    ("one", 1.0),
    ("two", 2.0),
    ("three", 3.0),
    ("six", 6.0),
    ("zero", 0.0),
    ("root", std::f32::consts::SQRT_2),
    ("over_root", std::f32::consts::FRAC_1_SQRT_2),
    ("sixth", 1.0 / 6.0),
    ("epsilon", 1e-5),
];

const BLOCKS: [Block; 4] = [
    Block {
        name: "GELU",
        opset: 20,
        becomes: &[OpKind::Gelu],
        spellings: &[
            "Div x root > d; Erf d > e; Add e one > f; Mul x f > g; Mul g half > y",
            "Mul x half > h; Mul x over_root > d; Erf d > e; Add one e > f; Mul h f > y",
            "Mul over_root x > d; Erf d > e; Add e one > f; Mul f half > g; Mul g x > y",
            "Div x two > h; Div x root > d; Erf d > e; Add e one > f; Mul f h > y",
            "Div x root > d; Erf d > e; Add one e > f; Mul f x > g; Div g two > y",
        ],
    },
    Block {
        name: "layer normalization",
        opset: 17,
        becomes: &[OpKind::LayerNormalization],
        spellings: &[
            "ReduceMean x > m; Sub x m > d; Pow d two > q; ReduceMean q > v; Add v epsilon > e; Sqrt e > s; Div d s > n; Mul n scale > p; Add p bias > y",
            "ReduceMean x > m; Sub x m > d; Mul d d > q; ReduceMean q > v; Add epsilon v > e; Sqrt e > s; Div d s > n; Mul scale n > p; Add bias p > y",
            "ReduceMean x > m; Sub x m > d; Mul d d > q; ReduceMean q > v; Add v epsilon > e; Sqrt e > s; Reciprocal s > r; Mul d r > n; Mul n scale > p; Add p bias > y",
            "ReduceMean x > m; Sub x m > d; Sub x m > c; Pow c two > q; ReduceMean q > v; Add v epsilon > e; Sqrt e > s; Div one s > r; Mul d r > n; Mul n scale > p; Add p bias > y",
            "ReduceMean x > m; Sub x m > d; Identity d > c; Pow c two > q; ReduceMean q > v; Add v epsilon > e; Sqrt e > s; Div c s > n; Mul n scale > p; Add p bias > y",
        ],
    },
    Block {
        name: "hard swish",
        opset: 17,
        becomes: &[OpKind::HardSwish],
        spellings: &[
            "Add x three > a; Clip a zero six > c; Div c six > d; Mul x d > y",
            "Add three x > a; Clip a zero six > c; Mul c sixth > d; Mul d x > y",
            "Add x three > a; Clip a zero six > c; Mul x c > d; Div d six > y",
            "Add x three > a; Clip a zero six > c; Mul c x > d; Mul d sixth > y",
            "HardSigmoid x > h; Mul x h > y",
        ],
    },
    Block {
        name: "square of differences",
        opset: 17,
        becomes: &[OpKind::Mul, OpKind::Sub],
        spellings: &[
            "Sub x bias > d; Pow d two > y",
            "Sub x bias > d; Mul d d > y",
            "Sub x bias > d; Sub x bias > e; Mul d e > y",
            "Identity x > i; Sub i bias > d; Identity d > e; Mul e d > y",
        ],
    },
];

fn scalar(name: &str, number: f32) -> proto::TensorProto {
    proto::TensorProto { name: Some(name.into()), data_type: Some(1), float_data: vec![number], ..proto::TensorProto::default() }
}

/// A block as a model. `constants` says whether numbers are `Constant` nodes or initializers.
fn model(block: &Block, spelling: &str, constants: bool) -> Model {
    let mut builder = Builder::new().input("x", &["N", "7", "16"]).weight("scale", &[16]).weight("bias", &[16]);
    builder.0.opset_import[0].version = Some(block.opset);
    for (name, number) in NUMBERS {
        let tensor = scalar(name, number);
        if !constants {
            builder.graph().initializer.push(tensor);
            continue;
        }
        builder = builder.node("Constant", &[], &[name]);
        let kind = proto::attribute_proto::AttributeType::Tensor as i32;
        let attribute =
            proto::AttributeProto { name: Some("value".into()), r#type: Some(kind), t: Some(tensor), ..proto::AttributeProto::default() };
        builder.graph().node.last_mut().expect("a node").attribute.push(attribute);
    }
    for line in spelling.split("; ") {
        let (left, result) = line.split_once(" > ").expect("a result");
        let words: Vec<&str> = left.split(' ').collect();
        builder = builder.node(words[0], &words[1..], &[result]);
        let attribute = proto::AttributeProto::default();
        let node = builder.graph().node.last_mut().expect("a node");
        match words[0] {
            "ReduceMean" => {
                let kind = Some(proto::attribute_proto::AttributeType::Ints as i32);
                node.attribute.push(proto::AttributeProto { name: Some("axes".into()), r#type: kind, ints: vec![-1], ..attribute });
            }
            "HardSigmoid" => {
                let kind = Some(proto::attribute_proto::AttributeType::Float as i32);
                node.attribute.push(proto::AttributeProto { name: Some("alpha".into()), r#type: kind, f: Some(1.0 / 6.0), ..attribute });
            }
            _ => {}
        }
    }
    Model::from_proto(builder.output("y", &["N", "7", "16"]).0).unwrap_or_else(|e| panic!("{}: {e}", block.name))
}

fn search(graph: &Graph, opset: i64) -> (Graph, Option<Proposal>) {
    let library = Library::shipped().expect("the rules");
    let prices = Roofline::new(Bindings::from([("N".into(), 4)]));
    let (start, _) = clean(graph);
    let best =
        propose(&start, &prices, &mut Matcher::new(&library, &AtOpset(opset)), &*Search::from(SearchKind::Greedy).strategy(), &mut || {
            false
        })
        .best
        .into_iter()
        .next();
    (start, best)
}

/// How many operators of each kind a graph has; what constants alone decide is constant, and
/// identities cost nothing.
fn operators(graph: &Graph) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    let free = |kind: OpKind| matches!(kind, OpKind::Input | OpKind::Identity);
    for id in graph.ids().filter(|id| !graph.is_constant(id.out()) && !free(graph.node(*id).op.kind())) {
        *count.entry(graph.node(id).op.kind().name().to_string()).or_default() += 1;
    }
    count
}

#[test]
fn all_spellings_of_a_block_become_one() {
    for block in &BLOCKS {
        let want: BTreeMap<String, usize> = block.becomes.iter().map(|kind| (kind.name().to_string(), 1)).collect();
        for (at, spelling) in block.spellings.iter().enumerate() {
            for constants in [false, true] {
                let model = model(block, spelling, constants);
                let (start, best) = search(model.graph(), block.opset);
                let have = operators(best.as_ref().map_or(&start, |p| &p.graph));
                assert_eq!(have, want, "spelling {at} of {}, constants {constants}", block.name);
            }
        }
    }
}

/// Types that a model declares for values inside are a help for readers only.
#[test]
fn declared_sizes_inside_change_nothing() {
    for block in &BLOCKS {
        let plain = model(block, block.spellings[0], false);
        let mut proto = plain.proto().clone();
        let graph = proto.graph.as_mut().expect("a graph");
        let inner: Vec<String> = graph.node.iter().flat_map(|n| &n.output).filter(|name| *name != "y").cloned().collect();
        for name in inner {
            let ty = plain.graph().ids().find_map(|id| {
                let node = plain.graph().node(id);
                let port = node.names.iter().position(|n| n.as_deref() == Some(name.as_str()))?;
                node.types[port].clone()
            });
            let dims: Vec<String> = ty.expect("all types are inferred").shape.iter().map(ToString::to_string).collect();
            graph.value_info.push(value(&name, &dims.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        let declared = Model::from_proto(proto).expect("it is the same model");
        let applied = |model: &Model| search(model.graph(), block.opset).1.map(|p| p.key);
        assert_eq!(applied(&plain), applied(&declared), "{}", block.name);
    }
}

/// What stands beside an operator that nobody knows is optimized as if it were alone.
#[test]
fn neighbours_of_unknown_operators_are_optimized() {
    let alone = twin_products(weights(Builder::new().input("x", &["96", "384"])), "x", "y").output("y", &["96", "384"]);
    let beside = twin_products(weights(Builder::new().input("x", &["96", "384"])), "x", "a").foreign("mine", "Odd", &["a"], &["b"]);
    let beside = twin_products(beside, "b", "y").output("y", &["96", "384"]).0;
    let inner = vec![value("b", &["96", "384"])];
    for (told, value_info, places) in [("with a type", inner, 2), ("without a type", Vec::new(), 1)] {
        let mut proto = beside.clone();
        proto.graph.as_mut().expect("a graph").value_info = value_info;
        let rules = |model: Model| search(model.graph(), 17).1.map_or(0, |p| p.rewrites.len());
        let one = rules(Model::from_proto(alone.0.clone()).expect("a model"));
        let both = rules(Model::from_proto(proto).expect("a model"));
        assert!(one > 0 && both == places * one, "{told}: {both} rewrites, {one} alone");
    }
}
