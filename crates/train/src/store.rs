//! Runs in an embedded database: what was trained is not trained again.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

/// One run: an operator trained for some epochs from a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The operator's formula.
    pub formula: String,
    /// The seed.
    pub seed: u64,
    /// Epochs that were planned: the rate depends on them.
    pub planned: usize,
    /// Epochs done.
    pub epoch: usize,
    /// Mean loss of the last epoch.
    pub loss: f64,
    /// Share of held-back images that are told right.
    pub accuracy: f64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// A database of runs.
pub struct Store(Connection);

impl Store {
    /// Opens a database, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// If the file is no database, or cannot be written.
    pub fn open(path: &Path) -> Result<Store> {
        Store::prepared(Connection::open(path)?)
    }

    /// A database that is forgotten with the value.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    pub fn in_memory() -> Result<Store> {
        Store::prepared(Connection::open_in_memory()?)
    }

    fn prepared(connection: Connection) -> Result<Store> {
        connection.busy_timeout(std::time::Duration::from_secs(30))?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS runs (
               formula TEXT NOT NULL, seed INTEGER NOT NULL, planned INTEGER NOT NULL, epoch INTEGER NOT NULL,
               loss REAL NOT NULL, accuracy REAL NOT NULL, seconds REAL NOT NULL,
               PRIMARY KEY (formula, seed, planned, epoch)) STRICT;",
        )?;
        Ok(Store(connection))
    }

    /// The run of an operator from a seed with so many epochs planned, after so many of them.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn get(&self, formula: &str, seed: u64, planned: usize, epoch: usize) -> Result<Option<Run>> {
        let query = "SELECT loss, accuracy, seconds FROM runs WHERE formula = ?1 AND seed = ?2 AND planned = ?3 AND epoch = ?4";
        let run = self.0.query_row(query, params![formula, seed as i64, planned as i64, epoch as i64], |row| {
            Ok(Run { formula: formula.into(), seed, planned, epoch, loss: row.get(0)?, accuracy: row.get(1)?, seconds: row.get(2)? })
        });
        Ok(run.optional()?)
    }

    /// Adds a run; one that is there already stays.
    ///
    /// # Errors
    ///
    /// If the database cannot be written.
    pub fn put(&self, run: &Run) -> Result<()> {
        self.0.execute(
            "INSERT OR IGNORE INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![run.formula, run.seed as i64, run.planned as i64, run.epoch as i64, run.loss, run.accuracy, run.seconds],
        )?;
        Ok(())
    }

    /// All runs, by formula, seed and epoch.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn all(&self) -> Result<Vec<Run>> {
        let mut query = self.0.prepare("SELECT formula, seed, planned, epoch, loss, accuracy, seconds FROM runs ORDER BY 1, 2, 3, 4")?;
        let runs = query.query_map([], |row| {
            Ok(Run {
                formula: row.get(0)?,
                seed: row.get::<_, i64>(1)? as u64,
                planned: row.get::<_, i64>(2)? as usize,
                epoch: row.get::<_, i64>(3)? as usize,
                loss: row.get(4)?,
                accuracy: row.get(5)?,
                seconds: row.get(6)?,
            })
        })?;
        Ok(runs.collect::<Result<_, _>>()?)
    }
}
