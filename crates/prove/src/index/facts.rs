//! What is known about index expressions: ranges of variables, and sums that are not negative.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use num_bigint::BigInt;
use regraft_ir::{Class, DType};
use rustc_hash::FxHashMap;

use crate::index::answers::Answers;
use crate::index::corner::Corner;
use crate::index::poly::without;
use crate::index::{Atom, Fuel, Poly, Source, Var};
use crate::value::{Number, Signs};

/// Maximum number of steps for one question.
const PATIENCE: u32 = 4_000;
/// How many known sums one chain of reasoning may use.
const CHAIN: usize = 3;

/// Ranges of variables (`0 ≤ v < extent`) and sums known to be at least 0. Sizes are at least 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    ranges: Rc<FxHashMap<Var, Poly>>,
    known: Vec<Poly>,
    positive: Vec<Source>,
    /// Types of integer and boolean tensors.
    domains: Rc<FxHashMap<Source, DType>>,
    /// Products of sizes that are part of a tensor's element count.
    volumes: Rc<HashSet<Vec<Atom>>>,
    tables: Rc<HashMap<Source, Rc<Table>>>,
    answers: Answers,
    /// Signs of sums assumed by a case.
    pub signs: Signs,
}

/// The elements of a small constant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// Sizes.
    pub shape: Vec<i64>,
    /// Elements, row-major.
    pub elements: Vec<Number>,
    /// The least and the greatest element, if all are integers.
    bounds: Option<(BigInt, BigInt)>,
}

impl Table {
    pub fn new(shape: &[i64], elements: Vec<Number>) -> Table {
        let ends = elements.iter().min().zip(elements.iter().max()).filter(|_| elements.iter().all(Number::is_integer));
        let bounds = ends.map(|(low, high)| (low.to_integer(), high.to_integer()));
        Table { shape: shape.to_vec(), elements, bounds }
    }

    /// The element at an index; `None` beyond the table.
    pub fn at(&self, index: impl IntoIterator<Item = i64>) -> Option<&Number> {
        let flat = index.into_iter().zip(&self.shape).try_fold(0, |flat, (at, size)| (0..*size).contains(&at).then(|| flat * size + at))?;
        self.elements.get(usize::try_from(flat).ok()?)
    }
}

impl Facts {
    /// Adds a variable with range `0 ≤ var < extent`.
    pub fn range(&mut self, var: Var, extent: Poly) {
        if Rc::make_mut(&mut self.ranges).insert(var, extent).is_some() {
            self.answers.clear();
        }
    }

    /// Adds a sum that is at least 0.
    pub fn assume(&mut self, sum: Poly) {
        let whole = self.is_whole(&sum);
        let sum = if whole { sum.tightened() } else { sum };
        // A number below 0 is a contradiction and must stay.
        let follows = |sum: &Poly, from: &Poly| sum.over(from).is_some_and(|more| more >= 0);
        let new = sum.known().is_none_or(|value| value < 0) && !self.known.iter().any(|known| follows(&sum, known)) && !self.by_sizes(&sum);
        if new && self.smallest_corner(&sum) != Corner::Above {
            let more = [without_floor(&sum), whole.then(|| self.high_digit(&sum)).flatten()];
            self.known.retain(|known| !follows(known, &sum));
            self.known.push(sum);
            self.answers.clear();
            more.into_iter().flatten().for_each(|sum| self.assume(sum));
        }
    }

    /// The range of a variable.
    pub fn extent(&self, var: Var) -> Option<&Poly> {
        self.ranges.get(&var)
    }

    /// The least value of a variable, as far as facts about it alone tell.
    pub fn first(&self, var: Var) -> i64 {
        let bounds = self.known.iter().filter_map(|sum| sum.sub(&Poly::var(var)).known()).map(|number| -number);
        bounds.fold(0, i64::max)
    }

    /// The greatest value of a variable, as far as its range and facts about it alone tell.
    pub fn last(&self, var: Var) -> Option<i64> {
        let range = self.extent(var).and_then(Poly::known).map(|extent| extent - 1);
        self.known.iter().filter_map(|sum| sum.add(&Poly::var(var)).known()).chain(range).min()
    }

