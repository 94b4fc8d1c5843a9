//! What must hold for an element to have a value: nonzero divisors, nonnegative radicands,
//! arguments in the domain of a function.
//!
//! An obligation is stored as the indicator of its failure, 1 where it does not hold and 0 where it
//! does: `zero(z)` for a divisor `z`. Two elements have values in the same places if the indicators
//! are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use num_traits::{One, Zero};

use crate::index::{Atom, Facts, Poly, Var};
use crate::value::algebra::{Trouble, common_factors, power, product};
use crate::value::canonical::{canonical, ordered};
use crate::value::cases::{joined, vanishes, without_divisor};
use crate::value::function::apply;
use crate::value::number::Number;
use crate::value::sign::{is_nonnegative, is_positive, is_positive_factor};
use crate::value::simplify::{Simplifier, open_condition};
use crate::value::sum::{Factor, Fold, Function, Sum, Term};

/// Maximum number of divisors that a sum is multiplied by.
const MOST_DIVISORS: u32 = 8;

/// Maximum nesting of conditions when splitting a claim.
const MOST_CONDITIONS: u32 = 4;
/// The name of the indicator of an input element without a value.
const MISSING: &str = "missing";
/// Maximum number of pairs of places that are united.
const MOST_UNIONS: u32 = 32;

/// A claim about numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// It is not 0.
    Nonzero(Sum),
    /// It is at least 0.
    Nonnegative(Sum),
    /// They are in the domain of the function of this name.
    Within(Arc<str>, Vec<Sum>),
    /// The element of an input has a value: it comes from an operator that has one.
    Read(Sum),
}

/// A claim for all values of variables under conditions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Obligation {
    /// Variables with their extents.
    pub binders: Vec<(Var, Poly)>,
    /// Sums that are at least 0 where the claim is made, ascending.
    pub conds: Vec<Poly>,
    /// 1 where the claim is made, else 0.
    pub guard: Sum,
    pub claim: Claim,
}

impl Obligation {
    pub fn new(claim: Claim) -> Obligation {
        Obligation { binders: Vec::new(), conds: Vec::new(), guard: Sum::one(), claim }
    }

    /// The obligation for all values of these variables where the conditions hold.
    pub fn bind(&mut self, binders: &[(Var, Poly)], conds: &[Poly]) {
        self.binders.extend_from_slice(binders);
        self.conds.extend_from_slice(conds);
        self.conds.sort();
        self.conds.dedup();
    }
}

/// Where elements have no value: indicators, each over a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures(BTreeSet<Term>);

impl Failures {
    /// Where one of the obligations fails; empty if all always hold.
    pub fn of(obligations: &[Obligation], shown: &[Claim], facts: &Facts, simplifier: Simplifier) -> Result<Failures, Trouble> {
        let obligations: BTreeSet<&Obligation> = obligations.iter().collect();
        let mut parts = Parts { found: BTreeMap::new(), facts, simplifier };
        for obligation in obligations {
            if shown.is_empty() || !shown.contains(&obligation.claim.named()) {
                parts.add(obligation)?;
            }
        }
        parts.failures()
    }

    /// Whether both read some element, and at least one of them only under a condition on data that
    /// is not shown to be the other's condition.
    pub fn reads_on_other_conditions(&self, others: &Failures, facts: &Facts, simplifier: Simplifier) -> bool {
        let others = others.reads();
        let differ = |here: &Places<'_>, there: &Places<'_>| match (here, there) {
            _ if here == there => false,
            // None of them is ever negative: if the sums are the same, so are their zeros.
            (Places::Where(here), Places::Where(there)) => {
                let [here, there] = [here, there].map(|places| Sum::new(places.iter().map(|term| ((*term).clone(), Number::one()))));
                vanishes(&here.sub(&there), &[], facts, simplifier).is_err()
            }
            _ => true,
        };
        self.reads().iter().any(|(element, here)| others.get(element).is_some_and(|there| differ(here, there)))
    }

