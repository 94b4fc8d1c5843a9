//! Enumeration: the instance at the end of a path through all choices.

use regraft_ir::{Const, DType};

use super::draw::Sizes;
use super::instance::{Instance, Miss, rewritten};
use super::sampler::{Known, Sampler, Stop, source};
use crate::expr::{Expr, Val};
use crate::path::{Choices, Path, Rng};
use crate::rule::{Rule, Values, Var};
use crate::spelling::Spelling;

/// Integer and boolean operands with more elements take [`PATTERNS`] values rather than all.
const MOST_LISTED: usize = 4;
/// Number of value patterns for larger operands.
const PATTERNS: u64 = 8;

/// The instance at the end of a path, with sizes up to `bound`; the path is returned with the forks
/// it passed.
pub(crate) fn instance_on(rule: &Rule, path: Path, bound: i64, known: &mut Known) -> (Result<Instance, Stop>, Path) {
    let (sampled, choices) = source(rule, Choices::Path(path), Sizes::Known, Spelling::Numbers, Some(bound), known);
    let instance = sampled.and_then(|(before, roots)| {
        rewritten(rule, before, &roots).map_err(|miss| match miss {
            Miss::Draw(_) => Stop::Guarded,
            Miss::Wrong(why) => Stop::Wrong(why),
        })
    });
    let path = match choices {
        Choices::Path(path) => path,
        Choices::Random(_) => Path::default(),
    };
    (instance, path)
}

impl Sampler<'_> {
    /// A choice whose value differs from all earlier ones.
    pub(super) fn unrepeated(&mut self, choices: &[Expr]) -> Result<Val, Stop> {
        let at = self.choices.below(choices.len() as u64) as usize;
        let value = self.eval(choices.get(at).ok_or("no choices")?)?;
        for earlier in &choices[..at] {
            if self.eval(earlier)? == value {
                return Err(Stop::Repeated);
            }
        }
        Ok(value)
    }

    /// Checks the choices so far against the bound and the mirrors.
    pub(super) fn inside(&self, bound: i64) -> Result<(), Stop> {
        for size in &self.rule.instance.within {
            if self.eval(size).is_ok_and(|v| v.as_int().is_some_and(|n| n > bound)) {
                return Err(Stop::Repeated);
            }
        }
        for (one, other) in &self.rule.instance.mirrors {
            for (a, b) in one.iter().zip(other) {
                let number = |v: &Var| self.env[*v].as_ref().and_then(Val::as_int);
                let (Some(a), Some(b)) = (number(a), number(b)) else { break };
                if a > b {
                    return Err(Stop::Mirrored);
                }
                if a < b {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The elements of an integer or boolean constant: all values, or a few patterns if there are
    /// many.
    pub(super) fn listed(&mut self, dtype: DType, sizes: &[i64], values: &Values) -> Result<Const, String> {
        let count = sizes.iter().product::<i64>() as usize;
        let (low, ways) = match values {
            Values::Index(e) => (-1, self.eval(e)?.as_int().ok_or("an index needs a bound")? as u64 + 2),
            _ if dtype == DType::Bool => (0, 2),
            _ => (0, 3),
        };
        let elements: Vec<f64> = if count <= MOST_LISTED {
            (0..count).map(|_| (low + self.choices.below(ways) as i64) as f64).collect()
        } else {
            let mut pattern = Rng::new(self.choices.below(PATTERNS));
            (0..count).map(|_| (low + pattern.below(ways) as i64) as f64).collect()
        };
        Const::from_f64(dtype, sizes, &elements).ok_or_else(|| "data does not fit".into())
    }
}
