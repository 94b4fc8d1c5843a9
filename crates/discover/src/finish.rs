//! From the pairs of all shards to candidates: the steps that must see all pairs at once.

use std::collections::BTreeSet;

use crate::candidate::{Candidate, Written};
use crate::derive::Derivation;
use crate::enumerate::Tables;
use crate::error::DiscoverError;
use crate::instance::Instances;
use crate::judge::Pair;
use crate::observe::Observer;
use crate::parallel;
use crate::rename::{Rank, Renaming};
use crate::set::TermSet;
use crate::spec::Spec;
use crate::terms::{Terms, ValueId};
use crate::values::Draws;

/// Fresh drawings of the elements under each assignment, for pairs that are left.
const DRAWS: usize = 4;
/// Apart from all seeds of [`Values::of`](crate::Values::of).
const FRESH: u64 = 0x6a09_e667_f3bc_c908;

/// Pairs between two lines of progress.
const REPORT: usize = 256;

/// How to finish.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Of all random elements.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Leave out what rewriting derives.
    pub derive: bool,
}

/// Candidates, and the pairs at each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Pairs that are no renamings of each other.
    pub named_once: u64,
    /// Of these: no instances of others, by variables that are made equal or have other types.
    pub most_general: u64,
    /// Of these: equal in fresh drawings.
    pub confirmed: u64,
    /// Of these: not derived from smaller ones by rewriting.
    pub candidates: Vec<Candidate>,
}

/// Removes renamings and instances among `pairs`, and what does not hold for fresh elements. Smaller pairs come first.
///
/// What is left does not depend on the order of `pairs`, nor on how they were spread over shards. With `derive`, a pair that rewriting by smaller ones derives
/// ([`Derivation`]) is left out too; what follows from others only by way of larger graphs is still there.
pub fn finish(
    spec: &Spec,
    tables: &Tables,
    pairs: &[Pair],
    options: Options,
    observer: &mut dyn Observer,
) -> Result<Finished, DiscoverError> {
    let Tables { terms, values } = tables;
    observer.step("prune", &format!("{} pairs", pairs.len()));
    let renaming = Renaming::new(spec, terms);
    let named: BTreeSet<Pair> = parallel::map(pairs, options.threads, |[l, r]| renaming.first_pair(l, r)).into_iter().collect();
    let mut named: Vec<Pair> = named.into_iter().collect();
    let weight = |[l, r]: &Pair| {
        let (l, r) = (Rank::of(terms, l), Rank::of(terms, r));
        (l.operators() + r.operators(), l.min(r))
    };
    named.sort_by_cached_key(|pair| (weight(pair), *pair));
    let general = Instances::new(spec, terms, values).most_general(&named);
    observer.step("retest", &format!("{} pairs", general.len()));
    let draws = Draws::new(spec, terms, options.seed ^ FRESH, DRAWS);
    let mut held = Vec::new();
    for (pair, agree) in general.iter().zip(parallel::map(&general, options.threads, |[l, r]| draws.agree(l, r))) {
        if agree? {
            held.push(*pair);
        }
    }
    let confirmed = held.len() as u64;
    if options.derive {
        held = underived(spec, tables, &held, observer)?;
    }
    let candidates = held.iter().map(|pair| candidate(tables, pair)).collect();
    Ok(Finished { named_once: named.len() as u64, most_general: general.len() as u64, confirmed, candidates })
}

/// The pairs that are left when those that others derive are dropped: by smaller ones, and where a variable occurs twice on both sides also by larger ones, which
/// may be more general.
fn underived(spec: &Spec, tables: &Tables, pairs: &[Pair], observer: &mut dyn Observer) -> Result<Vec<Pair>, DiscoverError> {
    let mut derivation = Derivation::new(spec, &tables.terms, &tables.values);
    let mut kept = Vec::new();
    for (at, pair) in pairs.iter().enumerate() {
        if at.is_multiple_of(REPORT) {
            observer.step("derive", &format!("{at} of {} pairs, {} kept", pairs.len(), kept.len()));
            if observer.interrupted() {
                return Err(DiscoverError::Interrupted);
            }
        }
        if !derivation.joins(pair) {
            derivation.learn(pair);
            kept.push(*pair);
        }
    }
    let mut at = kept.len();
    while at > 0 {
        at -= 1;
        let pair = kept[at];
        if pair.iter().all(|graph| repeats(&tables.terms, graph)) {
            derivation.forget(&pair);
            if derivation.joins(&pair) {
                kept.remove(at);
            } else {
                derivation.learn(&pair);
            }
        }
    }
    Ok(kept)
}

/// Whether a variable occurs twice.
fn repeats(terms: &Terms, graph: &TermSet) -> bool {
    fn leaves(terms: &Terms, v: ValueId, found: &mut Vec<ValueId>) {
        if terms.is_variable(v) {
            found.push(v);
            return;
        }
        terms.get(terms.owner(v)).operands.iter().for_each(|o| leaves(terms, *o, found));
    }
    let mut found = Vec::new();
    terms.outputs(graph).iter().for_each(|v| leaves(terms, *v, &mut found));
    let all = found.len();
    found.sort_unstable();
    found.dedup();
    found.len() < all
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
