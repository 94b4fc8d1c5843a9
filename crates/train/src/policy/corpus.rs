//! Samples in an embedded database, and how they are made.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::{Context, Result, bail, ensure};
use regraft_cost::Roofline;
use regraft_ir::Graph;
use regraft_policy::{Digest, Sample, Teacher, Weights};
use regraft_rules::{Anything, Library};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

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
    /// Random moves that are made before a block is looked at, at most: many of them make it worse,
    /// and the way back is known to exist.
    pub detours: usize,
    /// Seed.
    pub seed: u64,
    /// Which of the blocks.
    pub shard: Shard,
    /// Threads.
    pub threads: usize,
    /// The search that is imitated.
    pub teacher: Teacher,
    /// Whose own states are labelled, if anybody's: on the blocks that it learns from, and no
    /// others.
    pub pupil: Option<Weights>,
}

/// Of so many blocks, one is held back.
pub const HELD_BACK: usize = 10;

fn is_held_back(number: usize, held_back: usize) -> bool {
    number % held_back == held_back - 1
}

/// One of several parts of the blocks, which have about as many each of every network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 0 on.
    pub index: usize,
    /// Of how many.
    pub count: usize,
}

impl Shard {
    /// All blocks.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };
}

impl Plan {
    /// Models, by index, and numbers of all blocks, whatever the shard.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize)> {
        let models = self.models.len();
        (0..self.blocks).flat_map(move |number| (0..models).map(move |model| (model, number)))
    }

    /// What samples depend on, beside the block.
    fn conditions(&self) -> String {
        format!("seed {} and up to {} random moves", self.seed, self.detours)
    }
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
        let corpus = Corpus(connection);
        match corpus.about("digest")? {
            Some(known) if known != digest.to_string() => bail!("{}: its samples are for other rules or features", path.display()),
            Some(_) => {}
            None => {
                corpus.0.execute("INSERT INTO about VALUES ('digest', ?1)", [digest.to_string()])?;
            }
        }
        Ok(corpus)
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
            transaction.execute_batch("DELETE FROM samples; DELETE FROM blocks; DELETE FROM about WHERE name = 'conditions';")?;
            transaction.execute("INSERT OR REPLACE INTO about VALUES ('round', ?1)", [round])?;
            transaction.commit()?;
        }
        Ok(corpus)
    }

    /// Makes what is not there yet, while `go_on` says so; `told` hears of each block, and of how
    /// many there are to make.
    ///
    /// # Errors
    ///
    /// If there is no such network, or the database cannot be written, or it has samples that were
    /// made with another seed.
    pub fn fill(
        &mut self,
        plan: &Plan,
        library: &Library,
        told: &mut dyn FnMut(usize, usize),
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        self.settle(&plan.conditions())?;
        let mut jobs = Vec::new();
        let is_wanted = |number: usize| plan.pupil.is_none() || !is_held_back(number, HELD_BACK);
        let of_shard = plan.blocks().skip(plan.shard.index).step_by(plan.shard.count);
        for (model, number) in of_shard.filter(|(_, number)| is_wanted(*number)) {
            if !self.has(&plan.models[model], number)? {
                jobs.push((model, number));
            }
        }
        let graphs = plan.models.iter().map(|name| network(name)).collect::<Result<Vec<_>>>()?;
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
            // Where this fails, the other end is closed, and nothing more is made.
            for (done, (model, number, samples)) in receive.into_iter().enumerate() {
                self.put(&plan.models[model], number, Family::of(&graphs[model]), &samples)?;
                told(done + 1, total);
            }
            Ok(())
        })
    }

    /// Takes over the samples of a plan from databases that have parts of it.
    ///
    /// # Errors
    ///
    /// If one of them cannot be read, or was made with other rules or another seed, or if a block
    /// of the plan is in none.
    pub fn merge(&mut self, parts: &[PathBuf], plan: &Plan) -> Result<()> {
        self.settle(&plan.conditions())?;
        let digest = self.about("digest")?;
        for path in parts {
            let part = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map(Corpus);
            let part = part.with_context(|| path.display().to_string())?;
            let known = part.about("digest").with_context(|| format!("{} is no database of samples", path.display()))?;
            ensure!(known == digest, "{}: its samples are for other rules or features", path.display());
            let made = part.about("conditions")?.unwrap_or_default();
            ensure!(made == plan.conditions(), "{}: it was made with {made}, not with {}", path.display(), plan.conditions());
            self.take_over(&part, plan).with_context(|| path.display().to_string())?;
        }
        for (model, number) in plan.blocks() {
            let model = &plan.models[model];
            ensure!(self.has(model, number)?, "block {number} of {model} is in no part: are these the databases of all shards?");
        }
        Ok(())
    }

    /// Takes over what another database has of a plan, in one transaction.
    fn take_over(&mut self, part: &Corpus, plan: &Plan) -> Result<()> {
        let transaction = self.0.transaction()?;
        let mut blocks = part.0.prepare("SELECT family, samples FROM blocks WHERE model = ?1 AND number = ?2")?;
        let mut samples = part.0.prepare("SELECT place, sample FROM samples WHERE model = ?1 AND number = ?2 ORDER BY place")?;
        for (model, number) in plan.blocks() {
            let (model, number) = (&plan.models[model], number as i64);
            let block = blocks.query_row(params![model, number], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let Some((family, count)): Option<(String, i64)> = block else { continue };
            let row = params![model, number, family, count];
            transaction.prepare_cached("INSERT OR REPLACE INTO blocks VALUES (?1, ?2, ?3, ?4)")?.execute(row)?;
            let mut rows = samples.query(params![model, number])?;
            while let Some(row) = rows.next()? {
                let row = params![model, number, row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?];
                transaction.prepare_cached("INSERT OR REPLACE INTO samples VALUES (?1, ?2, ?3, ?4)")?.execute(row)?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// Ends the work on it: all is in one file then, which can be moved and read by many.
    ///
    /// # Errors
    ///
    /// If the database cannot be written, or another process has it open.
    pub fn finish(self) -> Result<()> {
        Ok(self.0.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?)
    }

    /// What samples here are made with: said once, and the same ever after.
    fn settle(&self, conditions: &str) -> Result<()> {
        self.0.execute("INSERT OR IGNORE INTO about VALUES ('conditions', ?1)", [conditions])?;
        let made = self.about("conditions")?.unwrap_or_default();
        let place = self.0.path().unwrap_or_default();
        ensure!(made == conditions, "{place}: its samples were made with {made}, not with {conditions}: name another database");
        Ok(())
    }

    fn about(&self, name: &str) -> Result<Option<String>> {
        Ok(self.0.query_row("SELECT value FROM about WHERE name = ?1", [name], |row| row.get(0)).optional()?)
    }

    fn has(&self, model: &str, number: usize) -> Result<bool> {
        let query = "SELECT 1 FROM blocks WHERE model = ?1 AND number = ?2";
        Ok(self.0.prepare_cached(query)?.exists(params![model, number as i64])?)
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

    /// Samples of the models and families that are wanted, apart: to learn from, and, of every so
    /// manieth block, held back.
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
