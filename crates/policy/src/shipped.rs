//! The policy that comes with the program.

use std::sync::OnceLock;

use regraft_ir::Budget;
use regraft_rules::Library;
use regraft_search::{Engine, Matcher, Outcome, Strategy};

use crate::digest::Digest;
use crate::prior::{Guide, Prior};
use crate::weights::Weights;

/// Written by `regraft policy train`.
const BYTES: &[u8] = include_bytes!("../weights/prior.bin");

/// The weights that come with the program.
///
/// # Errors
///
/// Why they cannot be used: they were trained for other features or other rules than this program's.
pub fn shipped() -> Result<&'static Weights, String> {
    static WEIGHTS: OnceLock<Result<Weights, String>> = OnceLock::new();
    let read = || {
        let weights = Weights::from_bytes(BYTES).map_err(|e| e.to_string())?;
        let library = Library::shipped().map_err(|e| e.message)?;
        match weights.digest.differs(Digest::of(&library)) {
            Some(why) => Err(why.into()),
            None => Ok(weights),
        }
    };
    WEIGHTS.get_or_init(read).as_ref().map_err(Clone::clone)
}

/// A search with the policy that comes with the program; by prices alone where it cannot be used, as
/// [`shipped`] tells.
#[derive(Clone, Copy, Debug, Default)]
pub struct Learned {
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
}

impl Strategy for Learned {
    fn name(&self) -> &'static str {
        "prior"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let guide = shipped().map_or(Guide::Delta, Guide::Policy);
        Prior { steps: self.steps, ..Prior::new(guide) }.search(engine, matcher, budget)
    }
}