    /// The least and the greatest value of an atom, as far as facts about it alone tell.
    pub fn ends(&self, atom: &Atom) -> (Option<i64>, Option<i64>) {
        let atom = Poly::atom(atom.clone());
        let least = self.known.iter().filter_map(|sum| sum.sub(&atom).known()?.checked_neg()).max();
        (least, self.known.iter().filter_map(|sum| sum.add(&atom).known()).min())
    }

    /// What `m a + r ≥ 0` with `r < m` implies for `a`, where `m` is not negative and all are
    /// integers: `a ≥ 0`, and even `a ≥ 1` if `r < 0`.
    fn high_digit(&self, sum: &Poly) -> Option<Poly> {
        // A lone variable is not a digit.
        let scaled = sum.terms().iter().filter(|(atoms, c)| atoms.len() > 1 || c.unsigned_abs() > 1);
        let vars = scaled.flat_map(|(atoms, _)| atoms.iter()).filter_map(|atom| if let Atom::Var(var) = atom { Some(*var) } else { None });
        vars.into_iter().find_map(|var| {
            let (factor, rest) = sum.linear(var)?;
            let sign = if let [(_, c)] = factor.terms() { c.signum() } else { return None };
            let unit = factor.scale(sign);
            if unit.known() == Some(1) || !unit.terms().iter().all(|(atoms, _)| atoms.iter().all(|atom| self.is_natural(atom))) {
                return None;
            }
            // Other terms count as part of `a` where the unit divides them; of subtracted terms,
            // only the constant does.
            let digits = |(whole, low): (Poly, Poly)| {
                let below = |bound: &Poly| self.at_least(&bound.plus(-1), &low);
                match whole.has(var) {
                    true if below(&Poly::default()) => Some(whole.plus(-1)),
                    true if below(&unit) => Some(whole),
                    _ => None,
                }
            };
            let alone = || {
                let number = unit.known().map_or(0, |unit| rest.constant().div_euclid(unit));
                (Poly::var(var).scale(sign).plus(number), rest.sub(&unit.scale(number)))
            };
            digits(sum.divide(&unit)).or_else(|| digits(alone()))
        })
    }

    /// Adds a tensor whose elements are all above 0.
    pub fn all_positive(&mut self, source: Source) {
        if !self.positive.contains(&source) {
            self.positive.push(source);
        }
    }

    /// Whether all elements of a tensor are above 0.
    pub fn is_positive(&self, source: &Source) -> bool {
        self.positive.contains(source)
    }

    /// Adds an integer or boolean tensor; booleans are 0 or 1.
    pub fn all_of(&mut self, source: &Source, dtype: DType) {
        if matches!(dtype.class(), Class::Int | Class::Bool) && self.domains.get(source) != Some(&dtype) {
            Rc::make_mut(&mut self.domains).insert(source.clone(), dtype);
        }
    }

    /// The type of an integer or boolean tensor.
    pub fn dtype(&self, source: &Source) -> Option<DType> {
        self.domains.get(source).copied()
    }

    /// Whether all elements of a tensor are 0 or 1.
    pub fn is_mask(&self, source: &Source) -> bool {
        self.dtype(source) == Some(DType::Bool)
    }

    /// The least and the greatest element of a known integer constant.
    pub fn bounds(&self, source: &Source) -> Option<(BigInt, BigInt)> {
        self.tables.get(source)?.bounds.clone()
    }

    /// Adds products of sizes that are element counts of tensors.
    pub fn set_volumes(&mut self, volumes: &[Poly]) {
        let natural = volumes.iter().filter(|volume| volume.terms().iter().all(|(_, c)| *c >= 1));
        self.volumes = Rc::new(natural.flat_map(|volume| volume.terms().iter().map(|(atoms, _)| atoms.to_vec())).collect());
    }

    /// Whether the product of these sizes, ascending, is at most a tensor's element count.
    pub fn is_part_of_volume(&self, sizes: &[Atom]) -> bool {
        self.volumes.iter().any(|volume| {
            let mut rest = volume.iter();
            sizes.iter().all(|size| rest.any(|atom| atom == size))
        })
    }

    /// Whether the sum is an integer wherever it is defined.
    pub fn is_whole(&self, sum: &Poly) -> bool {
        !sum.any(&mut |atom| matches!(atom, Atom::Element(source, _) if !self.domains.contains_key(source)))
    }

    /// Adds a sum that is at least 0 until [`Facts::forget`] is called with the returned value.
    pub fn suppose(&mut self, sum: Poly) -> Vec<Poly> {
        let before = self.known.clone();
        self.assume(sum);
        before
    }

