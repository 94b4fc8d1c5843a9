//! The text format: what it reads, what it writes, and how it reports mistakes.

use regraft_ir::text::{parse, parse_first, print};
use regraft_ir::{Graph, Op, canonical_key};

fn graph(text: &str) -> Graph {
    parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Reads, prints, and reads again: names, types, structure and text are preserved.
fn check(text: &str) -> Graph {
    let first = graph(text);
    let printed = print(&first);
    let second = graph(&printed);
    assert_eq!(canonical_key(&first), canonical_key(&second), "{text}\nprinted as\n{printed}");
    assert_eq!(print(&second), printed);
    let names = |g: &Graph| g.outputs().iter().map(|o| (o.name.to_string(), g.ty(o.value).map(ToString::to_string))).collect::<Vec<_>>();
    assert_eq!(names(&first), names(&second));
    second
}

#[test]
fn reading_and_printing_are_inverse() {
    let texts = [
        "graph (x: f32[N,64]) { const w: f32[64,32]  p = MatMul(x, w) q, r = Split(p, axis=1, sizes=[16,16])  output p, q }",
        "graph net (x: f32[N,64]) { const w: f32[64,32] const v: f32[64,16] m = MatMul(x, Concat(w, v, axis=1)) p, q = Split(m, axis=1, sizes=[32, 16]) output p, q }",
        "graph () { }",
        "graph (x: f32[]) { output x }",
        "graph (x: f32[]) { output x as y, x as z, Relu(x) as w }",
        "graph (x: f32[N*2+1, floor(M - 7, 2), broadcast(A, B), (N+1)*(N-1)]) { y = Relu(x) output y }",
        "graph (x: f32[N, 6]) { y = Reshape(x, shape=[N, 2, 3]) z = Reshape(y, shape=[6*N]) output z }",
        "graph (x: f32[`batch size`, `f32`], `a/b:0`: i64[]) { `out put` = Relu(x) output `out put`, `a/b:0` }",
        "graph (x: f32[5]) { y = Pad(x, pads=[1, 0], mode=\"constant\", value=-1.5) z = Pad(x, pads=[1, 0], mode=\"edge\", value=0) output y, z }",
        "graph (x: f32[5]) { y = Pad(x, pads=[1, 0], mode=\"constant\", value=-inf) output y }",
        "graph (x: f32[5]) { y = Slice(x, axes=[0], starts=[4], ends=[-1], steps=[-2]) output y }",
        "graph () { a = ConstantOfShape(shape=[2, 3], value=f32[1](0.5)) b = ConstantOfShape(shape=[2], value=i64[1](-9223372036854775808)) output a, b }",
        "graph () { const a: f32[3] = [1, 0.1, -1e-7] const b: f32[] = 3.0 const c: i64[2,2] = [1, 2, 3, -4] const d: bool[2] = [true, false] const e: f32[2] = 0.25 \
         const f: f64[2] = [0.1, inf] const g: f16[2] = [0.1, -0.0] const h: u64[1] = [9223372036854775807] const i: f32[0] = [] const j: bf16[2] = -2 output a, b, c, d, e, f, g, h, i, j }",
        "graph () { const a: f32[2,3] const b: i64[7] const c: bool[9] const d: f64[2] output a, b, c, d }",
        "graph (x: f32[N]) { y, z = opaque:Foo(x, _, Relu(x)) -> f32[N], ? w = opaque:com.example::Bar(z | x, why=\"no type rule\") -> i64[] opaque:Sink(x) output y, w }",
        "graph (x: f32[N]) { a = opaque:Foo(x, id=7) -> f32[N] b = opaque:Foo(| x) -> f32[N] output a, b }",
        "graph (x: f32[N]) { a = opaque:Foo(x, why=\"it draws\", effects=true) -> f32[N] output a }",
        "graph (x: f32[4]) { _, y = Split(x, axis=0, sizes=[1, 3]) output y ; the end\n}",
    ];
    for text in texts {
        check(text);
    }
}

#[test]
fn the_look_is_fixed() {
    let text = "graph (x: f32[N,64]) {
  const w: f32[64,32]
  const s: f32[] = 0.5
  const t: f32[3] = [1.0, 0.1, 2.0]
  p = MatMul(x, w)
  q, r = Split(p, axis=1, sizes=[16, 16])
  u = opaque:Foo(q, _ | s) -> f32[2*N,3], ?
  output p, r as rest
}
";
    let text = text.replace("u = opaque", "u, v0 = opaque");
    assert_eq!(print(&graph(&text)), text);
}

