use std::collections::BTreeSet;

use regraft_ir::OpKind;
use regraft_onnx::Model;

use super::*;

/// Number of models among which every operator must appear.
const WITHIN: u64 = 800;

#[test]
fn every_operator_appears() {
    let mut missing: BTreeSet<&str> = OpKind::ALL.iter().map(|k| k.name()).collect();
    let (mut opsets, mut formats) = (BTreeSet::new(), BTreeSet::new());
    for number in 0..WITHIN {
        let case = generate::case(1, number);
        let model = Model::from_bytes(case.bytes().into(), None).unwrap_or_else(|e| panic!("model {number}: {e}"));
        opsets.extend(model.opset(""));
        formats.insert(case.model.ir_version());
        let graph = model.graph();
        for id in graph.ids() {
            missing.remove(graph.node(id).op.kind().name());
        }
    }
    assert!(missing.is_empty(), "no random model has {missing:?}");
    assert_eq!(opsets, generate::OPSETS.collect());
    assert_eq!(formats, (3..=13).collect());
}

#[test]
fn same_seed_same_model() {
    for number in 0..40 {
        let (a, b) = (generate::case(7, number), generate::case(7, number));
        assert_eq!(a.bytes(), b.bytes());
        assert_eq!(a.feeds.len(), b.feeds.len());
    }
    assert_ne!(generate::case(7, 0).bytes(), generate::case(8, 0).bytes());
}

#[test]
fn random_models_hold() {
    let bench = match Bench::open() {
        Ok(bench) => bench,
        Err(why) if std::env::var_os("REGRAFT_REQUIRE_ONNXRUNTIME").is_some() => panic!("{why:#}"),
        Err(_) => return,
    };
    let fuzz = Fuzz { models: SHORT, seed: 3, from: 0, short: true, keep: None, export: None };
    let tally = campaign(&bench, &fuzz).unwrap();
    assert!(tally.broken.is_empty(), "{}", tally.broken.join("\n"));
    let refused: usize = tally.refused.values().sum();
    assert!(refused * 20 < SHORT as usize && tally.excused.len() * 20 < SHORT as usize, "{tally:?}");
    assert!(tally.rewrites > SHORT as usize, "rules hardly fire: {tally:?}");
    assert!(tally.uncertified.len() * 50 < SHORT as usize, "{}", tally.uncertified.join("\n"));
}
