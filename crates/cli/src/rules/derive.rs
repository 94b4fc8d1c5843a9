//! Derivations of foreign rules from the shipped rules and the axioms.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use regraft_derive::{Derivation, Laws, Limits, derive};
use regraft_foreign::{Judgement, Pair, Soundness};
use regraft_ir::parallel::map_while;
use regraft_ir::text;
use regraft_rules::Library;
use serde::Serialize;

use regraft::error::Failure;

/// How a rule follows from others.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Derived {
    /// Families of sizes tried.
    pub families: usize,
    /// Families in which the sides were derived from each other.
    pub derived: usize,
    /// The laws of the first derivation, in order; those read from right to left have a `'`.
    pub steps: Vec<String>,
    /// Why the first underived family has no derivation.
    pub why: Option<String>,
    /// The derivations, as text.
    #[serde(skip)]
    pub chains: Vec<String>,
    /// How often laws were used.
    #[serde(skip)]
    pub used: BTreeMap<String, usize>,
}

impl Derived {
    /// Whether the rule was derived in all families.
    pub fn is_whole(&self) -> bool {
        self.families > 0 && self.derived == self.families
    }

    /// A short summary.
    pub fn shown(&self) -> String {
        match (self.is_whole(), self.steps.is_empty(), &self.why) {
            (true, true, _) => "one graph".into(),
            (true, false, _) => self.steps.join(", "),
            (false, _, why) => format!("not derived: {}", why.as_deref().unwrap_or("no family is known")),
        }
    }

    fn of(judgement: &Judgement, laws: &Laws) -> Derived {
        let mut result = Derived { families: judgement.pairs.len(), ..Derived::default() };
        for pair in &judgement.pairs {
            match derivation(pair, laws) {
                Ok(derivation) => {
                    if result.derived == 0 {
                        result.steps = derivation.names();
                    }
                    result.derived += 1;
                    derivation.links.iter().for_each(|link| *result.used.entry(link.law.to_string()).or_default() += 1);
                    result.chains.push(derivation.to_string());
                }
                Err(why) => drop(result.why.get_or_insert(why)),
            }
        }
        result
    }
}

/// A replayed derivation of one side from the other.
fn derivation(pair: &Pair, laws: &Laws) -> Result<Derivation, String> {
    let read = |side: &str| text::parse(side).map_err(|e| e.to_string());
    let (before, after) = (read(&pair.before)?, read(&pair.after)?);
    let derivation = derive(&before, &after, laws, &Limits::default()).map_err(|e| e.to_string())?;
    derivation.replay(&before, &after, laws).map_err(|e| e.to_string())?;
    Ok(derivation)
}

/// The laws to derive from: the shipped rules and the axioms, each in both directions.
pub fn laws() -> Result<Laws, Failure> {
    let (shipped, axioms) = (Library::shipped()?, Library::axioms()?);
    Ok(Laws::new(shipped.rules().iter().chain(axioms.rules()).cloned())?)
}

/// Derivations of all rules that are true, with this many threads; `None` for the others. The
/// result does not depend on the number of threads.
///
/// Before each rule, `before` receives the number of rules begun so far; if it returns false, the
/// rest is left out.
pub fn derive_all(judgements: &[Judgement], laws: &Laws, threads: usize, before: &(dyn Fn(usize) -> bool + Sync)) -> Vec<Option<Derived>> {
    let is_true = |j: &&Judgement| matches!(j.soundness, Soundness::True | Soundness::TrueIf(_));
    let distinct: Vec<&Judgement> = judgements.iter().filter(is_true).filter(|j| j.same_as.is_none()).collect();
    let derived = map_while(&distinct, threads, |begun, judgement| before(begun).then(|| Derived::of(judgement, laws)));
    let done: HashMap<usize, Derived> = distinct.iter().zip(derived).filter_map(|(j, derived)| Some((j.number, derived?))).collect();
    judgements.iter().map(|j| done.get(&j.same_as.unwrap_or(j.number)).cloned()).collect()
}

/// Counts of what was derived.
pub fn summary(derived: &[Option<Derived>]) -> String {
    let tried = derived.iter().flatten().count();
    let whole = derived.iter().flatten().filter(|d| d.is_whole()).count();
    format!("{whole} of {tried} true rules derived")
}

/// The laws used and how often, most frequent first: one line for the axioms and one for the
/// shipped rules.
pub fn used(judgements: &[Judgement], derived: &[Option<Derived>]) -> Result<String, Failure> {
    let axioms = Library::axioms()?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, derived) in judgements.iter().zip(derived).filter(|(j, _)| j.same_as.is_none()) {
        let used = derived.iter().flat_map(|d| &d.used);
        used.for_each(|(law, count)| *counts.entry(law).or_default() += count);
    }
    let mut sorted: Vec<(&str, usize)> = counts.into_iter().collect();
    sorted.sort_by_key(|(law, count)| (std::cmp::Reverse(*count), *law));
    let mut text = String::new();
    for (title, wanted) in [("Axioms", true), ("Shipped rules", false)] {
        let of_kind = sorted.iter().filter(|(law, _)| axioms.get(law).is_some() == wanted);
        let shown: Vec<String> = of_kind.map(|(law, count)| format!("`{law}` {count}")).collect();
        let _ =
            writeln!(text, "{title} used, with how many steps: {}.\n", if shown.is_empty() { "none".into() } else { shown.join(" · ") });
    }
    Ok(text)
}

/// All derivations as text, one family after the other.
pub fn chains(judgements: &[Judgement], derived: &[Option<Derived>]) -> String {
    let mut text = String::new();
    for (judgement, derived) in judgements.iter().zip(derived).filter(|(j, _)| j.same_as.is_none()) {
        for (at, chain) in derived.iter().flat_map(|d| &d.chains).enumerate() {
            let _ = writeln!(text, "; rule {}, family {at}: {}\n{chain}", judgement.number, judgement.algebra);
        }
    }
    text
}
