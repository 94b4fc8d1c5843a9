//! Training of an agent on one graph: episodes and updates in turn, in an embedded database, so
//! that it goes on where it was.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use regraft_ir::SplitMix64;
use regraft_xrlflow::{About, Agent, Environment, Settings, Weights};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::episode::{End, episode};
use super::update::Learner;
use crate::curves::Curves;

/// What some episodes and the update after them came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Episodes so far.
    pub episodes: usize,
    /// States seen so far, candidates included.
    pub states: u64,
    /// Seconds so far.
    pub seconds: f64,
    /// Mean reward of these episodes.
    pub reward: f64,
    /// Rewrites of an episode, on average.
    pub length: f64,
    /// Share of these episodes that ended because the agent stopped.
    pub stopped: f64,
    /// By what factor the last state of an episode is faster than the first, on average
    /// (geometric).
    pub last: f64,
    /// By what factor the cheapest state so far is faster than the first.
    pub best: f64,
    /// Mean squared error of values.
    pub error: f64,
    /// Mean entropy of actions.
    pub entropy: f64,
    /// How far an update moved the probabilities.
    pub divergence: f64,
}

/// Where a training stands.
pub struct Training {
    database: Connection,
    name: String,
    seed: u64,
    learner: Learner,
    rounds: Vec<Round>,
    /// Actions that lead to the cheapest state so far.
    best: Vec<usize>,
}

impl Training {
    /// Goes on with a training of this model, these settings and this seed, or begins it.
    ///
    /// # Errors
    ///
    /// If the file is no database, or cannot be written.
    pub fn open(path: &Path, model: &str, settings: Settings, seed: u64) -> Result<Training> {
        let database = Connection::open(path).with_context(|| path.display().to_string())?;
        let tables = "CREATE TABLE IF NOT EXISTS rounds (training TEXT NOT NULL, episodes INTEGER NOT NULL, round TEXT NOT NULL,
                        PRIMARY KEY (training, episodes)) STRICT;
                      CREATE TABLE IF NOT EXISTS learners (training TEXT PRIMARY KEY, best TEXT NOT NULL, state BLOB NOT NULL) STRICT;";
        database.execute_batch(tables).with_context(|| path.display().to_string())?;
        let name = format!("{model} seed {seed} {}", serde_json::to_string(&settings)?);
        let weights = Weights::random(About { model: model.into(), episodes: 0, settings }, seed);
        let kept = "SELECT best, state FROM learners WHERE training = ?1";
        let kept: Option<(String, Vec<u8>)> =
            database.query_row(kept, [&name], |row| Ok((row.get(0)?, row.get(1)?))).optional().context("the training cannot be read")?;
        let (learner, best) = match kept {
            Some((best, state)) => {
                let learner = Learner::from_bytes(&state, &weights).context("what was learned before is cut off")?;
                (learner, serde_json::from_str(&best)?)
            }
            None => (Learner::new(weights), Vec::new()),
        };
        let mut training = Training { database, name, seed, learner, rounds: Vec::new(), best };
        training.rounds = training.kept()?;
        Ok(training)
    }

    fn kept(&self) -> Result<Vec<Round>> {
        let mut query = self.database.prepare("SELECT round FROM rounds WHERE training = ?1 ORDER BY episodes")?;
        let rounds = query.query_map([&self.name], |row| row.get::<_, String>(0))?;
        rounds.map(|text| Ok(serde_json::from_str(&text?)?)).collect()
    }

    /// What was learned.
    pub fn weights(&self) -> &Weights {
        &self.learner.weights
    }

    /// What episodes and updates came to so far.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// Episodes so far.
    pub fn episodes(&self) -> usize {
        self.rounds.last().map_or(0, |round| round.episodes)
    }

    /// Learns until there were so many episodes, or `go_on` ends it; then only whole rounds count.
    /// After each, `told` hears of it.
    ///
    /// # Errors
    ///
    /// If the backend has no numbers, or the database cannot be written.
    pub fn run(
        &mut self,
        environment: &mut Environment<'_, '_, '_>,
        episodes: usize,
        go_on: &dyn Fn() -> bool,
        told: &mut dyn FnMut(&Round),
    ) -> Result<()> {
        environment.replay(&self.best);
        let before = self.rounds.last().map_or((0, 0.0), |round| (round.states, round.seconds));
        let (begun, seen) = (Instant::now(), environment.states());
        while self.episodes() < episodes && go_on() {
            let count = self.learner.weights.about.settings.episodes.min(episodes - self.episodes());
            let mut random = SplitMix64(self.seed ^ (self.episodes() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut agent = Agent::new(&self.learner.weights);
            environment.forget();
            let mut steps = Vec::new();
            let mut logarithms = 0.0;
            for _ in 0..count {
                let Some(one) = episode(environment, &mut agent, &mut random, go_on) else { return Ok(()) };
                let [first, last] = environment.costs();
                logarithms += (first.max(1) as f64 / last.max(1) as f64).ln();
                steps.extend(one);
            }
            let progress = self.learner.learn(&steps, environment.rows(), &mut random)?;
            let per_episode = |sum: f64| sum / count as f64;
            let stopped = steps.iter().filter(|step| step.end == Some(End::Stopped)).count();
            let best = environment.best();
            let [first, _] = environment.costs();
            let round = Round {
                episodes: self.episodes() + count,
                states: before.0 + environment.states() - seen,
                seconds: before.1 + begun.elapsed().as_secs_f64(),
                reward: per_episode(steps.iter().map(|step| f64::from(step.reward)).sum()),
                length: per_episode((steps.len() - stopped) as f64),
                stopped: per_episode(stopped as f64),
                last: per_episode(logarithms).exp(),
                best: first.max(1) as f64 / best.script.cost.max(1) as f64,
                error: progress.error.into(),
                entropy: progress.entropy.into(),
                divergence: progress.divergence.into(),
            };
            self.learner.weights.about.episodes = round.episodes;
            self.best.clone_from(&best.actions);
            self.put(&round)?;
            told(&round);
        }
        Ok(())
    }

    fn put(&mut self, round: &Round) -> Result<()> {
        let transaction = self.database.transaction()?;
        let (text, best) = (serde_json::to_string(round)?, serde_json::to_string(&self.best)?);
        transaction.execute("INSERT OR REPLACE INTO rounds VALUES (?1, ?2, ?3)", params![self.name, round.episodes as i64, text])?;
        transaction.execute("INSERT OR REPLACE INTO learners VALUES (?1, ?2, ?3)", params![self.name, best, self.learner.to_bytes()])?;
        transaction.commit()?;
        self.rounds.push(*round);
        Ok(())
    }
}

/// Curves of a training as a drawing: speed-ups over episodes, by the price list.
pub fn curves(model: &str, rounds: &[Round]) -> String {
    let line = |of: fn(&Round) -> f64| -> Vec<(f64, f64)> { rounds.iter().map(|round| (round.episodes as f64, of(round))).collect() };
    let lines = vec![("last state of an episode", line(|round| round.last)), ("best state so far", line(|round| round.best))];
    let all = || lines.iter().flat_map(|(_, points)| points).map(|(_, value)| *value);
    let range = (all().fold(1.0, f64::min), all().fold(1.0, f64::max));
    let title = format!("X-RLflow on {model}");
    Curves { title: &title, over: "episodes", range, label: &|value| format!("{value:.2}x"), lines }.svg()
}
