//! Assignments against all assignments, targets that are made up, and what ONNX Runtime does.

use regraft_cost::layout::{Chooser, Kernels, LayoutId, PLAIN};
use regraft_cost::{CostModel, LaidOut, LayoutTarget, Ns, Roofline};
use regraft_ir::{Bindings, Graph, NodeId, OpKind, SplitMix64, ValueId, text};

/// A target that nothing else knows: its changes cost by their direction, one kernel makes another
/// layout than it takes, and one layout has blocks.
const MADE_UP: &str = r#"{
  "name": "made-up", "about": "for tests", "views": true,
  "layouts": [
    {"name": "last", "orders": [[0, 2, 3, 1]]},
    {"name": "first", "orders": [[1, 0, 2, 3]]},
    {"name": "blocks", "block": {"rank": 4, "axis": 1, "size": 4}}
  ],
  "changes": [
    {"from": "plain", "to": "last", "ns": 700, "ns-per-byte": 0.2},
    {"to": "plain", "ns": 300, "ns-per-byte": 0.1},
    {"from": "plain", "ns": 900, "ns-per-byte": 0.05}
  ],
  "kernels": [
    {"operators": ["Conv"], "operands": ["last"], "results": ["first|last"], "price": {"times": 0.4}},
    {"operators": ["Conv"], "operands": ["blocks"], "results": ["blocks"], "price": {"times": 0.5}},
    {"operators": ["Relu", "Add"], "each": ["last", "first", "blocks"]},
    {"operators": ["Sigmoid"], "each": ["last"], "price": {"times": 2}},
    {"operators": ["MaxPool"], "operands": ["first"], "results": ["plain"], "price": {"rate": {"ns": 10, "ns-per-byte": 0}}}
  ]
}"#;

/// A price for each kind of operator.
struct Prices;

impl CostModel for Prices {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        let node = graph.node(id);
        match node.op.kind() {
            _ if node.constant => 0,
            OpKind::Input => 0,
            OpKind::Conv => 3_000,
            OpKind::MaxPool => 1_500,
            OpKind::Transpose => 1_000,
            _ => 100,
        }
    }
}

/// A graph of at most `most` operators on images and matrices.
fn random(draw: &mut SplitMix64, most: usize, (image, weight): (&str, &str)) -> Graph {
    let mut lines = vec![format!("const w: f32{weight}")];
    let mut images = vec!["x".to_owned(), "y".to_owned()];
    let mut turned: Vec<String> = Vec::new();
    for at in 0..1 + draw.below(most) {
        let name = format!("v{at}");
        let any = |draw: &mut SplitMix64, of: &[String]| of[draw.below(of.len())].clone();
        let (a, b) = (any(draw, &images), any(draw, &images));
        let line = match draw.below(8) {
            0 | 1 => format!("{name} = Conv({a}, w, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], group=1)"),
            2 => format!("{name} = Relu({a})"),
            3 => format!("{name} = Sigmoid({a})"),
            4 => format!("{name} = Add({a}, {b})"),
            5 if draw.below(2) == 0 => {
                format!("{name} = MaxPool({a}, kernel=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], ceil_mode=false)")
            }
            5 => format!("{name} = Neg({a})"),
            6 if !turned.is_empty() => format!("{name} = Transpose({}, perm=[0, 3, 1, 2])", any(draw, &turned)),
            _ => {
                turned.push(name.clone());
                lines.push(format!("{name} = Transpose({a}, perm=[0, 2, 3, 1])"));
                continue;
            }
        };
        lines.push(line);
        images.push(name);
    }
    let mut outputs: Vec<String> = images.iter().chain(&turned).filter(|name| name.starts_with('v')).cloned().collect();
    while outputs.len() > 1 && draw.below(3) > 0 {
        let _ = outputs.remove(draw.below(outputs.len() - 1));
    }
    let text = format!("graph (x: f32{image}, y: f32{image}) {{ {} output {} }}", lines.join("\n"), outputs.join(", "));
    let mut graph = text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    regraft_ir::normal::cse(&mut graph);
    regraft_ir::normal::dce(&mut graph);
    graph
}

