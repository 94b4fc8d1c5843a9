//! `regraft rules`.

use std::path::{Path, PathBuf};

use crate::models::Builder;
use crate::run::{Bench, has_runtime};
use crate::skipped::skipped;

const MINE: &str = "\
;; relu(relu(x)) = relu(x)
(rule my-double-relu
  (relu (relu ?x))  =>  (relu ?x)
  (numeric exact)
  (doc \"One is enough.\")
  (instance (?x 2 3)))

;; wrong: the sign is lost
(rule my-wrong-abs
  (abs ?x)  =>  (relu ?x)
  (numeric exact)
  (doc \"Not true.\")
  (instance (?x 2 3)))
";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("my.rules", MINE);
    bench
}

#[test]
fn rules_are_listed_and_filtered() {
    let bench = bench();
    let all = bench.json("rules list --json");
    let all = all.as_array().expect("a list");
    assert!(all.len() >= 80, "{} rules", all.len());
    for rule in all {
        for key in ["name", "file", "line", "numeric", "trust", "doc"] {
            assert!(!rule[key].is_null(), "{key} of {rule}");
        }
    }
    let exact = bench.json("rules list --numeric exact --json");
    let exact = exact.as_array().expect("a list");
    assert!(!exact.is_empty() && exact.len() < all.len() && exact.iter().all(|r| r["numeric"] == "exact"));
    let mine = bench.json("rules list --file my.rules --rules my.rules --json");
    assert_eq!(mine.as_array().map(Vec::len), Some(2));
    let text = bench.ok("rules list double-relu --rules my.rules");
    assert!(text.contains("my.rules:2") && text.contains("One is enough.") && !text.contains("my-wrong-abs"), "{text}");
}

#[test]
fn a_rule_is_explained_with_an_example() {
    let bench = bench();
    let text = bench.ok("rules explain my-double-relu --rules my.rules");
    for part in [
        "my-double-relu  (my.rules:2)",
        "relu(relu(x)) = relu(x)",
        "One is enough.",
        "(relu (relu ?x))",
        "exact: both sides give the same bits",
        "proved: ",
        "Example, before",
        "Example, after",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let (before, after) = text.split_once("Example, after").expect("two graphs");
    let (_, before) = before.split_once("Example, before").expect("two graphs");
    assert_eq!((before.matches("Relu(").count(), after.matches("Relu(").count()), (2, 1), "{text}");
    let wrong = bench.ok("rules explain my-wrong-abs --rules my.rules");
    assert!(wrong.contains("tested: the prover does not show it"), "{wrong}");
    let json = bench.json("rules explain my-double-relu --rules my.rules --json");
    assert!(json["example"]["before"].as_str().is_some_and(|t| t.contains("Relu(")), "{json}");
}

#[test]
fn exercising_finds_counterexamples() {
    let bench = bench();
    let good = bench.ok("rules exercise my-double-relu --rules my.rules --instances 20");
    assert!(good.lines().last().is_some_and(|l| l.starts_with("verdict: 1 of 1 rules held on 20 instances each")), "{good}");
    let bad = bench.run("rules exercise my-double-relu my-wrong-abs --rules my.rules --instances 20");
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(bad.out.contains("refuted: my-wrong-abs (my.rules:9): seed "), "{bad:?}");
    assert!(bad.out.contains("before\n  graph instance (") && bad.out.contains("after\n  graph instance ("), "{bad:?}");
    assert!(bad.verdict().starts_with("verdict: 1 of 2 rules held"), "{bad:?}");
    let json = bench.run("rules exercise my-wrong-abs --rules my.rules --instances 20 --json");
    let rows: serde_json::Value = serde_json::from_str(&json.out).unwrap_or_else(|e| panic!("{e}: {json:?}"));
    assert_eq!((json.code, rows[0]["outcome"].as_str()), (Some(1), Some("refuted")));
}

/// Laws, two of which are one law in its two directions, and one of which follows from the others.
const LAWS: &str = "
(rule my-distributes (mul (add ?x ?y) ?z) => (add (mul ?x ?z) (mul ?y ?z))
  (numeric reassociates) (instance (n 1 2 3) (?x n) (?y n) (?z n)))
(rule my-factors (add (mul ?x ?z) (mul ?y ?z)) => (mul (add ?x ?y) ?z)
  (numeric reassociates) (instance (n 1 2 3) (?x n) (?y n) (?z n)))
(rule my-associates (add (add ?x ?y) ?z) => (add ?x (add ?y ?z))
  (numeric reassociates) (instance (n 1 2 3) (?x n) (?y n) (?z n)))
(rule my-expands (mul (add ?x ?y) (add ?z ?w)) => (add (add (mul ?x ?z) (mul ?x ?w)) (add (mul ?y ?z) (mul ?y ?w)))
  (numeric reassociates) (instance (n 1 2 3) (?x n) (?y n) (?z n) (?w n)))
";

#[test]
fn rules_are_proved_for_all_sizes_and_leading_axes() {
    let bench = bench();
    let rows = bench.json("rules verify conv-add matmul-associate-right my-double-relu --rules my.rules --json");
    let told = |row: &serde_json::Value| (row["word"].clone(), row["unproved"].clone(), row["any_rank"].as_u64() > Some(0));
    // A convolution takes exactly one axis of images.
    assert_eq!(told(&rows[0]), ("proved".into(), 0.into(), false), "{rows}");
    assert_eq!(told(&rows[1]), ("proved".into(), 0.into(), true), "{rows}");
    assert_eq!(rows[2]["unproved"], 0, "{rows}");
    let text = bench.ok("rules explain matmul-associate-right");
    assert!(text.contains("of them hold for any number of leading axes"), "{text}");
    assert!(!bench.ok("rules explain conv-add").contains("leading axes"));
    let wrong = bench.run("rules verify my-wrong-abs --rules my.rules");
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.out.contains("unproved: my-wrong-abs (my.rules:9)"), "{wrong:?}");
}

#[test]
fn axioms_are_compared_on_every_small_instance() {
    let bench = bench();
    let counts = |words: &str| -> Vec<Vec<u64>> {
        let rows = bench.json(words);
        let row =
            |r: &serde_json::Value| ["obligations", "equal", "guarded", "refuted"].iter().filter_map(|key| r[*key].as_u64()).collect();
        rows.as_array().into_iter().flatten().map(row).collect()
    };
    let wanted = [vec![32, 32, 0, 0], vec![66, 38, 28, 0]];
    assert_eq!(counts("rules axioms concat-associates mul-of-one --bound 2 --threads 2 --journal j --json"), wanted);
    bench.fails("rules axioms --journal j", &["the journal j is there already", "--resume"]);
    bench.fails("rules axioms --journal j --resume --bound 3", &["the journal j is of another bound"]);
    // The last line was cut off when the run was killed.
    let mut journal = bench.read("j");
    journal.truncate(journal.len() - 20);
    bench.write("j", &journal);
    assert_eq!(counts("rules axioms concat-associates mul-of-one --bound 2 --journal j --resume --json"), wanted);

    let good = bench.run("rules axioms my-double-relu --rules my.rules --bound 1");
    assert!(good.verdict().starts_with("verdict: 1 of 1 axioms hold on every instance with sizes up to 1 · "), "{good:?}");
    let bad = bench.run("rules axioms --rules my.rules");
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(bad.out.contains("refuted: my-wrong-abs: "), "{bad:?}");
}

#[test]
fn axioms_that_follow_from_others_are_told() {
    let bench = bench();
    bench.write("laws.rules", LAWS);
    let rows = bench.json("rules axioms --rules laws.rules --redundancy --threads 2 --json");
    let shown: Vec<_> =
        rows.as_array().into_iter().flatten().map(|r| (r["axiom"].as_str(), r["follows"].as_bool(), r["spare"].as_bool())).collect();
    let row = |name: &'static str, follows, spare| (Some(name), Some(follows), Some(spare));
    // Each direction of a law follows from the other one, but not both from nothing.
    let wanted = [
        row("my-distributes", true, true),
        row("my-factors", true, false),
        row("my-associates", false, false),
        row("my-expands", true, true),
    ];
    assert_eq!(shown, wanted);
    let told = bench.run("rules axioms --rules laws.rules --redundancy my-expands my-associates");
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.out.contains("my-expands") && told.out.contains("my-distributes, my-factors"), "{told:?}");
    assert!(
        told.verdict().starts_with("verdict: 1 of 2 axioms follow from the others · 1 of them may be left out together · "),
        "{told:?}"
    );
    bench.fails("rules axioms --redundancy --consistency 2", &["--redundancy", "--consistency"]);
}

