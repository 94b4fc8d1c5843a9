//! The epochs of trainings in an embedded database: what was learned, so that training goes on where it
//! was, and how good it was, as curves.

use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{Connection, OptionalExtension, params};

use super::learning::Learning;

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
    const SIZE: (f64, f64) = (640.0, 320.0);
    const EDGE: f64 = 48.0;
    let last = epochs.last().map_or(1, |epoch| epoch.epoch).max(1) as f64;
    let x = |epoch: usize| EDGE + (SIZE.0 - 2.0 * EDGE) * epoch as f64 / last;
    let y = |share: f64| SIZE.1 - EDGE - (SIZE.1 - 2.0 * EDGE) * share.clamp(0.0, 1.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>A policy in training: states held back</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        SIZE.0, SIZE.1
    );
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        svg += &format!(
            "<line x1=\"{EDGE}\" x2=\"{:.1}\" y1=\"{2:.1}\" y2=\"{2:.1}\" stroke=\"#ddd\"/><text x=\"8\" y=\"{3:.1}\">{1:.0} %</text>\n",
            SIZE.0 - EDGE,
            100.0 * share,
            y(share),
            y(share) + 4.0
        );
    }
    type Share = fn(&Epoch) -> f64;
    let lines: [(&str, &str, Share); 3] = [
        ("best move most likely", "#0b62a4", |epoch| epoch.first),
        ("best move among three", "#1a7f37", |epoch| epoch.third),
        ("value off, as a share of the cost", "#b35900", |epoch| epoch.off),
    ];
    for (at, (name, color, of)) in lines.into_iter().enumerate() {
        let points: Vec<String> = epochs.iter().map(|epoch| format!("{:.1},{:.1}", x(epoch.epoch), y(of(epoch)))).collect();
        svg += &format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n<text x=\"{:.0}\" y=\"24\" fill=\"{color}\">{name}</text>\n",
            points.join(" "),
            EDGE + 180.0 * at as f64
        );
    }
    svg + &format!("<text x=\"{:.0}\" y=\"{:.0}\">epochs: {last:.0}</text>\n</svg>\n", SIZE.0 / 2.0 - 24.0, SIZE.1 - 12.0)
}