    /// Each element that is read, and where.
    fn reads(&self) -> BTreeMap<&Factor, Places<'_>> {
        let on_data = |term: &Term| term.conds.iter().any(|cond| cond.any(&mut |atom| matches!(atom, Atom::Element(..))));
        let is_always = |term: &Term| !on_data(term) && term.factors.len() <= 1;
        let mut reads = BTreeMap::new();
        for term in &self.0 {
            let always = is_always(term)
                && match term.factors.as_slice() {
                    [(Factor::Of(sum), _)] => matches!(sum.terms(), [(term, _)] if is_always(term)),
                    _ => true,
                };
            let mut elements = BTreeSet::new();
            missing(term, &mut elements);
            for element in elements {
                match reads.entry(element).or_insert_with(|| Places::Where(BTreeSet::new())) {
                    places if always => *places = Places::Always,
                    Places::Where(places) => drop(places.insert(term)),
                    Places::Always => {}
                }
            }
        }
        reads
    }

    /// The first that is not among others.
    pub fn beyond(&self, others: &Failures) -> Option<String> {
        self.0.difference(&others.0).next().map(|term| term.to_string())
    }
}

/// Where an element is read.
#[derive(PartialEq, Eq)]
enum Places<'f> {
    /// Regardless of the data.
    Always,
    /// Where one of these is 1.
    Where(BTreeSet<&'f Term>),
}

impl Claim {
    /// The claim with canonical names of its bound variables.
    pub fn named(&self) -> Claim {
        match self {
            Claim::Nonzero(x) => Claim::Nonzero(canonical(x)),
            Claim::Nonnegative(x) => Claim::Nonnegative(canonical(x)),
            Claim::Within(name, x) => Claim::Within(name.clone(), x.iter().map(canonical).collect()),
            Claim::Read(x) => Claim::Read(canonical(x)),
        }
    }

    /// Whether it always holds, by the form of the numbers.
    pub fn is_shown(&self, facts: &Facts) -> bool {
        match self {
            Claim::Nonzero(x) => is_positive(x, facts) || is_positive(&x.negated(), facts),
            Claim::Nonnegative(x) => is_nonnegative(x, facts),
            Claim::Within(..) | Claim::Read(_) => false,
        }
    }
}

/// Variables, conditions, and an indicator under them.
type Place = (Vec<(Var, Poly)>, Vec<Poly>, Sum);

/// Splits obligations: a product is nonzero where all factors are.
struct Parts<'a> {
    /// Indicators of failure over domains, and sums that are 1 where no such claim is made, else 0.
    /// Domains whose variables no such sum mentions are the same under all names of the variables.
    found: BTreeMap<Term, (Place, Sum)>,
    facts: &'a Facts,
    simplifier: Simplifier,
}

