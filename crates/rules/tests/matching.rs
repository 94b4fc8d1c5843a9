//! What patterns with several operands and results match, and what not.

use regraft_ir::{Attr, DType, Dim, Graph, NodeId, OpKind, TensorType, ValueId, text};
use regraft_rules::{Anything, Refusal, instantiate, matches_at, parse};

const SIDE_BY_SIDE: &str = "(rule r (concat (add ?x ?a) (each (add ?x ?b))) => (add ?x (concat ?a ?b... :axis 0)) (numeric exact))";
const UNDONE: &str = "(rule r (concat (out 0 (split ?x :sizes ?s)) (each (out ?k (split ?x)))) => ?x (when (= ?k (range 1 (len ?s)))) (shared) (numeric exact))";

fn input(graph: &mut Graph, name: &str) -> ValueId {
    graph.add_input(name, TensorType::new(DType::F32, [4]))
}

fn add(graph: &mut Graph, kind: OpKind, attrs: &[(&str, Attr)], operands: &[ValueId]) -> NodeId {
    let attrs: Vec<(String, Attr)> = attrs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    graph.add(kind.with_attrs(&attrs).unwrap(), operands).unwrap()
}

fn halves(graph: &mut Graph, x: ValueId) -> NodeId {
    add(graph, OpKind::Split, &[("axis", Attr::Int(0)), ("sizes", Attr::Ints(vec![2, 2]))], &[x])
}

fn concat(graph: &mut Graph, operands: &[ValueId]) -> ValueId {
    add(graph, OpKind::Concat, &[("axis", Attr::Int(0))], operands).out()
}

/// Number of matches at the node that computes `root`.
fn matches(graph: &mut Graph, rule: &str, root: ValueId) -> usize {
    graph.add_output("y", root);
    matches_at(graph, &parse("t", rule).unwrap()[0], 0, root.node).len()
}

#[test]
fn variables_mean_the_same_in_all_operands_of_each() {
    for (second, expected) in [("x", true), ("z", false)] {
        let mut graph = Graph::new("t");
        let operands: Vec<ValueId> = ["x", "z", "a", "b"].iter().map(|n| input(&mut graph, n)).collect();
        let other = if second == "x" { operands[0] } else { operands[1] };
        let left = add(&mut graph, OpKind::Add, &[], &[operands[0], operands[2]]).out();
        let right = add(&mut graph, OpKind::Add, &[], &[other, operands[3]]).out();
        let root = concat(&mut graph, &[left, right]);
        assert_eq!(matches(&mut graph, SIDE_BY_SIDE, root) > 0, expected, "second operand adds {second}");
    }
}

#[test]
fn several_results_of_one_operator_are_matched_in_the_order_that_guards_ask_for() {
    for (order, expected) in [([0, 1], 1), ([1, 0], 0), ([0, 0], 0)] {
        let mut graph = Graph::new("t");
        let x = input(&mut graph, "x");
        let parts = halves(&mut graph, x);
        let root = concat(&mut graph, &order.map(|port| parts.port(port)));
        assert_eq!(matches(&mut graph, UNDONE, root), expected, "{order:?}");
    }
}

#[test]
fn a_result_that_nothing_reads_is_no_root() {
    let rule = "(rule r (out ?k (split ?x)) => (out ?k (split (relu ?x) :axis 0 :sizes (list 2 2))) (shared) (numeric exact))";
    let mut graph = Graph::new("t");
    let x = input(&mut graph, "x");
    let parts = halves(&mut graph, x);
    assert_eq!(matches(&mut graph, rule, parts.port(1)), 1);
}

#[test]
fn all_results_that_are_read_change_at_once_where_the_rule_holds_for_any() {
    // The rule with a variable port, then with what ties the port to something.
    let rule =
        |clauses: &str| format!("(rule r (out ?k (as ?s (split (neg ?x)))) => (out ?k (split :like ?s ?x)) {clauses} (numeric exact))");
    for (text, expected) in [
        (rule(""), vec![vec![0, 1]]),
        (rule("(shared)"), vec![vec![0, 1]]),
        (rule("(when (< ?k 9)) (shared)"), vec![vec![0], vec![1]]),
        (rule("(when (< ?k 9))"), vec![]),
    ] {
        let mut graph = Graph::new("t");
        let x = input(&mut graph, "x");
        let neg = add(&mut graph, OpKind::Neg, &[], &[x]).out();
        let parts = halves(&mut graph, neg);
        graph.add_output("first", parts.port(0));
        let second = add(&mut graph, OpKind::Relu, &[], &[parts.port(1)]).out();
        graph.add_output("second", second);
        let rule = &parse("t", &text).unwrap()[0];
        let patches =
            matches_at(&graph, rule, 0, parts).iter().map(|found| instantiate(&graph, rule, found, &Anything).unwrap()).collect::<Vec<_>>();
        let changed: Vec<Vec<u32>> = patches.iter().map(|patch| patch.replace.iter().map(|(old, _)| old.port).collect()).collect();
        assert_eq!(changed, expected, "{text}");
        assert!(patches.iter().all(|patch| patch.create.len() == 1), "{patches:?}");
    }
}

