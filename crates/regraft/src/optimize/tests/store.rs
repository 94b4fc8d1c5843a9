//! What the store remembers saves time and hides nothing, whatever ran before.

use super::*;

/// The fused operator is slow.
const SLOW: Scripted = Scripted { operator: |kind| if kind == "Gelu" { 1_000_000 } else { 10_000 }, ..EVEN };

/// Two operators that do nothing, and one that does.
const CHAIN: [&str; 4] = ["Relu x > a", "Relu a > b", "Neg b > c", "Neg c > y"];

/// The same model with its first size open.
fn open(mut model: ModelProto) -> ModelProto {
    let graph = model.graph.as_mut().expect("a graph");
    for value in graph.input.iter_mut().chain(&mut graph.output) {
        let Some(type_proto::Value::TensorType(ty)) = value.r#type.as_mut().and_then(|ty| ty.value.as_mut()) else { continue };
        let dim = &mut ty.shape.as_mut().expect("a shape").dim[0];
        dim.value = Some(tensor_shape_proto::dimension::Value::DimParam("N".into()));
    }
    model
}

fn orders(models: usize) -> Vec<Vec<usize>> {
    if models == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(models - 1);
    let with = |order: &Vec<usize>, at: usize| [&order[..at], &[models - 1], &order[at..]].concat();
    shorter.iter().flat_map(|order| (0..models).map(|at| with(order, at)).collect::<Vec<_>>()).collect()
}

#[test]
fn models_gain_the_same_in_every_order_on_one_store() {
    let models = [model(&GELU), open(model(&GELU)), open(model(&CHAIN))];
    let alone = models.each_ref().map(|model| {
        let scene = Scene::new(&CHAIN);
        scene.put(model);
        let report = scene.run(EVEN, &scene.request(), &mut Silent);
        assert!(report.speedup.low > 2.0, "{report:?}");
        scene.written()
    });
    let orders = orders(models.len());
    assert_eq!(orders.len(), 6);
    for order in orders {
        let scene = Scene::new(&CHAIN);
        // The second time, each finds itself in the store as well.
        for at in order.iter().chain(&order) {
            scene.put(&models[*at]);
            let report = scene.run(EVEN, &scene.request(), &mut Silent);
            assert_eq!(scene.written(), alone[*at], "model {at} in {order:?}: {report:?}");
        }
    }
}

#[test]
fn a_gain_is_found_although_the_store_knows_better() {
    let scene = Scene::new(&GELU);
    let nothing = scene.run(SLOW, &scene.request(), &mut Silent);
    assert!(!scene.written().contains(&"Gelu".to_owned()), "{nothing:?}");
    // Neither what was concluded nor the price that it rests on is believed.
    for model in [model(&GELU), open(model(&GELU))] {
        scene.put(&model);
        let report = scene.run(EVEN, &scene.request(), &mut Silent);
        assert_eq!(scene.written(), ["Gelu"], "{report:?}");
    }
}

#[test]
fn that_there_is_nothing_to_gain_is_looked_for_again() {
    let scene = Scene::new(&["Tanh x > y"]);
    for _ in 0..2 {
        let report = scene.run(EVEN, &scene.request(), &mut Silent);
        assert!(report.applied.is_empty() && report.visited + report.measured_models as u64 > 0, "{report:?}");
    }
}

#[test]
fn a_remembered_win_that_is_none_is_searched_for_anew() {
    let scene = Scene::new(&GELU);
    scene.run(EVEN, &scene.request(), &mut Silent);
    assert_eq!(scene.written(), ["Gelu"]);
    let report = scene.run(SLOW, &scene.request(), &mut Silent);
    assert!(report.visited > 0 && report.speedup.median >= 1.0, "{report:?}");
    assert!(!scene.written().contains(&"Gelu".to_owned()), "{report:?}");
}

#[test]
fn a_frozen_run_gives_the_stored_win_whatever_else_ran() {
    let scene = Scene::new(&GELU);
    let won = scene.run(EVEN, &scene.request(), &mut Silent);
    let rules = |report: &Report| report.applied.iter().map(|applied| applied.rule.clone()).collect::<Vec<_>>();
    // Other rules, hardly any time, and other models.
    let mut other = scene.request();
    other.rules.deny = rules(&won);
    scene.run(EVEN, &other, &mut Silent);
    scene.run(EVEN, &Request { budget: Duration::ZERO, ..scene.request() }, &mut Silent);
    scene.put(&open(model(&GELU)));
    scene.run(SLOW, &scene.request(), &mut Silent);
    scene.put(&model(&CHAIN));
    scene.run(EVEN, &scene.request(), &mut Silent);
    scene.put(&model(&GELU));
    let frozen = scene.run(EVEN, &Request { frozen: true, ..scene.request() }, &mut Silent);
    assert_eq!((rules(&frozen), frozen.speedup.pairs), (rules(&won), won.speedup.pairs), "{frozen:?}");
    assert!((frozen.speedup.low - won.speedup.low).abs() < 1e-5, "{frozen:?}");
    assert_eq!(scene.written(), ["Gelu"]);
}
