//! Decides whether two values of the joint graph are equal: by structure, by proof, or up to
//! rounded constants.

use regraft_ir::{Class, NodeId, Op, ValueId};
use regraft_prove::{Allowance, Premises, Verdict, equal_within};
use rustc_hash::FxHashMap;

use crate::joint::Joint;
use crate::region::{Claim, Content, Cut, Region, Scope};
use crate::rewrite::Rewriter;
use crate::rounded::Nearness;

/// How much is shown at each attempt at a proof.
const SCOPES: [Scope; 6] = [
    Scope { above: 0, content: false, cones: false, nodes: 24 },
    Scope { above: 0, content: true, cones: false, nodes: 24 },
    Scope { above: 0, content: true, cones: true, nodes: 48 },
    Scope { above: 1, content: true, cones: true, nodes: 48 },
    Scope { above: 2, content: true, cones: true, nodes: 64 },
    Scope { above: 4, content: true, cones: true, nodes: 96 },
];
/// The number of attempts made first.
const BRIEF: usize = 2;
/// The attempts for values of one graph that look alike.
const LOOK: [Scope; 2] = [SCOPES[0], SCOPES[3]];
/// Budget of one question: many are asked, and most regions are small.
const WORK: Allowance = Allowance { closed: 200_000, by_cases: 300_000, by_tables: 300_000 };
/// Levels of operators that are compared up to rounded constants.
const DEPTH: usize = 12;

/// Constants of the second model, their counterparts in the first, and how far apart they are.
pub(crate) type Roundings = FxHashMap<(ValueId, ValueId), f64>;

/// How far constants are, relative to themselves, from the numbers that a proof reads them as;
/// `None` if it reads them as stored.
type Shown = Option<f64>;

/// The one rounding that a proof of these values' equality needs, if any.
fn rounded(pair: (ValueId, ValueId), shown: Shown) -> Roundings {
    shown.into_iter().map(|relative| (pair, relative)).collect()
}

/// How two values are known to be equal.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// For all inputs and sizes, if these constants equal their counterparts; a proof if there are
    /// none.
    Equal(Roundings),
    /// Not shown, and why.
    Open(String),
}

/// Asks the prover, within a budget.
pub(crate) struct Asker<'r> {
    /// Unanswered questions that are still allowed.
    pub allowance: usize,
    /// Questions asked so far.
    pub asked: usize,
    /// What the proofs so far assume.
    pub premises: Premises,
    known: FxHashMap<Claim, Result<Shown, String>>,
    rewriter: Rewriter<'r>,
}