#[test]
fn chains_of_axioms_are_compared_at_their_ends() {
    let bench = bench();
    bench.write("laws.rules", LAWS);
    let good = bench.run("rules axioms --rules laws.rules --consistency 5 --threads 2 --seed 3");
    assert_eq!(good.code, Some(0), "{good:?}");
    assert!(
        good.verdict().starts_with("verdict: 20 chains of ") && good.verdict().contains(" · 20 end in the same expressions · "),
        "{good:?}"
    );
    bench.write("false.rules", format!("{LAWS}(rule my-wrong (add ?x ?y) => ?x (numeric exact) (instance (n 1 2 3) (?x n) (?y n)))"));
    let bad = bench.run("rules axioms --rules false.rules --consistency 5");
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(bad.out.contains("the ends differ:\ngraph") && bad.out.contains("by my-wrong"), "{bad:?}");
    let counts = bench.json("rules axioms concat-associates mul-of-one --consistency 2 --json");
    assert_eq!(
        (counts["begun"].as_u64(), counts["chains"].as_u64(), counts["broken"].as_array().map(Vec::len)),
        (Some(2), Some(4), Some(0)),
        "{counts}"
    );
}

#[test]
fn mistakes_are_told() {
    let bench = bench();
    bench.fails("rules explain my-double-rleu --rules my.rules", &["no rule `my-double-rleu`", "did you mean `my-double-relu`"]);
    bench.fails("rules exercise zzz", &["no rule `zzz`", "regraft rules list"]);
    bench.write("twice.rules", MINE);
    bench.fails("rules list --rules my.rules --rules twice.rules", &["twice.rules:2", "already defined in my.rules:2"]);
    bench.write("typo.rules", "(rule a (relu ?x) => (relu ?x) (numeric exactly))");
    bench.fails("rules list --rules typo.rules", &["typo.rules:1:", "no numeric class `exactly`", "one of: exact"]);
    bench.write("twice.rules", "(rule twice (relu (relu ?x)) => (relu ?x) (numeric exact) (instance (?x 2)) (instance (?x 3)))");
    bench.fails("rules list --rules twice.rules", &["twice.rules:1:", "rule `twice` has two clauses `instance`"]);
}

