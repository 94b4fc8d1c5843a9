//! Instance clauses: the sizes, operands and attributes of instances.

use regraft_ir::DType;
use regraft_ir::text::Position;

use super::names::Parser;
use crate::error::RuleError;
use crate::expr::{Expr, Val};
use crate::rule::{Instance, Operand, Values, Var};
use crate::sexp::Sexp;

/// The largest choice of a `(size ..)` parameter without a given bound.
const SIZES: i64 = 4;

impl Parser<'_> {
    /// The clauses of an `(instance ..)`, including those of the domains it uses.
    pub(super) fn instance(&mut self, clauses: &[Sexp]) -> Result<Instance, RuleError> {
        let mut instance = Instance::default();
        for clause in clauses {
            let named = clause.list().filter(|_| clause.head() == Some("use")).unwrap_or_default();
            if named.is_empty() {
                self.instance_clause(clause, &mut instance)?;
            }
            for name in named.iter().skip(1) {
                let Some(domain) = name.atom().and_then(|n| self.domains.get(n)) else {
                    return self.fail(name.position(), format!("no domain `{name}`"), "define it above with `(domain NAME CLAUSE...)`");
                };
                for clause in domain {
                    // Clauses of a domain about variables this rule lacks are meant for other
                    // rules.
                    let about = clause.head().and_then(|h| h.strip_prefix('?'));
                    if about.is_none_or(|name| self.has(name)) {
                        self.instance_clause(clause, &mut instance)?;
                    }
                }
            }
        }
        Ok(instance)
    }

    fn instance_clause(&mut self, clause: &Sexp, instance: &mut Instance) -> Result<(), RuleError> {
        let Some(head) = clause.head() else {
            return self.fail(clause.position(), "an instance clause starts with a name", "(n 1 2), (?x n c), (:strides (list 1 1))");
        };
        let items = clause.list().unwrap_or_default();
        match head {
            "size" => {
                for name in &items[1..] {
                    let var = self.parameter(name)?;
                    instance.parameters.push((var, (1..=SIZES).map(|n| Expr::Literal(Val::int(n))).collect()));
                    instance.sizes.push(var);
                }
            }
            "vary" | "fixed" if items.len() > 2 => {
                let choices = items[2..].iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?;
                let var = self.parameter(&items[1])?;
                instance.parameters.push((var, choices));
                if head == "vary" { instance.varying.push(var) } else { instance.fixed.push(var) }
            }
            "within" => {
                for size in &items[1..] {
                    let size = self.expr(size)?;
                    instance.within.push(size);
                }
            }
            "mirror" => {
                let mut lists = items[1..].iter().map(|list| {
                    list.list().unwrap_or_default().iter().map(|name| self.parameter(name)).collect::<Result<Vec<Var>, RuleError>>()
                });
                match (lists.next(), lists.next(), lists.next()) {
                    (Some(one), Some(other), None) => instance.mirrors.push((one?, other?)),
                    _ => return self.fail(clause.position(), "`mirror` takes two lists of parameters", "(mirror (h s) (w t))"),
                }
            }
            _ if head.starts_with(':') => {
                let choices = items[1..].iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?;
                instance.attrs.push((head[1..].to_string(), choices));
            }
            _ if head.starts_with('?') => {
                let var = self.reference(&items[0])?;
                let operand = self.operand(&items[1..], clause.position())?;
                instance.operands.retain(|(earlier, _)| *earlier != var);
                instance.operands.push((var, operand));
            }
            _ => {
                let choices = items[1..].iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?;
                let var = self.parameter(&items[0])?;
                instance.parameters.push((var, choices));
            }
        }
        Ok(())
    }

    /// `[same] [optional] [list N] [const] [positive | (splat E) | (data LIST) | (index E)] [DTYPE]
    /// SIZE...` or `choice E...`.
    fn operand(&mut self, words: &[Sexp], place: Position) -> Result<Operand, RuleError> {
        match words.first().and_then(Sexp::atom) {
            Some("choice") => return Ok(Operand::Choice(words[1..].iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?)),
            Some("optional") => return Ok(Operand::Optional(Box::new(self.operand(&words[1..], place)?))),
            Some("same") => return Ok(Operand::Same(Box::new(self.operand(&words[1..], place)?))),
            Some("list") => {
                let Some(count) = words.get(1) else { return self.fail(place, "`list` needs a number", "") };
                let count = self.expr(count)?;
                return Ok(Operand::List(count, Box::new(self.operand(&words[2..], place)?)));
            }
            _ => {}
        }
        let (mut constant, mut values, mut dtype, mut shape) = (false, Values::Normal, DType::F32, Vec::new());
        for word in words {
            match (word.atom(), word.head()) {
                (Some("const"), _) => constant = true,
                (Some("positive"), _) => values = Values::Positive,
                (_, Some("splat")) => values = Values::Splat(self.argument(word)?),
                (_, Some("data")) => values = Values::Data(self.argument(word)?),
                (_, Some("index")) => {
                    values = Values::Index(self.argument(word)?);
                    dtype = DType::I64;
                }
                (Some(w), _) if DType::from_name(w).is_some() => dtype = DType::from_name(w).unwrap_or(DType::F32),
                _ => shape.push(self.expr(word)?),
            }
        }
        Ok(Operand::Tensor { constant, shape, values, dtype })
    }

    /// The single argument of a form such as `(splat E)`.
    fn argument(&mut self, form: &Sexp) -> Result<Expr, RuleError> {
        match form.list() {
            Some([_, argument]) => self.expr(argument),
            _ => self.fail(form.position(), format!("`{}` has one argument", form.head().unwrap_or_default()), "write `(splat 0.5)`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;

    #[test]
    fn forms_without_their_argument_are_errors() {
        for form in ["(splat)", "(data)", "(index)", "(splat 1 2)"] {
            let text = format!("(rule a (relu ?x) => (relu ?x) (numeric exact) (instance (?x {form} 2)))");
            let error = parse("test.rules", &text).expect_err(form);
            assert!(error.to_string().contains("has one argument"), "{form}: {error}");
        }
    }
}
