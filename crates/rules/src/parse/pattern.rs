//! Patterns: the sources of rules.

use super::names::Parser;
use super::number::number;
use crate::error::RuleError;
use crate::expr::{Expr, Val};
use crate::rule::{NodePattern, Pattern};
use crate::sexp::Sexp;

impl Parser<'_> {
    /// A pattern; its variables are bound from here on.
    pub(super) fn pattern(&mut self, form: &Sexp) -> Result<Pattern, RuleError> {
        let place = form.position();
        if let Some(word) = form.atom() {
            if let Some(value) = number(word) {
                return Ok(Pattern::Number(value));
            }
            if let Some(name) = word.strip_suffix("...").filter(|n| n.starts_with('?')) {
                return Ok(Pattern::Rest(self.define(&Sexp::Atom(name.into(), place))?));
            }
            if let Some(name) = word.strip_suffix('?').filter(|n| n.len() > 1 && n.starts_with('?')) {
                return Ok(Pattern::Optional(self.define(&Sexp::Atom(name.into(), place))?));
            }
            return self.define(form).map(Pattern::Any);
        }
        let items = form.list().unwrap_or_default();
        match form.head() {
            Some("as") => {
                let [_, var, inner] = items else {
                    return self.fail(place, "`as` takes a variable and an operator", "(as ?c (conv ?x ?w))");
                };
                let Pattern::Node(mut node) = self.pattern(inner)? else {
                    return self.fail(inner.position(), "`as` names an operator", "");
                };
                node.bind = Some(self.define(var)?);
                Ok(Pattern::Node(node))
            }
            Some("const") => {
                let [_, var] = items else { return self.fail(place, "`const` takes one variable", "(const ?c)") };
                self.define(var).map(Pattern::Constant)
            }
            Some("out") => {
                let [_, port, inner] = items else {
                    return self.fail(place, "`out` takes a result index and an operator", "(out 0 (split ?x))");
                };
                let Pattern::Node(mut node) = self.pattern(inner)? else {
                    return self.fail(inner.position(), "`out` needs an operator", "");
                };
                node.port = self.attribute_pattern(port)?;
                Ok(Pattern::Node(node))
            }
            Some("elementwise") => {
                let [_, var, word, axis, inner] = items else {
                    return self.fail(
                        place,
                        "`elementwise` takes a variable, an axis and a pattern",
                        "(elementwise ?f :axis 1 (conv ?x ?w))",
                    );
                };
                if word.atom() != Some(":axis") {
                    return self.fail(word.position(), "`elementwise` says along which axis its constants may vary", ":axis 1");
                }
                let inner = self.pattern(inner)?;
                let axis = self.expr(axis)?;
                Ok(Pattern::Elementwise(self.define(var)?, axis, Box::new(inner)))
            }
            Some("each") => {
                let before = self.bound().to_vec();
                let [_, inner] = items else { return self.fail(place, "`each` takes one pattern", "(each (relu ?x))") };
                let pattern = self.pattern(inner)?;
                let fresh = (0..self.bound().len()).filter(|v| self.bound()[*v] && !before.get(*v).copied().unwrap_or(false)).collect();
                Ok(Pattern::Each(Box::new(pattern), fresh))
            }
            Some(word) => {
                let kind = self.kind(word, place)?;
                let (mut attrs, mut operands) = (Vec::new(), Vec::new());
                let mut at = 1;
                while at < items.len() {
                    if let Some(attr) = items[at].atom().and_then(|a| a.strip_prefix(':')) {
                        let Some(value) = items.get(at + 1) else {
                            return self.fail(items[at].position(), format!("`:{attr}` needs a value"), "");
                        };
                        self.check_attr(kind, attr, items[at].position())?;
                        attrs.push((attr.to_string(), self.attribute_pattern(value)?));
                        at += 2;
                    } else {
                        operands.push(self.pattern(&items[at])?);
                        at += 1;
                    }
                }
                let last = operands.len().saturating_sub(1);
                if operands.iter().take(last).any(|p| matches!(p, Pattern::Rest(_) | Pattern::Each(..) | Pattern::Optional(_))) {
                    return self.fail(place, "`...`, `each` and optional operands stand last", "");
                }
                Ok(Pattern::Node(NodePattern { kind, bind: None, port: Expr::Literal(Val::int(0)), attrs, operands }))
            }
            None => self.fail(place, "expected a pattern", "a variable, a number, or (operator ...)"),
        }
    }

    /// An attribute in a source: a variable is bound, anything else is compared.
    fn attribute_pattern(&mut self, form: &Sexp) -> Result<Expr, RuleError> {
        match form.atom() {
            Some(word) if word.starts_with('?') => self.define(form).map(Expr::Var),
            _ => self.expr(form),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;

    #[test]
    fn elementwise_needs_a_function_an_axis_and_a_pattern() {
        for (pattern, why) in [
            ("(elementwise ?f (exp ?x))", "takes a variable, an axis and a pattern"),
            ("(elementwise ?f :along 1 (exp ?x))", "says along which axis"),
            ("(elementwise 2.0 :axis 1 (exp ?x))", "variable"),
        ] {
            let error = parse("t", &format!("(rule r (neg {pattern}) => ?x (numeric exact))")).expect_err(pattern);
            assert!(error.to_string().contains(why), "{pattern}: {error}");
        }
    }
}
