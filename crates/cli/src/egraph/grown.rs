//! How far e-graphs grow, as options.

use regraft::saturated::SaturateRequest;
use regraft_saturate::{Cycles, Limits, Schedule};

use crate::priced::Priced;

/// What `dump` and `search` have in common.
#[derive(Debug, clap::Args)]
pub struct Grown {
    /// Operators that the e-graph may have, weights and inputs included [default: 10000; 2000 for
    /// searches]
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// Ways to choose operators that are looked at for one rule at one operator [default: 64; 8 for
    /// simulations]
    #[arg(long, value_name = "N")]
    choices: Option<usize>,
    /// Iterations, each applying all rules; 0 for the model itself
    #[arg(long, value_name = "N", default_value_t = Limits::default().iterations)]
    iterations: usize,
    /// Iterations that apply rules with several results, too
    #[arg(long, value_name = "K", default_value_t = Limits::default().multi)]
    multi: usize,
    /// What becomes of cycles
    #[arg(long, value_name = "HOW", value_enum, default_value = "kept")]
    cycles: Filter,
    /// Have rules pause that match too often
    #[arg(long)]
    backoff: bool,
}

/// Values of `--cycles`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Filter {
    /// No rewrite is left out: extraction has no cycle all the same
    Kept,
    /// Rewrites are left out whose operands depend on what they replace (TENSAT)
    Vanilla,
    /// The same by a table that is made once per iteration; what is cyclic all the same is cut
    /// (TENSAT)
    Efficient,
}

impl From<Filter> for Cycles {
    fn from(filter: Filter) -> Cycles {
        match filter {
            Filter::Kept => Cycles::Kept,
            Filter::Vanilla => Cycles::Vanilla,
            Filter::Efficient => Cycles::Efficient,
        }
    }
}

impl Grown {
    /// The request for a model, with these limits unless told otherwise.
    pub fn request(&self, priced: &Priced, limits: Limits) -> SaturateRequest {
        let (nodes, choices) = (self.nodes.unwrap_or(limits.nodes), self.choices.unwrap_or(limits.choices));
        SaturateRequest {
            limits: Limits { nodes, choices, iterations: self.iterations, multi: self.multi, ..limits },
            schedule: if self.backoff { Schedule::Backoff { matches: 1000, pause: 5 } } else { Schedule::Simple },
            cycles: self.cycles.into(),
            prices: priced.prices.clone(),
            shapes: priced.shape.clone(),
            binds: priced.bind.clone(),
            rules: priced.rules.clone(),
            ..SaturateRequest::new(&priced.model)
        }
    }
}
