//! Samples in an embedded database, and how they are made.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::{Context, Result};
use regraft_cost::Roofline;
use regraft_ir::Graph;
use regraft_policy::{Digest, Sample, Teacher, Weights};
use regraft_rules::{Anything, Library};
use rusqlite::{Connection, OptionalExtension, params};

use super::problem::{Family, network, problem, seeded};

/// A database of samples.
pub struct Corpus(Connection);

/// What samples are made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Networks of the zoo.
    pub models: Vec<String>,
    /// Blocks of each.
    pub blocks: usize,
    /// Random moves that are made before a block is looked at, at most: many of them make it worse, and
    /// the way back is known to exist.
    pub detours: usize,
    /// Seed.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// The search that is imitated.
    pub teacher: Teacher,
    /// Whose own states are labelled, if anybody's: on the blocks that it learns from, and no others.
    pub pupil: Option<Weights>,
}

/// Of so many blocks, one is held back.
pub const HELD_BACK: usize = 10;

fn is_held_back(number: usize, held_back: usize) -> bool {
    number % held_back == held_back - 1
}

impl Corpus {
    /// Opens a database, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// If the file is no database, or holds samples for other rules.
    pub fn open(path: &Path, digest: Digest) -> Result<Corpus> {
        let connection = Connection::open(path).with_context(|| path.display().to_string())?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
             CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
             CREATE TABLE IF NOT EXISTS blocks (
               model TEXT NOT NULL, number INTEGER NOT NULL, family TEXT NOT NULL, samples INTEGER NOT NULL,
               PRIMARY KEY (model, number)) STRICT;
             CREATE TABLE IF NOT EXISTS samples (
               model TEXT NOT NULL, number INTEGER NOT NULL, place INTEGER NOT NULL, sample BLOB NOT NULL,
               PRIMARY KEY (model, number, place)) STRICT;",
        )?;
        let known: Option<String> =
            connection.query_row("SELECT value FROM about WHERE name = 'digest'", [], |row| row.get(0)).optional()?;
        match known {
            Some(known) if known != digest.to_string() => anyhow::bail!("{}: its samples are for other rules or features", path.display()),
            Some(_) => {}
            None => {
                connection.execute("INSERT INTO about VALUES ('digest', ?1)", [digest.to_string()])?;
            }
        }
        Ok(Corpus(connection))
    }

    /// The same for a round of a training: what was made for another one is dropped.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn open_for(path: &Path, digest: Digest, round: &str) -> Result<Corpus> {
        let mut corpus = Corpus::open(path, digest)?;
        let known: Option<String> = corpus.0.query_row("SELECT value FROM about WHERE name = 'round'", [], |row| row.get(0)).optional()?;
        if known.as_deref() != Some(round) {
            let transaction = corpus.0.transaction()?;
            transaction.execute_batch("DELETE FROM samples; DELETE FROM blocks;")?;
            transaction.execute("INSERT OR REPLACE INTO about VALUES ('round', ?1)", [round])?;
            transaction.commit()?;
        }
        Ok(corpus)
    }

    /// Makes what is not there yet, while `go_on` says so; `told` hears of each block, and of how many
    /// there are to make.
    ///
    /// # Errors
    ///
    /// If there is no such network, or the database cannot be written.
    pub fn fill(
        &mut self,
        plan: &Plan,
        library: &Library,
        told: &mut dyn FnMut(usize, usize),
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        let mut jobs = Vec::new();
        let graphs = plan.models.iter().map(|name| network(name)).collect::<Result<Vec<_>>>()?;
        let is_wanted = |number: &usize| plan.pupil.is_none() || !is_held_back(*number, HELD_BACK);
        for number in (0..plan.blocks).filter(is_wanted) {
            for (model, name) in plan.models.iter().enumerate() {
                let query = "SELECT 1 FROM blocks WHERE model = ?1 AND number = ?2";
                if !self.0.prepare_cached(query)?.exists(params![name, number as i64])? {
                    jobs.push((model, number));
                }
            }
        }
        let (next, total) = (AtomicUsize::new(0), jobs.len());
        let (send, receive) = mpsc::channel();
        std::thread::scope(|scope| -> Result<()> {
            for _ in 0..plan.threads.max(1) {
                let (send, next, jobs, graphs) = (send.clone(), &next, &jobs, &graphs);
                scope.spawn(move || {
                    while let Some(&(model, number)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| go_on()) {
                        let mut random = seeded(plan.seed, &plan.models[model], number);
                        let problem = problem(&graphs[model], library, plan.detours, &mut random);
                        let teach = |(graph, prices): (Graph, Roofline)| match &plan.pupil {
                            Some(pupil) => plan.teacher.correct(pupil, graph, &prices, library, &Anything, random.word()),
                            None => plan.teacher.teach(graph, &prices, library, &Anything, random.word()),
                        };
                        if send.send((model, number, problem.map(teach).unwrap_or_default())).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            for (done, (model, number, samples)) in receive.iter().enumerate() {
                self.put(&plan.models[model], number, Family::of(&graphs[model]), &samples)?;
                told(done + 1, total);
            }
            Ok(())
        })
    }

    fn put(&mut self, model: &str, number: usize, family: Family, samples: &[Sample]) -> Result<()> {
        let transaction = self.0.transaction()?;
        let row = params![model, number as i64, family.name(), samples.len() as i64];
        transaction.execute("INSERT INTO blocks VALUES (?1, ?2, ?3, ?4)", row)?;
        for (place, sample) in samples.iter().enumerate() {
            let row = params![model, number as i64, place as i64, sample.to_bytes()];
            transaction.execute("INSERT INTO samples VALUES (?1, ?2, ?3, ?4)", row)?;
        }
        Ok(transaction.commit()?)
    }

    /// Samples of the models and families that are wanted, apart: to learn from, and, of every so manieth
    /// block, held back.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn split(&self, wanted: &dyn Fn(&str, &str) -> bool, held_back: usize) -> Result<[Vec<Sample>; 2]> {
        let mut query = self.0.prepare(
            "SELECT samples.model, family, samples.number, sample FROM samples
             JOIN blocks ON blocks.model = samples.model AND blocks.number = samples.number
             ORDER BY samples.number, samples.model, place",
        )?;
        let mut rows = query.query([])?;
        let mut split = [Vec::new(), Vec::new()];
        while let Some(row) = rows.next()? {
            let (model, family): (String, String) = (row.get(0)?, row.get(1)?);
            let (number, bytes): (i64, Vec<u8>) = (row.get(2)?, row.get(3)?);
            if wanted(&model, &family) {
                let sample = Sample::from_bytes(&bytes).context("a sample is cut off")?;
                split[usize::from(is_held_back(number as usize, held_back))].push(sample);
            }
        }
        Ok(split)
    }
}
