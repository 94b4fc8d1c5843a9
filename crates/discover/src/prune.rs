//! From pairs to rules: those that are proved, save something, are not covered by other rules, and
//! can be stated.

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

/// Instances of each kind of sizes on which a rule is judged.
const INSTANCES: usize = 6;
/// Pairs proved per thread between two checks of the observer.
const BATCH: usize = 32;
/// Divisor of the work budget for a proof at more general sizes: thousands are tried, and most
/// fail.
const GENERAL: u64 = 10;

/// The outcome for one direction of a pair.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It became the rule of this name.
    Rule(String),
    /// These rules already save as much.
    Done(BTreeSet<String>),
    /// It cannot be stated as a rule, and why.
    Unstated(String),
    /// The rule that states it is not proved, and why.
    Unproved(String),
    /// Its source occurs nowhere.
    Unmet,
}

/// A proved pair in a wanted direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Its index among the pairs.
    pub pair: usize,
    /// The direction, and what it saves.
    pub rewrite: Rewrite,
    /// The outcome.
    pub fate: Fate,
}

/// The outcome for all pairs.
#[derive(Clone, Debug, Default)]
pub struct Pruned {
    /// Whether each pair is proved.
    pub proved: Vec<bool>,
    /// Wanted directions, those with the largest savings by the roofline first.
    pub ranked: Vec<Ranked>,
    /// The rules as text, those with smaller sources first.
    pub rules: Vec<String>,
}

impl Pruned {
    /// The rules as a rule file, whose header names the specification.
    pub fn file(&self, spec: &str) -> String {
        let head = format!(
            ";; Found by machine, from the pairs of the specification `{spec}`; docs/guide/generating-rules.md says how. Not to be edited: `make generated-rules`\n\
             ;; writes it anew, and a test compares. Each rule is proved; above each stands the equation in the operators of the specification.\n"
        );
        self.rules.iter().fold(head, |text, rule| text + "\n" + rule)
    }

    /// How many directions each set of rules covers, most first.
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
    /// Maximum number of operators of a rule's source.
    pub operators: usize,
    /// Threads.
    pub threads: usize,
    /// Seed of the instances on which rules are judged.
    pub seed: u64,
    /// Work budget for the proof of a pair.
    pub allowance: Allowance,
}

impl Pruning {
    /// Sources of any size, on one thread.
    pub const DEFAULT: Pruning = Pruning { operators: usize::MAX, threads: 1, seed: 0, allowance: ALLOWANCE };

    /// The same with this much work for the closed forms of a proof, and the rest in proportion.
    pub fn within(self, closed: u64) -> Pruning {
        let Allowance { by_cases, by_tables, .. } = ALLOWANCE;
        let part = |all: u64| (u128::from(all) * u128::from(closed) / u128::from(ALLOWANCE.closed)) as u64;
        Pruning { allowance: Allowance { closed, by_cases: part(by_cases), by_tables: part(by_tables) }, ..self }
    }
}

/// Work budget for the proof of a pair: less than proofs get elsewhere, because an unproved pair
/// costs all of it.
const ALLOWANCE: Allowance = Allowance { closed: 200_000, by_cases: 500_000, by_tables: 2_000_000 };

/// Which directions of proved pairs become rules.
pub enum Wanted<'a> {
    /// Those that save something by the roofline, unless other rules save as much.
    Saving,
    /// Those whose source occurs somewhere, as this function decides for a rule without guards,
    /// whatever they save.
    Met(&'a dyn Fn(&Rule) -> bool),
}

/// Proves, ranks and prunes pairs of a specification against a library. Only rules that [`judge`]
/// reports as proved are returned.
///
/// Verdicts in the journal are reused. Fails if the observer interrupts it or the journal cannot be
/// written; or if a rule written here cannot be read back, which is a defect.
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
    // Smaller sources first: their rules may cover larger ones. Then larger savings.
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

/// Makes sure that the journal has a verdict on every pair.
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

/// Why a direction's source keeps it from being stated: too large, with constants of the
/// specification, or occurring nowhere. Occurrences are cached by source.
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

/// The fate that is known without stating it: too large, with constants of the specification, or
/// covered by a library.
fn fate_by(spec: &Spec, rewrite: &Rewrite, library: &Library, operators: usize) -> Option<Fate> {
    match unfit(spec, rewrite, operators) {
        Some(why) => Some(Fate::Unstated(why)),
        None => done_by(spec, rewrite, library).map(Fate::Done),
    }
}

/// Whether a value contains an operator without operands.
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
    // What cannot be stated at the specification's sizes cannot be stated at any.
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
