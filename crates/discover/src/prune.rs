//! From pairs to rules: what is proved, saves something, is not done by other rules, and can be
//! stated.

use std::collections::{BTreeMap, BTreeSet};

use regraft_audit::judge;
use regraft_ir::{TensorType, Trust, parallel};
use regraft_prove::{Allowance, Assumptions, equal_within};
use regraft_rules::{Library, Rule, parse};
use rustc_hash::FxHashMap;

use crate::candidate::{Candidate, Written};
use crate::error::DiscoverError;
use crate::gain::{Rewrite, done_by, rewrites};
use crate::journal::Journal;
use crate::lower::Constants;
use crate::observe::Observer;
use crate::spec::Spec;
use crate::statement::Statement;
use crate::typing::generalized;

/// Instances of each kind of sizes that a rule is judged by.
const INSTANCES: usize = 6;
/// Pairs that are proved, per thread, between two looks at the observer.
const BATCH: usize = 32;
/// Part of the work for the proof of a pair that a proof at more general sizes may cost: thousands
/// are tried, and most fail.
const GENERAL: u64 = 10;

/// What became of one direction of a pair.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It is a rule, of this name.
    Rule(String),
    /// Rules save as much already: these.
    Done(BTreeSet<String>),
    /// It cannot be stated as a rule, and why.
    Unstated(String),
    /// The rule that states it is not proved, and why.
    Unproved(String),
    /// Its source is met nowhere.
    Unmet,
}

/// A proved pair in a direction that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Its place among the pairs.
    pub pair: usize,
    /// The direction, and what it saves.
    pub rewrite: Rewrite,
    /// What became of it.
    pub fate: Fate,
}

/// What became of all pairs.
#[derive(Clone, Debug, Default)]
pub struct Pruned {
    /// For each pair whether it is proved.
    pub proved: Vec<bool>,
    /// Directions that are wanted, those that save most by the roofline first.
    pub ranked: Vec<Ranked>,
    /// The rules as text, those with smaller sources first.
    pub rules: Vec<String>,
}

impl Pruned {
    /// The rules as a rule file, whose head says from which specification it was made.
    pub fn file(&self, spec: &str) -> String {
        let head = format!(
            ";; Found by machine, from the pairs of the specification `{spec}`; docs/guide/generating-rules.md says how. Not to be edited: `make generated-rules`\n\
             ;; writes it anew, and a test compares. Each rule is proved; above each stands the equation in the operators of the specification.\n"
        );
        self.rules.iter().fold(head, |text, rule| text + "\n" + rule)
    }

    /// How many directions each set of rules does, most first.
    pub fn done(&self) -> Vec<(usize, String)> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for ranked in &self.ranked {
            if let Fate::Done(rules) = &ranked.fate {
                *counts.entry(rules.iter().cloned().collect::<Vec<_>>().join(", ")).or_default() += 1;
            }
        }
        let mut counts: Vec<(usize, String)> = counts.into_iter().map(|(rules, count)| (count, rules)).collect();
        counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        counts
    }
}

/// How to prune.
#[derive(Clone, Copy, Debug)]
pub struct Pruning {
    /// Operators of the sources of rules, at most.
    pub operators: usize,
    /// Threads.
    pub threads: usize,
    /// Seed of the instances by which rules are judged.
    pub seed: u64,
    /// Work that the proof of a pair may cost.
    pub allowance: Allowance,
}

impl Pruning {
    /// Any sources, on one thread.
    pub const DEFAULT: Pruning = Pruning { operators: usize::MAX, threads: 1, seed: 0, allowance: ALLOWANCE };

    /// As it is, but for so much work for the closed forms of a proof, and for the rest in
    /// proportion.
    pub fn within(self, closed: u64) -> Pruning {
        let Allowance { by_cases, by_tables, .. } = ALLOWANCE;
        let part = |all: u64| (u128::from(all) * u128::from(closed) / u128::from(ALLOWANCE.closed)) as u64;
        Pruning { allowance: Allowance { closed, by_cases: part(by_cases), by_tables: part(by_tables) }, ..self }
    }
}

/// Work that the proof of a pair may cost: a part of what proofs get elsewhere, because a pair that
/// is not proved costs all of it.
const ALLOWANCE: Allowance = Allowance { closed: 200_000, by_cases: 500_000, by_tables: 2_000_000 };

/// Which directions of proved pairs are made rules of.
pub enum Wanted<'a> {
    /// Those that save something by the roofline, unless other rules save as much.
    Saving,
    /// Those whose source is met somewhere, as this says of a rule without guards; whatever they
    /// save.
    Met(&'a dyn Fn(&Rule) -> bool),
}

