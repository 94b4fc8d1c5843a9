//! `Environment`: rewriting as a Markov decision process, for Python.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use regraft::error::Failure;
use regraft::file::write_atomic;
use regraft::priced::{Priced, Wanted};
use regraft_onnx::WriteOptions;
use regraft_search::{Engine, Matcher};
use regraft_xrlflow::{Encoded, Settings, Shaping, TYPES};

/// What is asked of the thread that owns the graph.
enum Question {
    Reset,
    Step(usize),
    Graphs,
    Best,
    Write(PathBuf),
}

/// What it answers.
enum Answer {
    State(State),
    Graphs(Vec<Graph>),
    Best(u64, Vec<String>),
    Written(Result<(), Failure>),
}

/// A graph as its nodes' types, its edges and their shapes.
type Graph = (Vec<u8>, Vec<(u32, u32)>, Vec<[f32; 4]>);

/// A state: what followed from the action, costs, and a summary of each graph.
#[pyclass(frozen, get_all)]
#[derive(Clone, Debug, Default)]
pub struct State {
    reward: f32,
    terminated: bool,
    truncated: bool,
    /// ns, of the first graph and the current one.
    costs: [u64; 2],
    /// ns, of each candidate.
    candidate_costs: Vec<u64>,
    /// The rule of each candidate.
    rules: Vec<String>,
    /// How many nodes of each type the current graph has.
    counts: Vec<f32>,
    /// By how many each candidate has more.
    differences: Vec<Vec<f32>>,
    /// Candidates that have no slot.
    left_out: usize,
}

/// A graph under rewriting, in a thread of its own.
#[pyclass]
pub struct Environment {
    ends: Mutex<(Sender<Question>, Receiver<Answer>)>,
    #[pyo3(get)]
    types: usize,
}

#[pymethods]
impl Environment {
    #[new]
    #[pyo3(signature = (model, prices, shapes, binds, horizon, feedback, slots, shaping, linear_sizes))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        model: PathBuf,
        prices: Option<PathBuf>,
        shapes: Vec<String>,
        binds: Vec<(String, i64)>,
        horizon: usize,
        feedback: usize,
        slots: usize,
        shaping: &str,
        linear_sizes: bool,
    ) -> PyResult<Environment> {
        let shaping = match shaping {
            "none" => Shaping::None,
            "bonus" => Shaping::Bonus,
            "potential" => Shaping::Potential,
            other => return Err(PyValueError::new_err(format!("no shaping is called `{other}`: none, bonus or potential"))),
        };
        let shapes: Vec<_> =
            shapes.iter().map(|shape| regraft::units::parse_shape(shape)).collect::<Result<_, _>>().map_err(PyValueError::new_err)?;
        let mut settings = Settings { horizon, feedback, slots, shaping, ..Settings::default() };
        settings.defects.linear_sizes = linear_sizes;
        let (questions, asked) = channel();
        let (answering, answers) = channel();
        let (opened, open) = channel();
        std::thread::spawn(move || {
            let wanted = Wanted { model: &model, prices: prices.as_deref(), machine: None, shapes: &shapes, binds: &binds, rules: &[] };
            match Priced::open(&wanted) {
                Ok(priced) => {
                    if opened.send(None).is_ok() {
                        serve(&priced, settings, &asked, &answering);
                    }
                }
                // Nobody listens any more, if this is not heard.
                Err(failure) => drop(opened.send(Some(failure))),
            }
        });
        match open.recv() {
            Ok(None) => Ok(Environment { ends: Mutex::new((questions, answers)), types: TYPES }),
            Ok(Some(failure)) => Err(raised(&failure)),
            Err(_) => Err(PyRuntimeError::new_err("the environment could not be made")),
        }
    }

    /// Begins an episode.
    fn reset(&self, py: Python<'_>) -> PyResult<State> {
        self.state(py, Question::Reset)
    }

    /// Takes the candidate of this number; stops, where there is none.
    fn step(&self, py: Python<'_>, action: usize) -> PyResult<State> {
        self.state(py, Question::Step(action))
    }

    /// All candidates and, last, the current graph.
    fn graphs(&self, py: Python<'_>) -> PyResult<Vec<Graph>> {
        match self.ask(py, Question::Graphs)? {
            Answer::Graphs(graphs) => Ok(graphs),
            _ => Err(lost()),
        }
    }

    /// The cheapest state of all episodes: what it costs, and the rules that lead there.
    fn best(&self, py: Python<'_>) -> PyResult<(u64, Vec<String>)> {
        match self.ask(py, Question::Best)? {
            Answer::Best(cost, rules) => Ok((cost, rules)),
            _ => Err(lost()),
        }
    }

    /// Writes it as a model.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        match self.ask(py, Question::Write(path))? {
            Answer::Written(Ok(())) => Ok(()),
            Answer::Written(Err(failure)) => Err(raised(&failure)),
            _ => Err(lost()),
        }
    }
}

