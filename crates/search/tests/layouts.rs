//! Searches over a target that no searcher knows, states priced in their layouts, and layouts
//! spelled as transposes.

mod common;

use common::{Walk, fixtures, network, normalized, outputs, shipped};
use regraft_certify::{GraphPath, Prover, Replayer, Step, Trail};
use regraft_cost::layout::PLAIN;
use regraft_cost::{CostModel, LaidOut, LayoutTarget, Ns, Roofline};
use regraft_ir::{Bindings, Graph, NodeId, OpKind, Trust, canonical_key, text};
use regraft_rules::{Anything, Library, parse};
use regraft_search::{Backtrack, Descents, Engine, Greedy, Matcher, MetaFlow, Sample, Steps, Strategy, spell};

/// A device that multiplies in an order of its own, and knows few other operators in it.
const DEVICE: &str = r#"{
  "name": "device", "about": "for tests", "views": true,
  "layouts": [
    {"name": "last", "orders": [[0, 2, 3, 1]]},
    {"name": "turned", "orders": [[1, 0], [0, 2, 1]]}
  ],
  "changes": [{"ns": 1000, "ns-per-byte": 0}],
  "kernels": [
    {"operators": ["Conv"], "each": ["last"], "price": {"times": 0.25}},
    {"operators": ["MatMul"], "operands": ["plain", "plain"], "results": ["turned"], "price": {"times": 0.5}},
    {"operators": ["Abs", "Relu", "Add", "Mul", "Concat", "MaxPool"], "each": ["last", "turned"]}
  ]
}"#;

/// Neg is cheaper than Abs, which knows the layout of convolutions.
struct Prices;

impl CostModel for Prices {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        match graph.node(id).op.kind() {
            _ if graph.node(id).constant => 0,
            OpKind::Input => 0,
            OpKind::Conv => 4_000,
            OpKind::MatMul => 3_000,
            OpKind::Transpose => 1_000,
            OpKind::Abs => 150,
            _ => 100,
        }
    }
}

fn device() -> LayoutTarget {
    LayoutTarget::parse("device", DEVICE).unwrap_or_else(|e| panic!("{e}"))
}

fn strategies() -> Vec<Box<dyn Strategy>> {
    vec![
        Box::new(Greedy::default()),
        Box::new(Backtrack::default()),
        Box::new(MetaFlow::default()),
        Box::new(Sample::default()),
        Box::new(Descents::default()),
    ]
}

#[test]
fn every_search_finds_what_pays_by_the_layouts_of_a_new_target() {
    let (target, prices) = (device(), Prices);
    let joint = LaidOut::new(&prices, &target, Bindings::new());
    let plain = joint.plain();
    let library = Library::new(parse("t", "(rule change (neg ?x) => (abs ?x) (numeric exact))").expect("a rule")).expect("a library");
    let conv = "strides=[1,1], pads=[0,0,0,0], dilations=[1,1], group=1";
    let graph = text::parse(&format!(
        "graph (x: f32[1,4,8,8]) {{ const w: f32[4,4,1,1] a = Conv(x, w, {conv}) b = Neg(a) y = Conv(b, w, {conv}) output y }}"
    ))
    .expect("a graph");
    for strategy in strategies() {
        let found = |model: &dyn CostModel| {
            let mut engine = Engine::new(graph.clone(), model);
            let outcome = strategy.search(&mut engine, &mut Matcher::new(&library, &Anything), &mut Steps(10_000));
            let best = outcome.scripts[0].clone();
            best.moves.iter().for_each(|step| engine.apply(step));
            assert_eq!((engine.cost(), model.total(engine.graph())), (best.cost, best.cost), "{}", strategy.name());
            (best.moves.len(), engine.into_graph())
        };
        let (by_plain, by_joint) = (found(&plain), found(&joint));
        assert_eq!((by_plain.0, by_joint.0), (0, 1), "{}", strategy.name());
        // Two convolutions, Neg between two changes more; or Abs between none.
        let sequential = joint.total(&by_plain.1);
        assert_eq!(
            (sequential, joint.total(&by_joint.1)),
            (2 * 1_000 + 4 * 1_000 + 100, 2 * 1_000 + 2 * 1_000 + 150),
            "{}",
            strategy.name()
        );
    }
}