/// What an assignment costs, by the definition: prices of kernels, and each value changed once for
/// each other layout that somebody wants.
fn cost(graph: &Graph, kernels: &[Kernels], chosen: &[usize]) -> Ns {
    let kernel = |id: NodeId| &kernels[id.0 as usize].all[chosen[id.0 as usize]];
    let mut sum: Ns = 0;
    for id in graph.ids().filter(|id| !graph.node(*id).constant) {
        sum = sum.saturating_add(kernel(id).price);
        for port in 0..graph.node(id).types.len() as u32 {
            let value = id.port(port);
            let from = kernel(id).results[port as usize];
            let mut wanted: Vec<LayoutId> = readers(graph, value).filter_map(|(user, slot)| kernel(user).operands[slot as usize]).collect();
            wanted.extend(graph.is_output(value).then_some(PLAIN));
            wanted.sort_unstable();
            wanted.dedup();
            for to in wanted.into_iter().filter(|to| *to != from) {
                sum = sum.saturating_add(kernels[id.0 as usize].changes(port, from, 1 << to));
            }
        }
    }
    sum
}

fn readers(graph: &Graph, value: ValueId) -> impl Iterator<Item = (NodeId, u32)> + '_ {
    graph.users(value).filter(|(user, _)| !graph.node(*user).constant)
}

/// The least cost of all assignments; `None` if there are too many.
fn brute_force(graph: &Graph, kernels: &[Kernels]) -> Option<Ns> {
    let nodes: Vec<usize> =
        graph.ids().filter(|id| !graph.node(*id).constant).map(|id| id.0 as usize).filter(|id| kernels[*id].all.len() > 1).collect();
    let all: usize = nodes.iter().map(|id| kernels[*id].all.len()).product();
    if all > 60_000 {
        return None;
    }
    let mut chosen = vec![0; graph.capacity()];
    let mut best = Ns::MAX;
    loop {
        best = best.min(cost(graph, kernels, &chosen));
        let Some(turn) = nodes.iter().position(|id| chosen[*id] + 1 < kernels[*id].all.len()) else { return Some(best) };
        nodes[..turn].iter().for_each(|id| chosen[*id] = 0);
        chosen[nodes[turn]] += 1;
    }
}

#[test]
fn an_assignment_is_the_cheapest_of_all() {
    let gpu = LayoutTarget::read("gpu-model").expect("shipped");
    let made_up = LayoutTarget::parse("made-up", MADE_UP).expect("well formed");
    let mut draw = SplitMix64(11);
    let roofline = Roofline { bindings: Bindings::new(), machine: gpu.machine.expect("it has one") };
    let cases: [(&LayoutTarget, &dyn CostModel, _); 2] =
        [(&made_up, &Prices, ("[1,8,4,6]", "[8,8,1,1]")), (&gpu, &roofline, ("[16,256,28,28]", "[256,256,1,1]"))];
    for (target, prices, sizes) in cases {
        let model = LaidOut::new(prices, target, Bindings::new());
        let (mut tried, mut gained, mut changed, mut dropped) = (0, 0, 0, 0);
        let none = Bindings::new();
        for _ in 0..400 {
            let graph = random(&mut draw, 8, sizes);
            let kernels = model.all_kernels(&graph);
            let of = |id| {
                if graph.get(id).is_some() {
                    regraft_cost::layout::kernels(target, &none, &graph, id, prices.price(&graph, id))
                } else {
                    Kernels::default()
                }
            };
            let every: Vec<Kernels> = (0..graph.capacity() as u32).map(|id| of(NodeId(id))).collect();
            let Some(least) = brute_force(&graph, &every) else { continue };
            dropped += every.iter().map(|one| one.all.len()).sum::<usize>() - kernels.iter().map(|one| one.all.len()).sum::<usize>();
            let found = model.assignment(&graph);
            let shown = text::print(&graph);
            assert_eq!((found.total, found.bound), (least, least), "{}: {shown}", target.name);
            assert_eq!(model.total(&graph), least, "{shown}");
            assert_eq!(cost(&graph, &kernels, &found.kernels), found.total, "{shown}");
            let running = graph.ids().filter(|id| !graph.node(*id).constant);
            let prices: Ns = running.map(|id| kernels[id.0 as usize].all[found.kernels[id.0 as usize]].price).sum();
            assert_eq!(prices + found.changes.iter().map(|change| change.cost).sum::<Ns>(), found.total, "{shown}");
            let plain = model.plain().total(&graph);
            assert!(found.total <= plain, "{shown}");
            tried += 1;
            gained += usize::from(found.total < plain);
            changed += usize::from(!found.changes.is_empty());
        }
        assert!(target.name == "made-up" || dropped > 200, "{dropped}");
        assert!(tried > 200 && gained > 50 && changed > 50, "{}: {tried} tried, {gained} gained, {changed} with changes", target.name);
    }
}