    /// Takes these sums to be the only ones known to be at least 0, until [`Facts::forget`] is
    /// called with the returned value.
    pub fn instead(&mut self, known: Vec<Poly>) -> Vec<Poly> {
        self.answers.clear();
        std::mem::replace(&mut self.known, known)
    }

    /// Forgets what was assumed.
    pub fn forget(&mut self, before: Vec<Poly>) {
        self.instead(before);
    }

    /// Makes the elements of constants known.
    pub fn set_tables(&mut self, tables: HashMap<Source, Rc<Table>>) {
        self.tables = Rc::new(tables);
    }

    /// The elements of a constant, if they are known.
    pub fn table(&self, source: &Source) -> Option<&Table> {
        self.tables.get(source).map(Rc::as_ref)
    }

    /// Whether the constant's elements are known.
    pub fn has_table(&self, source: &Source) -> bool {
        self.tables.contains_key(source)
    }

    /// The element of a known constant at a known index.
    pub fn element(&self, source: &Source, index: &[Poly]) -> Option<&Number> {
        let table = self.table(source)?;
        table.at(index.iter().map(Poly::known).collect::<Option<Vec<i64>>>()?)
    }

    /// The facts plus others. Facts about variables with the same names are about other variables,
    /// and are dropped.
    pub fn with(&self, ranges: &[(Var, Poly)], known: impl IntoIterator<Item = Poly>) -> Facts {
        let mut facts = self.clone();
        facts.known.retain(|sum| !ranges.iter().any(|(var, _)| sum.has(*var)));
        facts.signs.forget(ranges);
        ranges.iter().for_each(|(var, extent)| facts.range(*var, extent.clone()));
        known.into_iter().for_each(|sum| facts.assume(sum));
        facts
    }

    /// Like [`Facts::with`], for facts that are asked for repeatedly: their answers are cached.
    pub fn inside(&self, ranges: &[(Var, Poly)], known: &[Poly]) -> Rc<Facts> {
        self.answers.inside((ranges.to_vec(), known.to_vec()), |(ranges, known)| self.with(ranges, known.iter().cloned()))
    }

    /// The facts with a variable replaced.
    pub fn replaced(&self, var: Var, value: &Poly) -> Facts {
        let mut facts = Facts { known: Vec::new(), ..self.clone() };
        Rc::make_mut(&mut facts.ranges).remove(&var);
        self.known.iter().for_each(|sum| facts.assume(sum.with(var, value)));
        facts
    }

    /// Whether the sum was shown to be at least 0 wherever the facts hold.
    pub fn nonnegative(&self, sum: &Poly) -> bool {
        if let Some(value) = sum.known() {
            return value >= 0;
        }
        if let Some(answer) = self.answers.get(sum) {
            return answer;
        }
        let answer = match self.smallest_corner(sum) {
            Corner::Above => true,
            Corner::Below => false,
            Corner::Open => self.search(sum, &mut Vec::new(), &mut PATIENCE.clone()),
        };
        // Without fuel, a failure to show it says nothing.
        if answer || Fuel::spend(1) {
            self.answers.keep(sum, answer);
        }
        answer
    }

    /// Sums known to be at least 0.
    pub fn known(&self) -> &[Poly] {
        &self.known
    }

    /// Lower bounds of `sum` by assumption: `c` where `sum - c ≥ 0` is known.
    pub fn lower_bounds<'a>(&'a self, sum: &'a Poly) -> impl Iterator<Item = Poly> + 'a {
        let free = |p: &Poly| p.any(&mut |atom| matches!(atom, Atom::Var(_)));
        self.known.iter().map(|known| sum.sub(known)).filter(move |bound| !free(bound))
    }

    /// Whether `a ≥ b` was shown.
    pub fn at_least(&self, a: &Poly, b: &Poly) -> bool {
        self.nonnegative(&a.sub(b))
    }

    /// Whether the facts were shown to contradict each other, so that nothing remains to be shown.
    pub fn contradict(&self) -> bool {
        self.known.iter().enumerate().any(|(at, sum)| {
            if let Some(value) = sum.known() {
                return value < 0;
            }
            let mut others = self.clone();
            others.known.remove(at);
            others.nonnegative(&sum.scale(-1).plus(-1))
        })
    }

