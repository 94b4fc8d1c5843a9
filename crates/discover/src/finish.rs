//! From the pairs of all shards to candidates: the steps that need all pairs at once.

use std::collections::BTreeSet;

use regraft_ir::parallel;

use crate::candidate::{Candidate, Written};
use crate::derive::Derivation;
use crate::enumerate::Tables;
use crate::error::DiscoverError;
use crate::instance::Instances;
use crate::observe::Observer;
use crate::pairing::Pair;
use crate::rename::{Rank, Renaming};
use crate::set::TermSet;
use crate::spec::Spec;
use crate::terms::{Terms, ValueId};
use crate::values::Draws;

/// Fresh drawings of the elements under each assignment, for remaining pairs.
const DRAWS: usize = 4;
/// Distinct from all seeds of [`Values::of`](crate::Values::of).
const FRESH: u64 = 0x6a09_e667_f3bc_c908;

/// Pairs between two progress reports.
const REPORT: usize = 256;

/// How to finish.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed of all random elements.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Omit what rewriting derives.
    pub derive: bool,
}

/// Candidates, and the pairs at each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Pairs up to renaming.
    pub named_once: u64,
    /// Of these: not instances of others with variables identified or of other types.
    pub most_general: u64,
    /// Of these: equal in fresh drawings.
    pub confirmed: u64,
    /// Of these: not derived from smaller ones by rewriting.
    pub candidates: Vec<Candidate>,
}

/// Removes renamings and instances among `pairs`, and what does not hold for fresh elements. Pairs
/// of smaller graphs come first.
///
/// The result does not depend on the order of `pairs`, nor on their distribution over shards. With
/// [`Options::derive`], a pair that rewriting by others derives is omitted too; pairs that only
/// follow from others by way of larger graphs remain.
pub fn finish(
    spec: &Spec,
    tables: &Tables,
    pairs: &[Pair],
    options: Options,
    observer: &mut dyn Observer,
) -> Result<Finished, DiscoverError> {
    let (mut finished, held) = survivors(spec, tables, pairs, options, observer)?;
    finished.candidates = held.iter().map(|pair| candidate(spec, tables, pair)).collect();
    Ok(finished)
}

