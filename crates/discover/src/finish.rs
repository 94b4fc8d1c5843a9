//! From the pairs of all shards to candidates: the steps that must see all pairs at once.

use std::collections::BTreeSet;

use crate::candidate::{Candidate, Written};
use crate::enumerate::Tables;
use crate::error::DiscoverError;
use crate::instance::Instances;
use crate::judge::Pair;
use crate::observe::Observer;
use crate::parallel;
use crate::rename::{Rank, Renaming};
use crate::spec::Spec;
use crate::values::Values;

/// Fresh drawings of the elements under each assignment, for pairs that are left.
const DRAWS: u64 = 4;
/// Apart from all seeds of [`Values::of`].
const FRESH: u64 = 0x6a09_e667_f3bc_c908;

/// Candidates, and the pairs at each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Pairs that are no renamings of each other.
    pub named_once: u64,
    /// Of these: no instances of others, by variables that are made equal or have other types.
    pub most_general: u64,
    /// Of these: equal in fresh drawings.
    pub candidates: Vec<Candidate>,
}

/// Removes renamings and instances among `pairs`, and what does not hold for fresh elements. Smaller pairs come first.
///
/// What is left does not depend on the order of `pairs`, nor on how they were spread over shards. A pair that follows from others by
/// several steps of rewriting is still among them: whoever can prove that takes it from here.
pub fn finish(
    spec: &Spec,
    tables: &Tables,
    pairs: &[Pair],
    seed: u64,
    threads: usize,
    observer: &mut dyn Observer,
) -> Result<Finished, DiscoverError> {
    let Tables { terms, values } = tables;
    observer.step("prune", &format!("{} pairs", pairs.len()));
    let renaming = Renaming::new(spec, terms);
    let named: BTreeSet<Pair> = parallel::map(pairs, threads, |[l, r]| renaming.first_pair(l, r)).into_iter().collect();
    let mut named: Vec<Pair> = named.into_iter().collect();
    let weight = |[l, r]: &Pair| {
        let (l, r) = (Rank::of(terms, l), Rank::of(terms, r));
        (l.operators() + r.operators(), l.min(r))
    };
    named.sort_by_cached_key(|pair| (weight(pair), *pair));
    let general = Instances::new(spec, terms, values).most_general(&named);
    observer.step("retest", &format!("{} pairs", general.len()));
    let held = parallel::map(&general, threads, |[l, r]| Values::retest(spec, terms, [l, r], seed ^ FRESH, DRAWS));
    let mut candidates = Vec::new();
    for (pair, held) in general.iter().zip(held) {
        if held? {
            candidates.push(candidate(tables, pair));
        }
    }
    Ok(Finished { named_once: named.len() as u64, most_general: general.len() as u64, candidates })
}

/// The pair as expressions, outputs that are equal at the same place.
fn candidate(tables: &Tables, pair: &Pair) -> Candidate {
    let Tables { terms, values } = tables;
    let side = |at: usize| {
        let mut outputs = terms.outputs(&pair[at]);
        outputs.sort_unstable_by_key(|v| (values.all(*v), *v));
        outputs.iter().map(|v| Written::of(terms, *v)).collect()
    };
    Candidate { left: side(0), right: side(1) }
}
