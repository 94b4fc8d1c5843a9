//! A policy: what is trained is what is computed elsewhere; training learns, repeats, and goes on
//! where it was.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_flex::Flex;
use regraft_ir::SplitMix64;
use regraft_policy::features::Known;
use regraft_policy::{Digest, Embedding, Policy, Sample, Teacher, Weights};
use regraft_rules::{Anything, Library};
use regraft_search::{Engine, Matcher, Move, all_moves};
use regraft_train::executor::values;
use regraft_train::policy::comparison::{Comparison, Totals};
use regraft_train::policy::corpus::{Corpus, Plan, Shard};
use regraft_train::policy::history::{Epoch, History, curves};
use regraft_train::policy::learning::{Learning, quality};
use regraft_train::policy::network::{Batch, descriptors, tensors};
use regraft_train::policy::problem::{network, problem, seeded};

fn library() -> Library {
    Library::shipped().unwrap_or_else(|e| panic!("{e}"))
}

/// A few samples of two networks.
fn samples(library: &Library) -> [Vec<Sample>; 2] {
    let folder = tempfile::tempdir().unwrap();
    let mut corpus = Corpus::open(&folder.path().join("samples.sqlite"), Digest::of(library)).unwrap();
    let teacher = Teacher { expansions: 60, steps: 500, ..Teacher::default() };
    let models = ["squeezenet-1.1", "gpt2-block"].map(str::to_string).to_vec();
    let plan = Plan { models, blocks: 12, detours: 3, seed: 5, shard: Shard::WHOLE, threads: 2, teacher, pupil: None };
    let mut made = 0;
    corpus.fill(&plan, library, &mut |_, _| made += 1, &|| true).unwrap();
    assert_eq!(made, 24);
    corpus.fill(&plan, library, &mut |_, _| panic!("nothing is made twice"), &|| true).unwrap();
    corpus.split(&|_, _| true, 4).unwrap()
}

/// Model, number, family and size of a block; place and bytes of a sample, if there is one.
type Sampled = (String, i64, String, Option<i64>, Option<Vec<u8>>);

/// All that a database of samples has, in order.
fn rows(path: &Path) -> Vec<Sampled> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut query = connection
        .prepare(
            "SELECT blocks.model, blocks.number, family || samples, place, sample FROM blocks
             LEFT JOIN samples ON samples.model = blocks.model AND samples.number = blocks.number ORDER BY 1, 2, 4",
        )
        .unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn shards_together_make_what_one_run_makes() {
    let library = library();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let open = |name: &str| Corpus::open(&path(name), Digest::of(&library)).unwrap();
    let plan = |index, count, seed| {
        let teacher = Teacher { expansions: 40, steps: 300, ..Teacher::default() };
        let models = ["squeezenet-1.1", "sru"].map(str::to_string).to_vec();
        Plan { models, blocks: 3, detours: 3, seed, shard: Shard { index, count }, threads: 2, teacher, pupil: None }
    };
    let make = |name: &str, plan: Plan| {
        let (mut corpus, mut made) = (open(name), 0);
        corpus.fill(&plan, &library, &mut |_, _| made += 1, &|| true).unwrap();
        corpus.finish().unwrap();
        made
    };
    assert_eq!(make("whole", plan(0, 1, 5)), 6);
    let parts = ["a", "b", "c", "d"];
    let made: Vec<usize> = (0..4).map(|at| make(parts[at], plan(at, 4, 5))).collect();
    assert_eq!(made, [2, 2, 1, 1]);
    assert!(!path("a-wal").exists() && !path("a-shm").exists(), "a database that is done is one file");

    // In any order, twice the same, and on top of what is there.
    let files = ["d", "a", "c", "b", "a"].map(path);
    for name in ["merged", "a"] {
        let mut corpus = open(name);
        corpus.merge(&files, &plan(0, 1, 5)).unwrap();
        corpus.finish().unwrap();
        assert_eq!(rows(&path("whole")), rows(&path(name)), "{name}");
    }
    let ([whole, _], [merged, _]) = (open("whole").split(&|_, _| true, 10).unwrap(), open("merged").split(&|_, _| true, 10).unwrap());
    let bytes = |samples: &[Sample]| samples.iter().map(Sample::to_bytes).collect::<Vec<_>>();
    assert!(!whole.is_empty() && bytes(&whole) == bytes(&merged), "what is learned from is in the same order");

    let fails = |name: &str, parts: &[&str], plan: &Plan, says: &str| {
        let files: Vec<PathBuf> = parts.iter().map(|part| path(part)).collect();
        let error = format!("{:#}", open(name).merge(&files, plan).unwrap_err());
        assert!(error.contains(says), "{error}");
    };
    fails("short", &["b", "c"], &plan(0, 1, 5), "block 0 of squeezenet-1.1 is in no part");
    fails("none", &["b", "e"], &plan(0, 1, 5), "e: unable to open");
    fails("other", &["b"], &plan(0, 1, 6), "b: it was made with seed 5 and up to 3 random moves, not with seed 6");
    let error = open("whole").fill(&plan(0, 1, 6), &library, &mut |_, _| (), &|| true).unwrap_err().to_string();
    assert!(error.contains("made with seed 5") && error.contains("name another database"), "{error}");
}