#[test]
fn a_root_that_is_its_own_target_stays() {
    let mut graph = Graph::new("t");
    let x = input(&mut graph, "x");
    let (neg, relu) = (add(&mut graph, OpKind::Neg, &[], &[x]).out(), add(&mut graph, OpKind::Relu, &[], &[x]).out());
    graph.add_output("neg", neg);
    graph.add_output("relu", relu);
    let build = |text: &str| {
        let rule = &parse("t", text).unwrap()[0];
        instantiate(&graph, rule, &matches_at(&graph, rule, 0, neg.node)[0], &Anything)
    };
    let patch = build("(rule r (all (neg ?x) (as ?r (relu ?x))) => (all (abs ?x) ?r) (numeric exact))").unwrap();
    assert_eq!(patch.replace.iter().map(|(old, _)| *old).collect::<Vec<_>>(), [neg]);
    let nothing = build("(rule r (all (as ?n (neg ?x)) (as ?r (relu ?x))) => (all ?n ?r) (numeric exact))");
    assert!(matches!(nothing, Err(Refusal::Nothing)), "{nothing:?}");
}

#[test]
fn a_target_that_uses_a_reader_of_its_root_again_is_refused() {
    // relu(x) would become the existing relu(relu(x)), which reads it.
    let mut graph = Graph::new("t");
    let x = input(&mut graph, "x");
    let inner = add(&mut graph, OpKind::Relu, &[], &[x]);
    let outer = add(&mut graph, OpKind::Relu, &[], &[inner.out()]);
    graph.add_output("y", outer.out());
    let rules = parse("t", "(rule r (relu ?x) => (relu (relu ?x)) (shared) (numeric exact))").unwrap();
    let refused = |anchor: NodeId| {
        let found = matches_at(&graph, &rules[0], 0, anchor);
        assert_eq!(found.len(), 1);
        instantiate(&graph, &rules[0], &found[0], &Anything)
    };
    assert_eq!(refused(inner), Err(Refusal::Cycle));
    assert!(refused(outer).is_ok(), "nothing reads it");
}

/// Sizes of `x` and `y` in a sum, and whether a rule with this guard matches it.
fn guarded(sizes: [Dim; 2], guard: &str) -> bool {
    let mut graph = Graph::new("t");
    let [x, y] =
        [("x", &sizes[0]), ("y", &sizes[1])].map(|(name, size)| graph.add_input(name, TensorType::new(DType::F32, [size.clone()])));
    let root = add(&mut graph, OpKind::Add, &[], &[x, y]).out();
    let rule = format!("(rule r (add ?x ?y) => (sub ?x ?y) (where (?n (dim ?x 0)) (?m (dim ?y 0))) (when {guard}) (numeric exact))");
    matches(&mut graph, &rule, root) > 0
}

#[test]
fn undecided_guards_do_not_hold_and_neither_do_their_opposites() {
    let (n, m) = (Dim::symbol("N"), Dim::symbol("M"));
    let undecided = [
        "(= ?n ?m)",
        "(!= ?n ?m)",
        "(< ?n ?m)",
        "(<= ?n ?m)",
        "(= (list ?n 1) (list ?m 1))",
        "(all-equal (shape ?x) ?m)",
        "(uniform (list ?n ?m))",
        "(member ?n (shape ?y))",
        "(every (for ?d (shape ?x) (= ?d ?m)))",
        "(same-shape ?x ?y)",
        "(broadcasts-into ?x ?y)",
        "(along ?x 1 1)",
        "(scalar ?x)",
        "(and (= ?n ?m) true)",
        "(or (= ?n ?m) false)",
        "(if (= ?n ?m) true true)",
        "(= 0 (index-of ?n (shape ?y)))",
        "(= (list) (without (shape ?x) (shape ?y)))",
    ];
    for guard in undecided {
        let opposite = format!("(not {guard})");
        assert!(!guarded([n.clone(), m.clone()], guard), "{guard}");
        assert!(!guarded([n.clone(), m.clone()], &opposite), "{opposite}");
        // For numbers the same guards are decided.
        let sizes = || [Dim::from(2), Dim::from(2)];
        let numbers = guarded(sizes(), guard) != guarded(sizes(), &opposite);
        assert!(numbers, "{guard} of numbers");
    }
}

#[test]
fn what_decides_a_condition_need_not_know_all_of_it() {
    let sizes = || [Dim::symbol("N"), Dim::symbol("M")];
    for (guard, expected) in [
        ("(or (= ?n ?m) true)", true),
        ("(not (and (= ?n ?m) false))", true),
        ("(= (+ ?n 1) (+ 1 ?n))", true),
        ("(!= (+ ?n 1) ?n)", true),
        ("(> (+ ?n 1) ?n)", true),
        ("(not (member (+ ?n 1) (shape ?x)))", true),
        ("(not (shown (= ?n ?m)))", true),
        ("(shown (= ?n ?n))", true),
        ("(shown (!= ?n ?m))", false),
    ] {
        assert_eq!(guarded(sizes(), guard), expected, "{guard}");
    }
}

