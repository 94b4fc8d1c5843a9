//! Expressions over tensors, in the catalogue's syntax.
//!
//! ```text
//! r = RandomNormalLike(x); Sub(r, r)
//! Where(m, Cast(x, to=f32), 0.5)
//! Split(x, [1, 2], axis=0)#1
//! If(m, then_branch={ Relu(x) }, else_branch={ Neg(x) })
//! Loop(3:i64, true:bool, x, body={ i c v -> Identity(c), Add(v, x) })
//! ```

use anyhow::{Result, bail, ensure};
use regraft_ir::text::Cursor;

/// A sequence of values, some of them results.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Names of values that are used more than once.
    pub lets: Vec<(String, Term)>,
    /// Results.
    pub results: Vec<Term>,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// An input, or a named value.
    Name(String),
    /// A scalar constant; if no type is given, that of its neighbours.
    Number { text: String, ty: Option<String> },
    /// A one-dimensional constant; of 64-bit integers if no type is given.
    List { items: Vec<String>, ty: Option<String> },
    /// An omitted operand.
    Absent,
    /// A result of an operator.
    Call { op: String, operands: Vec<Term>, attributes: Vec<(String, Attribute)>, port: usize },
}

/// An attribute of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// `axis=1`
    Int(i64),
    /// `alpha=0.5`
    Float(f64),
    /// `perm=[1, 0]`
    Ints(Vec<i64>),
    /// `scales=[1.0, 2.0]`
    Floats(Vec<f64>),
    /// `mode="edge"`
    Word(String),
    /// `to=f32`
    Type(String),
    /// `value=0.5:f32`
    Tensor { text: String, ty: String },
    /// `body={ i c v -> .. }`
    Body { formals: Vec<String>, program: Program },
}

impl Program {
    /// Reads a program.
    pub fn parse(text: &str) -> Result<Program> {
        let mut reader = Reader { cursor: Cursor::new(text) };
        let program = reader.program()?;
        ensure!(reader.peek().is_none(), "`{}` is left over", reader.rest());
        Ok(program)
    }

    /// Visits every term, including subterms.
    pub fn visit<'t>(&'t self, seen: &mut dyn FnMut(&'t Term)) {
        self.lets.iter().map(|(_, term)| term).chain(&self.results).for_each(|term| term.visit(seen));
    }
}

impl Term {
    fn visit<'t>(&'t self, seen: &mut dyn FnMut(&'t Term)) {
        seen(self);
        let Term::Call { operands, attributes, .. } = self else { return };
        operands.iter().for_each(|term| term.visit(seen));
        for (_, attribute) in attributes {
            if let Attribute::Body { program, .. } = attribute {
                program.visit(seen);
            }
        }
    }
}

struct Reader<'t> {
    cursor: Cursor<'t>,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_number(text: &str) -> bool {
    let rest = text.strip_prefix('-').unwrap_or(text);
    let word: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    rest.starts_with(|c: char| c.is_ascii_digit()) || matches!(word.as_str(), "min" | "max" | "inf" | "nan" | "true" | "false")
}