#[test]
fn what_is_trained_is_what_searches_compute() {
    let library = library();
    let weights = Weights::random(Digest::of(&library), 3);
    let policy = Policy::new(&weights, &library);
    let parts: Vec<Vec<f32>> = weights.parts().map(|(_, values)| values.to_vec()).collect();
    for model in ["squeezenet-1.1", "gpt2-block", "sru"] {
        let (graph, prices) = problem(&network(model).unwrap(), &library, 4, &mut seeded(1, model, 2)).unwrap();
        let mut engine = Engine::new(graph, &prices);
        let moves = all_moves(&mut engine, &mut Matcher::new(&library, &Anything));
        let nodes = Embedding::new(&weights, &engine);
        let mut random = SplitMix64(4);
        let each: Vec<(Arc<Move>, Known, f32)> = moves
            .iter()
            .map(|step| {
                (
                    step.clone(),
                    Known { delta: random.below(90) as i64 - 40, is_new: random.below(2) == 0, after_rise: false, alike: 2 },
                    0.0,
                )
            })
            .collect();
        let known: Vec<Known> = each.iter().map(|(_, known, _)| *known).collect();
        let sample = Sample::of(&engine, &each, 0.0);
        let batch = Batch::new(&[&sample], &descriptors().unwrap(), &|_, _| false);
        let [scores, value] = batch.outputs::<Flex>(&tensors::<Flex>(&parts)).map(|tensor| values::<Flex>(tensor).unwrap());
        assert!(scores.len() > 1, "{model}");
        for ((step, known, _), found) in each.iter().zip(scores) {
            let expected = policy.score(&engine, &nodes, step, *known);
            assert!((expected - found).abs() < 1e-4, "{model}: {expected} and {found}");
        }
        assert!((policy.value(&engine, &nodes, &known) - value[0]).abs() < 1e-4, "{model}");
        let read = Sample::from_bytes(&sample.to_bytes()).unwrap();
        assert_eq!((read.nodes.len(), read.moves.len()), (sample.nodes.len(), sample.moves.len()));
        assert_eq!(read.to_bytes(), sample.to_bytes());
        assert!(Sample::from_bytes(&sample.to_bytes()[..sample.to_bytes().len() - 1]).is_none());
    }
}

#[test]
fn training_learns_repeats_and_goes_on_where_it_was() {
    let library = library();
    let digest = Digest::of(&library);
    let ([learned, held_back], rules) = (samples(&library), descriptors().unwrap());
    assert!(learned.len() > 60 && held_back.len() > 20, "{} and {}", learned.len(), held_back.len());
    let epochs = 30;
    let folder = tempfile::tempdir().unwrap();
    let mut history = History::open(&folder.path().join("epochs.sqlite")).unwrap();
    let run = |learning: &mut Learning, history: &mut History, name: &str| {
        while learning.done() < epochs {
            let loss = learning.epoch(&learned, &rules, &|| true).unwrap().unwrap();
            let means = learning.quality(&held_back, &rules).unwrap().means();
            let epoch = Epoch { epoch: learning.done(), loss, first: means.first, third: means.third, off: means.off, seconds: 0.0 };
            history.put(name, &epoch, learning).unwrap();
        }
    };
    let mut first = Learning::new(digest, epochs, 9);
    let start = first.quality(&held_back, &rules).unwrap().means();
    run(&mut first, &mut history, "first");
    let end = quality(&first.weights(), &held_back, &rules).unwrap().means();
    assert!(end.loss < 0.9 * start.loss && end.first > start.first && end.off < start.off, "{start:?} {end:?}");

    // The same for the same seed; interrupted within an epoch, it goes on after the last whole one.
    let mut second = Learning::new(digest, epochs, 9);
    second.epoch(&learned, &rules, &|| true).unwrap().unwrap();
    history.put("second", &Epoch { epoch: 1, loss: 0.0, first: 0.0, third: 0.0, off: 0.0, seconds: 0.0 }, &second).unwrap();
    let asked = std::cell::Cell::new(0);
    let once = || asked.replace(asked.get() + 1) < 1;
    assert_eq!(second.epoch(&learned, &rules, &once).unwrap(), None);
    let mut resumed = Learning::from_bytes(&history.state("second").unwrap().unwrap(), digest, epochs, 9).unwrap();
    assert_eq!(resumed.done(), 1);
    run(&mut resumed, &mut history, "second");
    assert_eq!(resumed.weights().to_bytes(), first.weights().to_bytes());
    assert_ne!(Learning::new(digest, epochs, 8).weights().to_bytes(), Learning::new(digest, epochs, 9).weights().to_bytes());

    let told = history.epochs("first").unwrap();
    assert_eq!(told.iter().map(|epoch| epoch.epoch).collect::<Vec<_>>(), (1..=epochs).collect::<Vec<_>>());
    let drawing = curves(&told);
    assert!(drawing.starts_with("<svg") && drawing.matches("<polyline").count() == 3, "{drawing}");
}

