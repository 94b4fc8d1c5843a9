//! The epochs of trainings in an embedded database: what was learned, so that training goes on
//! where it was, and how good it was, as curves.

use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{Connection, OptionalExtension, params};

use super::learning::Learning;
use crate::curves::Curves;

/// How an epoch ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// Its number, from 1; 0 is before the first.
    pub epoch: usize,
    /// Mean loss over its samples.
    pub loss: f64,
    /// Share of states held back whose most likely move is a best one.
    pub first: f64,
    /// Share with a best one among the three most likely.
    pub third: f64,
    /// How far values are off, as logarithms of costs.
    pub off: f64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// A database of epochs.
pub struct History(Connection);

impl History {
    /// Opens a database, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// If the file is no database, or cannot be written.
    pub fn open(path: &Path) -> Result<History> {
        let connection = Connection::open(path).with_context(|| path.display().to_string())?;
        connection
            .execute_batch(
                "CREATE TABLE IF NOT EXISTS epochs (
                   training TEXT NOT NULL, epoch INTEGER NOT NULL, loss REAL, first REAL NOT NULL, third REAL NOT NULL,
                   off REAL NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (training, epoch)) STRICT;
                 CREATE TABLE IF NOT EXISTS states (training TEXT PRIMARY KEY, state BLOB NOT NULL) STRICT;",
            )
            .with_context(|| path.display().to_string())?;
        Ok(History(connection))
    }

    /// Adds an epoch of a training, with what was learned by then.
    ///
    /// # Errors
    ///
    /// If the database cannot be written.
    pub fn put(&mut self, training: &str, epoch: &Epoch, learning: &Learning) -> Result<()> {
        let transaction = self.0.transaction()?;
        let loss = (!epoch.loss.is_nan()).then_some(epoch.loss);
        transaction.execute(
            "INSERT OR REPLACE INTO epochs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![training, epoch.epoch as i64, loss, epoch.first, epoch.third, epoch.off, epoch.seconds],
        )?;
        transaction.execute("INSERT OR REPLACE INTO states VALUES (?1, ?2)", params![training, learning.to_bytes()])?;
        Ok(transaction.commit()?)
    }

    /// What a training had learned when it stopped.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn state(&self, training: &str) -> Result<Option<Vec<u8>>> {
        let query = "SELECT state FROM states WHERE training = ?1";
        Ok(self.0.query_row(query, [training], |row| row.get(0)).optional()?)
    }

    /// The epochs of a training.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn epochs(&self, training: &str) -> Result<Vec<Epoch>> {
        let mut query = self.0.prepare("SELECT epoch, loss, first, third, off, seconds FROM epochs WHERE training = ?1 ORDER BY epoch")?;
        let epochs = query.query_map([training], |row| {
            Ok(Epoch {
                epoch: row.get::<_, i64>(0)? as usize,
                loss: row.get::<_, Option<f64>>(1)?.unwrap_or(f64::NAN),
                first: row.get(2)?,
                third: row.get(3)?,
                off: row.get(4)?,
                seconds: row.get(5)?,
            })
        })?;
        Ok(epochs.collect::<Result<_, _>>()?)
    }
}

/// Curves of a training as a drawing: shares of states over epochs.
pub fn curves(epochs: &[Epoch]) -> String {
    type Share = fn(&Epoch) -> f64;
    let lines: [(&str, Share); 3] = [
        ("best move most likely", |epoch| epoch.first),
        ("best move among three", |epoch| epoch.third),
        ("value off, as a share of the cost", |epoch| epoch.off),
    ];
    let points = |of: Share| epochs.iter().map(|epoch| (epoch.epoch as f64, of(epoch))).collect();
    let curves = Curves {
        title: "A policy in training: states held back",
        over: "epochs",
        range: (0.0, 1.0),
        label: &|share| format!("{:.0} %", 100.0 * share),
        lines: lines.into_iter().map(|(name, of)| (name, points(of))).collect(),
    };
    curves.svg()
}
