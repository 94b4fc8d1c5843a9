//! Help, versions, and mistakes in the arguments.

use crate::run::Bench;

/// Every command, and a word that its help must hold.
const COMMANDS: [(&str, &str); 32] = [
    ("", "Exit codes:"),
    ("optimize", "--min-speedup"),
    ("check", "--tolerance"),
    ("bench", "--engine"),
    ("synthesize", "--max-error"),
    ("policy", "regraft-train"),
    ("explain", "report"),
    ("report", "--no-profile"),
    ("farm", "--ray"),
    ("task", "--attached"),
    ("completions", "SHELL"),
    ("manual", "COMMAND"),
    ("rules", "exercise"),
    ("rules list", "--numeric"),
    ("rules explain", "NAME"),
    ("rules exercise", "--instances"),
    ("zoo", "emit"),
    ("zoo list", "--json"),
    ("zoo emit", "--dynamic"),
    ("cost", "calibrate"),
    ("cost show", "--filter"),
    ("cost calibrate", "--report"),
    ("cost record", "--bind"),
    ("cost export", "FILE"),
    ("cost import", "FILE"),
    ("cost clear", "--yes"),
    ("egraph", "extract"),
    ("egraph extract", "--method"),
    ("egraph bench", "FOLDER"),
    ("egraph dump", "--iterations"),
    ("egraph search", "--seed"),
    ("help optimize", "--min-speedup"),
];

#[test]
fn every_command_has_help() {
    let bench = Bench::new();
    for (command, word) in COMMANDS {
        let asked = if command.starts_with("help") { command.to_string() } else { format!("{command} --help") };
        let out = bench.ok(&asked);
        assert!(out.contains("Usage: regraft") && out.contains(word), "`{asked}`: {out}");
        let widest = out.lines().map(|l| l.chars().count()).max().unwrap_or(0);
        assert!(widest <= 120, "`{asked}` has a line of {widest} characters");
    }
    assert!(bench.ok("--version").starts_with("regraft "));
}

#[test]
fn mistakes_are_one_line_with_a_hint() {
    let bench = Bench::new();
    for (words, parts) in [
        ("optimise m.onnx", &["unrecognized subcommand 'optimise'", "'optimize'"][..]),
        ("optimize", &["required", "<IN>", "`regraft optimize --help`"]),
        ("optimize m.onnx --budgt 3s", &["'--budgt'", "'--budget'"]),
        ("optimize m.onnx --budget soon", &["`soon` is not a time", "60s"]),
        ("optimize m.onnx --shape 1,3", &["has no `:`", "input:1,3,224,224"]),
        ("optimize m.onnx --bind N", &["`N` is not `SYMBOL=SIZE`"]),
        ("optimize m.onnx --allow-growth 4Q", &["`4Q` is not a unit; use K, M, G or T", "`regraft optimize --help`"]),
        ("optimize m.onnx --min-speedup fast", &["`fast` is no ratio"]),
        ("optimize m.onnx --threads 0", &["--threads", "0"]),
        ("optimize m.onnx --search annealing", &["annealing", "greedy"]),
        ("optimize m.onnx --cost guessed", &["`guessed` is none of measured, roofline and profile:FILE"]),
        ("bench --here a.onnx b.onnx --threads 2", &["cannot be used with"]),
        ("bench a.onnx b.onnx --predicted r.json", &["--here"]),
        ("cost record m.onnx", &["--output <FILE>"]),
        ("optimize m.onnx --target tensorrt", &["tensorrt", "onnxruntime", "openvino", "fastest"]),
        ("optimize m.onnx --require certain", &["certain", "proved"]),
        ("optimize m.onnx a.onnx -o b.onnx", &["cannot be used with"]),
        ("check a.onnx b.onnx --tolerance=-1", &["--tolerance", "-1"]),
        ("bench", &["<MODEL>", "`regraft bench --help`"]),
        ("rules list --numeric vague", &["vague", "exact"]),
        ("zoo emit", &["<NAME>", "`regraft zoo emit --help`"]),
        ("optimize m.onnx -q -v", &["cannot be used with"]),
    ] {
        bench.fails(words, parts);
    }
}

#[test]
fn nothing_asked_for_is_a_mistake_too() {
    let bench = Bench::new();
    for words in ["", "rules", "zoo", "cost", "egraph"] {
        let ended = bench.run(words);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "`{words}`");
        assert!(ended.err.contains("Usage: regraft"), "`{words}`: {}", ended.err);
    }
}

#[test]
fn shells_and_manuals_know_every_command() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = bench.ok(&format!("completions {shell}"));
        assert!(["optimize", "report", "min-speedup"].iter().all(|word| text.contains(word)), "{shell}");
    }
    assert!(bench.ok("manual").starts_with(".ie") || bench.ok("manual").contains(".TH"));
    let page = bench.ok("manual rules list");
    assert!(page.contains("SYNOPSIS") && page.contains("json"), "{page}");
    bench.fails("manual magic", &["there is no command `magic`", "regraft --help"]);
    bench.fails("completions magic", &["magic"]);
}
