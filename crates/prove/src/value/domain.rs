//! Domains of integer types: the integers they hold, and how all others wrap.
//!
//! The integers of a type are residues modulo a power of two, each with one representative that the
//! type holds. Sums and products of representatives are right modulo that power, so an element is
//! written as a sum over the unbounded integers like anything else, and brought back into its type
//! where it is produced: unchanged where all its possible values are held by the type, and as a
//! function of the sum, [`Function::Wrapped`], otherwise.

use num_bigint::BigInt;
use num_traits::{Euclid, One, Zero};
use regraft_ir::{Class, DType};

use crate::index::{Atom, Facts, Poly, Source};
use crate::value::algebra::{Trouble, power, product};
use crate::value::number::Number;
use crate::value::sum::{Factor, Fold, Function, Sum, Term};

/// The least and the greatest possible value of something.
pub(crate) type Interval = (BigInt, BigInt);

/// Every size is below two to this power.
const SIZE_BITS: u32 = 31;
/// The element count of a tensor is below two to this power.
const ELEMENT_BITS: u32 = 48;

/// The numbers of an integer or boolean type; `None` for other types.
pub(crate) fn held(dtype: DType) -> Option<Interval> {
    let bits = 8 * dtype.size();
    match dtype.class() {
        Class::Bool => Some((BigInt::zero(), BigInt::one())),
        Class::Int if is_signed(dtype) => {
            let half = BigInt::one() << (bits - 1);
            Some((-half.clone(), half - 1))
        }
        Class::Int => Some((BigInt::zero(), (BigInt::one() << bits) - 1)),
        _ => None,
    }
}

fn is_signed(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
}

/// Whether all values of an interval are held by the type.
fn within(interval: &Interval, dtype: DType) -> bool {
    held(dtype).is_some_and(|(low, high)| low <= interval.0 && interval.1 <= high)
}

/// Whether the sum is known to be an integer that the type holds.
pub(crate) fn fits(sum: &Sum, dtype: DType, facts: &Facts) -> bool {
    is_integral(sum, facts) && interval(sum, facts).is_some_and(|range| within(&range, dtype))
}

/// Whether the sum is known to be an integer of magnitude at most `limit`.
pub(crate) fn is_below(sum: &Sum, limit: &BigInt, facts: &Facts) -> bool {
    is_integral(sum, facts) && interval(sum, facts).is_some_and(|(low, high)| -limit <= low && high <= *limit)
}

/// The type's representative of the integer `sum`.
pub(crate) fn wrapped(sum: &Sum, dtype: DType, facts: &Facts) -> Result<Sum, Trouble> {
    if is_element(sum, facts, dtype) {
        return Ok(sum.clone());
    }
    let sum = unwrapped(sum, dtype, facts)?;
    if interval(&sum, facts).is_some_and(|range| within(&range, dtype)) {
        return Ok(sum);
    }
    let modulus = BigInt::one() << (8 * dtype.size());
    let Some((low, _)) = held(dtype) else { return Trouble::new(format!("{dtype} is no type of integers")) };
    if let Some(number) = sum.known().filter(Number::is_integer) {
        let representative = (number.to_integer() - &low).rem_euclid(&modulus) + low;
        return Ok(Sum::number(Number::from_integer(representative)));
    }
    // Multiples of the modulus make no difference.
    let half = &modulus >> 1;
    let reduced = sum.terms().iter().map(|(term, c)| {
        let short = c.is_integer() && is_integral_term(term, facts);
        let least: BigInt = 1 - &half;
        let representative = || (c.to_integer() - &least).rem_euclid(&modulus) + &least;
        (term.clone(), if short { Number::from_integer(representative()) } else { c.clone() })
    });
    let sum = Sum::new(reduced);
    if interval(&sum, facts).is_some_and(|range| within(&range, dtype)) {
        return Ok(sum);
    }
    Ok(Sum::factor(Factor::Apply(Function::Wrapped(dtype), vec![sum])))
}

/// Whether the sum is an element of a tensor of this type, or another value already brought into
/// it.
fn is_element(sum: &Sum, facts: &Facts, dtype: DType) -> bool {
    let [(term, c)] = sum.terms() else { return false };
    let [(factor, 1)] = term.factors.as_slice() else { return false };
    c.is_one()
        && term.binders.is_empty()
        && match factor {
            Factor::Read(source, _) => facts.dtype(source) == Some(dtype),
            Factor::Apply(Function::Wrapped(own) | Function::Integer(_, own), _) => *own == dtype,
            _ => false,
        }
}

