//! The judge: draws instances, looks for the weakest guards under which all of them hold, and puts
//! the rest to the prover.

use std::collections::HashSet;

use crate::algebra::{algebra, names};
use crate::evaluate::{Difference, Outcome, compare};
use crate::guard::{Guard, Guards};
use crate::instance::{Choices, Instance};
use crate::judgement::{Counterexample, Judgement, Soundness};
use crate::kind::{Kind, typings};
use crate::operator::{Operator, Padding};
use crate::plan::{Leaf, Plan};
use crate::proof;
use crate::random::Random;
use crate::reading::Reading;
use crate::rule::Rule;
use regraft_ir::Trust;

/// Instances drawn before guards are chosen, over all typings and moods.
const POOL: usize = 96;
/// Minimum number of instances per typing and mood.
const LEAST: usize = 3;
/// Further instances under the chosen guards.
const CHECKS: usize = 40;
/// Instances that must hold before guards are considered.
const WITNESSES: usize = 6;
/// Maximum number of guards together.
const MOST_GUARDS: usize = 3;
/// How often guards are chosen again because a further instance refuted them.
const ROUNDS: usize = 8;

/// An instance and its outcome.
pub(crate) struct Trial {
    pub instance: Instance,
    pub difference: Option<Difference>,
}

/// Judges one rule; for a rule that holds on all instances, at most `proofs` families of sizes are
/// put to the prover.
///
/// Deterministic: the same rule gets the same judgement.
pub fn judge(rule: &Rule, proofs: usize) -> Judgement {
    let mut judgement = Judgement {
        number: rule.number,
        algebra: algebra(rule),
        soundness: Soundness::Unjudged(String::new()),
        trust: Trust::Unproved,
        unproved: None,
        counterexample: None,
        instances: 0,
        families: 0,
        proofs: 0,
        pairs: Vec::new(),
        typings: Vec::new(),
        same_as: None,
    };
    if let Some(name) = rule.unjudged() {
        judgement.soundness = Soundness::Unjudged(format!("`{name}` has no meaning here"));
        return judgement;
    }
    let plan = Plan::new(rule);
    let kinds = typings(&plan);
    let names = names(rule);
    judgement.typings = kinds.iter().map(|k| show_kinds(&plan, k, &names)).collect();
    let mut court = Court::new(&plan, &kinds, &names);
    court.fill();
    match court.decide() {
        Decision::Nothing(why) => judgement.soundness = Soundness::Unjudged(why),
        Decision::False => (judgement.soundness, judgement.trust) = (Soundness::False, Trust::Refuted),
        Decision::Holds(guards) => {
            judgement.soundness = if guards.is_empty() { Soundness::True } else { Soundness::TrueIf(guards) };
            let witnesses: Vec<&Trial> = court.trials.iter().filter(|t| t.instance.guards.include(guards)).collect();
            judgement.instances = witnesses.len();
            let proof = proof::prove(&plan, &kinds, &witnesses, guards, &names, proofs);
            (judgement.trust, judgement.families, judgement.proofs) = (proof.trust, proof.families, proof.proofs);
            (judgement.pairs, judgement.unproved) = (proof.pairs, proof.unproved);
        }
    }
    judgement.counterexample = court.counterexample();
    judgement
}

fn show_kinds(plan: &Plan, kinds: &[Kind], names: &[String]) -> String {
    let mut shown: Vec<(&str, Kind)> = Vec::new();
    for (leaf, kind) in plan.leaves.iter().zip(kinds) {
        if let Leaf::Variable(variable) = leaf {
            shown.push((&names[*variable], *kind));
        }
    }
    shown.sort_by_key(|(name, _)| (name.len(), *name));
    shown.iter().map(|(name, kind)| format!("{name} {kind}")).collect::<Vec<_>>().join(", ")
}

enum Decision {
    Nothing(String),
    False,
    Holds(Guards),
}

struct Court<'a> {
    plan: &'a Plan,
    names: &'a [String],
    choices: Vec<Choices<'a>>,
    /// Sets of guards to sample deliberately, none first.
    moods: Vec<Guards>,
    readings: Vec<Reading>,
    random: Random,
    seen: HashSet<(Vec<Vec<i64>>, Reading)>,
    trials: Vec<Trial>,
    /// Why some instance could not be computed.
    unknown: Option<String>,
    /// Whether constants got sizes that give the results different shapes.
    misplaced: bool,
}

