//! A model that may be written: how it was made, and what is known about it.

use std::time::Duration;

use regraft_cost::Ns;
use regraft_ir::Graph;
use regraft_runtime::Startup;

use crate::optimize::artifact::Artifact;
use crate::optimize::binding::geometric_mean;
use crate::optimize::script::Script;
use crate::optimize::standing::{Standing, Wanted};
use crate::report::{Check, Speedup};

/// A model that may be written.
pub struct Candidate {
    /// Name in reports.
    pub name: String,
    /// Its graph.
    pub graph: Graph,
    /// Rewrites that led to it; none if it is the input's normal form.
    pub script: Script,
    /// What it must be, to be written instead of the input.
    pub wanted: Wanted,
    /// Its file.
    pub artifact: Artifact,
    /// Cost under the prices at that time.
    pub predicted: Ns,
    /// Time relative to the input in the profile, if measured.
    pub profiled: Option<f64>,
    /// End-to-end times, if compared.
    pub timings: Timings,
    /// How long it was compared with the input alone.
    pub compared: Duration,
    /// What a process takes that loads it, if measured.
    pub startup: Option<Startup>,
    /// Result of its check, if one was made.
    pub check: Option<Check>,
}

/// End-to-end time of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// Median time of one run, ns; 0 if it was not run.
    pub median_ns: f64,
    /// Speed-up over the input.
    pub speedup: Speedup,
}

/// End-to-end times of a model at all settings. None if it was not compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timings {
    /// At each binding with the threads of the run: here it must gain.
    pub deciding: Vec<Timed>,
    /// At each binding at one thread, if the run has more: here it must not be slower.
    pub single: Vec<Timed>,
}

impl Timings {
    /// Of a model that was not run. `threads` are those of the run.
    pub fn never(bindings: usize, threads: usize) -> Timings {
        let single = if threads > 1 { bindings } else { 0 };
        Timings { deciding: vec![Timed::NEVER; bindings], single: vec![Timed::NEVER; single] }
    }

    /// Where a model with these times stands.
    pub fn standing(&self, wanted: Wanted) -> Standing {
        let speedups = |timed: &[Timed]| timed.iter().map(|timed| timed.speedup).collect::<Vec<_>>();
        Standing::of(wanted, &speedups(&self.deciding), &speedups(&self.single))
    }
}

impl Timed {
    /// For a model that was not run.
    pub const NEVER: Timed = Timed { median_ns: 0.0, speedup: Speedup::NONE };

    /// Geometric means over all bindings.
    pub fn mean(bindings: &[Timed]) -> Timed {
        match bindings {
            [] => Timed::NEVER,
            [one] => *one,
            all => {
                let sum: f64 = all.iter().map(|timed| timed.median_ns.ln()).sum();
                let speedups: Vec<Speedup> = all.iter().map(|timed| timed.speedup).collect();
                Timed { median_ns: (sum / all.len() as f64).exp(), speedup: geometric_mean(&speedups) }
            }
        }
    }
}

impl Candidate {
    /// Its time over all bindings, with the threads of the run.
    pub fn timed(&self) -> Timed {
        Timed::mean(&self.timings.deciding)
    }

    /// Whether its end-to-end times are enough to take or to refuse it.
    pub fn standing(&self) -> Standing {
        self.timings.standing(self.wanted)
    }

    /// Whether it was timed end to end.
    pub fn is_compared(&self) -> bool {
        self.timed().speedup.pairs > 0
    }

    /// Whether it was timed with several threads and not at one: another one led, or time was up.
    pub fn is_untimed_alone(&self) -> bool {
        self.is_compared() && self.timings.single.iter().any(|timed| timed.speedup.pairs == 0)
    }

    /// Why its check forbids writing it, if it does.
    pub fn fate(&self) -> Option<&'static str> {
        let check = self.check.as_ref().filter(|check| !check.passed)?;
        Some(if check.incomplete { "could not be checked" } else { "failed its check" })
    }
}