/// The sum without wrapping to this or wider types inside an operand of wrapping: only the sum
/// modulo the type's power of two matters.
fn unwrapped(sum: &Sum, dtype: DType, facts: &Facts) -> Result<Sum, Trouble> {
    let inner = |factor: &Factor| match factor {
        Factor::Apply(Function::Wrapped(own), arguments) if own.size() >= dtype.size() => arguments.first().cloned(),
        _ => None,
    };
    if !sum.terms().iter().any(|(term, _)| term.factors.iter().any(|(factor, _)| inner(factor).is_some())) {
        return Ok(sum.clone());
    }
    let mut result = Sum::default();
    for (term, c) in sum.terms() {
        let opens = c.is_integer() && is_integral_term(term, facts);
        let (open, kept): (Vec<_>, Vec<_>) = term.factors.iter().cloned().partition(|(factor, _)| opens && inner(factor).is_some());
        let mut part = Sum::new([(Term { binders: Vec::new(), conds: Vec::new(), factors: kept }, c.clone())]);
        for (factor, p) in &open {
            if let Some(argument) = inner(factor) {
                part = product(&part, &power(&argument, *p, facts)?, facts)?;
            }
        }
        result = result.add(&crate::value::scope::under(&Term { factors: Vec::new(), ..term.clone() }, part));
    }
    Ok(result)
}

/// Whether the sum consists of integers with integer coefficients.
pub(crate) fn is_integral(sum: &Sum, facts: &Facts) -> bool {
    sum.terms().iter().all(|(term, c)| c.is_integer() && is_integral_term(term, facts))
}

fn is_integral_term(term: &Term, facts: &Facts) -> bool {
    term.factors.iter().all(|(factor, power)| *power > 0 && is_integral_factor(factor, facts))
}

fn is_integral_factor(factor: &Factor, facts: &Facts) -> bool {
    match factor {
        Factor::Read(source, _) => facts.dtype(source).is_some(),
        Factor::Whole(_) => true,
        Factor::Apply(Function::Wrapped(_) | Function::Integer(..) | Function::Positive | Function::Zero, _) => true,
        Factor::Apply(Function::Max, arguments) => arguments.iter().all(|a| is_integral(a, facts)),
        Factor::Apply(..) => false,
        Factor::Over(_, _, _, body) => is_integral(body, facts),
        Factor::Of(sum) => is_integral(sum, facts),
    }
}

/// The range of a sum of integers; `None` if it is unbounded.
fn interval(sum: &Sum, facts: &Facts) -> Option<Interval> {
    sum.terms()
        .iter()
        .try_fold((Number::zero(), Number::zero()), |(low, high), (term, c)| {
            let (a, b) = term_interval(term, facts)?;
            let (a, b) = (Number::from_integer(a) * c, Number::from_integer(b) * c);
            let (a, b) = if c.is_negative() { (b, a) } else { (a, b) };
            Some((low + a, high + b))
        })
        .map(|(low, high)| (low.floor().to_integer(), high.ceil().to_integer()))
}

fn term_interval(term: &Term, facts: &Facts) -> Option<Interval> {
    let one = || (BigInt::one(), BigInt::one());
    let plain = term.binders.is_empty() && term.conds.is_empty();
    let inner = if plain { None } else { Some(facts.inside(&term.binders, &term.conds)) };
    let inside = inner.as_deref().unwrap_or(facts);
    // Indices and sizes are multiplied as such: a bound on their product may be known.
    let mut sizes = Poly::number(1);
    let mut product = term.factors.iter().try_fold(one(), |product, (factor, power)| {
        let count = u32::try_from(*power).ok()?;
        if let Factor::Whole(atom) = factor {
            (0..count).for_each(|_| sizes = sizes.mul(&Poly::atom(atom.clone())));
            return Some(product);
        }
        let range = factor_interval(factor, inside)?;
        Some((0..count).fold(product, |product, _| times(&product, &range)))
    })?;
    product = times(&product, &poly_interval(&sizes, inside)?);
    for (_, extent) in &term.binders {
        let most = poly_interval(extent, facts)?.1.max(BigInt::zero());
        product = (product.0.min(BigInt::zero()) * &most, product.1.max(BigInt::zero()) * &most);
    }
    if !term.conds.is_empty() {
        product = (product.0.min(BigInt::zero()), product.1.max(BigInt::zero()));
    }
    Some(product)
}

fn times(a: &Interval, b: &Interval) -> Interval {
    let ends = [&a.0 * &b.0, &a.0 * &b.1, &a.1 * &b.0, &a.1 * &b.1];
    let low = ends.iter().min().cloned().unwrap_or_default();
    (low, ends.into_iter().max().unwrap_or_default())
}