impl Parts<'_> {
    /// All that fail somewhere, with canonical names.
    fn failures(self) -> Result<Failures, Trouble> {
        let mut failures = BTreeSet::new();
        for ((binders, conds, indicator), unclaimed) in self.found.into_values() {
            let facts = self.facts.with(&binders, conds.clone());
            let spared = product(&unclaimed, &indicator, &facts)?;
            // It may be claimed on both sides of a condition.
            let always = !unclaimed.is_zero() && vanishes(&spared, &[], &facts, self.simplifier).is_ok();
            let fails = if always { indicator.clone() } else { indicator.sub(&spared) };
            let is_decided = unclaimed.is_zero() && is_missing(&indicator);
            if fails.is_zero() || (!is_decided && vanishes(&fails, &[], &facts, self.simplifier).is_ok()) {
                continue;
            }
            let term = Term { binders, conds, factors: vec![(Factor::Of(fails), 1)] };
            let Some(term) = self.simplifier.every(term, self.facts)? else { continue };
            let named = canonical(&Sum::new([(term, Number::one())]));
            failures.extend(named.into_terms().into_iter().map(|(term, _)| term));
        }
        Ok(Failures(united(failures)))
    }

    /// Adds an obligation, for each case of the conditions its numbers depend on.
    fn add(&mut self, obligation: &Obligation) -> Result<(), Trouble> {
        self.add_cases(obligation, MOST_CONDITIONS)
    }

    fn add_cases(&mut self, obligation: &Obligation, conditions: u32) -> Result<(), Trouble> {
        let condition = match &obligation.claim {
            Claim::Nonzero(x) | Claim::Nonnegative(x) => open_condition(x),
            Claim::Within(..) | Claim::Read(_) => None,
        };
        let (Some(condition), Some(fewer)) = (condition, conditions.checked_sub(1)) else { return self.add_case(obligation) };
        for condition in [condition.clone(), condition.scale(-1).plus(-1)] {
            let mut case = obligation.clone();
            case.bind(&[], std::slice::from_ref(&condition));
            let facts = self.facts.with(&case.binders, case.conds.clone());
            if facts.contradict() {
                continue;
            }
            match &mut case.claim {
                Claim::Nonzero(x) | Claim::Nonnegative(x) => *x = self.simplifier.sum(x, &facts)?,
                Claim::Within(..) | Claim::Read(_) => {}
            }
            self.add_cases(&case, fewer)?;
        }
        Ok(())
    }

    fn add_case(&mut self, obligation: &Obligation) -> Result<(), Trouble> {
        let facts = self.facts.with(&obligation.binders, obligation.conds.clone());
        match &obligation.claim {
            Claim::Nonzero(x) => self.nonzero(obligation, x, &facts),
            Claim::Nonnegative(x) => {
                let x = self.simplifier.sum(x, &facts)?;
                if is_nonnegative(&x, &facts) {
                    return Ok(());
                }
                let x = without_roots(&without_positive(&x, &facts)?);
                self.fails(obligation, apply(Function::Positive, vec![x.negated()], &facts)?, &facts)
            }
            Claim::Within(name, x) => {
                let outside = Function::Named(format!("outside of {name}").into());
                self.fails(obligation, Sum::factor(Factor::Apply(outside, x.clone())), &facts)
            }
            Claim::Read(x) => {
                let missing = Function::Named(MISSING.into());
                self.fails(obligation, Sum::factor(Factor::Apply(missing, vec![x.clone()])), &facts)
            }
        }
    }

    fn nonzero(&mut self, obligation: &Obligation, x: &Sum, facts: &Facts) -> Result<(), Trouble> {
        let x = whole_part(&self.simplifier.sum(x, facts)?, facts)?;
        if x.known().map_or_else(|| is_positive(&x, facts) || is_positive(&x.negated(), facts), |x| !x.is_zero()) {
            return Ok(());
        }
        let plain = |term: &Term| term.binders.is_empty() && term.conds.is_empty();
        let common = match x.terms() {
            [(term, _)] if plain(term) => term.factors.clone(),
            _ => common_factors(&x),
        };
        let inverse = common
            .iter()
            .try_fold(Sum::one(), |all, (factor, p)| product(&all, &power(&Sum::factor(factor.clone()), -p, facts)?, facts))?;
        // A divisor is a claim of its own.
        for (factor, _) in common.iter().filter(|(_, p)| *p > 0) {
            self.nonzero_factor(obligation, factor, facts)?;
        }
        let rest = product(&x, &inverse, facts)?;
        match rest.known() {
            Some(number) if !number.is_zero() => Ok(()),
            _ if common.is_empty() => self.fails(obligation, apply(Function::Zero, vec![rest], facts)?, facts),
            _ => self.nonzero(obligation, &rest, facts),
        }
    }

    fn nonzero_factor(&mut self, obligation: &Obligation, factor: &Factor, facts: &Facts) -> Result<(), Trouble> {
        match factor {
            Factor::Apply(Function::Exp, _) => Ok(()),
            Factor::Apply(Function::Sqrt, x) => self.nonzero(obligation, &x[0], facts),
            Factor::Apply(Function::Named(name), x) if name.as_ref() == "power" => self.nonzero(obligation, &x[0], facts),
            Factor::Of(x) => self.nonzero(obligation, x, facts),
            Factor::Over(Fold::Product, binders, conds, body) => {
                let mut every = obligation.clone();
                every.bind(binders, conds);
                let facts = facts.with(binders, conds.clone());
                self.nonzero(&every, body, &facts)
            }
            factor if is_positive_factor(factor, facts) => Ok(()),
            factor => self.fails(obligation, apply(Function::Zero, vec![Sum::factor(factor.clone())], facts)?, facts),
        }
    }

    /// Records that the claim fails where the indicator is 1.
    fn fails(&mut self, obligation: &Obligation, indicator: Sum, facts: &Facts) -> Result<(), Trouble> {
        let place = (obligation.binders.clone(), obligation.conds.clone(), indicator.clone());
        let term = Term { binders: place.0.clone(), conds: place.1.clone(), factors: vec![(Factor::Of(indicator), 1)] };
        let is_named = obligation.binders.iter().any(|(var, _)| obligation.guard.has(*var));
        let key = if is_named { term } else { ordered(&term).0 };
        let (_, unclaimed) = self.found.entry(key).or_insert_with(|| (place, Sum::one()));
        *unclaimed = product(unclaimed, &Sum::one().sub(&obligation.guard), facts)?;
        Ok(())
    }
}