/// Proves, ranks and prunes pairs of a specification against a library. Nothing but rules that
/// [`judge`] calls proved comes out as a rule.
///
/// Verdicts that the journal has are not looked for again. Fails if the observer interrupts it or
/// the journal cannot be written; or if a rule that was written here cannot be read back, which is
/// a defect.
pub fn prune(
    spec: &Spec,
    pairs: &[Candidate],
    library: &Library,
    how: Pruning,
    wanted: &Wanted<'_>,
    journal: &mut Journal,
    observer: &mut dyn Observer,
) -> Result<Pruned, DiscoverError> {
    let threads = how.threads;
    prove(spec, pairs, how, journal, observer)?;
    let proved: Vec<bool> = pairs.iter().map(|pair| journal.get(spec, pair) == Some(true)).collect();
    let kept: Vec<usize> = (0..pairs.len()).filter(|at| proved[*at]).collect();
    observer.step("rank", &format!("{} proved pairs", kept.len()));
    let found = match wanted {
        Wanted::Saving => parallel::map(&kept, threads, |at| rewrites(spec, &pairs[*at])),
        Wanted::Met(_) => kept.iter().map(|at| directions(&pairs[*at])).collect(),
    };
    let mut rewrites: Vec<(usize, Rewrite)> =
        kept.iter().zip(found).flat_map(|(at, found)| found.into_iter().map(|rewrite| (*at, rewrite))).collect();
    // Smaller sources first: rules for them may do larger ones. Then larger savings.
    let by_size = |a: &(usize, Rewrite), b: &(usize, Rewrite)| a.1.operators().cmp(&b.1.operators());
    rewrites.sort_by(|a, b| by_size(a, b).then(b.1.gain().total_cmp(&a.1.gain())).then(a.0.cmp(&b.0)));
    let mut pruned = Pruned { proved, ..Pruned::default() };
    let mut wider = library.clone();
    let known: Vec<Option<Fate>> = match wanted {
        Wanted::Saving => {
            observer.step("compare", &format!("{} rewrites that save something", rewrites.len()));
            parallel::map(&rewrites, threads, |(_, rewrite)| fate_by(spec, rewrite, library, how.operators))
        }
        Wanted::Met(meets) => {
            observer.step("meet", &format!("{} rewrites", rewrites.len()));
            let mut met = FxHashMap::default();
            rewrites.iter().map(|(_, rewrite)| unmet(spec, rewrite, meets, &mut met, how.operators)).collect::<Result<_, _>>()?
        }
    };
    for (at, ((pair, rewrite), known)) in rewrites.into_iter().zip(known).enumerate() {
        if observer.interrupted() {
            return Err(DiscoverError::Interrupted);
        }
        let fate = match known {
            Some(fate) => fate,
            None => {
                observer.step("state", &format!("rewrite {at}, {} rules", pruned.rules.len()));
                let done = if matches!(wanted, Wanted::Saving) { fate_by(spec, &rewrite, &wider, how.operators) } else { None };
                match done {
                    Some(fate) => fate,
                    None => stated(spec, &rewrite, &mut wider, &mut pruned.rules, how)?,
                }
            }
        };
        pruned.ranked.push(Ranked { pair, rewrite, fate });
    }
    pruned.ranked.sort_by(|a, b| b.rewrite.gain().total_cmp(&a.rewrite.gain()).then(a.pair.cmp(&b.pair)));
    Ok(pruned)
}

/// Has the journal know of all pairs whether they are proved.
fn prove(spec: &Spec, pairs: &[Candidate], how: Pruning, journal: &mut Journal, observer: &mut dyn Observer) -> Result<(), DiscoverError> {
    let open: Vec<&Candidate> = pairs.iter().filter(|pair| journal.get(spec, pair).is_none()).collect();
    let known = pairs.len() - open.len();
    for (at, batch) in open.chunks(BATCH * how.threads.max(1)).enumerate() {
        if observer.interrupted() {
            return Err(DiscoverError::Interrupted);
        }
        observer.step("prove", &format!("{} of {} pairs", known + at * BATCH * how.threads.max(1), pairs.len()));
        let verdicts = parallel::map(batch, how.threads, |pair| {
            let equal = |[left, right]: [_; 2]| equal_within(&left, &right, &Assumptions::default(), how.allowance).is_proved();
            pair.graphs(spec).is_ok_and(equal)
        });
        journal.learn(spec, batch.iter().copied().zip(verdicts))?;
    }
    Ok(())
}

/// Both directions of a pair, whatever they save.
fn directions(pair: &Candidate) -> Vec<Rewrite> {
    let rewrite = |source: &[Written], target: &[Written]| Rewrite {
        source: source.to_vec(),
        target: target.to_vec(),
        constants: Constants::None,
        savings: Vec::new(),
    };
    vec![rewrite(&pair.left, &pair.right), rewrite(&pair.right, &pair.left)]
}

