//! Maxima and products over a range: their domains simplified, and split where their elements
//! depend on a condition.

use crate::index::{Facts, Poly, Var};
use crate::value::algebra::{Trouble, product};
use crate::value::function::apply;
use crate::value::maxima::over;
use crate::value::simplify::{MOST_STEPS, Simplifier, Step, inner_condition};
use crate::value::sum::{Factor, Fold, Function, Sum, Term};
use crate::value::window::glided;

/// Maximum depth of splitting a maximum's domain.
const MOST_PARTS: u32 = 8;

impl Simplifier {
    /// A reduction in a simpler form.
    pub(super) fn fold(self, fold: Fold, binders: &[(Var, Poly)], conds: &[Poly], body: &Sum, facts: &Facts) -> Result<Sum, Trouble> {
        let term = Term { binders: binders.to_vec(), conds: conds.to_vec(), factors: vec![(Factor::Of(body.clone()), 1)] };
        match fold {
            Fold::Max => self.maximum(term, facts, MOST_PARTS),
            Fold::Product => self.product_over(term, facts),
        }
    }

    fn maximum(self, term: Term, facts: &Facts, parts: u32) -> Result<Sum, Trouble> {
        let Some(term) = self.domain(term, facts)? else { return Trouble::new("a maximum of nothing") };
        match self.parted(&term, facts, parts)? {
            Some(parted) => Ok(parted),
            None => self.closed(Fold::Max, term, facts),
        }
    }

    /// A product over the parts of its domain, each in a simpler form. Every step preserves the
    /// multiplicity of each element.
    fn product_over(self, whole: Term, facts: &Facts) -> Result<Sum, Trouble> {
        // Factors are not written out one by one: products of sums would grow needlessly.
        let steps = Simplifier { expand: 0, ..self };
        let mut result = Sum::one();
        let mut open = vec![whole.clone()];
        for _ in 0..MOST_STEPS {
            let Some(term) = open.pop() else { return Ok(result) };
            match steps.step(&term, facts, true)? {
                Step::Changed(term) => open.push(term),
                Step::Split(terms) => {
                    for term in terms {
                        open.push(self.element(term, facts)?);
                    }
                }
                Step::Same | Step::Scaled(..) => result = product(&result, &self.closed(Fold::Product, term, facts)?, facts)?,
            }
        }
        self.closed(Fold::Product, whole, facts)
    }

    /// The same domain, with a simpler element.
    fn element(self, term: Term, facts: &Facts) -> Result<Term, Trouble> {
        let inner = facts.inside(&term.binders, &term.conds);
        let Some((Factor::Of(body), _)) = term.factors.first() else { return Trouble::new("a reduction lost its body") };
        let body = self.sum(body, &inner)?;
        Ok(Term { factors: vec![(Factor::Of(body), 1)], ..term })
    }

    /// The reduction of a simpler element over the same domain.
    fn closed(self, fold: Fold, term: Term, facts: &Facts) -> Result<Sum, Trouble> {
        let Term { binders, conds, factors } = self.element(term, facts)?;
        let Some((Factor::Of(body), _)) = factors.into_iter().next() else { return Trouble::new("a reduction lost its body") };
        over(fold, binders, conds, body, facts)
    }

    /// A maximum with a simpler domain; `None` if the domain is empty.
    fn domain(self, mut term: Term, facts: &Facts) -> Result<Option<Term>, Trouble> {
        for _ in 0..MOST_STEPS {
            match self.step(&term, facts, false)? {
                Step::Changed(changed) => term = changed,
                Step::Same => match glided(&term, facts) {
                    Some(changed) => term = changed,
                    None => break,
                },
                Step::Scaled(..) | Step::Split(_) => return Ok(None),
            }
        }
        Ok(Some(term))
    }

    /// A maximum whose elements depend on a condition: the larger of the maxima where it holds and
    /// where it does not, if both parts are shown to be nonempty.
    fn parted(self, term: &Term, facts: &Facts, parts: u32) -> Result<Option<Sum>, Trouble> {
        let (Some(cond), Some(fewer)) = (inner_condition(term), parts.checked_sub(1)) else { return Ok(None) };
        let one = Poly::number(1);
        let mut largest = Vec::new();
        for cond in [cond.clone(), cond.scale(-1).plus(-1)] {
            let Some(part) = self.domain(term.where_also(cond), facts)? else { return Ok(None) };
            if !part.conds.is_empty() || !part.binders.iter().all(|(_, extent)| facts.at_least(extent, &one)) {
                return Ok(None);
            }
            largest.push(self.maximum(part, facts, fewer)?);
        }
        apply(Function::Max, largest, facts).map(Some)
    }
}