    /// `used` are the known sums already used in this chain of reasoning.
    fn search(&self, sum: &Poly, used: &mut Vec<usize>, patience: &mut u32) -> bool {
        if let Some(value) = sum.known() {
            return value >= 0;
        }
        if *patience == 0 || !Fuel::spend(1) {
            return false;
        }
        *patience -= 1;
        if let Some(quotient) = self.without_natural_factor(sum) {
            return self.search(&quotient, used, patience);
        }
        self.by_ends(sum, used, patience) || self.by_sizes(sum) || self.by_known(sum, used, patience)
    }

    /// A sum with one natural factor less, which is not negative where this one is not, and only
    /// there unless the factor is 0.
    fn without_natural_factor(&self, sum: &Poly) -> Option<Poly> {
        let (first, _) = sum.terms().first()?;
        let common = first.iter().find(|atom| self.is_natural(atom) && sum.terms().iter().all(|(atoms, _)| atoms.contains(atom)));
        let tightened = || Some(sum.tightened()).filter(|tightened| tightened != sum && self.is_whole(sum));
        common.and_then(|atom| sum.exact(&Poly::atom(atom.clone()))).or_else(tightened)
    }

    /// A sum that is linear in a bounded atom is at least 0 if it is so at both bounds; one bound
    /// suffices where the sign of the factor is known.
    fn by_ends(&self, sum: &Poly, used: &mut Vec<usize>, patience: &mut u32) -> bool {
        let mut seen: Vec<&Atom> = Vec::new();
        for atom in sum.terms().iter().flat_map(|(atoms, _)| atoms.iter()) {
            if seen.contains(&atom) {
                continue;
            }
            seen.push(atom);
            let Some((factor, rest)) = sum.linear_in(atom) else { continue };
            let last = match atom {
                Atom::Var(var) => self.ranges.get(var),
                Atom::Stretch(_, extent) => Some(extent),
                Atom::Floor(..) => None,
                Atom::Size(_) | Atom::Broadcast(..) | Atom::Element(..) => continue,
            };
            let sign = self.sign(&factor);
            let mut end = |low: bool| {
                let end = match (atom, last) {
                    // b floor(a / b) lies between a - b + 1 and a.
                    (Atom::Floor(a, b), _) => {
                        let bound = if low { a.sub(b).plus(1) } else { a.clone() };
                        match (factor.exact(b), b.known()) {
                            (Some(factor), _) => factor.mul(&bound).add(&rest),
                            (None, Some(number)) if self.is_whole(sum) => {
                                // Where both are numbers, the quotient at the end is one.
                                let end = if low { self.lowest(a) } else { self.lowest(&a.scale(-1)).map(|end| -end) };
                                let end = end.filter(|_| number > 0).map(|end| factor.scale(end.div_euclid(number)).add(&rest));
                                if end.is_some_and(|end| self.search(&end, used, patience)) {
                                    return true;
                                }
                                // An integer above -1 is not negative.
                                factor.mul(&bound).add(&rest.mul(b)).plus(number - 1)
                            }
                            (None, _) => factor.mul(&bound).add(&rest.mul(b)),
                        }
                    }
                    (_, Some(extent)) if !low => factor.mul(&extent.plus(-1)).add(&rest),
                    (_, Some(_)) => rest.clone(),
                    (_, None) => return false,
                };
                self.search(&end, used, patience)
            };
            if (sign == Some(-1) || end(true)) && (sign == Some(1) || end(false)) {
                return true;
            }
            // It may be below another quotient by the same number.
            let mut is_below = |above: &Atom| {
                let gap = Poly::atom(above.clone()).sub(&Poly::atom(atom.clone())).plus(-1);
                above != atom && gap != *sum && self.search(&gap, used, patience)
            };
            if sign == Some(-1)
                && let Atom::Floor(_, b) = atom
                && let Some(above) = quotients(sum, b).find(|above| is_below(above))
                && self.search(&factor.mul(&Poly::atom(above).plus(-1)).add(&rest), used, patience)
            {
                return true;
            }
            // If the numerator is not negative, neither is the quotient, and it is no larger.
            if let Atom::Floor(a, _) = atom
                && self.search(&rest, used, patience)
                && self.search(&factor.mul(a).add(&rest), used, patience)
                && self.search(a, used, patience)
            {
                return true;
            }
        }
        false
    }