#[test]
fn what_an_assignment_is_made_of() {
    let target = LayoutTarget::read("gpu-model").expect("shipped");
    let prices = Roofline { bindings: Bindings::new(), machine: target.machine.expect("it has one") };
    let model = LaidOut::new(&prices, &target, Bindings::new());
    let conv = |name: &str, from: &str| format!("{name} = Conv({from}, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], group=1)");
    let cases = [
        // One change before the first of several convolutions, and one after the last.
        (format!("{} r = Relu(a) {} s = Relu(b) {} output c", conv("a", "r0"), conv("b", "r"), conv("c", "s")), 2),
        // What reads a value in the plain layout beside a convolution needs a change of its own.
        (format!("{} r = Relu(a) m = ReduceMean(r, axes=[2, 3], keepdims=false) {} output m, b", conv("a", "r0"), conv("b", "r")), 3),
        // Without a convolution, there is nothing to gain.
        ("a = Sigmoid(r0) b = Add(a, r0) output b".to_owned(), 0),
        // Transposes that only rename what is stored are there already.
        (format!("t = Transpose(n, perm=[0, 3, 1, 2]) {} u = Transpose(a, perm=[0, 2, 3, 1]) output u", conv("a", "t")), 0),
    ];
    for (body, changes) in cases {
        let text = format!("graph (x: f32[8,256,56,56], n: f32[8,56,56,256]) {{ const w: f32[256,256,3,3] r0 = Relu(x) {body} }}");
        let mut graph = text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        regraft_ir::normal::dce(&mut graph);
        let found = model.assignment(&graph);
        assert_eq!(found.changes.len(), changes, "{text}: {found:?}");
        assert_eq!(found.bound, found.total, "{text}");
    }
    // Attention: keys and values are read by the products as they are.
    let heads = "graph (q: f32[1,128,12,64], k: f32[1,128,12,64]) {
        a = Transpose(q, perm=[0, 2, 1, 3]) b = Transpose(k, perm=[0, 2, 3, 1]) s = MatMul(a, b) output s }";
    let graph = text::parse(heads).expect("a graph");
    let (found, plain) = (model.assignment(&graph), model.plain().total(&graph));
    assert!(found.changes.is_empty() && 2 * found.total < plain, "{found:?} {plain}");
}

/// The changes that ONNX Runtime 1.31 makes, as its optimized graphs show them.
#[test]
fn the_runtime_leaves_blocks_where_it_does() {
    let target = LayoutTarget::read("onnxruntime-cpu").expect("shipped");
    assert_eq!(target.chosen_by, Chooser::Target);
    let prices = Roofline::new(Bindings::new());
    let model = LaidOut::new(&prices, &target, Bindings::new());
    let conv = |name: &str, from: &str, weight: &str| {
        format!("{name} = Conv({from}, {weight}, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], group=1)")
    };
    let between = |middle: &str| format!("{} {middle} {} output y", conv("a", "x", "w"), conv("y", "b", "w"));
    let two = |middle: &str| format!("{} {} {middle} {} output y", conv("a", "x", "w"), conv("c", "x", "w"), conv("y", "b", "w"));
    let cases = [
        (format!("{} output y", conv("y", "x", "w")), 2),
        (format!("{} output y", conv("y", "x", "thin")), 2),
        // Few channels are read as they are; a number of them that is no multiple of 4 is no block.
        (format!("{} output y", conv("y", "few", "w3")), 1),
        (format!("{} output y", conv("y", "odd", "w22")), 0),
        (between("b = Relu(a)"), 2),
        (between("b = HardSwish(a)"), 2),
        (between("s = Sigmoid(a) b = Mul(a, s)"), 2),
        (between("b = Exp(a)"), 4),
        (between("b = Add(a, one)"), 4),
        (between("b = Mul(a, scales)"), 2),
        (between("r = Relu(a) b = Add(r, x)"), 4),
        (between("b = MaxPool(a, kernel=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], ceil_mode=false)"), 2),
        (two("b = Add(a, c)"), 2),
        (two("b = Sub(a, c)"), 5),
        (format!("{} {} b = Concat(a, c, axis=1) output b", conv("a", "x", "w"), conv("c", "x", "w")), 2),
        (format!("{} {} b = Concat(a, c, axis=1) output b", conv("a", "x", "w"), conv("c", "x", "thin")), 3),
    ];
    for (body, changes) in cases {
        let text = format!(
            "graph (x: f32[1,64,28,28], few: f32[1,3,28,28], odd: f32[1,22,28,28]) {{ const w: f32[64,64,1,1] const thin: f32[20,64,1,1]
             const w3: f32[64,3,1,1] const w22: f32[64,22,1,1] const one: f32[] const scales: f32[64,1,1] {body} }}"
        );
        let mut graph = text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        regraft_ir::normal::dce(&mut graph);
        let found = model.assignment(&graph);
        assert_eq!(found.changes.len(), changes, "{body}: {:?}", found.changes);
    }
}