#[test]
fn a_target_with_an_undecided_if_is_refused() {
    for (size, condition, fits) in [
        (Dim::symbol("N"), "(= (dim ?x 0) 1)", false),
        (Dim::symbol("N"), "(shown (= (dim ?x 0) 1))", true),
        (Dim::from(3), "(= (dim ?x 0) 1)", true),
    ] {
        let mut graph = Graph::new("t");
        let x = graph.add_input("x", TensorType::new(DType::F32, [size]));
        let root = add(&mut graph, OpKind::Relu, &[], &[x]).out();
        graph.add_output("y", root);
        let rule = format!("(rule r (relu ?x) => (if {condition} ?x (neg ?x)) (numeric exact))");
        let rule = &parse("t", &rule).unwrap()[0];
        let found = matches_at(&graph, rule, 0, root.node);
        assert_eq!(instantiate(&graph, rule, &found[0], &Anything).is_ok(), fits, "{condition}");
    }
}

/// The text of a graph after the first match of a rule.
fn rewritten(graph: &str, rule: &str) -> String {
    let mut graph = text::parse(graph).unwrap();
    let rule = &parse("t", rule).unwrap()[0];
    let root = graph.outputs()[0].value.node;
    let patch = instantiate(&graph, rule, &matches_at(&graph, rule, 0, root)[0], &Anything).unwrap();
    graph.apply(&patch);
    text::print(&graph)
}

#[test]
fn elementwise_operators_are_applied_to_a_part_with_their_constants_cut() {
    let halves = "(rule r (softmax :axis 0 (elementwise ?f :axis 1 (transpose ?x)))
        => (softmax :axis 0 (concat :axis 1 (repeat ?i (range 0 2)
             (apply ?f (transpose :perm (list 1 0) (slice ?x :axes (list 0) :starts (list (* ?i 2)) :ends (list (+ (* ?i 2) 2)) :steps (list 1))) (* ?i 2) (+ (* ?i 2) 2)))))
        (numeric exact))";
    let graph = "graph (x: f32[4,3]) {\n  const b: f32[4]\n  const c: f32[] = 2.0\n  e = Transpose(x, perm=[1, 0])\n  s = Add(b, e)\n  m = Mul(s, c)\n  y = Softmax(m, axis=0)\n  output y\n}";
    let after = rewritten(graph, halves);
    assert_eq!(after.matches("Slice(b").count(), 2, "the bias is cut:\n{after}");
    assert_eq!(after.matches("Slice(c").count(), 0, "the number is not:\n{after}");
    assert_eq!(after.matches("Mul(").count(), 2, "{after}");
}

#[test]
fn sums_are_combined_as_a_table_says() {
    let sums = |rows: &str| format!("(rule r (concat ?x ?y) => (concat :axis 0 (combine {rows} ?x ?y)) (numeric exact))");
    let graph = "graph (x: f32[1], y: f32[1]) {\n  z = Concat(x, y, axis=0)\n  output z\n}";
    let rule = &parse("t", &sums("(list (list 1 -1) (list 0 1 1))")).unwrap()[0];
    let parsed = text::parse(graph).unwrap();
    let found = matches_at(&parsed, rule, 0, parsed.outputs()[0].value.node);
    // The result has another size, so the rule is refused, with the sums built.
    assert!(matches!(instantiate(&parsed, rule, &found[0], &Anything), Err(Refusal::OtherType { new, .. }) if new == "f32[4]"));
    for (rows, why) in [
        ("(list (list 2))", "2 is no coefficient"),
        ("(list (list -1))", "a row has no positive coefficient"),
        ("(list (list 0 0 1))", "a row refers to a later one"),
    ] {
        let rule = &parse("t", &sums(rows)).unwrap()[0];
        let found = matches_at(&parsed, rule, 0, parsed.outputs()[0].value.node);
        let refusal = instantiate(&parsed, rule, &found[0], &Anything).unwrap_err();
        assert!(refusal.to_string().contains(why), "{rows}: {refusal}");
    }
}

#[test]
fn an_infinite_value_is_not_read() {
    let rule = "(rule r (max ?x ?c) => (clip ?x :min (value ?c) :max none) (when (splat ?c)) (numeric exact))";
    for (bound, expected) in [("-2.5", true), ("-inf", false)] {
        let graph = text::parse(&format!("graph (x: f32[4]) {{ const c: f32[] = {bound} output Max(x, c) as y }}")).unwrap();
        let root = graph.outputs()[0].value.node;
        let rule = &parse("t", rule).unwrap()[0];
        let made = matches_at(&graph, rule, 0, root).iter().any(|found| instantiate(&graph, rule, found, &Anything).is_ok());
        assert_eq!(made, expected, "{bound}");
    }
}