#[test]
fn steps_and_undoing_them_keep_the_cost_of_the_best_layouts() {
    let (target, prices, library) = (device(), Prices, shipped());
    let model = LaidOut::new(&prices, &target, Bindings::new());
    let mut differing = 0;
    for (name, graph) in fixtures() {
        for seed in 0..4 {
            let mut walk = Walk::new(graph.clone(), &library, &model, seed);
            let mut costs = vec![walk.engine.cost()];
            for _ in 0..12 {
                let Some(step) = walk.pick() else { break };
                let title = walk.title(&step);
                walk.step(&step);
                assert_eq!(walk.engine.cost(), model.total(walk.engine.graph()), "{name}: {title}");
                differing += usize::from(walk.engine.cost() != model.plain().total(walk.engine.graph()));
                costs.push(walk.engine.cost());
            }
            while let Some(cost) = costs.pop() {
                assert_eq!(walk.engine.cost(), cost, "{name}");
                walk.engine.undo();
            }
        }
    }
    assert!(differing > 50, "{differing}");
}

/// Spells the best layouts of a graph: the graph, whose total is that of the assignment, and how
/// many changes there were. Every edit is proved where it is.
fn spelled(model: &LaidOut<'_>, graph: &Graph, shown: &str) -> (Graph, usize) {
    let (assignment, kernels) = (model.assignment(graph), model.all_kernels(graph));
    let mut engine = Engine::new(graph.clone(), model);
    let moves = spell(&mut engine, model.target(), &assignment, &kernels, 0).expect("orders of axes");
    assert_eq!(engine.graph().topological().len(), engine.graph().len(), "{shown}: no cycle");
    // The changes of the spelled graph are its transposes, one for each.
    let rounding = assignment.changes.len() as Ns;
    assert!(engine.cost().abs_diff(assignment.total) <= rounding, "{shown}: {} is not {}", engine.cost(), assignment.total);
    let after = engine.graph().clone();
    let made = after.ids().filter(|id| after.node(*id).op.kind() == OpKind::Transpose).count();
    let before = graph.ids().filter(|id| graph.node(*id).op.kind() == OpKind::Transpose).count();
    assert!(made - before <= 3 * assignment.changes.len() && made - before >= assignment.changes.len(), "{shown}: {made} {before}");
    engine.rewind(0);
    let mut steps = Vec::new();
    for step in &moves {
        steps.push(Step::of(engine.graph(), &step.nodes, step.patch()).expect("data"));
        engine.apply(step);
    }
    let trail = Trail { place: GraphPath::default(), label: String::new(), start: canonical_key(graph), steps };
    let (mut replayer, mut replayed) = (Replayer::asking(Prover), graph.clone());
    replayer.follow(&mut replayed, &trail).unwrap_or_else(|e| panic!("{shown}: {e:?}"));
    assert_eq!(canonical_key(&replayed), canonical_key(&after), "{shown}");
    for judged in &replayer.judged {
        assert_eq!(judged.trust, Trust::Proved, "{shown}: {}: {}", judged.rule, judged.why);
    }
    (after, assignment.changes.len())
}

#[test]
fn layouts_are_spelled_as_proved_transposes_at_the_same_price() {
    let (target, prices, library) = (device(), Prices, shipped());
    let model = LaidOut::new(&prices, &target, Bindings::new());
    let mut changes = 0;
    for (name, graph) in fixtures() {
        for seed in 0..3 {
            let mut walk = Walk::new(graph.clone(), &library, &model, seed);
            for _ in 0..4 {
                let graph = walk.engine.graph();
                let (after, made) = spelled(&model, graph, &format!("{name}: {}", text::print(graph)));
                changes += made;
                for (one, other) in outputs(graph, seed).iter().zip(&outputs(&after, seed)) {
                    assert_eq!(format!("{one:?}"), format!("{other:?}"), "{name}");
                }
                let Some(step) = walk.pick() else { break };
                walk.step(&step);
            }
        }
    }
    assert!(changes > 50, "{changes}");
}

#[test]
fn a_network_keeps_its_layouts_but_for_its_borders() {
    let target = LayoutTarget::read("gpu-model").expect("shipped");
    let prices = Roofline { bindings: Bindings::new(), machine: target.machine.expect("it has one") };
    let model = LaidOut::new(&prices, &target, Bindings::new());
    let graph = network("paper-resnet-n2");
    let (after, changes) = spelled(&model, &graph, "paper-resnet-n2");
    assert!((1..=2).contains(&changes), "{changes}");
    let after = normalized(after);
    let (again, kernels) = (model.assignment(&after), model.all_kernels(&after));
    // A transpose that moves elements and a change cost the same.
    assert!(again.changes.len() <= changes && again.bound == again.total, "{again:?}");
    let is_plain =
        |at: usize| kernels[at].all.get(again.kernels[at]).is_none_or(|kernel| kernel.results.iter().all(|layout| *layout == PLAIN));
    assert!((0..after.capacity()).filter(|at| !is_plain(*at)).count() > 10, "{again:?}");
}