/// Why a direction is not stated because of its source: too large, with constants of the
/// specification, or met nowhere. What is met is remembered by sources.
fn unmet(
    spec: &Spec,
    rewrite: &Rewrite,
    meets: &dyn Fn(&Rule) -> bool,
    met: &mut FxHashMap<String, bool>,
    operators: usize,
) -> Result<Option<Fate>, DiscoverError> {
    if let Some(why) = unfit(spec, rewrite, operators) {
        return Ok(Some(Fate::Unstated(why)));
    }
    let text = match narrow(spec, rewrite, &types(spec)).rule("loose", "", "") {
        Ok(text) => text,
        Err(why) => return Ok(Some(Fate::Unstated(why))),
    };
    for mut rule in parse("loose.rules", &text)? {
        (rule.guards, rule.profitable) = (Vec::new(), Vec::new());
        let is_met = *met.entry(format!("{:?}", rule.source)).or_insert_with(|| meets(&rule));
        if !is_met {
            return Ok(Some(Fate::Unmet));
        }
    }
    Ok(None)
}

/// What keeps a source from being stated.
fn unfit(spec: &Spec, rewrite: &Rewrite, operators: usize) -> Option<String> {
    if rewrite.operators() > operators {
        return Some(format!("its source has more than {operators} operators"));
    }
    rewrite.source.iter().any(|written| takes_nothing(spec, written)).then(|| "its source has a constant of the specification".into())
}

/// Types of the specification's variables.
fn types(spec: &Spec) -> Vec<TensorType> {
    spec.variables.iter().map(|v| v.ty.clone()).collect()
}

/// A rewrite at these types.
fn narrow<'a>(spec: &'a Spec, rewrite: &'a Rewrite, types: &'a [TensorType]) -> Statement<'a> {
    Statement { spec, types, source: &rewrite.source, target: &rewrite.target, constants: rewrite.constants }
}

/// What is known without stating it: that it is too large, that it has constants of the
/// specification, or that a library does it.
fn fate_by(spec: &Spec, rewrite: &Rewrite, library: &Library, operators: usize) -> Option<Fate> {
    match unfit(spec, rewrite, operators) {
        Some(why) => Some(Fate::Unstated(why)),
        None => done_by(spec, rewrite, library).map(Fate::Done),
    }
}

/// Whether a value is made of an operator without operands.
fn takes_nothing(spec: &Spec, written: &Written) -> bool {
    match written {
        Written::Variable(_) => false,
        Written::Result { operator, operands, .. } => {
            spec.operators[*operator].operands.is_empty() || operands.iter().any(|o| takes_nothing(spec, o))
        }
    }
}

/// States a rewrite at its most general sizes, and adds it to the library if it is proved there.
fn stated(spec: &Spec, rewrite: &Rewrite, library: &mut Library, rules: &mut Vec<String>, how: Pruning) -> Result<Fate, DiscoverError> {
    let directed = Candidate { left: rewrite.source.clone(), right: rewrite.target.clone() };
    let types = types(spec);
    let statement = narrow(spec, rewrite, &types);
    let base = format!("found-{}", statement.words());
    // What cannot be stated at the specification's sizes cannot be at any.
    if let Err(why) = statement.rule(&base, "", "") {
        return Ok(Fate::Unstated(why));
    }
    let Allowance { closed, by_cases, by_tables } = how.allowance;
    let part = Allowance { closed: closed / GENERAL, by_cases: by_cases / GENERAL, by_tables: by_tables / GENERAL };
    let general = generalized(spec, &directed, part);
    let statement = Statement { types: &general.types, source: &general.pair.left, target: &general.pair.right, ..statement };
    let name = (1..).map(|n| if n == 1 { base.clone() } else { format!("{base}-{n}") }).find(|name| library.get(name).is_none());
    let name = name.unwrap_or(base);
    let side = |side: &[Written]| side.iter().map(|written| written.shown(spec)).collect::<Vec<_>>().join(", ");
    let comment = format!(";; {}  ==  {}\n", side(&rewrite.source), side(&rewrite.target));
    let doc = match rewrite.savings.as_slice() {
        [] => "Found by machine.".to_string(),
        _ => format!("Found by machine. Up to {:.2} times as fast by the roofline.", most(rewrite)),
    };
    let text = match statement.rule(&name, &comment, &doc) {
        Ok(text) => text,
        Err(why) => return Ok(Fate::Unstated(why)),
    };
    let parsed = parse("generated.rules", &text)?;
    let judgements: Vec<_> = parsed.iter().map(|rule| judge(rule, INSTANCES, how.seed)).collect();
    if let Some(judgement) = judgements.iter().find(|judgement| judgement.trust() != Trust::Proved) {
        return Ok(Fate::Unproved(judgement.first.clone().unwrap_or_else(|| format!("{}: no instances with symbols", judgement.trust()))));
    }
    *library = Library::new(library.rules().iter().cloned().chain(parsed).collect())?;
    rules.push(text);
    Ok(Fate::Rule(name))
}

fn most(rewrite: &Rewrite) -> f64 {
    rewrite.savings.iter().map(|saving| saving.factor()).fold(1.0, f64::max).min(100.0)
}
