//! Laws of elementary functions, checked piecewise with interval arithmetic.
//!
//! Interval arithmetic cannot show that two functions are equal; it shows that they nowhere differ
//! by more than a tolerance. Over each piece the difference is enclosed by its value in the middle
//! and its slopes (the mean value form), so that the enclosure shrinks with the square of the
//! piece. A piece whose enclosure does not contain zero refutes the law.

mod arithmetic;
mod dual;
mod identity;

use arithmetic::Interval;
use dual::{Dual, VARIABLES};
use identity::Domain;

pub use identity::{IDENTITIES, Identity, identities};

/// What the pieces of an identity's domain show.
#[derive(Clone, Debug, PartialEq)]
pub enum Enclosure {
    /// The sides are nowhere further apart than the identity allows: the number of pieces, and
    /// whether its own argument covers what lies beyond them.
    Close {
        /// Number of pieces needed.
        pieces: usize,
        /// Whether the ends are covered by the stated argument rather than by pieces.
        argued: bool,
    },
    /// The sides differ at this point.
    Refuted(Vec<f64>),
    /// A piece was left undecided: where.
    Open(Vec<f64>),
}

/// A real variable is cut at this distance from zero, a positive one at this power of e. The
/// argument, or one unbounded piece, covers what lies beyond.
const REACH: f64 = 12.0;
/// The same for two variables.
const REACH_OF_TWO: f64 = 3.0;
/// Maximum number of times a piece is halved.
const DEEPEST: u32 = 60;
/// Maximum number of pieces of one identity.
const MOST_PIECES: usize = 4_000_000;

/// A box, and how often it was halved.
type Piece = ([Interval; VARIABLES], u32);

/// Compares both sides of an identity over its whole domain.
pub fn enclose(identity: &Identity) -> Enclosure {
    // The middle comes first: false laws mostly fail there.
    let mut open: Vec<Piece> = boxes(identity).into_iter().rev().map(|b| (b, 0)).collect();
    let mut pieces = 0;
    while let Some((piece, depth)) = open.pop() {
        pieces += 1;
        let middle = |i: Interval| if i.width().is_finite() { i.middle() } else { i.low.clamp(f64::MIN, f64::MAX) };
        let place: Vec<f64> = piece.iter().take(identity.domains.len()).map(|i| middle(*i)).collect();
        match judged(identity, &piece) {
            Some(true) => {}
            Some(false) => return Enclosure::Refuted(place),
            None if depth >= DEEPEST || pieces > MOST_PIECES => return Enclosure::Open(place),
            None => match halves(&piece) {
                Some(two) => open.extend(two.map(|half| (half, depth + 1))),
                None => return Enclosure::Open(place),
            },
        }
    }
    Enclosure::Close { pieces, argued: identity.beyond.is_some() }
}

/// The initial boxes: the middle, and unbounded ones around it if no argument covers those.
fn boxes(identity: &Identity) -> Vec<[Interval; VARIABLES]> {
    let far = f64::INFINITY;
    let reach = if identity.domains.len() > 1 { REACH_OF_TWO } else { REACH };
    let cut = |domain: &Domain| -> Vec<Interval> {
        let part = |low: f64, high: f64| Interval { low, high };
        let (middle, ends) = match domain {
            Domain::Real => (part(-reach, reach), vec![part(-far, -reach), part(reach, far)]),
            Domain::Nonnegative => (part(0.0, reach.exp()), vec![part(reach.exp(), far)]),
            Domain::Positive => (part((-reach).exp(), reach.exp()), vec![part(0.0, (-reach).exp()), part(reach.exp(), far)]),
            Domain::Unit => (part(0.0, 1.0), Vec::new()),
        };
        std::iter::once(middle).chain(ends.into_iter().filter(|_| identity.beyond.is_none())).collect()
    };
    let mut boxes = vec![[Interval::point(0.0); VARIABLES]];
    for (at, domain) in identity.domains.iter().enumerate() {
        let parts = cut(domain);
        boxes = boxes
            .iter()
            .flat_map(|b| {
                parts.iter().map(move |part| {
                    let mut b = *b;
                    b[at] = *part;
                    b
                })
            })
            .collect();
    }
    boxes
}