#[test]
fn unnamed_values_get_names_that_collide_with_none() {
    let g = check("graph (v0: f32[2]) { y = Relu(Relu(Relu(v0))) const v2: f32[2] z = Add(y, v2) output z as v1 }");
    assert!(print(&g).contains("output z as v1"));
    let mut g = graph("graph (x: f32[2]) { output x }");
    let y = g.add(Op::Relu(regraft_ir::ops::activation::Relu {}), &[g.inputs()[0].out()]).unwrap();
    g.add_output("y", y.out());
    assert_eq!(print(&g), "graph (x: f32[2]) {\n  y = Relu(x)\n  output x, y\n}\n");
}

#[test]
fn seeded_data_depends_on_the_name_alone() {
    let data = |name: &str, ty: &str| {
        let g = graph(&format!("graph () {{ const {name}: {ty} output {name} }}"));
        g.constant(g.outputs()[0].value).unwrap().to_f64().unwrap()
    };
    assert_eq!(data("w", "f32[100]"), data("w", "f32[100]"));
    assert_ne!(data("w", "f32[100]"), data("v", "f32[100]"));
    assert_eq!(data("w", "f32[100]")[..50], data("w", "f32[5,10]")[..], "a longer tensor goes on");
    let reals = data("w", "f32[10000]");
    let mean = reals.iter().sum::<f64>() / 10000.0;
    let square = reals.iter().map(|v| v * v).sum::<f64>() / 10000.0;
    assert!(reals.iter().all(|v| (-1.0..1.0).contains(v)) && mean.abs() < 0.03 && (square - 1.0 / 3.0).abs() < 0.02, "{mean} {square}");
    for wanted in 0..3 {
        assert!(data("w", "i64[50]").contains(&f64::from(wanted)));
    }
    assert!(data("w", "i64[50]").iter().all(|v| (0.0..3.0).contains(v)));
    // Fixtures rely on this data never changing.
    assert_eq!(data("w", "f32[3]"), [-0.861_478_090_286_254_9, 0.821_183_204_650_878_9, 0.314_123_034_477_233_9]);
}

