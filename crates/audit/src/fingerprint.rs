//! Evaluates both sides of a rule at random elements of a prime field.

use std::collections::HashMap;

use regraft_ir::{Class, Const, Graph, Op, SplitMix64, Tensor, Value, eval};
use regraft_prove::Field;
use regraft_rules::Rule;
use regraft_rules::sample::{Instance, Miss, draw};

/// What the field says about a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// Instances on which both sides had the same elements.
    pub identical: usize,
    /// Instances on which they differed. That refutes nothing: the field has no order compatible
    /// with sums, no laws of functions, and no rounded constants.
    pub different: usize,
    /// Instances that the field cannot compute, because their operators require a double.
    pub undecided: usize,
    /// The seed of the first instance that differed, or was not computed, and why.
    pub first: Option<String>,
}

impl Fingerprint {
    /// Whether all instances were identical, and there was at least one.
    pub fn is_identical(&self) -> bool {
        self.identical > 0 && self.different + self.undecided == 0
    }
}

/// Evaluates both sides of `rule` on `wanted` random instances, drawing at most `limit` times.
/// Deterministic in `seed`.
///
/// A false polynomial identity of degree d passes one instance with probability d / 2^61 at most;
/// shapes and attributes are drawn as in [`regraft_rules::sample::exercise`], and other ones are
/// not covered.
pub fn fingerprint(rule: &Rule, wanted: usize, limit: usize, seed: u64) -> Fingerprint {
    let mut result = Fingerprint::default();
    for at in 0..limit as u64 {
        if result.identical + result.different + result.undecided >= wanted {
            break;
        }
        let seed = seed.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let why = match draw(rule, seed) {
            Err(Miss::Draw(_)) => continue,
            Err(Miss::Wrong(why)) => {
                result.different += 1;
                why
            }
            Ok(instance) => match Field::with_key(seed, || sides(&instance, seed)) {
                Ok((before, after)) if before == after => {
                    result.identical += 1;
                    continue;
                }
                Ok(_) => {
                    result.different += 1;
                    "the sides are different elements".to_string()
                }
                Err(why) => {
                    result.undecided += 1;
                    why
                }
            },
        };
        result.first.get_or_insert_with(|| format!("seed {seed}: {why}"));
    }
    result
}

type Results = Vec<Value<Field>>;

fn sides(instance: &Instance, seed: u64) -> Result<(Results, Results), String> {
    let mut random = SplitMix64(seed);
    let mut feeds = HashMap::new();
    for id in instance.before.inputs() {
        let Op::Input(input) = &instance.before.node(*id).op else { continue };
        let Some(constant) = instance.feeds.get(input.name.as_ref()) else { continue };
        let value = element_wise(constant, &mut random).ok_or("an input of an exotic type")?;
        feeds.insert(input.name.to_string(), value);
    }
    let run = |graph: &Graph| eval::run::<Field>(graph, &feeds, &mut eval::NoOpaque).map_err(|e| e.to_string());
    Ok((run(&instance.before)?, run(&instance.after)?))
}

/// Replaces real tensors by random elements; integers and booleans stay as they are.
fn element_wise(constant: &Const, random: &mut SplitMix64) -> Option<Value<Field>> {
    if constant.dtype().class() != Class::Real {
        return Value::from_const(constant);
    }
    let shape: Vec<usize> = constant.shape().iter().map(|d| *d as usize).collect();
    let data = (0..shape.iter().product::<usize>()).map(|_| Field::new(random.word() >> 3)).collect();
    Some(Value::real(Tensor::new(shape, data)))
}