/// Whether the sides are close over a piece, or differ somewhere in it; `None` if neither is shown.
fn judged(identity: &Identity, piece: &[Interval; VARIABLES]) -> Option<bool> {
    let variables = |at: &[Interval; VARIABLES]| -> Vec<Dual> {
        (0..VARIABLES)
            .map(|i| {
                let mut slopes = [Interval::point(0.0); VARIABLES];
                slopes[i] = Interval::point(1.0);
                Dual { value: at[i], slopes }
            })
            .collect()
    };
    let sides = |at: &[Interval; VARIABLES]| {
        let variables = variables(at);
        [identity.sides[0].over(&variables), identity.sides[1].over(&variables)]
    };
    let [left, right] = sides(piece);
    let difference = left.minus(right);
    let mut enclosed = difference.value;
    if piece.iter().all(|i| i.width().is_finite()) {
        let middle = piece.map(|i| Interval::point(i.middle()));
        let [a, b] = sides(&middle);
        let at_middle = a.minus(b).value;
        if !at_middle.contains_zero() {
            return Some(false);
        }
        let shift = (0..VARIABLES).fold(at_middle, |sum, i| sum.plus(difference.slopes[i].times(piece[i].minus(middle[i]))));
        enclosed = enclosed.meet(shift);
    }
    if !enclosed.contains_zero() {
        return Some(false);
    }
    let scale = left.value.least().max(right.value.least()).max(1.0);
    (enclosed.magnitude() <= identity.within * scale).then_some(true)
}

/// The box halved across its widest side, measured relative to its distance from zero if large.
fn halves(piece: &[Interval; VARIABLES]) -> Option<[[Interval; VARIABLES]; 2]> {
    let extent = |i: &Interval| i.width() / i.least().max(1.0);
    let at = (0..VARIABLES).filter(|i| piece[*i].width() > 0.0).max_by(|a, b| extent(&piece[*a]).total_cmp(&extent(&piece[*b])))?;
    let side = piece[at];
    let cut = match (side.low.is_finite(), side.high.is_finite()) {
        (true, true) if side.low > 1.0 => (side.low * side.high).sqrt(),
        (true, true) => side.middle(),
        (true, false) => 2.0 * side.low.abs().max(1.0),
        (false, true) => -2.0 * side.high.abs().max(1.0),
        (false, false) => 0.0,
    };
    if cut <= side.low || cut >= side.high {
        return None;
    }
    let (mut below, mut above) = (*piece, *piece);
    below[at] = Interval { low: side.low, high: cut };
    above[at] = Interval { low: cut, high: side.high };
    Some([below, above])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_identities_hold_over_their_domains() {
        let mut wrong = Vec::new();
        for identity in identities(IDENTITIES).unwrap_or_else(|e| panic!("{e}")) {
            let found = enclose(&identity);
            if !matches!(found, Enclosure::Close { .. }) {
                wrong.push(format!("{}: {found:?}", identity.name));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn false_identities_are_refuted() {
        let text = "
            (identity exp-of-product (exp (* ?x ?y)) (* (exp ?x) (exp ?y)) (where (?x real) (?y real)))
            (identity root-of-square (sqrt (* ?x ?x)) ?x (where (?x real)))
            (identity tanh-by-exp (tanh ?x) (- 1 (/ 2 (+ 1 (exp ?x)))) (where (?x real)))
            (identity erf-by-tanh (erf ?x) (tanh (+ (* 1.1283 ?x) (* 0.1009 (* ?x (* ?x ?x))))) (where (?x real)))
            (identity sigmoid-by-line (/ 1 (+ 1 (exp (- 0 ?x)))) (+ 0.5 (* 0.25 ?x)) (where (?x real)))
            (identity log-of-sum (log (+ ?x ?y)) (+ (log ?x) (log ?y)) (where (?x positive) (?y positive)))
            (identity root-of-root (sqrt (* ?x (sqrt ?x))) (pow ?x 0.7500001) (where (?x positive)))
            (identity only-far-away (tanh ?x) (tanh (+ ?x (exp (- 0 (* (- ?x 9) (- ?x 9)))))) (where (?x real)))";
        for identity in identities(text).unwrap_or_else(|e| panic!("{e}")) {
            assert!(matches!(enclose(&identity), Enclosure::Refuted(_)), "{}: {:?}", identity.name, enclose(&identity));
        }
    }

    #[test]
    fn mistakes_have_a_place_and_a_hint() {
        for (text, message) in [
            ("(identity a ?x ?y (where (?x real)))", "`?y` is neither"),
            ("(identity a ?x ?x (where (?x complex)))", "no domain `complex`"),
            ("(identity a (sin ?x) ?x (where (?x real)))", "no function `sin`"),
            ("(identity a ?x ?x)", "one or two variables"),
        ] {
            let error = identities(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