impl Environment {
    fn state(&self, py: Python<'_>, question: Question) -> PyResult<State> {
        match self.ask(py, question)? {
            Answer::State(state) => Ok(state),
            _ => Err(lost()),
        }
    }

    fn ask(&self, py: Python<'_>, question: Question) -> PyResult<Answer> {
        py.detach(|| {
            let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
            ends.0.send(question).map_err(|_| lost())?;
            ends.1.recv().map_err(|_| lost())
        })
    }
}

fn lost() -> PyErr {
    PyRuntimeError::new_err("the environment has ended")
}

/// Cause and hint, as arguments of an exception.
fn raised(failure: &Failure) -> PyErr {
    PyValueError::new_err((failure.cause.clone(), failure.hint.clone()))
}

/// Answers until nobody asks.
fn serve(priced: &Priced, settings: Settings, asked: &Receiver<Question>, answering: &Sender<Answer>) {
    let mut engine = Engine::new(priced.graph.clone(), &*priced.prices);
    let mut matcher = Matcher::new(&priced.library, &priced.writable);
    let mut environment = regraft_xrlflow::Environment::new(&mut engine, &mut matcher, settings);
    let name = |rule: usize| priced.library.rules()[rule].name.to_string();
    while let Ok(question) = asked.recv() {
        let answer = match question {
            Question::Reset => {
                environment.reset();
                Answer::State(state(&mut environment, &name))
            }
            Question::Step(action) => {
                let done = environment.step(action);
                let reached = state(&mut environment, &name);
                Answer::State(State { reward: done.reward, terminated: done.terminated, truncated: done.truncated, ..reached })
            }
            Question::Graphs => {
                let all = environment.graphs().into_iter();
                Answer::Graphs(all.map(|Encoded { types, edges, shapes }| (types, edges, shapes)).collect())
            }
            Question::Best => {
                let best = &environment.best().script;
                Answer::Best(best.cost, best.moves.iter().map(|step| name(step.rule)).collect())
            }
            Question::Write(path) => Answer::Written(write(priced, &environment, &path)),
        };
        if answering.send(answer).is_err() {
            return;
        }
    }
}

fn write(priced: &Priced, environment: &regraft_xrlflow::Environment<'_, '_, '_>, path: &std::path::Path) -> Result<(), Failure> {
    let mut engine = Engine::new(priced.graph.clone(), &*priced.prices);
    environment.best().script.moves.iter().for_each(|step| engine.apply(step));
    let bytes = priced.model.write(engine.graph(), &WriteOptions::default())?.to_bytes()?;
    write_atomic(path, &bytes)
}

fn state(environment: &mut regraft_xrlflow::Environment<'_, '_, '_>, name: &dyn Fn(usize) -> String) -> State {
    let counted = |encoded: &Encoded| {
        let mut counts = vec![0.0; TYPES];
        encoded.types.iter().for_each(|kind| counts[usize::from(*kind)] += 1.0);
        counts
    };
    let graphs = environment.graphs();
    let counts = graphs.last().map(counted).unwrap_or_default();
    let difference = |encoded: &Encoded| counted(encoded).iter().zip(&counts).map(|(own, others)| own - others).collect();
    let candidates = environment.candidates();
    State {
        costs: environment.costs(),
        candidate_costs: candidates.iter().map(|candidate| candidate.cost).collect(),
        rules: candidates.iter().map(|candidate| name(candidate.step.rule)).collect(),
        differences: graphs[..candidates.len()].iter().map(difference).collect(),
        counts,
        left_out: environment.left_out(),
        ..State::default()
    }
}
