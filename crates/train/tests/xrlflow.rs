//! The agent of X-RLflow: two spellings of one network, and training that learns and goes on.

use burn_flex::Flex;
use regraft_cost::Roofline;
use regraft_ir::{Bindings, Graph, SplitMix64, text};
use regraft_rules::{Anything, Library, parse};
use regraft_search::{Engine, Matcher};
use regraft_train::executor::values;
use regraft_train::xrlflow::network::{Batch, tensors};
use regraft_train::xrlflow::training::Training;
use regraft_xrlflow::{About, Agent, Defects, Environment, Pool, Rows, Settings, Weights};

/// Products in a row, each of which is one with the next.
fn graph() -> Graph {
    let text = "graph (x: f32[64,64], y: f32[64,64]) {
        a = Relu(x) b = Relu(a) c = MatMul(b, y) d = Relu(c) e = Relu(d) f = Add(e, y) g = Relu(f) h = Relu(g)
        output h }";
    text::parse(text).expect("a graph")
}

fn library() -> Library {
    let rules = "(rule relu-relu (relu (relu ?x)) => (relu ?x) (numeric exact))
                 (rule relu-twice (relu ?x) => (relu (relu ?x)) (numeric exact))";
    Library::new(parse("test.rules", rules).expect("rules")).expect("a library")
}

fn settings(defects: Defects) -> Settings {
    Settings { slots: 24, horizon: 8, episodes: 4, defects, ..Settings::default() }
}

/// States of some random steps, and their rows.
fn with_states<T>(settings: Settings, ask: impl FnOnce(&[Vec<Pool>], &Rows) -> T) -> T {
    let (library, prices) = (library(), Roofline::new(Bindings::new()));
    let mut engine = Engine::new(graph(), &prices);
    let mut matcher = Matcher::new(&library, &Anything);
    let mut environment = Environment::new(&mut engine, &mut matcher, settings);
    let mut random = SplitMix64(3);
    let mut states = Vec::new();
    for _ in 0..6 {
        states.push(environment.pools());
        environment.step(random.below(environment.candidates().len()));
    }
    ask(&states, environment.rows())
}

#[test]
fn both_spellings_of_the_network_agree() {
    for blind_attention in [false, true] {
        let settings = settings(Defects { blind_attention, ..Defects::default() });
        let mut weights = Weights::random(About { model: String::new(), episodes: 0, settings }, 5);
        // As training begins, the heads say nearly nothing.
        weights.parts_mut().iter_mut().flatten().for_each(|value| *value *= 3.0);
        with_states(settings, |states, rows| {
            let batch = Batch::new(&states.iter().map(Vec::as_slice).collect::<Vec<_>>(), rows);
            let tensors = tensors::<Flex>(weights.parts(), settings.slots, batch.used());
            let [likely, found] = batch.outputs::<Flex>(&tensors, blind_attention).expect("numbers");
            let (likely, found) = (values::<Flex>(likely).expect("numbers"), values::<Flex>(found).expect("numbers"));
            let mut agent = Agent::new(&weights);
            for ((pools, likely), value) in states.iter().zip(likely.chunks_exact(batch.used())).zip(found) {
                let judgement = agent.judge(rows, pools);
                assert!((judgement.value - value).abs() < 1e-4 * (1.0 + value.abs()), "{} and {value}", judgement.value);
                for (one, other) in judgement.likely.iter().zip(likely) {
                    assert!((one - other).abs() < 1e-4 * (1.0 + other.abs()), "{one} and {other}");
                }
            }
        });
    }
}

/// Rows as the nodes that they stand for: types and shapes, down to the last round.
fn spelled(rows: &Rows, pool: &Pool) -> Vec<String> {
    let union = rows.union([&pool[..]]);
    let mut names: Vec<String> = union.first.iter().map(|first| format!("{first:?}")).collect();
    for round in &union.rounds {
        let mut next: Vec<Vec<String>> = round.itself.iter().map(|at| vec![names[*at as usize].clone()]).collect();
        let mut heard: Vec<Vec<String>> = vec![Vec::new(); next.len()];
        round.senders.iter().zip(&round.receivers).for_each(|(from, to)| heard[*to as usize].push(names[*from as usize].clone()));
        for (own, mut heard) in next.iter_mut().zip(heard) {
            heard.sort();
            own.append(&mut heard);
        }
        // Long names are told apart by their hashes.
        names = next.iter().map(|own| digest(own)).collect();
    }
    let mut all: Vec<String> =
        union.graphs[0].iter().flat_map(|(row, count)| std::iter::repeat_n(names[*row as usize].clone(), *count as usize)).collect();
    all.sort();
    all
}

fn digest(names: &[String]) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    format!("{:x}", hasher.finish())
}

#[test]
fn what_a_candidate_is_follows_from_what_is_near_its_move() {
    let settings = settings(Defects::default());
    let (library, prices) = (library(), Roofline::new(Bindings::new()));
    let mut engine = Engine::new(graph(), &prices);
    let mut matcher = Matcher::new(&library, &Anything);
    let mut environment = Environment::new(&mut engine, &mut matcher, settings);
    let mut random = SplitMix64(7);
    for _ in 0..6 {
        let action = random.below(environment.candidates().len());
        let pools = environment.pools();
        let near = spelled(environment.rows(), &pools[action]);
        environment.step(action);
        let pools = environment.pools();
        assert_eq!(near, spelled(environment.rows(), &pools[pools.len() - 1]));
    }
}

fn trained(path: &std::path::Path, episodes: usize, settings: Settings) -> (Vec<u8>, Vec<f64>) {
    let (library, prices) = (library(), Roofline::new(Bindings::new()));
    let mut engine = Engine::new(graph(), &prices);
    let mut matcher = Matcher::new(&library, &Anything);
    let mut environment = Environment::new(&mut engine, &mut matcher, settings);
    let mut training = Training::open(path, "test", settings, 1).expect("a database");
    training.run(&mut environment, episodes, &|| true, &mut |_| {}).expect("training");
    (training.weights().to_bytes(), training.rounds().iter().map(|round| round.last).collect())
}

#[test]
fn training_learns_and_goes_on_where_it_was() {
    let settings = settings(Defects::default());
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, curve) = trained(&folder.path().join("whole.sqlite"), 80, settings);
    let (few, many) = (curve[..5].iter().sum::<f64>() / 5.0, curve[curve.len() - 5..].iter().sum::<f64>() / 5.0);
    assert!(many > few, "{curve:?}");
    let path = folder.path().join("parts.sqlite");
    trained(&path, 32, settings);
    let (parts, _) = trained(&path, 80, settings);
    assert!(whole == parts, "the same weights whether it was interrupted or not");
}
