//! Normal forms, the canonical key, and that patches undo exactly.

use std::collections::{HashMap, HashSet};

use regraft_ir::eval::{NoOpaque, run};
use regraft_ir::normal::{CSE, DCE, cse, cse_steps, dce, dce_steps, undo};
use regraft_ir::ops::{activation, arithmetic, concat, matmul, split, transpose};
use regraft_ir::text::{parse, print};
use regraft_ir::{
    DType, Graph, NewNode, NodeId, Op, OpKind, Patch, PatchValue, SplitMix64, Tensor, TensorType, Value, ValueId, canonical_key,
};
use smallvec::SmallVec;

fn graph(text: &str) -> Graph {
    parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn key(text: &str) -> u128 {
    canonical_key(&graph(text))
}

/// A random operator on 4×4 matrices with its number of operands; it may have several results.
fn random_op(random: &mut SplitMix64) -> (Op, usize) {
    match random.below(8) {
        0 => (Op::Add(arithmetic::Add {}), 2),
        1 => (Op::Sub(arithmetic::Sub {}), 2),
        2 => (Op::Mul(arithmetic::Mul {}), 2),
        3 => (Op::MatMul(matmul::MatMul {}), 2),
        4 => (Op::Relu(activation::Relu {}), 1),
        5 => (Op::Transpose(transpose::Transpose { perm: vec![1, 0] }), 1),
        6 => (Op::Transpose(transpose::Transpose { perm: vec![0, 1] }), 1),
        _ => (Op::Concat(concat::Concat { axis: random.below(2) as i64 }), 2),
    }
}

/// A random graph of 4×4 values, made from few operators so that equal nodes are common.
fn random_graph(seed: u64) -> Graph {
    let mut random = SplitMix64(seed);
    let mut g = Graph::new("random");
    let ty = TensorType::new(DType::F32, [4i64, 4]);
    let mut values: Vec<ValueId> = (0..2).map(|i| g.add_input(&format!("x{i}"), ty.clone())).collect();
    for _ in 0..2 {
        let data: Vec<f64> = (0..16).map(|i| f64::from(i % 3) * if random.below(2) == 0 { 1.0 } else { 0.5 }).collect();
        let fill = if random.below(2) == 0 { vec![1.0; 16] } else { data };
        values.push(g.add_const(regraft_ir::Const::from_f64(DType::F32, &[4, 4], &fill).unwrap()));
    }
    for _ in 0..6 + random.below(14) {
        let (op, arity) = random_op(&mut random);
        let operands: Vec<ValueId> = (0..arity).map(|_| values[random.below(values.len())]).collect();
        let wide = matches!(&op, Op::Concat(_));
        let axis = if let Op::Concat(c) = &op { c.axis } else { 0 };
        let node = g.add(op, &operands).unwrap();
        if wide {
            let parts = g.add(Op::Split(split::Split { axis, sizes: vec![4, 4] }), &[node.out()]).unwrap();
            values.extend([parts.port(0), parts.port(1)]);
        } else {
            values.push(node.out());
        }
    }
    for i in 0..1 + random.below(4) {
        let value = values[values.len() - 1 - random.below(values.len().min(8))];
        g.add_output(&format!("y{i}"), value);
    }
    g
}

/// The same graph, unnamed and with its nodes in another order.
fn shuffled(g: &Graph, seed: u64) -> Graph {
    let mut random = SplitMix64(seed);
    let mut copy = Graph::new("shuffled");
    let mut placed: HashMap<NodeId, NodeId> = HashMap::new();
    for (i, id) in g.inputs().iter().enumerate() {
        let ty = g.ty(id.out()).unwrap().clone();
        placed.insert(*id, copy.add_input(&format!("other{i}"), ty).node);
    }
    loop {
        let ready: Vec<NodeId> =
            g.ids().filter(|id| !placed.contains_key(id) && g.node(*id).inputs.iter().all(|v| placed.contains_key(&v.node))).collect();
        if ready.is_empty() {
            break;
        }
        let id = ready[random.below(ready.len())];
        let node = g.node(id);
        let mut operands: Vec<ValueId> = node.inputs.iter().map(|v| placed[&v.node].port(v.port)).collect();
        if node.op.kind().commutative() && random.below(2) == 0 {
            operands.reverse();
        }
        placed.insert(id, copy.add_typed(node.op.clone(), &operands, node.types.to_vec()));
    }
    for output in g.outputs() {
        copy.add_output(&format!("{}'", output.name), placed[&output.value.node].port(output.value.port));
    }
    copy
}

/// Readers of a node, sorted.
type Users = Vec<(NodeId, u32)>;

/// Everything that undoing must restore.
fn state(g: &Graph) -> (String, Vec<Users>, u128, usize) {
    let users = |id: NodeId| {
        let mut users = g.node(id).users.to_vec();
        users.sort_unstable();
        users
    };
    (print(g), g.ids().map(users).collect(), canonical_key(g), g.capacity())
}

/// Users are exactly the operand slots that read each node, and what depends on what is known.
fn assert_consistent(g: &Graph) {
    let mut wanted: HashMap<NodeId, Vec<(NodeId, u32)>> = g.ids().map(|id| (id, Vec::new())).collect();
    for id in g.ids() {
        for (slot, value) in g.node(id).inputs.iter().enumerate() {
            wanted.get_mut(&value.node).expect("operands are alive").push((id, slot as u32));
        }
    }
    for (id, mut users) in wanted {
        let mut have = g.node(id).users.to_vec();
        have.sort_unstable();
        users.sort_unstable();
        assert_eq!(have, users, "users of {id:?} in\n{}", print(g));
    }
    assert!(g.outputs().iter().all(|o| g.get(o.value.node).is_some()));
    assert_eq!(g.topological().len(), g.len(), "no cycles");
    for id in g.ids() {
        let mut above = vec![id];
        let mut at = 0;
        while at < above.len() {
            let read = g.node(above[at]).inputs.iter().map(|value| value.node);
            above.extend(read.filter(|id| !above.contains(id)).collect::<HashSet<_>>());
            at += 1;
        }
        for other in g.ids() {
            assert_eq!(g.depends([id], &[other]), above.contains(&other), "{id:?} on {other:?} in\n{}", print(g));
        }
    }
}

fn outputs_of(g: &Graph) -> Vec<Value<f64>> {
    let value = |seed: f64| Value::real(Tensor::new(vec![4, 4], (0..16).map(|i| (f64::from(i) * seed).sin()).collect()));
    let names: Vec<String> = g
        .inputs()
        .iter()
        .map(|id| match &g.node(*id).op {
            Op::Input(input) => input.name.to_string(),
            _ => String::new(),
        })
        .collect();
    let feeds = names.into_iter().enumerate().map(|(i, name)| (name, value(i as f64 + 0.7))).collect();
    run(g, &feeds, &mut NoOpaque).unwrap()
}

/// A patch that replaces some values by a few new nodes, which read nothing that depends on those
/// values.
fn random_patch(g: &Graph, random: &mut SplitMix64) -> Option<Patch> {
    let square = TensorType::new(DType::F32, [4i64, 4]);
    let of_type: Vec<ValueId> = g
        .ids()
        .flat_map(|id| (0..g.node(id).types.len() as u32).map(move |port| id.port(port)))
        .filter(|v| g.ty(*v) == Some(&square))
        .collect();
    let targets: Vec<ValueId> = of_type.iter().copied().filter(|v| g.node(v.node).op.kind() != OpKind::Input).collect();
    if targets.is_empty() {
        return None;
    }
    let mut replaced: Vec<ValueId> = Vec::new();
    for _ in 0..1 + random.below(2) {
        let target = targets[random.below(targets.len())];
        if !replaced.contains(&target) {
            replaced.push(target);
        }
    }
    let mut below: Vec<NodeId> = replaced.iter().map(|v| v.node).collect();
    let mut at = 0;
    while at < below.len() {
        for (user, _) in &g.node(below[at]).users {
            if !below.contains(user) {
                below.push(*user);
            }
        }
        at += 1;
    }
    let mut sources: Vec<PatchValue> = of_type.iter().filter(|v| !below.contains(&v.node)).map(|v| PatchValue::Old(*v)).collect();
    let mut create = Vec::new();
    for index in 0..random.below(4) as u32 {
        let (op, arity) = loop {
            let (op, arity) = random_op(random);
            if !matches!(op, Op::Concat(_)) {
                break (op, arity);
            }
        };
        let inputs = (0..arity).map(|_| sources[random.below(sources.len())]).collect();
        create.push(NewNode::new(op, inputs, SmallVec::from_iter([Some(square.clone())])));
        sources.push(PatchValue::New { index, port: 0 });
    }
    let replace = replaced.iter().map(|v| (*v, sources[sources.len() - 1 - random.below(sources.len().min(3))])).collect();
    Some(Patch { cause: "random".into(), create, replace })
}

#[test]
fn patches_undo_exactly() {
    let (mut applied_in_all, mut removed_in_all) = (0, 0);
    for seed in 0..300 {
        let mut g = random_graph(seed);
        let mut random = SplitMix64(seed ^ 0xabcd);
        let mut stack = Vec::new();
        for _ in 0..6 {
            let Some(patch) = random_patch(&g, &mut random) else { continue };
            let before = state(&g);
            let applied = g.apply(&patch);
            assert_consistent(&g);
            applied_in_all += 1;
            removed_in_all += applied.removed.len();
            stack.push((before, applied));
            if random.below(3) == 0 {
                let (before, applied) = stack.pop().unwrap();
                g.undo(applied);
                assert_eq!(state(&g), before, "seed {seed}, {patch:?}");
            }
        }
        while let Some((before, applied)) = stack.pop() {
            g.undo(applied);
            assert_consistent(&g);
            assert_eq!(state(&g), before, "seed {seed}");
        }
    }
    assert!(applied_in_all > 1000 && removed_in_all > 1000, "{applied_in_all} patches removed {removed_in_all} nodes");
}

#[test]
fn normal_forms_keep_the_meaning_and_undo() {
    let (mut merged, mut dropped) = (0, 0);
    for seed in 0..300 {
        let mut g = random_graph(seed);
        let (wanted, before) = (outputs_of(&g), state(&g));
        let names: Vec<_> = g.outputs().iter().map(|o| o.name.clone()).collect();

        let steps = cse_steps(&mut g);
        assert_consistent(&g);
        assert_eq!(outputs_of(&g), wanted, "seed {seed}");
        assert!(steps.iter().all(|s| s.patch.cause.as_ref() == CSE && s.patch.create.is_empty()));
        merged += steps.len();
        let between = state(&g);
        assert_eq!(cse(&mut g), 0, "once is enough");

        let steps_of_dce = dce_steps(&mut g);
        assert_consistent(&g);
        assert_eq!(outputs_of(&g), wanted, "seed {seed}");
        assert!(steps_of_dce.iter().all(|s| s.patch.cause.as_ref() == DCE));
        assert_eq!(canonical_key(&g), between.2, "nodes that no output needs do not count");
        dropped += steps_of_dce.iter().map(|s| s.applied.removed.len()).sum::<usize>();
        assert_eq!(dce(&mut g), 0, "once is enough");
        assert_eq!(g.inputs().len(), 2);
        assert_eq!(g.outputs().iter().map(|o| o.name.clone()).collect::<Vec<_>>(), names);

        undo(&mut g, steps_of_dce);
        assert_eq!(state(&g), between, "seed {seed}");
        undo(&mut g, steps);
        assert_eq!(state(&g), before, "seed {seed}");
    }
    assert!(merged > 100 && dropped > 100, "{merged} merged, {dropped} dropped");
}

#[test]
fn equal_nodes_become_one() {
    for (text, removed, wanted) in [
        ("graph (x: f32[2]) { a = Relu(x) b = Relu(x) c = Add(a, b) output c }", 1, "Add(a, a)"),
        ("graph (x: f32[2], y: f32[2]) { a = Add(x, y) b = Add(y, x) c = Mul(a, b) output c }", 1, "Mul(a, a)"),
        ("graph (x: f32[2], y: f32[2]) { a = Sub(x, y) b = Sub(y, x) c = Mul(a, b) output c }", 0, "Mul(a, b)"),
        (
            "graph (x: f32[2]) { const v: f32[2] = 1 const w: f32[2] = [1, 1] a = Add(x, v) b = Add(x, w) c = Mul(a, b) output c }",
            2,
            "Mul(a, a)",
        ),
        ("graph (x: f32[2]) { const v: f32[2] = 1 const w: f64[2] = 1 a = Add(x, v) output a, w }", 0, "output a, w"),
        ("graph (x: f32[2], y: f32[2]) { a = Add(x, x) b = Add(y, y) output a, b }", 0, "output a, b"),
        (
            "graph (x: f32[4]) { a, b = Split(x, axis=0, sizes=[2, 2]) c, d = Split(x, axis=0, sizes=[2, 2]) e = Add(a, d) output e }",
            1,
            "Add(a, b)",
        ),
        ("graph (x: f32[4]) { a, b = Split(x, axis=0, sizes=[2, 2]) c, d = Split(x, axis=0, sizes=[1, 3]) output a, c }", 0, "output a, c"),
        ("graph (x: f32[2]) { a = opaque:Rand(x) -> f32[2] b = opaque:Rand(x) -> f32[2] c = Add(a, b) output c }", 0, "Add(a, b)"),
        // The node that an output returns stays, whatever its position; two outputs may share one.
        ("graph (x: f32[2]) { a = Relu(x) b = Relu(x) c = Neg2(a) output b, c }", 1, "b = Relu(x)"),
        ("graph (x: f32[2]) { a = Relu(x) b = Relu(x) output a, b }", 1, "output a, a as b"),
        // What read the one that gave way was looked at before.
        ("graph (x: f32[2]) { a = Relu(x) b = Exp(a) c = Relu(x) d = Exp(c) e = Add(b, d) output c, e }", 2, "Add(b, b)"),
    ] {
        let text = text.replace("Neg2(a)", "Add(a, x)");
        let mut g = graph(&text);
        let outputs: Vec<_> = g.outputs().iter().map(|o| o.name.clone()).collect();
        assert_eq!(cse(&mut g), removed, "{text}");
        assert!(print(&g).contains(wanted), "{wanted} is not in\n{}", print(&g));
        assert_eq!(g.outputs().iter().map(|o| o.name.clone()).collect::<Vec<_>>(), outputs);
    }
}

#[test]
fn large_constants_that_differ_in_the_middle_stay_two() {
    let constant = |middle: f64| {
        let mut data = vec![1.0; 1000];
        data[500] = middle;
        regraft_ir::Const::from_f64(DType::F32, &[1000], &data).unwrap()
    };
    for (other, removed) in [(2.0, 0), (1.0, 1)] {
        let mut g = Graph::new("");
        for (name, middle) in [("a", 1.0), ("b", other)] {
            let value = g.add_const(constant(middle));
            g.add_output(name, value);
        }
        assert_eq!(cse(&mut g), removed);
    }
}

#[test]
fn dead_code_goes_with_what_only_it_read() {
    let mut g = graph(
        "graph (x: f32[2], unused: f32[3]) { const w: f32[2] a = Add(x, w) b = Relu(a) c = opaque:Foo(b) -> f32[2] d = Relu(x) e, f = opaque:Two(d) -> f32[2], f32[2] output e }",
    );
    assert_eq!(dce(&mut g), 4, "w, a, b, c");
    assert_eq!(
        print(&g),
        "graph (x: f32[2], unused: f32[3]) {\n  d = Relu(x)\n  e, f = opaque:Two(d, id=1) -> f32[2], f32[2]\n  output e\n}\n"
    );
}

#[test]
fn keys_ignore_names_and_order_and_nothing_else() {
    for seed in 0..100 {
        let g = random_graph(seed);
        for other in 0..3 {
            assert_eq!(canonical_key(&shuffled(&g, seed * 7 + other)), canonical_key(&g), "seed {seed}\n{}", print(&g));
        }
    }
    let base = "graph (x: f32[4,4], y: f32[4,4]) { const w: f32[4,4] = 2 a = Sub(MatMul(x, w), y) p, q = Split(a, axis=1, sizes=[1, 3]) output p, q }";
    let same = "graph g (u: f32[4,4], v: f32[4,4]) { const c: f32[4,4] = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2] k = Relu(u) m = MatMul(u, c) r, s = Split(Sub(m, v), axis=1, sizes=[1, 3]) output r as z, s }";
    assert_eq!(key(base), key(same));
    for (what, from, to) in [
        ("an attribute", "sizes=[1, 3]", "sizes=[3, 1]"),
        ("an axis", "axis=1", "axis=0"),
        ("an operator", "Sub(", "Div("),
        ("operands", "MatMul(x, w)", "MatMul(w, x)"),
        ("which input", ", y)", ", x)"),
        ("a constant's content", "= 2", "= 3"),
        ("a constant's type", "const w: f32[4,4] = 2", "const w: f32[4,4] = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2.5]"),
        ("an input's size", "(x: f32[4,4], y: f32[4,4])", "(x: f32[5,4], y: f32[5,4])"),
        ("the order of inputs", "(x: f32[4,4], y: f32[4,4])", "(y: f32[4,4], x: f32[4,4])"),
        ("the order of outputs", "output p, q", "output q, p"),
        ("which result", "output p, q", "output p, p as q"),
        ("one more output", "output p, q", "output p, q, q as r"),
    ] {
        let changed = base.replace(from, to);
        assert_ne!(changed, base, "{what}");
        assert_ne!(key(&changed), key(base), "{what}");
    }
    let shared = key("graph (x: f32[2]) { a = Relu(x) b = Add(a, a) output b }");
    let twice = key("graph (x: f32[2]) { a = Relu(x) c = Relu(x) b = Add(a, c) output b }");
    assert_ne!(shared, twice, "one node or two");
    let one = key("graph (x: f32[2]) { const v: f32[2] = 1 a = Add(Add(x, v), v) output a }");
    let two = key("graph (x: f32[2]) { const v: f32[2] = 1 const w: f32[2] = 1 a = Add(Add(x, v), w) output a }");
    assert_ne!(one, two, "one constant or two");
    assert_eq!(
        key("graph (x: f32[2], y: f32[2]) { a = Add(x, y) output a }"),
        key("graph (x: f32[2], y: f32[2]) { a = Add(y, x) output a }")
    );
}

#[test]
fn random_edits_change_the_key() {
    let mut changed = 0;
    for seed in 0..200 {
        let mut g = random_graph(seed);
        dce(&mut g);
        let mut random = SplitMix64(seed ^ 0x77);
        let before = canonical_key(&g);
        let Some(patch) = random_patch(&g, &mut random) else { continue };
        g.apply(&patch);
        dce(&mut g);
        let after = canonical_key(&g);
        // Keys are equal only for graphs that are the same up to names and order.
        let same = canonical_text(&g) == {
            let mut original = random_graph(seed);
            dce(&mut original);
            canonical_text(&original)
        };
        assert_eq!(before == after, same, "seed {seed}");
        changed += usize::from(!same);
    }
    assert!(changed > 100, "{changed}");
}

/// The graph as a set of terms with their numbers of copies: an independent, slow form of what the
/// key hashes.
fn canonical_text(g: &Graph) -> String {
    let mut terms: HashMap<NodeId, String> = HashMap::new();
    for id in g.topological() {
        let node = g.node(id);
        let own = match &node.op {
            Op::Input(_) => format!("in{}", g.inputs().iter().position(|i| *i == id).unwrap()),
            Op::Constant(c) => format!("const{:?}", c.value.to_f64()),
            op => {
                let mut operands: Vec<String> = node.inputs.iter().map(|v| format!("{}.{}", terms[&v.node], v.port)).collect();
                if op.kind().commutative() {
                    operands.sort();
                }
                format!("{op:?}({})", operands.join(","))
            }
        };
        // Terms double with depth; a digest of the text keeps them short.
        terms.insert(id, format!("{:x}", xxhash_rust::xxh3::xxh3_128(own.as_bytes())));
    }
    let mut live: Vec<NodeId> = g.outputs().iter().map(|o| o.value.node).collect();
    let mut at = 0;
    while at < live.len() {
        for v in &g.node(live[at]).inputs {
            if !live.contains(&v.node) {
                live.push(v.node);
            }
        }
        at += 1;
    }
    live.sort_unstable();
    live.dedup();
    let mut all: Vec<&str> = live.iter().map(|id| terms[id].as_str()).collect();
    all.sort_unstable();
    let outputs: Vec<String> = g.outputs().iter().map(|o| format!("{}.{}", terms[&o.value.node], o.value.port)).collect();
    format!("{} -> {}", all.join(" "), outputs.join(" "))
}
