//! What follows from the equality of two sizes: a condition on one symbol, without which they
//! differ.

use crate::dim::{Dim, Factor};

/// Largest number of remainders that are tried one by one.
const MOST_REMAINDERS: i64 = 4096;
/// Longest difference that is looked into.
const MOST_TERMS: usize = 32;

/// A necessary condition on a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Implied {
    /// It is this size, which does not contain it.
    Is(String, Dim),
    /// It is `modulus * n - offset` for some n of at least 1, where `offset` is below `modulus`.
    Steps {
        /// The symbol.
        symbol: String,
        /// At least 2.
        modulus: i64,
        /// From 0 on.
        offset: i64,
    },
}

/// What must hold of one of the symbols in `free` if `a` equals `b`, where all symbols are at least
/// 1. Of two that are the same, the later one is expressed by the earlier one.
pub fn implied(a: &Dim, b: &Dim, free: &[String]) -> Option<Implied> {
    let difference = without_common_factors(a.clone() - b.clone());
    let products = difference.products();
    let is_open = products.iter().flat_map(|(_, factors)| factors).any(|factor| matches!(factor, Factor::Broadcast(..)));
    if difference.known().is_some() || is_open || products.len() > MOST_TERMS {
        return None;
    }
    eliminated(&difference, free).or_else(|| remainder(&difference, free))
}

/// A size that is 0 exactly where this one is.
fn without_common_factors(mut size: Dim) -> Dim {
    let mut symbols = Vec::new();
    size.symbols(&mut symbols);
    for symbol in symbols.iter().map(|name| Dim::symbol(name)) {
        if let Some(quotient) = size.exact_div(&symbol).filter(|_| size.known().is_none()) {
            size = quotient;
        }
    }
    size
}

/// The last symbol that is a number or follows from one other symbol where `difference` is 0.
fn eliminated(difference: &Dim, free: &[String]) -> Option<Implied> {
    free.iter().rev().find_map(|name| {
        let mut products = difference.products().into_iter();
        let (factor, _) = products.find(|(_, factors)| factors.as_slice() == [Factor::Symbol(name)])?;
        let others = difference.clone() - Dim::from(factor) * Dim::symbol(name);
        if others.has_symbol(|other| other == name) {
            return None;
        }
        let size = (others * Dim::from(-1)).exact_div(&Dim::from(factor))?;
        let is_sure = match size.linear() {
            Some((_, other, _)) => free.iter().any(|free| free == other),
            None => size.known().is_some_and(|number| number >= 1),
        };
        is_sure.then(|| Implied::Is(name.clone(), size))
    })
}

/// The first symbol of which only one remainder leaves `difference` at 0.
fn remainder(difference: &Dim, free: &[String]) -> Option<Implied> {
    let periods = free.iter().map(|name| (name.as_str(), period(difference, name).unwrap_or(1)));
    let periods: Vec<(&str, i64)> = periods.filter(|(_, period)| *period > 1).collect();
    let all = periods.iter().try_fold(1i64, |all, (_, period)| all.checked_mul(*period));
    if all.is_some_and(|all| all <= MOST_REMAINDERS) {
        return only_one(difference, &periods);
    }
    periods.iter().filter(|(_, period)| *period <= MOST_REMAINDERS).find_map(|one| only_one(difference, &[*one]))
}

/// Tries all remainders of these symbols by these moduli.
fn only_one(difference: &Dim, moduli: &[(&str, i64)]) -> Option<Implied> {
    let total: i64 = moduli.iter().map(|(_, modulus)| modulus).product();
    let mut possible: Vec<Vec<i64>> = Vec::new();
    for number in 0..total {
        let mut left = number;
        let offsets = moduli.iter().map(|(_, modulus)| {
            let offset = left % modulus;
            left /= modulus;
            offset
        });
        let offsets: Vec<i64> = offsets.collect();
        let at = |name: &str| {
            let stepped = moduli.iter().zip(&offsets).find(|((symbol, _), _)| *symbol == name);
            let step = |((_, modulus), offset): (&(&str, i64), &i64)| Dim::symbol(name) * Dim::from(*modulus) - Dim::from(*offset);
            Some(stepped.map_or_else(|| Dim::symbol(name), step))
        };
        if difference.substitute(&at).is_none_or(|there| !is_never_zero(&there)) {
            possible.push(offsets);
        }
    }
    let (first, others) = possible.split_first()?;
    moduli.iter().enumerate().find_map(|(place, (symbol, modulus))| {
        let divisors = (2..=*modulus).rev().filter(|divisor| modulus % divisor == 0);
        let agree = |divisor: &i64| others.iter().all(|other| (other[place] - first[place]) % divisor == 0);
        let modulus = divisors.filter(|divisor| others.is_empty() || agree(divisor)).max()?;
        Some(Implied::Steps { symbol: (*symbol).to_string(), modulus, offset: first[place] % modulus })
    })
}

fn is_never_zero(size: &Dim) -> bool {
    size.known().map_or_else(|| size.at_least(1) || (size.clone() * Dim::from(-1)).at_least(1), |number| number != 0)
}

