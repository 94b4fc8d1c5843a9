//! Expressions: attributes, guards, and the numbers of instance clauses.

use regraft_ir::DType;

use super::names::{Parser, distance};
use super::number::number;
use crate::builtins;
use crate::error::RuleError;
use crate::expr::{Expr, Val};
use crate::sexp::Sexp;

impl Parser<'_> {
    /// An expression; all its variables must be bound.
    pub(super) fn expr(&mut self, form: &Sexp) -> Result<Expr, RuleError> {
        let place = form.position();
        match form {
            Sexp::Text(text, _) => Ok(Expr::Literal(Val::Str(text.clone()))),
            Sexp::Atom(word, _) => {
                match word.as_str() {
                    "true" => Ok(Expr::Literal(Val::Bool(true))),
                    "false" => Ok(Expr::Literal(Val::Bool(false))),
                    "none" => Ok(Expr::Literal(Val::Absent)),
                    _ if word.starts_with('?') => self.lookup(word.strip_suffix("...").unwrap_or(word), place).map(Expr::Var),
                    _ => match (word.parse::<i64>(), number(word)) {
                        (Ok(int), _) => Ok(Expr::Literal(Val::int(int))),
                        (_, Some(float)) => Ok(Expr::Literal(Val::Float(float))),
                        _ => match self.known_parameter(word) {
                            Some(var) => Ok(Expr::Var(var)),
                            None => Ok(DType::from_name(word)
                                .map_or_else(|| Expr::Literal(Val::Str(word.clone())), |t| Expr::Literal(Val::DType(t)))),
                        },
                    },
                }
            }
            Sexp::List(items, ..) => {
                let Some(head) = form.head() else { return self.fail(place, "expected a function", "") };
                let args = &items[1..];
                match head {
                    "attr" => {
                        let [var, name] = args else { return self.fail(place, "`attr` takes a variable and a name", "(attr ?c group)") };
                        Ok(Expr::Attr(self.reference(var)?, name.atom().unwrap_or_default().to_string()))
                    }
                    "if" => {
                        let [c, a, b] = args else { return self.fail(place, "`if` takes three expressions", "") };
                        Ok(Expr::If(Box::new([self.expr(c)?, self.expr(a)?, self.expr(b)?])))
                    }
                    "and" => Ok(Expr::And(args.iter().map(|a| self.expr(a)).collect::<Result<_, _>>()?)),
                    "shown" => {
                        let [condition] = args else { return self.fail(place, "`shown` takes one condition", "(shown (= (dim ?x 0) 1))") };
                        Ok(Expr::Shown(Box::new(self.expr(condition)?)))
                    }
                    "or" => Ok(Expr::Or(args.iter().map(|a| self.expr(a)).collect::<Result<_, _>>()?)),
                    "for" => {
                        let [var, list, body] = args else {
                            return self.fail(place, "`for` takes a variable, a list and an expression", "(for ?i (range 0 4) (* ?i 2))");
                        };
                        let list = self.expr(list)?;
                        let var = self.define(var)?;
                        Ok(Expr::For(var, Box::new(list), Box::new(self.expr(body)?)))
                    }
                    "matrix" | "matrix-rows" => {
                        let name = args.first().and_then(Sexp::atom).unwrap_or_default();
                        let Some(rows) = self.matrices.get(name) else {
                            return self.fail(place, format!("no matrix `{name}`"), "define it above with `(matrix NAME (ROW...)...)`");
                        };
                        Ok(Expr::Literal(match head {
                            "matrix-rows" => Val::int(rows.len() as i64),
                            _ => Val::List(rows.iter().flatten().map(|v| Val::Float(*v)).collect()),
                        }))
                    }
                    _ => {
                        let Some(builtin) = builtins::find(head) else {
                            let near = builtins::all().map(|b| b.name).min_by_key(|n| distance(n, head)).unwrap_or("");
                            return self.fail(place, format!("no function `{head}`"), format!("did you mean `{near}`?"));
                        };
                        if args.len() < builtin.arity.0 || args.len() > builtin.arity.1 {
                            return self.fail(
                                place,
                                format!("`{head}` takes {} arguments, not {}", builtin.arity.0, args.len()),
                                builtin.help,
                            );
                        }
                        Ok(Expr::Call(builtin, args.iter().map(|a| self.expr(a)).collect::<Result<_, _>>()?))
                    }
                }
            }
        }
    }
}