/// A rule that is true, one that needs a guard, one that is false, and the first again.
const FOREIGN: &str = "\
(ewadd ?x ?y)=>(ewadd ?y ?x)
(concat 1 4 (conv2d 1 1 0 0 ?x ?v) (conv2d 1 1 0 0 ?x ?w))=>(conv2d 1 1 0 0 ?x (concat 0 4 ?v ?w))
(relu (ewadd ?x ?y))=>(ewadd (relu ?x) (relu ?y))
(ewadd ?a ?b)=>(ewadd ?b ?a)
";

#[test]
fn rules_of_others_are_judged() {
    let bench = Bench::new();
    bench.write("foreign.txt", FOREIGN);
    let ended = bench.run("rules import foreign.txt");
    assert_eq!(ended.code, Some(1), "some are not true as they stand: {ended:?}");
    let verdict = ended.verdict();
    assert!(verdict.starts_with("verdict: 4 rules: 2 true for all shapes, 1 under guards, 1 false · "), "{verdict}");
    assert!(verdict.contains(" · 3 distinct · "), "{verdict}");
    for part in ["a + b => b + a", "true if groups = 1", "same as 0", "relu(a + b) => relu(a) + relu(b)", ": element ["] {
        assert!(ended.out.contains(part), "no `{part}` in {ended:?}");
    }
    assert_eq!(bench.run("rules import foreign.txt --quiet").out.lines().count(), 1);

    let why = bench.run("rules import foreign.txt --proofs 0 --verbose");
    assert!(why.out.contains("rule 0: no proof: no proofs were asked for") && why.verdict().contains(" 0 proved, "), "{why:?}");

    let json = bench.run("rules import foreign.txt --json --threads 1");
    let rows: serde_json::Value = serde_json::from_str(&json.out).unwrap_or_else(|e| panic!("{e}: {json:?}"));
    let verdicts: Vec<&str> = rows.as_array().into_iter().flatten().filter_map(|r| r["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["true", "true-if", "false", "true"]);
    assert_eq!((&rows[1]["guards"][0], &rows[3]["same_as"]), (&"groups = 1".into(), &0.into()));
    assert!(rows[2]["counterexample"]["shapes"][0][1].is_array() && rows[0]["counterexample"].is_null(), "{rows}");

    let markdown = bench.run("rules import foreign.txt --markdown");
    assert!(markdown.out.contains("| 0 | `a + b => b + a` | true for all shapes | "), "{markdown:?}");
    bench.write("true.txt", "ewadd(x,y)==ewadd(y,x)");
    bench.ok("rules import true.txt");
}

#[test]
fn rules_of_others_are_derived() {
    let bench = Bench::new();
    bench.write("foreign.txt", FOREIGN);
    let ended = bench.run("rules import foreign.txt --derive --derivations chains.txt");
    assert!(ended.verdict().contains(" · 3 of 3 true rules derived · "), "{ended:?}");
    let merge = ended.out.lines().find(|l| l.contains("true if groups = 1")).unwrap_or_default();
    assert!(merge.contains("conv-of-filters'") || merge.contains("conv-merge-concat"), "{ended:?}");
    let chains = String::from_utf8(bench.read("chains.txt")).expect("text");
    assert!(chains.contains("; rule 1, family 0: ") && chains.contains("\nby conv-"), "{chains}");

    let json = bench.run("rules import foreign.txt --derive --json --threads 1 --proofs 2");
    let rows: serde_json::Value = serde_json::from_str(&json.out).unwrap_or_else(|e| panic!("{e}: {json:?}"));
    let derived = |row: usize| rows[row]["derivation"]["derived"].as_u64();
    assert_eq!([derived(0), derived(1), derived(2)], [Some(1), Some(2), None], "what is false is not derived: {rows}");
    assert!(rows[0]["derivation"]["steps"].as_array().is_some_and(Vec::is_empty), "both sides are one graph: {rows}");

    let markdown = bench.run("rules import foreign.txt --derive --markdown --proofs 1");
    assert!(markdown.out.contains("| derivation |") && markdown.out.contains("Axioms used"), "{markdown:?}");
    // Without the option nothing is said of it.
    assert!(!bench.run("rules import foreign.txt --json").out.contains("derivation"));
    bench.fails("rules import foreign.txt --derive --derivations no/such/chains.txt", &["no/such", "create it first"]);
}

#[test]
fn mistakes_in_files_of_others_are_told() {
    let bench = Bench::new();
    bench.write("cut.txt", "(relu ?x)=>(relu ?x)\n(relu ?x)=>(relu");
    bench.fails("rules import cut.txt", &["cut.txt: 2:", "rule 1: ", "(hint: "]);
    bench.write("cut.pb", [0x0a, 0x10, 0x0a]);
    bench.fails("rules import cut.pb", &["cut.pb: byte 0: rule 0: it is 16 bytes long, 1 are left", "(hint: the file is cut off)"]);
    bench.fails("rules import cut.txt --format equations", &["cut.txt: 1:1: rule 0: "]);
    bench.fails("rules import none.txt", &["cannot read the rule file none.txt"]);
    bench.write("large.pb", vec![0; 5 << 20]);
    bench.fails("rules import large.pb", &["large.pb has 5242880 bytes", "4 MiB"]);
}

/// The document is made by the command from the file that TASO ships, where that is at hand: beside
/// the checkout, or in the folder that `REGRAFT_FOREIGN_RULES` names. With
/// `REGRAFT_UPDATE_SNAPSHOTS=1` it is written anew.
#[test]
fn the_document_says_what_the_command_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("REGRAFT_FOREIGN_RULES").map_or_else(|| root.join("../shared/data"), PathBuf::from);
    let Ok(bytes) = std::fs::read(folder.join("taso_graph_subst.pb")) else {
        skipped("../shared/data");
        return;
    };
    let bench = Bench::new();
    bench.write("taso_graph_subst.pb", bytes);
    let said = bench.run("rules import taso_graph_subst.pb --derive --markdown").out;
    let document = root.join("docs/foreign-rules.md");
    if std::env::var_os("REGRAFT_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&document, &said).unwrap_or_else(|e| panic!("{}: {e}", document.display()));
    }
    let written = std::fs::read_to_string(&document).unwrap_or_else(|e| panic!("{}: {e}", document.display()));
    let changed: Vec<&str> = said.lines().filter(|line| !written.lines().any(|w| w == *line)).collect();
    assert!(
        changed.is_empty() && said.len() == written.len(),
        "REGRAFT_UPDATE_SNAPSHOTS=1 writes docs/foreign-rules.md anew:\n{}",
        changed.join("\n")
    );
}

const SPEC: &str = "\
(sizes m k)
(assignment (m 4) (k 5))
(assignment (m 6) (k 3))
(variable (x1 x2) m k)
(weight (w1 w2) k k)
(operator relu (?a) (is (relu ?a)))
(operator add (?a ?b) commutative (when (same-shape ?a ?b) (distinct ?a ?b)) (is (add ?a ?b)))
(operator matmul (?a ?b) (when (distinct ?a ?b)) (is (matmul ?a ?b)))
";

#[test]
fn rules_are_generated() {
    let bench = Bench::new();
    bench.write("my.spec", SPEC);
    let out = bench.ok("rules generate my.spec -o my.pairs --threads 2");
    assert!(out.contains("pairs: equal under all assignments"), "{out}");
    assert!(out.lines().last().is_some_and(|l| l.starts_with("verdict: ") && l.contains(" candidates from ")), "{out}");
    let pairs = String::from_utf8(bench.read("my.pairs")).expect("text");
    for part in ["(left (relu (relu x1)))", "(inputs (x1 m k) (x2 m k) (w1 k k))", "(matmul (add x1 x2) w1)"] {
        assert!(pairs.contains(part), "no `{part}` in {pairs}");
    }
    let count = bench.ok("rules generate my.spec --count");
    assert!(
        count.starts_with("verdict: 4 + ")
            && out.contains(count.split(" terms").next().unwrap_or_default().trim_start_matches("verdict: ")),
        "{count}"
    );
    // In parts, with a work folder: the same pairs.
    bench.ok("rules generate my.spec -o 1.part --shard 1/2 --work w");
    bench.ok("rules generate my.spec -o 2.part --shard 2/2");
    let json = bench.json("rules generate my.spec -o merged.pairs --merge 2.part 1.part --json");
    assert_eq!(String::from_utf8(bench.read("merged.pairs")).expect("text"), pairs);
    assert_eq!(json["candidates"].as_u64(), Some(pairs.matches("(pair ").count() as u64), "{json}");
    assert!(json["graphs"].as_u64() > Some(100) && json["orders"].as_u64() > json["graphs"].as_u64(), "{json}");
    // What was done once is not done again, and nothing is overwritten by mistake.
    bench.fails("rules generate my.spec -o 1.part --shard 1/2 --work w", &["w is not empty", "--resume"]);
    bench.ok("rules generate my.spec -o again.part --shard 1/2 --work w --resume");
    assert_eq!(bench.read("again.part"), bench.read("1.part"));
    bench.fails("rules generate my.spec -o 1.part --shard 1/2 --work w --resume --seed 7", &["it belongs to", "name another work folder"]);
}

#[test]
fn mistakes_in_generating_are_told() {
    let bench = Bench::new();
    bench.write("my.spec", SPEC);
    bench.write("bad.spec", SPEC.replace("(is (relu ?a))", "(is (rleu ?a))"));
    bench.fails("rules generate no.spec -o my.pairs", &["no.spec", "check the path"]);
    bench.fails("rules generate bad.spec -o my.pairs", &["bad.spec:6:25: no operator `rleu`"]);
    bench.fails("rules generate my.spec -o no/such/my.pairs", &["no/such"]);
    bench.fails("rules generate my.spec -o my.pairs --size 9", &["1 to 6 operators, not 9"]);
    bench.fails("rules generate my.spec -o my.pairs --memory 1k", &["more than the 512 bytes allowed"]);
    bench.ok("rules generate my.spec -o 1.part --shard 1/2 --size 1");
    bench.fails("rules generate my.spec -o my.pairs --merge 1.part --size 1", &["part 2 of 2 is missing"]);
    bench.fails("rules generate my.spec -o my.pairs --merge my.spec", &["my.spec: this is no part"]);
    assert!(!bench.files().contains(&"my.pairs".to_string()), "{:?}", bench.files());
}

const PAIRS: &str = "(pair 1 (inputs (x1 m k)) (left (relu (relu x1))) (right (relu x1)))
(pair 2 (inputs (x1 m k) (x2 m k) (w1 k k)) (left (matmul (add x1 x2) w1)) (right (add (matmul x1 w1) (matmul x2 w1))))
(pair 3 (inputs (x1 m k) (x2 m k)) (left (relu (add x1 x2))) (right (add (relu x1) (relu x2))))
";

#[test]
fn pruning_goes_on_with_its_journal() {
    let bench = Bench::new();
    bench.write("my.spec", SPEC);
    bench.write("my.pairs", PAIRS);
    let counts = |report: serde_json::Value| (report["pairs"].as_u64(), report["proved"].as_u64(), report["saving"].as_u64());
    let whole = counts(bench.json("rules prune my.spec my.pairs -o whole.ranked --json"));
    assert_eq!((whole.0, whole.1), (Some(3), Some(2)));
    // As if it had been interrupted after the first pair, or in the middle of a line.
    assert_eq!(counts(bench.json("rules prune my.spec my.pairs -o whole.ranked --journal j --json")), whole);
    let journal = String::from_utf8(bench.read("j")).expect("text");
    assert_eq!(journal.lines().count(), 4, "{journal}");
    let cut: Vec<&str> = journal.lines().take(2).collect();
    bench.write("j", format!("{}\n0123", cut.join("\n")));
    assert_eq!(counts(bench.json("rules prune my.spec my.pairs -o again.ranked --journal j --json")), whole);
    assert_eq!(bench.read("again.ranked"), bench.read("whole.ranked"));
    // What the journal says is taken, not looked for again.
    bench.write("j", journal.replace(" proved", " unproved"));
    assert_eq!(counts(bench.json("rules prune my.spec my.pairs -o none.ranked --journal j --json")).1, Some(0));
    bench.fails("rules prune my.spec my.pairs -o my.ranked --journal j --work 1", &["it belongs to", "name another file"]);
    bench.fails("rules prune my.spec my.pairs -o my.ranked --journal my.spec", &["my.spec: it is no journal"]);
}

#[test]
fn rules_are_ranked_by_what_they_save_in_a_network() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("my.spec", SPEC);
    bench.write("my.pairs", PAIRS);
    let model = Builder::new()
        .input("x", &["8", "16"])
        .input("y", &["8", "16"])
        .weight("w", &[16, 16])
        .node("MatMul", &["x", "w"], &["p"])
        .node("MatMul", &["y", "w"], &["q"])
        .node("Add", &["p", "q"], &["s"])
        .output("s", &["8", "16"]);
    bench.write("net.onnx", model.bytes());
    let prune = "rules prune my.spec my.pairs --rank measured --network net.onnx --cost-store s.db --json";
    let report = bench.json(&format!("{prune} -o my.paid --budget 5s"));
    let paid = report["paid"].as_array().expect("a list");
    let rule = |words: &str| paid.iter().find(|one| one["rule"].as_str().is_some_and(|name| name.contains(words)));
    let merged = rule("add-matmul-as-matmul-add").unwrap_or_else(|| panic!("{report}"));
    assert_eq!((merged["network"].as_str(), merged["places"].as_u64()), (Some("net"), Some(2)), "{report}");
    assert_eq!(merged["measured"].as_bool(), Some(true), "{report}");
    assert!(rule("relu-relu").is_none(), "it is not met: {report}");
    let text = String::from_utf8(bench.read("my.paid")).expect("text");
    assert!(text.contains(";;   net: ") && text.contains("(rule found-add-matmul-as-matmul-add"), "{text}");
    // The same store, the same ranks.
    let (one, other) = (bench.json(&format!("{prune} -o 1.paid --frozen")), bench.json(&format!("{prune} -o 2.paid --frozen")));
    assert_eq!(one["paid"], other["paid"]);
    assert_eq!(bench.read("1.paid"), bench.read("2.paid"));
    bench.fails("rules prune my.spec my.pairs --rank measured --network no.onnx -o my.paid", &["no.onnx", "zoo list"]);
}