    /// 1 if no term of the sum can be negative, and -1 if none can be positive.
    fn sign(&self, sum: &Poly) -> Option<i64> {
        let (_, first) = sum.terms().first()?;
        let natural = |atoms: &[Atom]| atoms.iter().all(|atom| self.is_natural(atom));
        sum.terms().iter().all(|(atoms, c)| c.signum() == first.signum() && natural(atoms)).then_some(first.signum())
    }

    /// Each size is 1 plus something nonnegative.
    fn by_sizes(&self, sum: &Poly) -> bool {
        // What is negative where all sizes are 1 needs no expansion.
        let at_ones = sum.terms().iter().try_fold(0i64, |total, (_, c)| total.checked_add(*c));
        let is_open = at_ones.is_none_or(|total| total >= 0);
        if !is_open || sum.terms().iter().any(|(atoms, _)| !atoms.iter().all(|atom| matches!(atom, Atom::Size(_)))) {
            return false;
        }
        let mut total = Poly::default();
        for (atoms, coefficient) in sum.terms() {
            let mut product = Poly::number(*coefficient);
            for atom in atoms.iter() {
                product = product.mul(&Poly::atom(atom.clone()).plus(1));
            }
            total = total.add(&product);
        }
        total.terms().iter().all(|(_, coefficient)| *coefficient >= 0)
    }

    /// The sum is a known one plus something nonnegative.
    fn by_known(&self, sum: &Poly, used: &mut Vec<usize>, patience: &mut u32) -> bool {
        if used.len() == CHAIN {
            return false;
        }
        (0..self.known.len()).any(|at| {
            if used.contains(&at) {
                return false;
            }
            let fact = &self.known[at];
            let multiple = number_of_times(fact, sum).or_else(|| multiple(fact, sum, |atom| self.is_natural(atom)));
            let Some(multiple) = multiple else { return false };
            used.push(at);
            let shown = self.search(&sum.sub(&fact.mul(&multiple)), used, patience);
            used.pop();
            shown
        })
    }

    /// Whether an atom is a size, or a variable with a range.
    fn is_natural(&self, atom: &Atom) -> bool {
        match atom {
            Atom::Size(_) => true,
            Atom::Var(var) => self.ranges.contains_key(var),
            _ => false,
        }
    }
}

/// The quotients by `divisor` that occur in a sum.
fn quotients<'a>(sum: &'a Poly, divisor: &'a Poly) -> impl Iterator<Item = Atom> + 'a {
    let atoms = sum.terms().iter().flat_map(|(atoms, _)| atoms.iter());
    atoms.filter(move |atom| matches!(atom, Atom::Floor(_, b) if b == divisor)).cloned()
}

/// The positive number that takes a term of `fact` to a term of `sum`.
fn number_of_times(fact: &Poly, sum: &Poly) -> Option<Poly> {
    fact.terms().iter().filter(|(atoms, _)| !atoms.is_empty()).find_map(|(atoms, c)| {
        let (_, n) = sum.terms().iter().find(|(mine, n)| mine == atoms && divides(*c, *n))?;
        Some(Poly::number(n / c))
    })
}

/// The positive number times a product of atoms that takes a term of `fact` to a term of `sum`, if
/// all atoms satisfy `allowed`.
fn multiple(fact: &Poly, sum: &Poly, allowed: impl Fn(&Atom) -> bool) -> Option<Poly> {
    fact.terms().iter().filter(|(atoms, _)| !atoms.is_empty()).find_map(|(atoms, c)| {
        sum.terms().iter().filter(|(_, n)| divides(*c, *n)).find_map(|(mine, n)| {
            let left = without(mine, atoms)?;
            left.iter().all(&allowed).then(|| Poly::term(left, n / c))
        })
    })
}

/// Whether `n / c` is a positive integer.
fn divides(c: i64, n: i64) -> bool {
    (c < 0) == (n < 0) && n.checked_rem(c) == Some(0)
}

