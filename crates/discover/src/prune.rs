//! From pairs to rules: what is proved, saves something, is not done by other rules, and can be stated.

use std::collections::{BTreeMap, BTreeSet};

use regraft_prove::{Word, equal, judge};
use regraft_rules::{Library, RuleError, parse};

use crate::candidate::{Candidate, Written};
use crate::gain::{Rewrite, done_by, rewrites};
use crate::observe::Observer;
use crate::parallel;
use crate::spec::Spec;
use crate::statement::Statement;
use crate::typing::generalized;

/// Instances of each kind of sizes that a rule is judged by.
const INSTANCES: usize = 6;

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
}

/// A proved pair in a direction that saves something.
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
    /// Directions that save something, those that save most first.
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
}

/// Proves, ranks and prunes pairs of a specification against a library. Nothing but rules that [`judge`] calls proved comes out as a rule.
///
/// Fails only if a rule that was written here cannot be read back, which is a defect.
pub fn prune(spec: &Spec, pairs: &[Candidate], library: &Library, how: Pruning, observer: &mut dyn Observer) -> Result<Pruned, RuleError> {
    let Pruning { threads, seed, .. } = how;
    observer.step("prove", &format!("{} pairs", pairs.len()));
    let proved = parallel::map(pairs, threads, |pair| pair.graphs(spec).is_ok_and(|[left, right]| equal(&left, &right).is_proved()));
    let kept: Vec<usize> = (0..pairs.len()).filter(|at| proved[*at]).collect();
    observer.step("rank", &format!("{} proved pairs", kept.len()));
    let saving = parallel::map(&kept, threads, |at| rewrites(spec, &pairs[*at]));
    let mut rewrites: Vec<(usize, Rewrite)> =
        kept.iter().zip(saving).flat_map(|(at, found)| found.into_iter().map(|rewrite| (*at, rewrite))).collect();
    // Smaller sources first: rules for them may do larger ones. Then larger savings.
    let by_size = |a: &(usize, Rewrite), b: &(usize, Rewrite)| a.1.operators().cmp(&b.1.operators());
    rewrites.sort_by(|a, b| by_size(a, b).then(b.1.gain().total_cmp(&a.1.gain())).then(a.0.cmp(&b.0)));
    observer.step("compare", &format!("{} rewrites that save something", rewrites.len()));
    let known = parallel::map(&rewrites, threads, |(_, rewrite)| fate_by(spec, rewrite, library, how.operators));
    let mut pruned = Pruned { proved, ..Pruned::default() };
    let mut wider = library.clone();
    for (at, ((pair, rewrite), known)) in rewrites.into_iter().zip(known).enumerate() {
        let fate = match known {
            Some(fate) => fate,
            None => {
                observer.step("state", &format!("rewrite {at}, {} rules", pruned.rules.len()));
                match fate_by(spec, &rewrite, &wider, how.operators) {
                    Some(fate) => fate,
                    None => stated(spec, &rewrite, &mut wider, &mut pruned.rules, seed)?,
                }
            }
        };
        pruned.ranked.push(Ranked { pair, rewrite, fate });
    }
    pruned.ranked.sort_by(|a, b| b.rewrite.gain().total_cmp(&a.rewrite.gain()).then(a.pair.cmp(&b.pair)));
    Ok(pruned)
}

/// What is known without stating it: that it is too large, that it has constants of the specification, or that a library does it.
fn fate_by(spec: &Spec, rewrite: &Rewrite, library: &Library, operators: usize) -> Option<Fate> {
    if rewrite.operators() > operators {
        return Some(Fate::Unstated(format!("its source has more than {operators} operators")));
    }
    if rewrite.source.iter().any(|written| takes_nothing(spec, written)) {
        return Some(Fate::Unstated("its source has a constant of the specification".into()));
    }
    done_by(spec, rewrite, library).map(Fate::Done)
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
fn stated(spec: &Spec, rewrite: &Rewrite, library: &mut Library, rules: &mut Vec<String>, seed: u64) -> Result<Fate, RuleError> {
    let directed = Candidate { left: rewrite.source.clone(), right: rewrite.target.clone() };
    let narrow: Vec<_> = spec.variables.iter().map(|v| v.ty.clone()).collect();
    let statement = Statement { spec, types: &narrow, source: &directed.left, target: &directed.right, constants: rewrite.constants };
    let base = format!("found-{}", statement.words());
    // What cannot be stated at the specification's sizes cannot be at any.
    if let Err(why) = statement.rule(&base, "", "") {
        return Ok(Fate::Unstated(why));
    }
    let general = generalized(spec, &directed);
    let statement = Statement { types: &general.types, source: &general.pair.left, target: &general.pair.right, ..statement };
    let name = (1..).map(|n| if n == 1 { base.clone() } else { format!("{base}-{n}") }).find(|name| library.get(name).is_none());
    let name = name.unwrap_or(base);
    let side = |side: &[Written]| side.iter().map(|written| written.shown(spec)).collect::<Vec<_>>().join(", ");
    let comment = format!(";; {}  ==  {}\n", side(&rewrite.source), side(&rewrite.target));
    let doc = format!("Found by machine. Up to {:.2} times as fast by the roofline.", most(rewrite));
    let text = match statement.rule(&name, &comment, &doc) {
        Ok(text) => text,
        Err(why) => return Ok(Fate::Unstated(why)),
    };
    let parsed = parse("generated.rules", &text)?;
    let judgements: Vec<_> = parsed.iter().map(|rule| judge(rule, INSTANCES, seed)).collect();
    if let Some(judgement) = judgements.iter().find(|judgement| judgement.word() != Word::Proved) {
        return Ok(Fate::Unproved(judgement.first.clone().unwrap_or_else(|| format!("{}: no instances with symbols", judgement.word()))));
    }
    *library = Library::new(library.rules().iter().cloned().chain(parsed).collect())?;
    rules.push(text);
    Ok(Fate::Rule(name))
}

fn most(rewrite: &Rewrite) -> f64 {
    rewrite.savings.iter().map(|saving| saving.factor()).fold(1.0, f64::max).min(100.0)
}
