//! Rules at sizes and attributes that occur in models, as a certificate sees them: fast
//! convolutions have arbitrary weights and several groups; attributes are single-precision numbers.

use regraft_ir::{Graph, normal, text};
use regraft_prove::{Allowance, Assumptions, equal, equal_within};
use regraft_rules::{Anything, Library, instantiate, matches_at};

/// A convolution of a 14 x 14 image by 3 x 3 kernels, with numeric weights, so that rules that need
/// constants apply.
fn convolution(groups: usize, pads: &str) -> Graph {
    let (channels, filters) = (32 * groups, 32 * groups);
    let weights: Vec<String> = (0..filters * 32 * 9).map(|at| format!("{at}.5")).collect();
    let weights = weights.join(", ");
    let source = format!(
        "graph (x: f32[1,{channels},14,14]) {{\n  const w: f32[{filters},32,3,3] = [{weights}]\n  y = Conv(x, w, strides=[1, 1], pads=[{pads}], dilations=[1, 1], \
         group={groups})\n  output y\n}}\n"
    );
    text::parse(&source).expect("a graph")
}

/// The graph after applying the rule at its output.
fn rewritten(graph: &Graph, rule: &str) -> Graph {
    let library = Library::shipped().expect("rules");
    let rule = library.get(rule).expect("a rule");
    let found = matches_at(graph, rule, 0, graph.outputs()[0].value.node);
    let patch = instantiate(graph, rule, found.first().expect("a place"), &Anything).expect("a target");
    let mut after = graph.clone();
    after.apply(&patch);
    normal::dce(&mut after);
    after
}

/// The graph with its weights as an input.
fn with_any_weights(graph: &Graph, groups: usize) -> Graph {
    let printed = text::print(graph);
    let kept: Vec<&str> = printed.lines().filter(|line| !line.trim_start().starts_with("const w:")).collect();
    let source = kept.join("\n").replacen("]) {", &format!("], w: f32[{},32,3,3]) {{", 32 * groups), 1);
    text::parse(&source).expect("a graph")
}

#[test]
fn attributes_of_single_precision_are_read_as_decimals() {
    // The single-precision number next to 0.0005, and what remains of a fifth of it, which is not
    // the one next to 0.0001.
    for (alpha, size) in [(0.0005f32, 5), (0.0001, 5), (0.0001, 3), (1.0, 4)] {
        let source = format!(
            "graph (x: f32[1,96,N,N]) {{\n  y = LRN(x, size={size}, alpha={:?}, beta=0.75, bias=2.0)\n  output y\n}}\n",
            f64::from(alpha)
        );
        let graph = text::parse(&source).unwrap_or_else(|e| panic!("{e}\n{source}"));
        let verdict = equal(&graph, &rewritten(&graph, "lrn-three-quarters"));
        assert!(verdict.is_proved(), "alpha {alpha}, size {size}");
    }
}

#[test]
fn fast_convolutions_are_proved_for_any_weights() {
    // The second graph is derived from a convolution with these pads.
    for (rule, groups, pads, equal) in [
        ("winograd-2-split", 1, "1, 1, 1, 1", true),
        ("winograd-2-split", 2, "1, 1, 1, 1", true),
        ("winograd-2-batched", 2, "1, 1, 1, 1", true),
        ("winograd-2-split", 2, "0, 1, 2, 1", false),
    ] {
        let plain = with_any_weights(&convolution(groups, "1, 1, 1, 1"), groups);
        let fast = with_any_weights(&rewritten(&convolution(groups, pads), rule), groups);
        let allowance = Allowance { by_tables: 4_000_000, by_cases: 100_000, ..Allowance::default() };
        let verdict = equal_within(&plain, &fast, &Assumptions::default(), allowance);
        assert_eq!(verdict.is_proved(), equal, "{rule}, {groups} groups, pads {pads}: {verdict:?}");
    }
}

#[test]
fn fast_convolutions_are_proved_at_sizes_that_are_computed_from_those_of_an_input() {
    // Behind layers of stride 2, and of an upsampling.
    for size in ["floor(H + 1, 2)", "floor(floor(H + 1, 2) + 1, 2)", "2*floor(H + 1, 2)"] {
        let width = size.replace('H', "W");
        let source = format!(
            "graph (image: f32[N,3,H,W], x: f32[N,32,{size},{width}]) {{\n  const w: f32[32,32,3,3]\n  \
             y = Conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], group=1)\n  output y\n}}\n"
        );
        let graph = text::parse(&source).unwrap_or_else(|e| panic!("{e}\n{source}"));
        let verdict = equal(&graph, &rewritten(&graph, "winograd-2-batched"));
        assert!(verdict.is_proved(), "{size}: {verdict:?}");
    }
}
