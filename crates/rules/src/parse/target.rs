//! Targets: the replacements of sources.

use super::names::Parser;
use crate::error::RuleError;
use crate::rule::Target;
use crate::sexp::Sexp;

impl Parser<'_> {
    /// A target; all its variables must be bound.
    pub(super) fn target(&mut self, form: &Sexp) -> Result<Target, RuleError> {
        let place = form.position();
        if let Some(word) = form.atom() {
            if word.starts_with('?') {
                let plain = word.strip_suffix("...").unwrap_or(word);
                let plain = plain.strip_suffix('?').filter(|w| w.len() > 1).unwrap_or(plain);
                return self.lookup(plain, place).map(Target::Use);
            }
            return self.fail(
                place,
                format!("`{word}` cannot stand in a target"),
                "constants are written `(scalar 2.0 ?x)`, with the element type of `?x`",
            );
        }
        let items = form.list().unwrap_or_default();
        let arity = |n: usize| {
            if items.len() == n + 1 {
                Ok(())
            } else {
                self.fail(place, format!("`{}` takes {n} arguments", form.head().unwrap_or("?")), "")
            }
        };
        match form.head() {
            Some("scalar") => {
                arity(2)?;
                Ok(Target::Scalar(self.expr(&items[1])?, self.reference(&items[2])?))
            }
            Some("tensor") => {
                arity(3)?;
                Ok(Target::Tensor(self.expr(&items[1])?, self.expr(&items[2])?, self.reference(&items[3])?))
            }
            Some("vector") => {
                arity(2)?;
                Ok(Target::Vector(self.expr(&items[1])?, Box::new(self.target(&items[2])?)))
            }
            Some("item") => {
                arity(2)?;
                Ok(Target::Item(self.expr(&items[1])?, self.reference(&items[2])?))
            }
            Some("ints") => {
                arity(1)?;
                Ok(Target::Ints(self.expr(&items[1])?))
            }
            Some("counted") => {
                arity(1)?;
                Ok(Target::Counted(self.expr(&items[1])?))
            }
            Some("fill") => {
                arity(3)?;
                Ok(Target::Fill(self.expr(&items[1])?, self.expr(&items[2])?, self.reference(&items[3])?))
            }
            Some("out") => {
                arity(2)?;
                Ok(Target::Out(self.expr(&items[1])?, Box::new(self.target(&items[2])?)))
            }
            Some(word @ ("apply" | "unshifted")) => {
                arity(4)?;
                let part = Box::new([self.expr(&items[3])?, self.expr(&items[4])?]);
                let (function, operand) = (self.reference(&items[1])?, Box::new(self.target(&items[2])?));
                Ok(if word == "apply" { Target::Apply(function, operand, part) } else { Target::Unshifted(function, operand, part) })
            }
            Some("shift") => {
                arity(3)?;
                Ok(Target::Shift(self.reference(&items[1])?, Box::new([self.expr(&items[2])?, self.expr(&items[3])?])))
            }
            Some("combine") => {
                let Some(rows) = items.get(1) else { return self.fail(place, "`combine` takes rows of coefficients and targets", "") };
                let rows = self.expr(rows)?;
                Ok(Target::Combine(rows, items[2..].iter().map(|item| self.target(item)).collect::<Result<_, _>>()?))
            }
            Some("if") => {
                let otherwise = items.get(3).map(|e| self.target(e)).transpose()?;
                let (Some(condition), Some(then)) = (items.get(1), items.get(2)) else {
                    return self.fail(place, "`if` takes a condition and a target", "");
                };
                Ok(Target::If(self.expr(condition)?, Box::new(self.target(then)?), otherwise.map(Box::new)))
            }
            Some("each") => {
                arity(2)?;
                let names = items[1].list().map_or_else(|| vec![items[1].clone()], <[Sexp]>::to_vec);
                let vars = names.iter().map(|n| self.reference(n)).collect::<Result<_, _>>()?;
                Ok(Target::Each(vars, Box::new(self.target(&items[2])?)))
            }
            Some("with") => {
                arity(3)?;
                let value = self.target(&items[2])?;
                let var = self.define(&items[1])?;
                Ok(Target::With(var, Box::new(value), Box::new(self.target(&items[3])?)))
            }
            Some("repeat") => {
                arity(3)?;
                let list = self.expr(&items[2])?;
                let var = self.define(&items[1])?;
                Ok(Target::Repeat(var, list, Box::new(self.target(&items[3])?)))
            }
            Some(word) => {
                let kind = self.kind(word, place)?;
                let (mut like, mut attrs, mut operands) = (None, Vec::new(), Vec::new());
                let mut at = 1;
                while at < items.len() {
                    if let Some(attr) = items[at].atom().and_then(|a| a.strip_prefix(':')) {
                        let Some(value) = items.get(at + 1) else {
                            return self.fail(items[at].position(), format!("`:{attr}` needs a value"), "");
                        };
                        if attr == "like" {
                            like = Some(self.reference(value)?);
                        } else {
                            self.check_attr(kind, attr, items[at].position())?;
                            attrs.push((attr.to_string(), self.expr(value)?));
                        }
                        at += 2;
                    } else {
                        operands.push(self.target(&items[at])?);
                        at += 1;
                    }
                }
                Ok(Target::Node { kind, like, attrs, operands })
            }
            None => self.fail(place, "expected a target", "a variable or (operator ...)"),
        }
    }
}