fn factor_interval(factor: &Factor, facts: &Facts) -> Option<Interval> {
    match factor {
        Factor::Read(source, index) => element_interval(source, index, facts),
        Factor::Whole(atom) => atom_interval(atom, facts),
        Factor::Apply(Function::Wrapped(dtype) | Function::Integer(_, dtype), _) => held(*dtype),
        Factor::Apply(Function::Positive | Function::Zero, _) => Some((BigInt::zero(), BigInt::one())),
        Factor::Apply(Function::Max, arguments) => {
            let ranges: Vec<Interval> = arguments.iter().map(|a| interval(a, facts)).collect::<Option<_>>()?;
            Some((ranges.iter().map(|r| r.0.clone()).max()?, ranges.iter().map(|r| r.1.clone()).max()?))
        }
        Factor::Over(Fold::Max, binders, _, body) => interval(body, &facts.with(binders, [])),
        Factor::Of(sum) => interval(sum, facts),
        Factor::Apply(..) | Factor::Over(Fold::Product, ..) => None,
    }
}

fn element_interval(source: &Source, index: &[Poly], facts: &Facts) -> Option<Interval> {
    let (low, high) = facts.bounds(source).or_else(|| facts.dtype(source).and_then(held))?;
    let (least, greatest) = facts.ends(&Atom::Element(source.clone(), index.to_vec()));
    Some((least.map_or(low.clone(), |v| low.max(v.into())), greatest.map_or(high.clone(), |v| high.min(v.into()))))
}

/// The range of an index expression; `None` if it is unbounded.
fn poly_interval(poly: &Poly, facts: &Facts) -> Option<Interval> {
    poly.terms().iter().try_fold((BigInt::zero(), BigInt::zero()), |(low, high), (atoms, c)| {
        let mut product = (BigInt::one(), BigInt::one());
        let is_size = |atom: &&Atom| matches!(atom, Atom::Size(_));
        let sizes: Vec<Atom> = atoms.iter().filter(is_size).cloned().collect();
        for atom in atoms.iter().filter(|atom| !is_size(atom)) {
            product = times(&product, &atom_interval(atom, facts)?);
        }
        let bits = if sizes.len() > 1 && facts.is_part_of_volume(&sizes) { ELEMENT_BITS } else { SIZE_BITS * sizes.len() as u32 };
        product = times(&product, &(BigInt::one(), BigInt::one() << bits));
        // Indices are below sizes, of which the product may be bounded.
        if atoms.len() > 1 && sizes.len() < atoms.len() && product.0 >= BigInt::zero() && product.1.bits() > u64::from(ELEMENT_BITS) {
            let most = ceiling(atoms, facts).and_then(|sizes| poly_interval(&sizes, facts));
            product.1 = most.map_or(product.1.clone(), |(_, most)| most.min(product.1));
        }
        let (a, b) = (product.0 * c, product.1 * c);
        Some((low + a.clone().min(b.clone()), high + a.max(b)))
    })
}

/// A sum of products of sizes that is at least a product of indices and sizes.
fn ceiling(atoms: &[Atom], facts: &Facts) -> Option<Poly> {
    atoms.iter().try_fold(Poly::number(1), |product, atom| {
        let most = match atom {
            Atom::Size(_) => Poly::atom(atom.clone()),
            Atom::Var(var) => sum_ceiling(facts.extent(*var)?, facts)?,
            Atom::Floor(a, _) if atom_interval(atom, facts)?.0 >= BigInt::zero() => sum_ceiling(a, facts)?,
            _ => return None,
        };
        Some(product.mul(&most))
    })
}

fn sum_ceiling(poly: &Poly, facts: &Facts) -> Option<Poly> {
    poly.terms().iter().try_fold(Poly::default(), |sum, (atoms, c)| {
        let most = ceiling(atoms, facts)?;
        Some(if *c > 0 { sum.add(&most.scale(*c)) } else { sum })
    })
}

fn atom_interval(atom: &Atom, facts: &Facts) -> Option<Interval> {
    let zero = BigInt::zero;
    match atom {
        Atom::Size(_) => Some((BigInt::one(), (BigInt::one() << SIZE_BITS) - 1)),
        Atom::Var(var) => Some((zero(), poly_interval(facts.extent(*var)?, facts)?.1 - 1)),
        // Divisors are at least 1.
        Atom::Floor(a, b) => {
            let divisor = BigInt::from(b.known().unwrap_or(1).max(1));
            poly_interval(a, facts).map(|(low, high)| (low.min(zero()), high.max(zero()) / divisor))
        }
        Atom::Broadcast(a, b) => Some((BigInt::one(), poly_interval(a, facts)?.1.max(poly_interval(b, facts)?.1))),
        Atom::Stretch(a, _) => poly_interval(a, facts).map(|(low, high)| (low.min(zero()), high.max(zero()))),
        Atom::Element(source, index) => element_interval(source, index, facts),
    }
}
