//! The list of rules that need a known size is complete, and each has a reason.

use std::path::Path;

use regraft_audit::open_sizes_document;
use regraft_ir::text;
use regraft_rules::{Library, Proofs};

/// Graphs of open sizes in which rules apply whose instances do not show it.
const EXAMPLES: [(&str, &str); 11] = [
    ("transpose-below-split", "graph (x: f32[N,6,M]) { t = Transpose(x, perm=[1,0,2]) a, b = Split(t, axis=0, sizes=[2,4]) output a }"),
    ("squeeze-of-split-as-gather", "graph (x: f32[N,3,M]) { a, b = Split(x, axis=1, sizes=[1,2]) y = Squeeze(a, axes=[1]) output y }"),
    (
        "gather-of-matmul-rows",
        "graph (x: f32[N,S,8]) { const w: f32[8,4] const i: i64[1] = 0 m = MatMul(x, w) y = Gather(m, i, axis=1) output y }",
    ),
    ("slice-of-all", "graph (x: f32[N,H,W]) { y = Slice(x, axes=[1], starts=[0], ends=[H], steps=[1]) output y }"),
    (
        "conv-add-smaller-kernel",
        "graph (x: f32[N,4,H,W]) {
           const w: f32[8,4,3,3] const v: f32[8,4,1,1]
           a = Conv(x, w, dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1])
           b = Conv(x, v, dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1])
           y = Add(a, b) output y }",
    ),
    (
        "conv-of-space-to-depth",
        "graph (x: f32[N,3,2*H,2*W]) {
           const w: f32[8,12,3,3]
           a = SpaceToDepth(x, blocksize=2)
           y = Conv(a, w, dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]) output y }",
    ),
    (
        "pointwise-conv-of-slice",
        "graph (x: f32[N,3,H,W]) {
           const w: f32[8,3,1,1]
           a = Slice(x, axes=[2,3], starts=[0,0], ends=[H,W], steps=[2,2])
           y = Conv(a, w, dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]) output y }",
    ),
    (
        "pointwise-conv-of-upsample-concat-first",
        "graph (x: f32[N,3,H,W], z: f32[N,2,2*H,2*W]) {
           const w: f32[8,5,1,1]
           u = Upsample(x, scales=[1,1,2,2]) c = Concat(u, z, axis=1)
           y = Conv(c, w, dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]) output y }",
    ),
    (
        "pointwise-conv-of-upsample-concat-last",
        "graph (x: f32[N,3,H,W], z: f32[N,2,2*H,2*W]) {
           const w: f32[8,5,1,1]
           u = Upsample(x, scales=[1,1,2,2]) c = Concat(z, u, axis=1)
           y = Conv(c, w, dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]) output y }",
    ),
    (
        "rms-norm-from-pow-one-over",
        "graph (x: f32[N,S,8]) {
           const two: f32[] = 2 const one: f32[] = 1 const e: f32[] = 0.01 const w: f32[8]
           p = Pow(x, two) m = ReduceMean(p, axes=[2], keepdims=true) v = Add(m, e)
           r = Sqrt(v) i = Div(one, r) y = Mul(x, i) z = Mul(y, w) output z }",
    ),
    (
        "rms-norm-from-mul-one-over",
        "graph (x: f32[N,S,8]) {
           const one: f32[] = 1 const e: f32[] = 0.01 const w: f32[8]
           p = Mul(x, x) m = ReduceMean(p, axes=[2], keepdims=true) v = Add(m, e)
           r = Sqrt(v) i = Div(one, r) y = Mul(x, i) z = Mul(y, w) output z }",
    ),
];

/// `REGRAFT_UPDATE_SNAPSHOTS=1` rewrites the document.
#[test]
fn every_rule_that_needs_a_known_size_has_a_reason() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/open-sizes.md");
    let examples = EXAMPLES.map(|(rule, graph)| (rule, text::parse(graph).unwrap()));
    let reasons = include_str!("open-sizes.txt");
    let said = open_sizes_document(Library::shipped().unwrap().rules(), &Proofs::shipped(), &examples, reasons).unwrap();
    if std::env::var_os("REGRAFT_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&document, &said).unwrap();
    }
    let written = std::fs::read_to_string(&document).unwrap();
    assert!(said == written, "REGRAFT_UPDATE_SNAPSHOTS=1 writes docs/open-sizes.md anew:\n{said}");
}
