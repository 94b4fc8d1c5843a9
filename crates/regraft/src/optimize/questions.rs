//! Queries to the prover, answered on all cores while more are still coming.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use regraft_certify::Region;
use regraft_prove::{Premises, Verdict, equal, interruptible};
use regraft_runtime::ProofKey;

/// Maximum number of threads that answer.
const THREADS: usize = 8;
/// Why a query has no answer.
const SPENT: &str = "the time for it was spent";

/// Queries, and answers to some of them.
pub struct Questions {
    state: Mutex<State>,
    changed: Condvar,
    until: Instant,
    /// Set when time is up.
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    waiting: Vec<(ProofKey, Region)>,
    answers: HashMap<ProofKey, Verdict>,
    /// Keys of regions that were shown equal here.
    fresh: Vec<ProofKey>,
    /// Queries, and the answer assumed for each until it is known.
    guessed: Vec<(ProofKey, Verdict)>,
    /// No more queries will come.
    closed: bool,
}

impl Questions {
    /// With these answers; no query is worked on after `until`.
    pub fn new(answers: HashMap<ProofKey, Verdict>, until: Instant) -> Questions {
        Questions { state: Mutex::new(State { answers, ..State::default() }), changed: Condvar::new(), until, stop: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a query, if it is known; otherwise the likeliest one is assumed, and the query
    /// is queued. `remembered` returns what was shown before.
    pub fn ask(&self, key: ProofKey, region: &Region, remembered: impl Fn(&ProofKey) -> Option<Verdict>) -> Verdict {
        let known = self.state().answers.get(&key).cloned();
        if let Some(verdict) = known {
            return verdict;
        }
        let mut state = self.state();
        if let Some(verdict) = remembered(&key) {
            state.answers.insert(key, verdict.clone());
            return verdict;
        }
        let guess = Verdict::Proved(Premises::of([&region.before, &region.after]));
        if !state.guessed.iter().any(|(guessed, _)| *guessed == key) {
            state.guessed.push((key, guess.clone()));
            state.waiting.push((key, region.clone()));
            self.changed.notify_one();
        }
        guess
    }

    /// Answers queries on other threads while `asking` poses them, and the remaining ones on this
    /// thread too.
    pub fn while_asking<T>(&self, asking: impl FnOnce() -> T) -> T {
        let helpers = regraft_ir::parallel::cores().min(THREADS) - 1;
        self.state().closed = false;
        self.stop.fetch_or(self.until <= Instant::now(), Ordering::Relaxed);
        std::thread::scope(|scope| {
            let (done, watched) = channel::<()>();
            scope.spawn(move || {
                if watched.recv_timeout(self.until.saturating_duration_since(Instant::now())) == Err(RecvTimeoutError::Timeout) {
                    self.stop.store(true, Ordering::Relaxed);
                }
            });
            for _ in 0..helpers {
                let done = done.clone();
                scope.spawn(move || {
                    self.answer();
                    drop(done);
                });
            }
            let close = Close(self);
            let made = asking();
            drop(close);
            self.answer();
            made
        })
    }

    /// Answers until no more queries will come.
    fn answer(&self) {
        loop {
            let mut state = self.state();
            let (key, region) = loop {
                // Small ones first: if time runs out, most have their answer.
                let smallest = (0..state.waiting.len()).min_by_key(|at| state.waiting[*at].1.after.len());
                match smallest.map(|at| state.waiting.swap_remove(at)) {
                    Some(question) => break question,
                    None if state.closed => return,
                    None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(state);
            let verdict = match interruptible(&self.stop, || equal(&region.before, &region.after)) {
                Verdict::Unproved(_) if self.stop.load(Ordering::Relaxed) => Verdict::Unproved(SPENT.into()),
                verdict => verdict,
            };
            let mut state = self.state();
            if verdict.is_shown() {
                state.fresh.push(key);
            }
            state.answers.insert(key, verdict);
        }
    }

    /// True if some assumed answer was wrong. When asked again, the query has its answer.
    pub fn was_wrong(&self) -> bool {
        let mut state = self.state();
        let guessed = std::mem::take(&mut state.guessed);
        guessed.iter().any(|(key, guess)| state.answers.get(key) != Some(guess))
    }

    /// All answers that stay valid beyond this time limit, and the keys of what was shown here.
    pub fn done(self) -> (HashMap<ProofKey, Verdict>, Vec<ProofKey>) {
        let State { mut answers, fresh, .. } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, verdict| !matches!(verdict, Verdict::Unproved(why) if why == SPENT));
        (answers, fresh)
    }
}

/// Closes the queue when dropped, whatever happened.
struct Close<'q>(&'q Questions);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use regraft_ir::text;

    use super::*;

    fn region(after: &str) -> Region {
        let graph = |ops: &str| text::parse(&format!("graph (x: f32[N]) {{ {ops} output y }}")).unwrap();
        Region { before: graph("a = Relu(x) y = Relu(a)"), after: graph(after), shown: 0 }
    }

    #[test]
    fn what_is_guessed_is_answered_and_wrong_guesses_are_told() {
        let questions = Questions::new(HashMap::new(), Instant::now() + Duration::from_secs(60));
        let (right, wrong) = (region("y = Relu(x)"), region("y = Neg(x)"));
        let ask = || [(1, &right), (2, &wrong), (1, &right)].map(|(key, region)| questions.ask([key; 32], region, |_| None).is_proved());
        assert_eq!(questions.while_asking(ask), [true; 3]);
        assert!(questions.was_wrong());
        assert_eq!(questions.while_asking(ask), [true, false, true]);
        assert!(!questions.was_wrong());
        let (answers, fresh) = questions.done();
        assert_eq!((answers.len(), fresh), (2, vec![[1; 32]]));
    }

    #[test]
    fn a_question_ends_when_its_time_is_spent() {
        // Tables that differ are multiplied out case by case, which takes the prover long.
        let matrix = |from: i32| {
            let numbers: Vec<String> = (from..from + 64).map(|n| format!("{}", f64::from(n * n % 97) / 8.0)).collect();
            format!("const m{from}: f32[8,8] = [{}]", numbers.join(", "))
        };
        let chain = |order: [i32; 4]| {
            let products = order.iter().fold("x".to_owned(), |x, m| format!("MatMul(m{m}, Sigmoid(MatMul({x}, m{m})))"));
            let tables = order.map(matrix).join(" ");
            text::parse(&format!("graph (x: f32[8,8]) {{ {tables} y = {products} output y }}")).unwrap()
        };
        let region = Region { before: chain([1, 2, 3, 4]), after: chain([1, 2, 4, 3]), shown: 0 };
        let start = Instant::now();
        let questions = Questions::new(HashMap::new(), start + Duration::from_millis(50));
        questions.while_asking(|| questions.ask([1; 32], &region, |_| None));
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        assert!(questions.was_wrong());
        let (answers, fresh) = questions.done();
        assert_eq!((answers.len(), fresh.len()), (0, 0));
    }

    #[test]
    fn what_is_remembered_is_not_asked_and_what_comes_too_late_is_not_kept() {
        let questions = Questions::new(HashMap::new(), Instant::now());
        let ask = || {
            [1, 2].map(|key| {
                questions
                    .ask([key; 32], &region("y = Neg(x)"), |key| (key[0] == 1).then(|| Verdict::Proved(Premises::default())))
                    .is_proved()
            })
        };
        assert_eq!(questions.while_asking(ask), [true; 2]);
        assert!(questions.was_wrong());
        let (answers, fresh) = questions.done();
        assert_eq!((answers.len(), fresh.len()), (1, 0));
    }
}
