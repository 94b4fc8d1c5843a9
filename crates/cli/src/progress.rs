//! Progress on standard error.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::console::{self, Console, ProgressKind};
use crate::host::Caller;
use regraft::optimize::{Observer, Phase};

/// Interval between redraws, which must not disturb measurements.
const REDRAW: Duration = Duration::from_millis(500);

/// Shows phases as they begin.
pub struct Progress {
    kind: ProgressKind,
    start: Instant,
    bar: Option<ProgressBar>,
    caller: Caller,
}

impl Progress {
    /// Progress in the form the user chose.
    pub fn new(console: &Console) -> Progress {
        let caller = console.caller.clone();
        let kind = if console.quiet || caller.host.is_some() { ProgressKind::None } else { console.progress };
        let bar = (kind == ProgressKind::Auto && std::io::stderr().is_terminal()).then(|| {
            let style =
                ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::new_spinner().with_style(style);
            bar.enable_steady_tick(REDRAW);
            bar
        });
        Progress { kind, start: Instant::now(), bar, caller }
    }

    /// Reports that a step begins.
    pub fn step(&mut self, phase: &str, detail: &str) {
        let elapsed = self.start.elapsed().as_secs_f64();
        if let Some(host) = self.caller.host() {
            host.step(phase, detail);
        }
        match self.kind {
            ProgressKind::Auto => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("{phase:>8}  {detail}"));
                }
            }
            ProgressKind::Plain => console::line(&format!("{elapsed:7.1} s {phase:>8}  {detail}")),
            ProgressKind::Json => {
                console::line(&serde_json::json!({ "elapsed": elapsed, "phase": phase, "detail": detail }).to_string());
            }
            ProgressKind::None => {}
        }
    }
}

impl Drop for Progress {
    /// Leaves a clean line for the output that follows.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn phase(&mut self, phase: Phase, detail: &str) {
        self.step(phase.name(), detail);
    }

    fn interrupted(&self) -> bool {
        self.caller.interrupted()
    }
}