#[test]
fn searches_are_compared_on_what_no_training_sees() {
    let library = library();
    let weights = Weights::random(Digest::of(&library), 3);
    let comparison = Comparison { blocks: 3, detours: 4, expansions: 40, visits: 1000, seed: 0 };
    let rows = comparison.run("squeezenet-1.1", &weights, &library).unwrap();
    let again = comparison.run("squeezenet-1.1", &weights, &library).unwrap();
    let counts = |rows: &[regraft_train::policy::comparison::Row]| -> Vec<_> {
        rows.iter().map(|row| (row.delta.expansions, row.prior.expansions, row.gumbel.expansions, row.fewest)).collect()
    };
    assert_eq!(counts(&rows), counts(&again));
    for row in &rows {
        assert!(row.start >= 1.0 && row.exact.iter().flat_map(|one| one.costs).all(|cost| cost >= 1.0) && row.delta.cost >= 1.0, "{row:?}");
        assert!(row.delta.expansions.is_none_or(|taken| taken >= row.fewest), "no search is faster than the shortest way: {row:?}");
    }
    let totals = Totals::of(&rows, 40);
    assert!(totals.fewer.iter().all(|fewer| totals.bound >= fewer * 0.999), "{totals:?}");
}

#[test]
fn a_round_adds_states_that_the_policy_comes_to_and_goes_on_where_it_was() {
    let library = library();
    let digest = Digest::of(&library);
    let pupil = Weights::random(digest, 3);
    let folder = tempfile::tempdir().unwrap();
    let teacher = Teacher { expansions: 40, steps: 300, ..Teacher::default() };
    let models = ["squeezenet-1.1", "gpt2-block"].map(str::to_string).to_vec();
    let plan = Plan { models, blocks: 10, detours: 3, seed: 5, shard: Shard::WHOLE, threads: 2, teacher, pupil: Some(pupil) };
    let fill = |name: &str, round: &str, most: usize| {
        let mut corpus = Corpus::open_for(&folder.path().join(name), digest, round).unwrap();
        let made = std::sync::atomic::AtomicUsize::new(0);
        let go_on = || made.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < most;
        let mut told = 0;
        corpus.fill(&plan, &library, &mut |_, _| told += 1, &go_on).unwrap();
        (corpus.split(&|_, _| true, 10).unwrap(), told)
    };
    let ([samples, held_back], told) = fill("whole", "one", usize::MAX);
    // Of ten blocks of each network one is held back, and not looked at.
    assert_eq!((told, held_back.len()), (18, 0));
    assert!(samples.len() > 40 && samples.iter().all(|sample| sample.moves.len() > 1 && sample.value >= 0.0), "{}", samples.len());
    let bytes = |samples: &[Sample]| samples.iter().map(Sample::to_bytes).collect::<Vec<_>>();
    assert!(fill("parts", "one", 5).1 < 18);
    let ([again, _], rest) = fill("parts", "one", usize::MAX);
    assert!(rest < 18 && bytes(&again) == bytes(&samples), "{rest}");
    assert_eq!(fill("parts", "one", usize::MAX).1, 0, "nothing is made twice");
    assert_eq!(fill("parts", "two", usize::MAX).1, 18, "another round begins anew");

    // Training goes on from what was learned, and repeats.
    let rules = descriptors().unwrap();
    let train = |interrupted: bool| {
        let mut learning = Learning::new(digest, 1, 9);
        learning.epoch(&samples, &rules, &|| true).unwrap().unwrap();
        let before = learning.weights().to_bytes();
        let mut learning = learning.next_round(2, 10);
        assert_eq!((learning.done(), learning.weights().to_bytes()), (0, before));
        learning.epoch(&samples, &rules, &|| true).unwrap().unwrap();
        if interrupted {
            learning = Learning::from_bytes(&learning.to_bytes(), digest, 2, 10).unwrap().in_later_round();
        }
        learning.epoch(&samples, &rules, &|| true).unwrap().unwrap();
        learning.weights().to_bytes()
    };
    assert_eq!(train(false), train(true));
}