impl<'r> Asker<'r> {
    pub fn new(allowance: usize, rewriter: Rewriter<'r>) -> Asker<'r> {
        Asker { allowance, asked: 0, premises: Premises::default(), known: FxHashMap::default(), rewriter }
    }

    /// Whether `q` equals `p` for all inputs, with all constants as stored.
    pub fn proved(&mut self, joint: &Joint, p: ValueId, q: ValueId, brief: bool) -> Result<(), String> {
        match self.attempts(joint, p, q, if brief { &LOOK } else { &SCOPES }, &FxHashMap::default())? {
            Some(_) => Err("constants are rounded".into()),
            None => Ok(()),
        }
    }

    /// Whether `q` equals `p` if constants may be rounded. Failures on the way to an answer are
    /// refunded: models have many similar values.
    pub fn equal(&mut self, joint: &mut Joint, p: ValueId, q: ValueId) -> Answer {
        let allowance = self.allowance;
        let answer = self.answer(joint, p, q);
        if matches!(answer, Answer::Equal(_)) {
            self.allowance = allowance;
        }
        answer
    }

    fn answer(&mut self, joint: &mut Joint, p: ValueId, q: ValueId) -> Answer {
        if let Some(roundings) = alike(joint, p, q) {
            return Answer::Equal(roundings);
        }
        let why = match self.attempts(joint, p, q, &SCOPES[..BRIEF], &FxHashMap::default()) {
            Ok(shown) => return Answer::Equal(rounded((p, q), shown)),
            Err(why) => why,
        };
        // The same with constants of one side replaced by those of the other side that they round.
        let cut = Cut::new(joint, p, q, SCOPES[0]);
        let (instead, roundings) = substitutes(joint, &cut);
        if !instead.is_empty()
            && let Ok(shown) = self.attempts(joint, p, q, &SCOPES[..BRIEF], &instead)
        {
            return Answer::Equal(roundings.into_iter().chain(rounded((p, q), shown)).collect());
        }
        if let Some(roundings) = self.rewritten(joint, p, q) {
            return Answer::Equal(roundings);
        }
        if let Ok(shown) = self.attempts(joint, p, q, &SCOPES[BRIEF..], &FxHashMap::default()) {
            return Answer::Equal(rounded((p, q), shown));
        }
        if !instead.is_empty()
            && let Ok(shown) = self.attempts(joint, p, q, &SCOPES[BRIEF..], &instead)
        {
            return Answer::Equal(roundings.into_iter().chain(rounded((p, q), shown)).collect());
        }
        Answer::Open(why)
    }

    /// Rules suggest how constants might have been combined; that this is right here is proved.
    fn rewritten(&mut self, joint: &mut Joint, p: ValueId, q: ValueId) -> Option<Roundings> {
        let none = FxHashMap::default();
        for (from, to) in [(p, q), (q, p)] {
            let Some(mut forms) = self.rewriter.forms(joint, from, to) else { continue };
            let wanted = joint.graph.node(to.node).op.clone();
            // Forms that end in the same operator first: computing large constants takes time.
            forms.graphs.sort_by_key(|form| form.outputs().first().is_none_or(|o| form.node(o.value.node).op != wanted));
            for form in &forms.graphs {
                let Some(value) = forms.place(joint, form) else { continue };
                if joint.graph.node(value.node).op == wanted
                    && let Some(roundings) = alike(joint, value, to)
                    && let Ok(shown) = self.attempts(joint, from, value, &SCOPES, &none)
                {
                    return Some(roundings.into_iter().chain(rounded((from, value), shown)).collect());
                }
                // Constants alone may not suffice: then all of them must have a counterpart before
                // anything is asked.
                let cut = Cut::new(joint, value, to, SCOPES[0]);
                let (instead, roundings) = substitutes(joint, &cut);
                let other = cut.constants.iter().filter(|(id, from)| *from == [false, true] && is_real(joint, *id)).count();
                if other > 0
                    && instead.len() == other
                    && let Ok(first) = self.attempts(joint, value, to, &SCOPES[..BRIEF], &instead)
                    && let Ok(second) = self.attempts(joint, from, value, &SCOPES, &none)
                {
                    let more = rounded((value, to), first).into_iter().chain(rounded((from, value), second));
                    return Some(roundings.into_iter().chain(more).collect());
                }
            }
        }
        None
    }

    fn attempts(
        &mut self,
        joint: &Joint,
        p: ValueId,
        q: ValueId,
        scopes: &[Scope],
        instead: &FxHashMap<ValueId, ValueId>,
    ) -> Result<Shown, String> {
        let mut unproved = None;
        let mut last: Option<Claim> = None;
        for scope in scopes {
            let content = if scope.content { Content::Elements } else { Content::Needed };
            let Some(region) = Cut::new(joint, p, q, *scope).region(joint, p, q, content, instead) else {
                unproved.get_or_insert("a value of unknown type".to_string());
                continue;
            };
            let claim = region.claim();
            if last.as_ref() == Some(&claim) {
                continue;
            }
            match self.ask(&region, &claim) {
                Ok(shown) => return Ok(shown),
                Err(why) => drop(unproved.get_or_insert(why)),
            }
            last = Some(claim);
        }
        Err(unproved.unwrap_or_default())
    }

    fn ask(&mut self, region: &Region, claim: &Claim) -> Result<Shown, String> {
        if let Some(known) = self.known.get(claim) {
            return known.clone();
        }
        if self.allowance == 0 {
            return Err("the allowance of work is spent".into());
        }
        self.asked += 1;
        let answer = match equal_within(&region.before, &region.after, &region.assumptions, WORK) {
            Verdict::Proved(premises) => {
                self.premises = self.premises.and(premises);
                Ok(None)
            }
            Verdict::Bounded(premises, rounding) => {
                self.premises = self.premises.and(premises);
                Ok(Some(rounding.relative))
            }
            Verdict::Unproved(why) => Err(why),
        };
        self.allowance -= usize::from(answer.is_err());
        self.known.insert(claim.clone(), answer.clone());
        answer
    }
}

/// Pairs constants that only the second of two values needs with constants that only the first one
/// needs and that they round, in any shape.
fn substitutes(joint: &mut Joint, cut: &Cut) -> (FxHashMap<ValueId, ValueId>, Roundings) {
    let only = |joint: &Joint, side: [bool; 2]| -> Vec<ValueId> {
        cut.constants.iter().filter(|(id, from)| *from == side && is_real(joint, *id)).map(|(id, _)| id.out()).collect()
    };
    let (ours, theirs) = (only(joint, [true, false]), only(joint, [false, true]));
    let (mut instead, mut roundings) = (FxHashMap::default(), Roundings::default());
    for constant in theirs {
        let nearest = ours.iter().filter_map(|other| Some((*other, joint.nearness(*other, constant)?)));
        let difference = |near: &Nearness| if let Nearness::Within(difference) = near { *difference } else { -1.0 };
        if let Some((other, near)) = nearest.min_by(|x, y| difference(&x.1).total_cmp(&difference(&y.1))) {
            instead.insert(constant, other);
            if let Nearness::Within(difference) = near {
                roundings.insert((other, constant), difference);
            }
        }
    }
    (instead, roundings)
}

/// True for real values.
fn is_real(joint: &Joint, id: NodeId) -> bool {
    joint.graph.ty(id.out()).is_some_and(|ty| ty.dtype.class() == Class::Real)
}

/// Whether two values have the same operators on the same operands, except for constants, which may
/// be rounded.
pub(crate) fn alike(joint: &mut Joint, p: ValueId, q: ValueId) -> Option<Roundings> {
    let mut roundings = Roundings::default();
    let mut todo = vec![(p, q, DEPTH)];
    while let Some((p, q, depth)) = todo.pop() {
        if p == q {
            continue;
        }
        if joint.graph.is_constant(p) && joint.graph.is_constant(q) {
            let near = joint.nearness(p, q).filter(|_| joint.graph.ty(p) == joint.graph.ty(q))?;
            if let Nearness::Within(difference) = near {
                roundings.insert((p, q), difference);
            }
            continue;
        }
        let (x, y) = (joint.graph.node(p.node), joint.graph.node(q.node));
        let leaf = matches!(x.op, Op::Input(_) | Op::Constant(_) | Op::Opaque(_));
        if leaf || depth == 0 || p.port != q.port || x.op != y.op || x.inputs.len() != y.inputs.len() {
            return None;
        }
        let swapped = x.op.kind().commutative() && x.inputs.len() == 2 && is_crossed(joint, p, q);
        let (mut ours, theirs) = (x.inputs.clone(), y.inputs.clone());
        if swapped {
            ours.reverse();
        }
        todo.extend(ours.into_iter().zip(theirs).map(|(p, q)| (p, q, depth - 1)));
    }
    Some(roundings)
}

/// True if the operands of two commutative operators match crosswise rather than in order.
fn is_crossed(joint: &Joint, p: ValueId, q: ValueId) -> bool {
    let (x, y) = (&joint.graph.node(p.node).inputs, &joint.graph.node(q.node).inputs);
    let fits = |a: ValueId, b: ValueId| {
        let (m, n) = (joint.graph.node(a.node), joint.graph.node(b.node));
        a == b || (m.constant && n.constant && joint.graph.ty(a) == joint.graph.ty(b)) || (!m.constant && !n.constant && m.op == n.op)
    };
    let straight = usize::from(fits(x[0], y[0])) + usize::from(fits(x[1], y[1]));
    let crossed = usize::from(fits(x[0], y[1])) + usize::from(fits(x[1], y[0]));
    crossed > straight
}
