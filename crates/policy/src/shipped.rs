//! The policy that comes with the program.

use std::sync::OnceLock;

use regraft_ir::Budget;
use regraft_rules::Library;
use regraft_search::{Engine, Exact, Guided, Matcher, Outcome, Region, Strategy};

use crate::digest::Digest;
use crate::guide::Guide;
use crate::gumbel::Gumbel;
use crate::prior::Prior;
use crate::weights::Weights;

/// Written by `regraft policy train`.
const BYTES: &[u8] = include_bytes!("../weights/prior.bin");

/// The weights that come with the program.
///
/// # Errors
///
/// Why they cannot be used: they were trained for other features or other rules than this
/// program's.
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

/// What the policy that comes with the program guides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// [`Prior`].
    Prior,
    /// [`Gumbel`].
    Gumbel,
    /// [`Guided`].
    GuidedExact,
}

/// A search with the policy that comes with the program; by prices alone where it cannot be used,
/// as [`shipped`] tells.
#[derive(Clone, Copy, Debug)]
pub struct Learned {
    /// What it guides.
    pub method: Method,
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
}

impl Learned {
    /// The search.
    fn strategy(&self) -> Box<dyn Strategy> {
        let (steps, weights) = (self.steps, shipped());
        let exact = Exact { steps, ..Exact::default() };
        match (self.method, weights) {
            (Method::GuidedExact, Ok(advisor)) => Box::new(Guided { exact, advisor }),
            (Method::GuidedExact, Err(_)) => Box::new(exact),
            (Method::Prior, weights) => Box::new(Prior { steps, ..Prior::new(weights.map_or(Guide::Delta, Guide::Policy)) }),
            (Method::Gumbel, weights) => Box::new(Gumbel { steps, ..Gumbel::new(weights.map_or(Guide::Delta, Guide::Policy)) }),
        }
    }
}

impl Strategy for Learned {
    fn name(&self) -> &'static str {
        match self.method {
            Method::Prior => "prior",
            Method::Gumbel => "gumbel",
            Method::GuidedExact => "guided-exact",
        }
    }

    fn is_exhaustive(&self) -> bool {
        self.strategy().is_exhaustive()
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.strategy().search(engine, matcher, budget)
    }

    fn search_after(&self, known: &Outcome, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.strategy().search_after(known, engine, matcher, budget)
    }

    fn search_regions(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> (Outcome, Vec<Region>) {
        self.strategy().search_regions(engine, matcher, budget)
    }
}