/// A number whose multiples can be added to the symbol such that no quotient by a number is rounded
/// differently; `None` if it is too large.
fn period(size: &Dim, symbol: &str) -> Option<i64> {
    let mut all = 1i64;
    for factor in size.products().into_iter().flat_map(|(_, factors)| factors) {
        let Factor::FloorDiv(a, b) = factor else { continue };
        let Some(divisor) = b.known().filter(|divisor| *divisor > 0 && a.has_symbol(|name| name == symbol)) else { continue };
        let own = period(a, symbol)?.checked_mul(divisor)?;
        all = (all / gcd(all, own)).checked_mul(own).filter(|all| *all <= 1 << 20)?;
    }
    Some(all)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;
    use crate::text::parse;

    /// A size as the text format writes it.
    fn dim(text: &str) -> Dim {
        let graph = parse(&format!("graph (x: f32[{text}]) {{ output x }}")).unwrap_or_else(|e| panic!("{text}: {e}"));
        graph.ty(graph.inputs()[0].out()).expect("a type").shape[0].clone()
    }

    #[test]
    fn conditions_follow_from_equal_sizes() {
        let cases = [
            ("H", "W", "W = H"),
            ("N*H", "N*W", "W = H"),
            ("2*H + 2", "2*W", "W = H + 1"),
            ("12*N", "12", "N = 1"),
            ("16*N", "64", "N = 4"),
            ("N*L", "8*N*floor(L, 8)", "L = 8n"),
            ("2*floor(H, 2)", "H", "H = 2n"),
            ("N*W*2*floor(H, 2)", "N*W*H", "H = 2n"),
            ("2*floor(H + 1, 2)", "H", "H = 2n"),
            ("2*floor(H, 2) + 1", "H", "H = 2n - 1"),
            ("8*floor(floor(floor(H, 2), 2), 2)", "H", "H = 8n"),
            ("floor(H + 1, 2) + floor(H, 4)", "3*floor(H, 4)", "H = 4n"),
            ("6*N", "4*floor(6*N, 4)", "N = 2n"),
            ("H*W", "4*floor(H, 2)*floor(W, 2)", "H = 2n"),
            // The half is even, of two kinds of numbers.
            ("2*floor(floor(H, 2), 2)", "floor(H, 2)", "-"),
            ("H*W", "4*floor(H*W, 4)", "-"),
            ("H", "H + 1", "-"),
            ("2*H", "0", "-"),
            ("3*H", "2*W", "-"),
            ("H", "W*N", "-"),
            ("H", "T", "-"),
            ("H", "broadcast(W, N)", "-"),
            ("floor(H, 2)", "floor(H + 2, 2)", "-"),
            ("H", "8191*floor(H, 8191)", "-"),
        ];
        let free = ["N", "C", "H", "W", "L"].map(String::from);
        for (a, b, want) in cases {
            let found = implied(&dim(a), &dim(b), &free);
            let shown = found.map_or_else(
                || "-".into(),
                |found| match found {
                    Implied::Is(symbol, size) => format!("{symbol} = {size}"),
                    Implied::Steps { symbol, modulus, offset: 0 } => format!("{symbol} = {modulus}n"),
                    Implied::Steps { symbol, modulus, offset } => format!("{symbol} = {modulus}n - {offset}"),
                },
            );
            assert_eq!(shown, want, "{a} and {b}");
        }
    }

    /// A size of some quotients of H and W.
    fn random(numbers: &mut SplitMix64, depth: usize) -> Dim {
        let number = |numbers: &mut SplitMix64, most: u64| Dim::from(1 + (numbers.word() % most) as i64);
        match (numbers.word() % 5, depth) {
            (0, _) | (_, 0) => Dim::symbol(if numbers.word().is_multiple_of(3) { "W" } else { "H" }),
            (1, _) => random(numbers, depth - 1) + number(numbers, 3) - Dim::from(2),
            (2, _) => random(numbers, depth - 1) * number(numbers, 4),
            (3, _) => random(numbers, depth - 1) + random(numbers, depth - 1),
            _ => random(numbers, depth - 1).floor_div(&number(numbers, 4)),
        }
    }

    #[test]
    fn no_sizes_that_are_equal_are_excluded() {
        let free = ["H", "W"].map(String::from);
        let (mut numbers, mut found) = (SplitMix64(1), 0);
        for _ in 0..4000 {
            let (a, b) = (random(&mut numbers, 3), random(&mut numbers, 3));
            let b = if numbers.word().is_multiple_of(2) { a.floor_div(&Dim::from(2)) * Dim::from(2) } else { b };
            let Some(implied) = implied(&a, &b, &free) else { continue };
            found += 1;
            for (height, width) in (1..=24).flat_map(|height| (1..=24).map(move |width| (height, width))) {
                let bindings = [("H".to_string(), height), ("W".to_string(), width)].into();
                let holds = match &implied {
                    Implied::Is(symbol, size) => size.eval(&bindings) == bindings.get(symbol).copied(),
                    Implied::Steps { symbol, modulus, offset } => (bindings[symbol] + offset) % modulus == 0,
                };
                assert!(holds || a.eval(&bindings) != b.eval(&bindings), "{a} and {b} at {bindings:?}: {implied:?}");
            }
        }
        assert!(found > 500, "{found}");
    }

    #[test]
    fn sizes_that_contradict_a_condition_are_different() {
        let free = ["H", "W"].map(String::from);
        for (a, b) in [("3*floor(H, 3)", "H"), ("4*floor(H + 3, 4)", "H + 2"), ("H*W", "6*floor(H, 3)*floor(W, 2)")] {
            let (a, b) = (dim(a), dim(b));
            let Some(Implied::Steps { symbol, modulus, offset }) = implied(&a, &b, &free) else { panic!("{a} and {b}") };
            for at in 1..=48 {
                for other in 1..=24 {
                    let name = if symbol == "H" { "W" } else { "H" };
                    let bindings = [(symbol.clone(), at), (name.to_string(), other)].into();
                    let holds = (at + offset) % modulus == 0;
                    assert!(holds || a.eval(&bindings) != b.eval(&bindings), "{a} and {b} at {bindings:?}");
                }
            }
        }
    }
}
