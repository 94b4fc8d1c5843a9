//! Training repeats, learns, and is not done twice.

use std::collections::HashMap;

use burn_flex::{Flex, FlexDevice};
use regraft_ir::eval::{self, NoOpaque};
use regraft_ir::{SplitMix64, Tensor, Value};
use regraft_synth::{Coordinates, presets};
use regraft_train::halving::{Schedule, network, train};
use regraft_train::{ResNet, Run, Shape, Store, Task, Training, executor, onnx, spec};

const POINTWISE: &str = "sum r0: C_in; x[r0, i1, i2] * w[i0, r0]";
const SEPARABLE: &str = "sum r0: C_in, r1: k_1, r2: k_1; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0] * w[r0, r1, r2]";

/// As little as shows anything.
fn schedule(milestones: &[usize]) -> Schedule {
    Schedule { milestones: milestones.to_vec(), batch: 16, task: Task { side: 16, noise: 0.2, images: 160, held_back: 64 } }
}

fn trained(formulas: &[&str], milestones: &[usize], store: &Store) -> (Vec<Option<Run>>, usize) {
    let spec = spec();
    let mut coordinates = Coordinates::new(&spec);
    let schedule = schedule(milestones);
    let operators = formulas.iter().map(|formula| (formula.to_string(), network(formula, schedule.batch, &mut coordinates).unwrap()));
    let operators: Vec<_> = operators.collect();
    let mut epochs = 0;
    let runs = train(&operators, &schedule, 3, store, &mut |_| epochs += 1, &|| true).unwrap();
    (runs, epochs)
}

#[test]
fn runs_repeat_and_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = Store::open(&path).unwrap();
    let (first, epochs) = trained(&[POINTWISE, SEPARABLE], &[1, 3], &store);
    assert_eq!(epochs, 4, "two operators once, and the better one twice more");
    let accuracies =
        |runs: &[Option<Run>]| runs.iter().map(|run| run.as_ref().map(|run| (run.epoch, run.accuracy, run.loss))).collect::<Vec<_>>();
    drop(store);
    let (again, epochs) = trained(&[POINTWISE, SEPARABLE], &[1, 3], &Store::open(&path).unwrap());
    assert_eq!((accuracies(&again), epochs), (accuracies(&first), 0), "what the database knows is not trained again");
    let (anew, _) = trained(&[POINTWISE, SEPARABLE], &[1, 3], &Store::in_memory().unwrap());
    assert_eq!(accuracies(&anew), accuracies(&first), "the same seed gives the same runs");
}

#[test]
fn training_lowers_the_loss() {
    let (runs, _) = trained(&[POINTWISE], &[1, 6], &Store::in_memory().unwrap());
    let loss = runs[0].as_ref().unwrap().loss;
    let (first, _) = trained(&[POINTWISE], &[1], &Store::in_memory().unwrap());
    let before = first[0].as_ref().unwrap().loss;
    assert!(loss < before - 0.1, "{loss} after six epochs, {before} after one");
}

/// Networks compute with `burn` what their graphs mean.
#[test]
fn the_executor_agrees_with_the_reference() {
    let spec = spec();
    let mut coordinates = Coordinates::new(&spec);
    for named in presets::OPERATORS {
        let network = network(named.formula, 2, &mut coordinates).unwrap();
        let mut random = SplitMix64(1);
        let (mut inputs, mut feeds) = (vec![], HashMap::new());
        for input in network.graph.inputs() {
            let shape: Vec<usize> =
                network.graph.ty(input.out()).unwrap().known_shape().unwrap().iter().map(|size| *size as usize).collect();
            let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|_| random.normal() as f32).collect();
            let name = if inputs.is_empty() { "x".to_string() } else { format!("p{}", inputs.len() - 1) };
            feeds.insert(name, Value::real(Tensor::new(shape.clone(), values.iter().map(|v| f64::from(*v)).collect())));
            inputs.push(executor::tensor::<Flex>(values, &shape, &FlexDevice));
        }
        let found = executor::values::<Flex>(executor::run::<Flex>(&network.graph, &inputs, &FlexDevice).unwrap()).unwrap();
        let expected = match eval::run(&network.graph, &feeds, &mut NoOpaque).unwrap().remove(0) {
            Value::Real(tensor) => tensor.data.clone(),
            other => panic!("{other:?}"),
        };
        let largest = expected.iter().fold(1.0f64, |most, v| most.max(v.abs()));
        let off = expected.iter().zip(&found).map(|(a, b)| (a - f64::from(*b)).abs()).fold(0.0, f64::max) / largest;
        assert!(off < 1e-3, "{}: off by {off}", named.name);
    }
}

/// What is written of a trained ResNet computes what training computed, where means and variances
/// are those of one batch.
#[test]
fn a_resnet_is_folded_for_inference() {
    let shape = Shape { side: 8, width: 4, blocks: 1 };
    let task = Task { side: 8, noise: 0.2, images: 16, held_back: 16 };
    let resnet = ResNet::new(shape, 16).unwrap();
    let mut training = Training::new(&resnet.network, 16, 2, task, 1);
    training.epoch().unwrap();
    let parameters: Vec<Vec<f32>> = training.parameters().map(<[f32]>::to_vec).collect();
    let images = task.images(16, 9);
    let graph = resnet.inferring(&parameters, &images, 16).unwrap();
    let pixels = || executor::tensor::<Flex>(images.pixels.clone(), &[16, 1, 8, 8], &FlexDevice);
    let mut inputs = vec![pixels()];
    let given = parameters.iter().zip(&resnet.network.parameters);
    inputs.extend(given.map(|(value, parameter)| executor::tensor::<Flex>(value.clone(), &parameter.shape, &FlexDevice)));
    let run = |graph, inputs: &[_]| executor::values::<Flex>(executor::run::<Flex>(graph, inputs, &FlexDevice).unwrap()).unwrap();
    let (trained, folded) = (run(&resnet.network.graph, &inputs), run(&graph, &[pixels()]));
    let off = trained.iter().zip(&folded).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off < 1e-4 * trained.iter().fold(1.0, |most, v| v.abs().max(most)), "off by {off}");
    assert!(!onnx(&graph).unwrap().is_empty());
}