#[test]
fn mistakes_are_placed_and_hinted() {
    for (text, line, column, message, hint) in [
        ("graf (x: f32[2]) { }", 1, 1, "`graf` where `graph`", "a graph looks like"),
        ("graph (x: f33[2]) { }", 1, 11, "`f33` is no element type", "f32 f64"),
        ("graph (x: f32[2]) {\n  y = Relu(z)\n}", 2, 12, "no value is called `z`", "did you mean `x`"),
        ("graph (x: f32[2]) {\n  y = Rellu(x)\n}", 2, 7, "no operator is called `Rellu`", "did you mean `Relu`"),
        ("graph (x: f32[2]) {\n  y = Quux(x)\n}", 2, 7, "no operator is called `Quux`", "opaque:Quux"),
        ("graph (x: f32[2]) { y = Concat(x, x) }", 1, 25, "needs the attribute `axis`", "add `axis=..`"),
        ("graph (x: f32[2]) { y = Concat(x, axis=\"a\") }", 1, 25, "cannot be \"a\"", "words are quoted"),
        ("graph (x: f32[2]) { y = Relu(x, axis=1) }", 1, 25, "no attribute `axis`", "`Relu` has no attributes"),
        ("graph (x: f32[2]) { y = Concat(x, axes=1) }", 1, 25, "no attribute `axes`", "known ones: axis"),
        ("graph (x: f32[2], y: f32[3]) { z = Add(x, y) }", 1, 36, "cannot broadcast", "check the operands' types"),
        ("graph (x: f32[N,2]) { y = Squeeze(x, axes=[0]) }", 1, 27, "cannot be shown", "same symbols"),
        ("graph (x: f32[2]) { x = Relu(x) }", 1, 21, "`x` is defined twice", "name of its own"),
        ("graph (x: f32[4]) { y = Split(x, axis=0, sizes=[2, 2]) }", 1, 25, "1 names for 2 results", "every result"),
        ("graph (x: f32[4]) { y = Relu(Split(x, axis=0, sizes=[2, 2])) }", 1, 30, "operand with 2 results", "statement before"),
        ("graph (x: f32[4]) { output Relu(x) }", 1, 28, "output without a name", "as y"),
        ("graph (x: f32[4]) { output x, x }", 1, 31, "two outputs are called `x`", "as other"),
        ("graph () { const w: f32[N] }", 1, 21, "a constant of type f32[N]", "are numbers"),
        ("graph () { const w: f32[2] = [1, 2, 3] }", 1, 28, "makes no f32[2]", "flat row-major"),
        ("graph () { const w: i64[1] = [0.5] }", 1, 28, "makes no i64[1]", "integers for integer types"),
        ("graph () { const w: i64[] = 9223372036854775808 }", 1, 29, "too large", "64 bits"),
        ("graph (x: f32[2N]) { }", 1, 15, "`2N` is no number", "2*N"),
        ("graph (x: f32[broadcast(2, 3)]) { }", 1, 15, "never broadcast", "one of the two is 1"),
        ("graph (x: f32[2]) { y = Tile(x, repeats=[1, 2.5, \"a\"]) }", 1, 41, "mixed kinds", "a list holds"),
        ("graph (x: f32[2]) { y = Gather(x, x, axis=N) }", 1, 43, "`N` as an attribute", "lists"),
        ("graph (x: f32[2]) { # y\n }", 1, 21, "`#` has no meaning", "starts with `;`"),
        ("graph (x: f32[2]) { y = Pad(x, mode=\"edge", 1, 37, "not closed", "same mark"),
        ("graph (x: f32[2]) {", 1, 20, "the end of the text", "names are words"),
        ("graph () { } graph", 1, 14, "`graph` after the graph", "ends with"),
        ("graph (graph: f32[2]) { }", 1, 8, "`graph` where an input's name", "backquotes"),
        ("graph (x: f32[2]) { opaque:Foo(x) -> f32[2] }", 1, 21, "1 results without names", "name = .."),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{error}\n{text}");
        assert!(error.message.contains(message), "{error}\n{text}");
        assert!(error.hint.contains(hint), "{error}\n{text}");
        assert_eq!(error.to_string(), format!("line {line}, column {column}: {} (hint: {})", error.message, error.hint));
    }
}

#[test]
fn no_text_is_too_strange() {
    let deep = format!("graph (x: f32[1]) {{ y = {}x{} output y }}", "Relu(".repeat(5000), ")".repeat(5000));
    assert!(parse(&deep).expect_err("deep").message.contains("nested"));
    let sizes = format!("graph (x: f32[{}1{}]) {{ }}", "(".repeat(5000), ")".repeat(5000));
    assert!(parse(&sizes).expect_err("deep").message.contains("nested"));
    let minus = format!("graph (x: f32[{}N]) {{ }}", "-".repeat(5000));
    assert!(parse(&minus).is_err());
    let huge = "graph () { const w: f32[1000000,1000000] }";
    assert!(parse(huge).is_err());
    // Every prefix, and every text with one character replaced, is refused or read without a panic.
    let text = "graph g (x: f32[N,4]) { const w: f32[4,2] = [1, 2, -3, 4e1, 5, 6, 7, 8] p, _ = Split(MatMul(x, w), axis=1, sizes=[1, 1]) y = opaque:a::B(p, _ | x, why=\"\\u{e9}\") -> ? output p, y as `z` }";
    graph(text);
    for at in 0..text.len() {
        let _ = parse(&text[..at]);
        for c in ["(", ")", ",", "-", "\"", "`", "9", "é", " ", "|", "\\"] {
            let _ = parse(&format!("{}{c}{}", &text[..at], &text[at + 1..]));
        }
    }
}

#[test]
fn a_graph_may_be_followed_by_other_text() {
    let text = "graph (x: f32[2]) { y = Relu(x) output y } => graph (x: f32[2]) { output x } $";
    let (first, at) = parse_first(text).unwrap();
    assert_eq!(first.outputs()[0].name.as_ref(), "y");
    let (second, after) = parse_first(text[at..].trim_start_matches(" =>")).unwrap();
    assert_eq!(second.outputs()[0].name.as_ref(), "x");
    assert!(after > 0 && parse(text).is_err());
}
