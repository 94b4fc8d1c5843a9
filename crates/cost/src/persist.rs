//! Prices in the measurement store.

use regraft_ir::Bindings;
use regraft_runtime::{Filter, Key, MachineKey, Measurement, Runtime, Store, StoreError};

use crate::measured::Measured;
use crate::predict::Guesses;
use crate::signature::Signature;
use crate::table::Speeds;

/// Key prefix for whole runs of models.
const MODEL: &str = "model:";
/// Key prefix for the cost of runs besides their kernels.
const OVERHEAD: &str = "overhead:";
/// Key prefix for the best speeds seen.
const SPEED: &str = "speed:";
/// Speeds are stored as operations (bytes) in this many ns.
const SPEED_UNIT: f64 = 1e6;

/// What measurements are valid for: a machine, a runtime, a number of threads.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The machine, as [`MachineKey`] displays it.
    pub machine: String,
    /// Runtime and version.
    pub runtime: String,
    /// Threads within one operator.
    pub threads: u32,
}

impl Target {
    /// This machine, with this runtime.
    pub fn here(runtime: &dyn Runtime, threads: u32) -> Target {
        Target { machine: MachineKey::detect().to_string(), runtime: format!("{} {}", runtime.name(), runtime.version()), threads }
    }

    /// The key of a measurement.
    pub fn key(&self, signature: impl Into<String>) -> Key {
        Key { machine: self.machine.clone(), runtime: self.runtime.clone(), threads: self.threads, signature: signature.into() }
    }

    /// All measurements of this target.
    pub fn filter(&self) -> Filter {
        Filter {
            machine: Some(self.machine.clone()),
            runtime: Some(self.runtime.clone()),
            threads: Some(self.threads),
            signature_prefix: None,
        }
    }
}

impl Measured {
    /// All prices that a store has for a target.
    pub fn load(bindings: Bindings, store: &Store, target: &Target) -> Result<Measured, StoreError> {
        let measured = Measured::of(bindings, store.list(&target.filter())?);
        Ok(Measured { guesses: Guesses::of(target), ..measured })
    }

    /// These prices, which are of one target.
    pub fn of(bindings: Bindings, measurements: impl IntoIterator<Item = Measurement>) -> Measured {
        let mut measured = Measured::new(bindings);
        for m in measurements {
            let text = m.key.signature.as_str();
            if let Some(model) = text.strip_prefix(MODEL) {
                measured.runs.entry(model.to_owned()).or_default().0 = m.median_ns as f64;
            } else if let Some(model) = text.strip_prefix(OVERHEAD) {
                measured.runs.entry(model.to_owned()).or_default().1 = m.median_ns as f64;
            } else if let Some(class) = text.strip_prefix(SPEED) {
                let class = Speeds::CLASSES.into_iter().find(|c| *c == class);
                class.into_iter().for_each(|class| measured.table.speeds.raise(class, m.median_ns as f64 / SPEED_UNIT));
            } else if let Some(signature) = Signature::parse(text) {
                measured.table.restore(signature, m.median_ns, m.spread_ns, m.samples);
            }
        }
        measured.machine = measured.table.speeds.machine();
        measured
    }

    /// Stores what was learned since loading or saving; returns how many prices. A frozen store is
    /// left as is (0).
    pub fn save(&mut self, store: &mut Store, target: &Target) -> Result<usize, StoreError> {
        if store.is_frozen() {
            return Ok(0);
        }
        let measurement = |signature: String, ns: f64, spread: f64, samples: u32, context: &str| Measurement {
            key: target.key(signature),
            median_ns: ns.round() as u64,
            spread_ns: spread.round() as u64,
            samples,
            context: context.to_owned(),
            updated_at: 0,
        };
        let mut all: Vec<Measurement> = self
            .table
            .entries()
            .into_iter()
            .filter(|(signature, entry)| entry.fresh && signature.is_complete())
            .map(|(s, entry)| measurement(s.to_string(), entry.price() as f64, entry.spread, entry.count, "profile of whole-model runs"))
            .collect();
        let prices = all.len();
        if prices > 0 {
            for (model, (run, overhead)) in &self.runs {
                all.push(measurement(format!("{MODEL}{model}"), *run, 0.0, 1, "whole run"));
                all.push(measurement(format!("{OVERHEAD}{model}"), *overhead, 0.0, 1, "whole run less its kernels"));
            }
            for class in Speeds::CLASSES {
                let speed = self.table.speeds.get(class);
                all.extend(speed.map(|s| measurement(format!("{SPEED}{class}"), s * SPEED_UNIT, 0.0, 1, "operations per ms")));
            }
            store.put(&all)?;
        }
        self.table.mark_saved();
        Ok(prices)
    }
}