/// Collects the indicators of elements without a value, nested ones included.
fn missing<'t>(term: &'t Term, found: &mut BTreeSet<&'t Factor>) {
    for (factor, _) in &term.factors {
        match factor {
            Factor::Apply(Function::Named(name), _) if name.as_ref() == MISSING => {
                found.insert(factor);
            }
            Factor::Of(sum) => sum.terms().iter().for_each(|(term, _)| missing(term, found)),
            _ => {}
        }
    }
}

fn is_missing(indicator: &Sum) -> bool {
    let is = |(factor, _): &(Factor, i32)| matches!(factor, Factor::Apply(Function::Named(name), _) if name.as_ref() == MISSING);
    matches!(indicator.terms(), [(term, _)] if term.factors.iter().all(is))
}

/// The same places in fewer terms: unites those on both sides of a condition, and those over
/// adjacent ranges.
fn united(mut places: BTreeSet<Term>) -> BTreeSet<Term> {
    let without = |term: &Term, at: usize| {
        let mut term = term.clone();
        term.conds.remove(at);
        canonical(&Sum::new([(term, Number::one())])).into_terms().into_iter().map(|(term, _)| term)
    };
    let negated = |term: &Term, at: usize| {
        let mut term = term.clone();
        term.conds[at] = term.conds[at].scale(-1).plus(-1);
        term.conds.sort();
        term
    };
    for _ in 0..MOST_UNIONS {
        let parted = places
            .iter()
            .find_map(|term| (0..term.conds.len()).find(|at| places.contains(&negated(term, *at))).map(|at| (term.clone(), at)));
        if let Some((term, at)) = parted {
            places.remove(&negated(&term, at));
            places.remove(&term);
            places.extend(without(&term, at));
        } else if let Some(sum) = joined(&Sum::new(places.iter().map(|term| (term.clone(), Number::one())))) {
            places = canonical(&sum).into_terms().into_iter().map(|(term, _)| term).collect();
        } else {
            break;
        }
    }
    let within = |part: &Term, whole: &Term| {
        part != whole
            && (part.binders == whole.binders || whole.binders.is_empty())
            && part.factors == whole.factors
            && whole.conds.iter().all(|cond| part.conds.contains(cond))
    };
    places.iter().filter(|part| !places.iter().any(|whole| within(part, whole))).cloned().collect()
}

/// The sum without positive factors.
fn without_positive(x: &Sum, facts: &Facts) -> Result<Sum, Trouble> {
    let common = match x.terms() {
        [(term, _)] if term.binders.is_empty() && term.conds.is_empty() => term.factors.clone(),
        _ => common_factors(x),
    };
    let positive = common.into_iter().filter(|(factor, _)| is_positive_factor(factor, facts)).map(|(factor, p)| (factor, -p)).collect();
    let scale = x.terms().first().map_or_else(Number::one, |(_, c)| c.abs()).recip();
    product(x, &Sum::new([(Term { factors: positive, ..Term::default() }, scale)]), facts)
}

/// The sum times those divisors of its terms that are sums: 0 where the sum is.
fn whole_part(x: &Sum, facts: &Facts) -> Result<Sum, Trouble> {
    let mut x = x.clone();
    for _ in 0..MOST_DIVISORS {
        match without_divisor(&x, facts)? {
            Some(multiplied) => x = multiplied,
            None => break,
        }
    }
    Ok(x)
}

/// The product without roots of its own factors: where such a root is 0, so is the rest of the
/// product.
fn without_roots(x: &Sum) -> Sum {
    let [(term, c)] = x.terms() else { return x.clone() };
    let is_factor = |y: &Sum| term.factors.iter().any(|(factor, p)| *p > 0 && Sum::factor(factor.clone()) == *y);
    let is_root = |factor: &Factor| match factor {
        Factor::Apply(Function::Sqrt, y) => is_factor(&y[0]),
        Factor::Apply(Function::Named(name), y) if name.as_ref() == "power" => is_factor(&y[0]),
        _ => false,
    };
    let factors = term.factors.iter().filter(|(factor, p)| !(*p > 0 && is_root(factor))).cloned().collect();
    Sum::new([(Term { factors, ..term.clone() }, c.clone())])
}