impl<'a> Court<'a> {
    fn new(plan: &'a Plan, kinds: &[Vec<Kind>], names: &'a [String]) -> Court<'a> {
        let relevant = relevant(plan);
        let mut moods = vec![Guards::NONE];
        moods.extend(relevant.iter().map(|g| Guards::NONE.with(g)));
        if relevant.len() > 1 {
            // All at once, under both readings of the constants.
            moods.push(relevant.iter().filter(|g| *g != Guard::DenseConstants).collect());
            moods.push(relevant.iter().filter(|g| *g != Guard::DepthwiseConstants).collect());
        }
        moods.dedup();
        let averages = relevant.has(Guard::AveragesCountPadding);
        let same = relevant.has(Guard::SymmetricPadding);
        let readings = Reading::ALL.into_iter().filter(|r| (averages || r.averages_count_padding) && (same || r.symmetric)).collect();
        Court {
            plan,
            names,
            choices: kinds.iter().map(|k| Choices::new(plan, k)).collect(),
            moods,
            readings,
            random: Random::new(0),
            seen: HashSet::new(),
            trials: Vec::new(),
            unknown: None,
            misplaced: false,
        }
    }

    /// Draws and computes instances of all typings in all moods.
    fn fill(&mut self) {
        let each = (POOL / (self.choices.len() * self.moods.len()).max(1)).max(LEAST);
        for mood in self.moods.clone() {
            for typing in 0..self.choices.len() {
                for _ in 0..each {
                    self.try_one(typing, mood);
                }
            }
        }
    }

    fn try_one(&mut self, typing: usize, guards: Guards) {
        let reading = self.readings[self.random.below(self.readings.len())];
        let Some(instance) = self.choices[typing].draw(reading, guards, &mut self.random) else { return };
        if !self.seen.insert((instance.shapes.clone(), instance.reading)) {
            return;
        }
        match compare(self.plan, &instance, self.names, self.random.next()) {
            // A constant has the size that makes the sides fit: no system would choose another one.
            Outcome::Differ(Difference::Shapes { .. }) if self.plan.leaves.iter().any(|l| matches!(l, Leaf::Constant(_))) => {
                self.misplaced = true
            }
            Outcome::Equal => self.trials.push(Trial { instance, difference: None }),
            Outcome::Differ(difference) => self.trials.push(Trial { instance, difference: Some(difference) }),
            Outcome::Unknown(why) => self.unknown = Some(why),
        }
    }

    /// The weakest guards under which everything tried holds, and which further instances do not
    /// refute.
    fn decide(&mut self) -> Decision {
        if self.trials.is_empty() && self.unknown.is_none() {
            return Decision::Nothing(match self.misplaced {
                true => "its constants have no sizes with which both sides have one shape".into(),
                false => "no sizes are known with which both sides are well-typed".into(),
            });
        }
        for _ in 0..ROUNDS {
            if let Some(why) = self.unknown.take() {
                return Decision::Nothing(why);
            }
            let Some(guards) = self.weakest() else { return Decision::False };
            let before = self.failures();
            for at in 0..CHECKS {
                self.try_one(at % self.choices.len(), guards);
            }
            if self.failures() == before && self.unknown.is_none() {
                return Decision::Holds(guards);
            }
        }
        Decision::False
    }

    fn failures(&self) -> usize {
        self.trials.iter().filter(|t| t.difference.is_some()).count()
    }

    fn weakest(&self) -> Option<Guards> {
        if self.failures() == 0 {
            return Some(Guards::NONE);
        }
        let mut best: Option<(usize, Guards)> = None;
        for guards in Guards::up_to(MOST_GUARDS) {
            let mut within = self.trials.iter().filter(|t| t.instance.guards.include(guards)).peekable();
            if within.peek().is_none() || within.clone().any(|t| t.difference.is_some()) {
                continue;
            }
            let witnesses = within.count();
            if witnesses >= WITNESSES && best.is_none_or(|(most, _)| witnesses > most) {
                best = Some((witnesses, guards));
            }
        }
        best.map(|(_, guards)| guards)
    }

    /// The smallest instance that differs.
    fn counterexample(&self) -> Option<Counterexample> {
        let failing = self.trials.iter().filter_map(|t| Some((&t.instance, t.difference.as_ref()?)));
        let (instance, difference) = failing.min_by_key(|(instance, difference)| {
            (matches!(difference, Difference::Shapes { .. }), instance.elements(), instance.shapes.clone())
        })?;
        let name = |leaf: &Leaf| match leaf {
            Leaf::Variable(variable) => self.names[*variable].clone(),
            Leaf::Constant(operator) => crate::algebra::head(operator),
        };
        let shapes = self.plan.leaves.iter().map(name).zip(instance.shapes.iter().cloned()).collect();
        Some(Counterexample { shapes, groups: instance.groups.clone(), difference: difference.clone() })
    }
}