/// What a sum that is at least 0 and linear in a quotient implies without the quotient: `c floor(a
/// / b) + r ≥ 0` gives `c a + b r ≥ 0` where `c > 0`, and `-c floor(a / b) + r ≥ 0` gives `-c (a -
/// b + 1) + b r ≥ 0`.
fn without_floor(sum: &Poly) -> Option<Poly> {
    let floors = sum.terms().iter().flat_map(|(atoms, _)| atoms.iter()).filter(|atom| matches!(atom, Atom::Floor(..)));
    floors.into_iter().find_map(|atom| {
        let Atom::Floor(a, b) = atom else { return None };
        let (factor, rest) = sum.linear_in(atom)?;
        let factor = factor.known()?;
        let largest = if factor > 0 { a.clone() } else { a.sub(b).plus(1) };
        Some(largest.scale(factor).add(&rest.mul(b)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::fresh;
    use regraft_ir::Dim;

    #[test]
    fn ranges_and_sizes_bound_sums() {
        Fuel::fill(1 << 20);
        let (n, m) = (Poly::size(&Dim::symbol("N")), Poly::size(&Dim::symbol("M")));
        let (a, b) = (fresh(), fresh());
        let mut facts = Facts::default();
        facts.range(a, n.clone());
        facts.range(b, m.clone());
        let flat = Poly::var(a).mul(&m).add(&Poly::var(b));
        assert!(facts.nonnegative(&flat));
        assert!(facts.at_least(&n.mul(&m).plus(-1), &flat));
        assert!(!facts.at_least(&n.mul(&m).plus(-2), &flat));
        assert!(facts.at_least(&n.mul(&m), &n));
        assert!(!facts.at_least(&n, &m));
        let half = flat.floor(&Poly::number(2));
        assert!(facts.nonnegative(&half) && facts.at_least(&flat, &half) && !facts.at_least(&half, &flat));
    }

    #[test]
    fn high_digits_are_bounded_by_what_is_known_of_flat_indices() {
        Fuel::fill(1 << 20);
        let (a, b) = (fresh(), fresh());
        let mut facts = Facts::default();
        facts.range(a, Poly::number(5));
        facts.range(b, Poly::number(30));
        let flat = Poly::var(a).scale(28).add(&Poly::var(b));
        let values = |facts: &Facts| (facts.first(a), facts.last(a));
        assert_eq!(values(&facts), (0, Some(4)));
        assert_eq!(values(&facts.with(&[(b, Poly::number(28))], [flat.plus(-56)])), (2, Some(4)));
        assert_eq!(values(&facts.with(&[], [Poly::number(55).sub(&flat)])), (0, Some(1)));
        assert_eq!(values(&facts.with(&[], [Poly::number(56).sub(&flat)])), (0, Some(2)));
        // A low digit with 30 values takes the high digit down by one.
        assert!(facts.with(&[], [flat.plus(-56)]).first(a) < 2);
        // Elements of real tensors may lie between integers.
        let half = Poly::atom(Atom::Element(Source::Input("x".into()), Vec::new()));
        assert!(!facts.with(&[], [Poly::var(a).add(&half).scale(28).add(&Poly::var(b))]).nonnegative(&Poly::var(a).add(&half)));
    }

    #[test]
    fn one_end_is_enough_where_the_factor_has_a_sign() {
        Fuel::fill(1 << 20);
        let (n, a) = (Poly::size(&Dim::symbol("N")), fresh());
        let mut facts = Facts::default();
        facts.range(a, Poly::size(&Dim::symbol("M")));
        let rest = Poly::atom(Atom::Element(Source::Input("x".into()), Vec::new()));
        facts.assume(rest.clone());
        assert!(facts.nonnegative(&Poly::var(a).mul(&n).add(&rest)));
        assert!(!facts.nonnegative(&rest.sub(&Poly::var(a).mul(&n))));
        assert!(!facts.nonnegative(&Poly::var(a).sub(&n).mul(&n).add(&rest)));
    }

    #[test]
    fn what_is_assumed_is_used_and_contradictions_are_seen() {
        Fuel::fill(1 << 20);
        let (n, m) = (Poly::size(&Dim::symbol("N")), Poly::size(&Dim::symbol("M")));
        let a = fresh();
        let mut facts = Facts::default();
        facts.range(a, n.add(&m));
        let beyond = Poly::var(a).sub(&n);
        assert!(!facts.nonnegative(&beyond));
        assert!(facts.with(&[], [beyond.clone()]).nonnegative(&beyond.plus(2)));
        assert!(facts.with(&[], [beyond.clone()]).nonnegative(&Poly::var(a).scale(2).sub(&n.scale(2))));
        assert!(!facts.with(&[], [beyond.clone()]).contradict());
        assert!(facts.with(&[], [beyond.clone(), n.plus(-1).sub(&Poly::var(a))]).contradict());
    }
}