impl<'t> Reader<'t> {
    /// The rest, without leading blanks.
    fn rest(&mut self) -> &'t str {
        self.cursor.skip_blanks();
        self.cursor.rest()
    }

    fn peek(&mut self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, token: &str) -> bool {
        self.cursor.skip_blanks();
        self.cursor.take(token)
    }

    fn need(&mut self, token: &str) -> Result<()> {
        if self.take(token) { Ok(()) } else { bail!("`{token}` is expected before `{}`", self.rest()) }
    }

    fn while_(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        self.cursor.skip_blanks();
        self.cursor.take_while(fits)
    }

    fn word(&mut self) -> Result<String> {
        let word = self.while_(is_word);
        ensure!(!word.is_empty(), "a word is expected before `{}`", self.rest());
        Ok(word.into())
    }

    /// True if a name and a single `=` follow.
    fn is_named(&mut self) -> bool {
        let rest = self.rest();
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        end > 0 && rest[end..].trim_start().starts_with('=')
    }

    fn program(&mut self) -> Result<Program> {
        let mut lets = Vec::new();
        while self.is_named() {
            let name = self.word()?;
            self.need("=")?;
            lets.push((name, self.term()?));
            self.need(";")?;
        }
        let mut results = vec![self.term()?];
        while self.take(",") {
            results.push(self.term()?);
        }
        Ok(Program { lets, results })
    }

    fn number(&mut self) -> &'t str {
        let rest = self.rest();
        let mut end = 0;
        for (at, c) in rest.char_indices() {
            let before = rest[..at].chars().next_back().unwrap_or(' ');
            // A sign is part of a number at its start, after an exponent's `e`, and after `min`,
            // `max` and a power of two.
            let offset = rest.starts_with("min") || rest.starts_with("max") || rest[..at].contains('^');
            let sign = matches!(c, '+' | '-') && (at == 0 || before == 'e' || offset);
            if !(is_word(c) || matches!(c, '.' | '^' | '\'' | '~') || sign) {
                break;
            }
            end = at + c.len_utf8();
        }
        self.cursor.take(&rest[..end]);
        &rest[..end]
    }

    fn ty(&mut self) -> Result<Option<String>> {
        if self.take(":") { self.word().map(Some) } else { Ok(None) }
    }

    fn numbers(&mut self) -> Result<Vec<String>> {
        self.need("[")?;
        let mut items = Vec::new();
        while !self.take("]") {
            items.push(self.number().to_string());
            ensure!(items.last().is_some_and(|i| !i.is_empty()), "a number is expected before `{}`", self.rest());
            let _ = self.take(",");
        }
        Ok(items)
    }

    fn term(&mut self) -> Result<Term> {
        if self.peek() == Some('[') {
            let items = self.numbers()?;
            return Ok(Term::List { items, ty: self.ty()? });
        }
        if is_number(self.rest()) {
            let text = self.number().to_string();
            return Ok(Term::Number { text, ty: self.ty()? });
        }
        let word = self.word()?;
        if word == "_" {
            return Ok(Term::Absent);
        }
        if !self.take("(") {
            return Ok(Term::Name(word));
        }
        let (mut operands, mut attributes) = (Vec::new(), Vec::new());
        while !self.take(")") {
            if self.is_named() {
                let name = self.word()?;
                self.need("=")?;
                attributes.push((name, self.attribute()?));
            } else {
                operands.push(self.term()?);
            }
            let _ = self.take(",");
        }
        let port = if self.take("#") { self.word()?.parse()? } else { 0 };
        Ok(Term::Call { op: word, operands, attributes, port })
    }

    fn attribute(&mut self) -> Result<Attribute> {
        match self.peek() {
            Some('"') => {
                self.need("\"")?;
                let word = self.while_(|c| c != '"').to_string();
                self.need("\"")?;
                Ok(Attribute::Word(word))
            }
            Some('[') => {
                let items = self.numbers()?;
                Ok(if items.iter().any(|i| i.contains('.')) {
                    Attribute::Floats(items.iter().map(|i| i.parse()).collect::<Result<_, _>>()?)
                } else {
                    Attribute::Ints(items.iter().map(|i| i.parse()).collect::<Result<_, _>>()?)
                })
            }
            Some('{') => {
                self.need("{")?;
                let rest = self.rest();
                let head = rest.find(['}', '(']).map_or(rest, |end| &rest[..end]);
                let mut formals = Vec::new();
                if head.contains("->") {
                    while !self.take("->") {
                        formals.push(self.word()?);
                    }
                }
                let program = self.program()?;
                self.need("}")?;
                Ok(Attribute::Body { formals, program })
            }
            _ if is_number(self.rest()) => {
                let text = self.number().to_string();
                Ok(match self.ty()? {
                    Some(ty) => Attribute::Tensor { text, ty },
                    None if text.contains(['.', 'e', 'n']) => Attribute::Float(text.parse()?),
                    None => Attribute::Int(text.parse()?),
                })
            }
            _ => Ok(Attribute::Type(self.word()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_read() {
        let name = |n: &str| Term::Name(n.into());
        let number = |text: &str, ty: Option<&str>| Term::Number { text: text.into(), ty: ty.map(String::from) };
        let call = |op: &str, operands: Vec<Term>| Term::Call { op: op.into(), operands, attributes: vec![], port: 0 };
        let read = Program::parse("r = Abs(x); Sub(r, max-1), Pow(r, -0.5:f32)").unwrap();
        assert_eq!(read.lets, [("r".to_string(), call("Abs", vec![name("x")]))]);
        let pow = call("Pow", vec![name("r"), number("-0.5", Some("f32"))]);
        assert_eq!(read.results, [call("Sub", vec![name("r"), number("max-1", None)]), pow]);
        let read = Program::parse("Loop(3:i64, true:bool, x, body={ i c v -> Identity(c), Add(v, x) })#0").unwrap();
        let Term::Call { attributes, .. } = &read.results[0] else { panic!() };
        let Attribute::Body { formals, program } = &attributes[0].1 else { panic!() };
        assert_eq!((formals.len(), program.results.len()), (3, 2));
        for broken in ["", "Add(x", "Add(x, y) z", "r = ; x", "Cast(x, to=)"] {
            assert!(Program::parse(broken).is_err(), "{broken}");
        }
    }
}
