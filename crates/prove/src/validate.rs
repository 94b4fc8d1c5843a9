//! A rule on all instances with small sizes, each compared by exact expressions.

use std::collections::HashMap;
use std::ops::AddAssign;

use regraft_ir::{Class, Const, Graph, Op, Value, eval, text};
use regraft_rules::{Case, Domain, Rule};

use crate::exact::{Exactness, exact_equal};

/// What the combinations of a rule's parameters came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Instances whose sides are the same expressions.
    pub equal: u64,
    /// Combinations that the guards refuse.
    pub guarded: u64,
    /// Combinations that the operators of the source refuse (a window larger than the image, or in the padding as a whole).
    pub untyped: u64,
    /// Combinations that are others with two axes exchanged, whole branches counted as one.
    pub mirrored: u64,
    /// Instances that expressions leave open, and on which numbers agree.
    pub undecided: u64,
    /// Instances whose sides differ, or whose target cannot be built.
    pub refuted: u64,
    /// The first that was refuted, else the first that is undecided, and why.
    pub first: Option<String>,
}

impl Tally {
    /// Combinations that were looked at, mirrored ones left out.
    pub fn obligations(&self) -> u64 {
        self.equal + self.undecided + self.refuted + self.guarded + self.untyped
    }

    /// Instances whose sides were compared.
    pub fn compared(&self) -> u64 {
        self.equal + self.undecided + self.refuted
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        let keep = self.first.is_some() && (self.refuted > 0 || other.refuted == 0);
        self.equal += other.equal;
        self.guarded += other.guarded;
        self.untyped += other.untyped;
        self.mirrored += other.mirrored;
        self.undecided += other.undecided;
        self.refuted += other.refuted;
        if !keep {
            self.first = other.first.or(self.first.take());
        }
    }
}

/// Compares both sides of `rule` on every instance with sizes up to `bound` whose first choices are `prefix`. `None` if `stopped` says so on the way.
pub fn validate(rule: &Rule, bound: i64, prefix: &[u64], stopped: &dyn Fn() -> bool) -> Option<Tally> {
    let mut tally = Tally::default();
    for (at, case) in Domain::new(rule, bound, prefix).enumerate() {
        if at % 64 == 0 && stopped() {
            return None;
        }
        match case {
            Case::Untyped => tally.untyped += 1,
            Case::Guarded => tally.guarded += 1,
            Case::Mirrored => tally.mirrored += 1,
            Case::Wrong(why) => tally += Tally { refuted: 1, first: Some(why), ..Tally::default() },
            Case::Instance(instance) => match exact_equal(&instance.before, &instance.after, &HashMap::new()) {
                Exactness::Equal => tally.equal += 1,
                Exactness::Undefined(_) => tally.untyped += 1,
                verdict => tally += doubtful(&instance.before, &instance.after, &verdict),
            },
        }
    }
    Some(tally)
}

/// An instance that expressions did not show: numbers refute it, or leave it open.
fn doubtful(before: &Graph, after: &Graph, verdict: &Exactness) -> Tally {
    let shown = || format!("{}=>\n{}", text::print(before), text::print(after));
    match verdict {
        Exactness::Different { output, element } => {
            Tally { refuted: 1, first: Some(format!("element {element} of output {output} differs in\n{}", shown())), ..Tally::default() }
        }
        _ if numbers_differ(before, after) => {
            Tally { refuted: 1, first: Some(format!("numbers differ in\n{}", shown())), ..Tally::default() }
        }
        Exactness::Undecided(why) => Tally { undecided: 1, first: Some(format!("{why}, in\n{}", shown())), ..Tally::default() },
        Exactness::Equal | Exactness::Undefined(_) => Tally::default(),
    }
}

/// Relative difference of two numbers that are not equal but for rounding.
const DIFFERENT: f64 = 1e-7;

/// Whether both sides give other numbers at some positive and mixed inputs.
fn numbers_differ(before: &Graph, after: &Graph) -> bool {
    [0.0, 1.5].into_iter().any(|shift| {
        let mut state = 0x1234_5678_9abc_def1u64;
        let mut feeds = HashMap::new();
        for id in before.inputs() {
            let Op::Input(input) = &before.node(*id).op else { continue };
            let Some(shape) = input.ty.known_shape().filter(|_| input.ty.dtype.class() == Class::Real) else { return false };
            let elements: Vec<f64> = (0..shape.iter().product::<i64>())
                .map(|_| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    (state >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0 + shift
                })
                .collect();
            let value = Const::from_f64(input.ty.dtype, &shape, &elements).and_then(|c| Value::from_const(&c));
            let Some(value) = value else { return false };
            feeds.insert(input.name.to_string(), value);
        }
        let run = |graph: &Graph| eval::run::<f64>(graph, &feeds, &mut eval::NoOpaque);
        let (Ok(a), Ok(b)) = (run(before), run(after)) else { return false };
        a.iter().zip(&b).any(|pair| match pair {
            (Value::Real(x), Value::Real(y)) => {
                let scale = x.data.iter().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
                x.shape != y.shape || x.data.iter().zip(&y.data).any(|(p, q)| (p - q).abs() > DIFFERENT * scale)
            }
            (x, y) => x != y,
        })
    })
}
