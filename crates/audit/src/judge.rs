//! Judges a rule: proves it on instances with symbolic sizes, and on instances with numeric sizes.

use regraft_ir::Graph;
use regraft_ir::Trust;
use regraft_prove::{Allowance, Assumptions, Verdict, equal, equal_within, leading_axes};
use regraft_rules::sample::{Instance, Miss, Sizes};
use regraft_rules::variants::{Effort, variants};
use regraft_rules::{Draw, Proof, Rule};

/// Draws per wanted instance: guards refuse many.
const DRAWS: u64 = 120;

/// What was shown about a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Proved instances with some symbolic sizes.
    pub open: usize,
    /// Those of the above in which a leading axis stands for any number of axes ([`leading_axes`]).
    pub any_rank: usize,
    /// Proved instances with numeric sizes only.
    pub known: usize,
    /// Proved instances in which constants were read as the numbers they were rounded from.
    pub bounded: usize,
    /// Instances that were not proved.
    pub unproved: usize,
    /// The seed of the first instance that was not proved, and why.
    pub first: Option<String>,
    /// The instances that were proved.
    pub instances: Vec<Draw>,
}

impl Judgement {
    /// Adds a proved instance.
    fn add(&mut self, instance: &Instance, verdict: &Verdict) {
        self.bounded += usize::from(!verdict.is_proved());
        if !has_symbols(&instance.before) {
            self.known += 1;
            return;
        }
        self.open += 1;
        self.any_rank += usize::from(!leading_axes(&instance.before, &instance.after).is_empty());
    }

    /// The part worth keeping: the proof of a rule with this text.
    pub fn proof(&self, rule: &Rule) -> Proof {
        // Unproved instances were at least drawn and computed.
        let trust = self.trust().max(Trust::Tested);
        Proof { rule: rule.name.clone(), digest: rule.digest(), trust, instances: self.instances.clone() }
    }

    /// How far the rule is proved: in range, if all its instances have numeric sizes because guards
    /// or attributes require numbers.
    pub fn trust(&self) -> Trust {
        match (self.unproved, self.open, self.known) {
            (0, 1.., _) if self.bounded > 0 => Trust::Bounded,
            (0, 1.., _) => Trust::Proved,
            (0, 0, 1..) => Trust::ProvedInRange,
            _ => Trust::Unproved,
        }
    }
}

/// Asks the prover for `wanted` instances of each kind of sizes. Deterministic in `seed`.
///
/// Ranks, attributes and numbers of operands are those of the instances, drawn as in
/// [`regraft_rules::sample::exercise`]. A proof on an instance holds for all values of its symbols,
/// and where a leading axis is only passed over, for any number of axes in its place.
pub fn judge(rule: &Rule, wanted: usize, seed: u64) -> Judgement {
    let mut judgement = Judgement::default();
    for sizes in [Sizes::Open, Sizes::Some, Sizes::Known] {
        let mut made = 0;
        for at in 0..wanted as u64 * DRAWS {
            if made == wanted {
                break;
            }
            let seed = seed.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let shown = match Draw::new(sizes, seed).instance(rule) {
                Ok(instance) if sizes != Sizes::Known && !has_symbols(&instance.before) => continue,
                Ok(instance) => match equal(&instance.before, &instance.after) {
                    Verdict::Unproved(why) => Err(why),
                    shown => Ok((instance, shown)),
                },
                // With symbols, a target may ask for something unknown, which the guards of a match
                // with numbers would know.
                Err(Miss::Wrong(why)) if sizes == Sizes::Known => Err(why),
                Err(_) => continue,
            };
            made += 1;
            match shown {
                Ok((instance, verdict)) => {
                    judgement.instances.push(Draw::new(sizes, seed));
                    judgement.add(&instance, &verdict);
                }
                Err(why) => {
                    judgement.unproved += 1;
                    judgement.first.get_or_insert_with(|| format!("seed {seed}, sizes {sizes:?}: {why}"));
                }
            }
        }
    }
    judgement
}

/// Unproved variants after which the search stops.
const GIVE_UP: usize = 8;
/// Budget of a variant: if it is not proved within this, the proof does not cover it.
const BRIEF: Allowance = Allowance { closed: 100_000, by_cases: 300_000, by_tables: 300_000 };

/// What was shown about instances that no clause draws.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// The proved ones, with symbolic sizes where possible.
    pub proved: Vec<Draw>,
    /// The unproved ones, and why. The proof of the rule does not cover them.
    pub outside: Vec<(Draw, String)>,
    /// The ones on which the rule is false, and how.
    pub wrong: Vec<(Draw, String)>,
}

/// Looks for instances that guards admit but no clause draws, and puts each to the prover.
pub fn generate(rule: &Rule, effort: Effort) -> Generated {
    let found = variants(rule, effort);
    let mut generated = Generated { wrong: found.wrong, ..Generated::default() };
    let brief = |instance: &Instance| equal_within(&instance.before, &instance.after, &Assumptions::default(), BRIEF);
    for (draw, instance) in found.kept {
        if generated.outside.len() >= GIVE_UP {
            break;
        }
        let open = Draw { sizes: Sizes::Open, ..draw.clone() };
        let opened = open.instance(rule).ok().filter(|opened| has_symbols(&opened.before));
        match opened.is_some_and(|opened| brief(&opened).is_shown()) {
            true => generated.proved.push(open),
            false => match brief(&instance) {
                Verdict::Unproved(why) => generated.outside.push((draw, why)),
                _ => generated.proved.push(draw),
            },
        }
    }
    generated
}

/// Replays a proof: draws its instances, without searching for any, and proves each. The error is
/// what does not hold.
pub fn replay(rule: &Rule, proof: &Proof) -> Result<Judgement, String> {
    if proof.rule != rule.name || proof.digest != rule.digest() {
        return Err("the proof is of another text".into());
    }
    let mut judgement = Judgement { instances: proof.instances.clone(), ..Judgement::default() };
    for draw in &proof.instances {
        let instance = draw.instance(rule).map_err(|why| format!("{draw}: {why:?}"))?;
        let verdict = equal(&instance.before, &instance.after);
        if !verdict.is_shown() {
            return Err(format!("{draw}: {verdict}"));
        }
        judgement.add(&instance, &verdict);
    }
    let worth = judgement.proof(rule).trust;
    if worth < proof.trust { Err(format!("it is worth no more than `{worth}`")) } else { Ok(judgement) }
}

/// How many instances of a proof hold for any number of leading axes ([`leading_axes`]).
pub fn any_rank(rule: &Rule, proof: &Proof) -> usize {
    let instances = proof.instances.iter().filter_map(|draw| draw.instance(rule).ok());
    instances.filter(|instance| !leading_axes(&instance.before, &instance.after).is_empty()).count()
}

fn has_symbols(graph: &Graph) -> bool {
    let types = graph.ids().flat_map(|id| graph.node(id).types.iter().flatten());
    types.into_iter().any(|ty| ty.shape.iter().any(|dim| dim.known().is_none()))
}