/// The guards that can matter to a rule with these operators.
fn relevant(plan: &Plan) -> Guards {
    let mut guards = Guards::NONE;
    let mut convolutions = 0;
    for step in &plan.steps {
        match &step.operator {
            Operator::Binary(_) => guards = guards.with(Guard::SameShape),
            Operator::Conv { padding, .. } => {
                convolutions += 1;
                guards = guards.with(Guard::Ungrouped).with(Guard::OddKernels);
                if *padding == Padding::Same {
                    guards = guards.with(Guard::SymmetricPadding);
                }
            }
            Operator::Pool { mean, padding: Padding::Same, .. } => {
                guards = guards.with(Guard::SymmetricPadding);
                if *mean {
                    guards = guards.with(Guard::AveragesCountPadding);
                }
            }
            _ => {}
        }
    }
    if convolutions > 1 {
        guards = guards.with(Guard::EqualOutputsPerGroup);
    }
    let constants = |leaf: &Leaf| matches!(leaf, Leaf::Constant(Operator::PoolKernel { .. } | Operator::IdentityKernel { .. }));
    if plan.leaves.iter().any(constants) {
        guards = guards.with(Guard::DepthwiseConstants).with(Guard::DenseConstants);
    }
    guards
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::parallel;

    use crate::family::family;
    use crate::format::Format;

    /// Number of failing instances per rule whose families are put to the prover.
    const TRIED: usize = 1;

    #[test]
    fn families_of_counterexamples_are_never_proved() {
        let rules = "\
            conv2d(1,1,0,0,a,ewadd(b,c))==ewadd(conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,a,c))
            conv2d(1,1,0,0,ewadd(a,b),c)==ewadd(conv2d(1,1,0,0,a,c),conv2d(1,1,0,0,b,c))
            ewadd(conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,d))==conv2d(1,1,0,0,concat(1,a,c),concat(1,b,d))
            concat(1,conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,a,c))==conv2d(1,1,0,0,a,concat(0,b,c))
            concat(1,conv2d(1,1,0,0,a,b),conv2d(1,1,0,0,c,d))==conv2d(1,1,0,0,concat(1,a,c),concat(0,b,d))
            concat(1,ewadd(a,b),ewadd(c,d))==ewadd(concat(1,a,c),concat(1,b,d))
            conv2d(1,1,0,0,a,b)==conv2d(1,1,0,0,a,enlarge(3,3,b))
            poolavg(3,3,1,1,0,a)==conv2d(1,1,0,0,a,Cpool(3,3))
            matmul(a,b)==matmul(b,a)
            relu(ewadd(a,b))==ewadd(relu(a),relu(b))
            transpose(a)==relu(transpose(a))";
        let rules = Format::Equations.read(rules.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        parallel::map(&rules, parallel::cores(), |rule| {
            let (plan, names) = (Plan::new(rule), names(rule));
            let kinds = typings(&plan);
            let mut court = Court::new(&plan, &kinds, &names);
            court.fill();
            let wrong: Vec<&Trial> = court.trials.iter().filter(|t| t.difference.is_some()).collect();
            assert!(!wrong.is_empty(), "{}", algebra(rule));
            for trial in wrong.iter().step_by(wrong.len().div_ceil(TRIED)) {
                let Ok(family) = family(&plan, &trial.instance, Guards::NONE, &names) else { continue };
                let verdict = regraft_prove::equal(&family.before, &family.after);
                assert!(!verdict.is_proved(), "{}: {:?} differs, but\n{}", algebra(rule), trial.instance, family.key);
            }
        });
    }
}