/// The counts, and the pairs that become candidates.
fn survivors(
    spec: &Spec,
    tables: &Tables,
    pairs: &[Pair],
    options: Options,
    observer: &mut dyn Observer,
) -> Result<(Finished, Vec<Pair>), DiscoverError> {
    let Tables { terms, values } = tables;
    observer.step("prune", &format!("{} pairs", pairs.len()));
    let renaming = Renaming::new(spec, terms);
    let named: BTreeSet<Pair> = parallel::map(pairs, options.threads, |[l, r]| renaming.first_pair(l, r)).into_iter().collect();
    let mut named: Vec<Pair> = named.into_iter().collect();
    let weight = |[l, r]: &Pair| {
        let (l, r) = (Rank::of(terms, l), Rank::of(terms, r));
        (l.operators().max(r.operators()), l.operators() + r.operators(), l.min(r))
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
    let counts = Finished { named_once: named.len() as u64, most_general: general.len() as u64, confirmed, candidates: Vec::new() };
    Ok((counts, held))
}

/// The pairs that remain when derivable ones are dropped: first those derived by smaller pairs,
/// then, among those with repeated variables, those derived by pairs with fewer repeats. The latter
/// may be larger, and are more general.
fn underived(spec: &Spec, tables: &Tables, pairs: &[Pair], observer: &mut dyn Observer) -> Result<Vec<Pair>, DiscoverError> {
    let mut derivation = Derivation::new(spec, &tables.terms, &tables.values);
    let all: Vec<usize> = (0..pairs.len()).collect();
    let mut kept = spanning(&mut derivation, pairs, &all, observer)?;
    derivation.clear();
    kept.sort_by_cached_key(|at| (pairs[*at].iter().map(|graph| repeats(&tables.terms, graph)).min(), *at));
    let mut kept = spanning(&mut derivation, pairs, &kept, observer)?;
    kept.sort_unstable();
    Ok(kept.into_iter().map(|at| pairs[at]).collect())
}

/// The pairs, taken in order, that earlier ones do not derive.
fn spanning(
    derivation: &mut Derivation<'_>,
    pairs: &[Pair],
    order: &[usize],
    observer: &mut dyn Observer,
) -> Result<Vec<usize>, DiscoverError> {
    let mut kept = Vec::new();
    for (done, at) in order.iter().enumerate() {
        if done.is_multiple_of(REPORT) {
            observer.step("derive", &format!("{done} of {} pairs, {} kept", order.len(), kept.len()));
            if observer.interrupted() {
                return Err(DiscoverError::Interrupted);
            }
        }
        if !derivation.joins(&pairs[*at]) {
            derivation.learn(&pairs[*at]);
            kept.push(*at);
        }
    }
    Ok(kept)
}

/// How often variables occur beyond their first occurrence.
fn repeats(terms: &Terms, graph: &TermSet) -> usize {
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
    all - found.len()
}

/// The pair as expressions, with equal outputs at the same position.
fn candidate(spec: &Spec, tables: &Tables, pair: &Pair) -> Candidate {
    let mut equations = Instances::new(spec, &tables.terms, &tables.values).equations(pair);
    equations.sort_unstable();
    let written = |v: ValueId| Written::of(&tables.terms, v);
    Candidate { left: equations.iter().map(|(l, _)| written(*l)).collect(), right: equations.iter().map(|(_, r)| written(*r)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enumerate::{Settings, enumerate};
    use crate::observe::Unobserved;
    use crate::state::Shard;

    /// Without conditions on operands, so that equal values can replace each other everywhere in
    /// the table.
    const SPEC: &str = "
        (sizes m k)
        (assignment (m 4) (k 5))
        (assignment (m 6) (k 3))
        (variable (x1 x2) m k)
        (weight (w1 w2) k k)
        (operator relu (?a) (is (relu ?a)))
        (operator add (?a ?b) commutative (when (same-shape ?a ?b)) (is (add ?a ?b)))
        (operator matmul (?a ?b) (is (matmul ?a ?b)))
        (operator transpose (?a) (is (transpose ?a :perm (1 0))))
        (operator concat0 (?a ?b) (is (concat ?a ?b :axis 0)))";

    /// Equal values, each the only output of its graph, paired with the first of them.
    fn equalities(tables: &Tables) -> Vec<Pair> {
        let Tables { terms, values } = tables;
        let graph = |v: ValueId| terms.closed(&[terms.owner(v)]).filter(|graph| terms.outputs(graph).as_slice() == [v]);
        let mut equal: std::collections::BTreeMap<u64, Vec<TermSet>> = std::collections::BTreeMap::new();
        for v in 0..terms.values() as ValueId {
            if let Some(graph) = graph(v) {
                equal.entry(values.all(v)).or_default().push(graph);
            }
        }
        equal.values().flat_map(|graphs| graphs[1..].iter().map(|g| [graphs[0], *g])).collect()
    }

    #[test]
    fn what_is_left_spans_all_equalities() {
        let spec = Spec::parse("t.spec", SPEC).unwrap_or_else(|e| panic!("{e}"));
        let folder = tempfile::tempdir().unwrap();
        let settings =
            Settings { size: 3, threads: 2, memory: 256 << 20, seed: 0, shard: Shard::WHOLE, work: folder.path(), checkpoint: false };
        let tables = Tables::new(&spec, &settings, &mut Unobserved).unwrap();
        let found = enumerate(&spec, &tables, &settings, &mut Unobserved).unwrap();
        let options = Options { seed: 0, threads: 2, derive: true };
        let (_, kept) = survivors(&spec, &tables, &found.pairs, options, &mut Unobserved).unwrap();
        let mut derivation = Derivation::new(&spec, &tables.terms, &tables.values);
        kept.iter().for_each(|pair| derivation.learn(pair));
        let equalities = equalities(&tables);
        assert!(equalities.len() > 1000 && kept.len() * 20 < equalities.len(), "{} equalities, {} kept", equalities.len(), kept.len());
        let missed: Vec<String> =
            equalities.iter().filter(|pair| !derivation.joins(pair)).map(|pair| candidate(&spec, &tables, pair).text(&spec, 0)).collect();
        assert!(missed.is_empty(), "{} of {} are not derived: {}", missed.len(), equalities.len(), missed.join("\n"));
    }
}
