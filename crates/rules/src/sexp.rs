//! S-expressions with places: the outer syntax of rule files.

use std::fmt;

use crate::error::RuleError;

/// A place in a file: line and column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

/// An atom or a parenthesised list.
#[derive(Clone, Debug, PartialEq)]
pub enum Sexp {
    /// A word, number, variable or keyword.
    Atom(String, Place),
    /// A quoted string.
    Text(String, Place),
    /// A list, with the comment lines directly above it.
    List(Vec<Sexp>, Place, Vec<String>),
}

impl Sexp {
    /// Where it starts.
    pub fn place(&self) -> Place {
        match self {
            Sexp::Atom(_, p) | Sexp::Text(_, p) | Sexp::List(_, p, _) => *p,
        }
    }

    /// The word, if it is an atom.
    pub fn atom(&self) -> Option<&str> {
        match self {
            Sexp::Atom(word, _) => Some(word),
            _ => None,
        }
    }

    /// The items, if it is a list.
    pub fn list(&self) -> Option<&[Sexp]> {
        match self {
            Sexp::List(items, ..) => Some(items),
            _ => None,
        }
    }

    /// The first word of a list.
    pub fn head(&self) -> Option<&str> {
        self.list()?.first()?.atom()
    }
}

impl fmt::Display for Sexp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sexp::Atom(word, _) => f.write_str(word),
            Sexp::Text(text, _) => write!(f, "\"{text}\""),
            Sexp::List(items, ..) => {
                f.write_str("(")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "" } else { " " })?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Lists inside of lists that are read; whoever follows an expression needs some of the stack for
/// each.
const DEPTH: usize = 200;

/// All expressions of a file.
pub fn parse(file: &str, text: &str) -> Result<Vec<Sexp>, RuleError> {
    let place = Place { line: 1, column: 1 };
    let mut reader = Reader { file, chars: text.chars().collect(), at: 0, place, comments: Vec::new(), depth: 0 };
    let mut found = Vec::new();
    while reader.skip_space() {
        found.push(reader.expression()?);
    }
    Ok(found)
}

struct Reader<'a> {
    file: &'a str,
    chars: Vec<char>,
    at: usize,
    place: Place,
    comments: Vec<String>,
    /// Lists that are open.
    depth: usize,
}

impl Reader<'_> {
    fn error(&self, place: Place, message: &str, hint: &str) -> RuleError {
        RuleError { file: self.file.into(), line: place.line, column: place.column, message: message.into(), hint: hint.into() }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        if c == '\n' {
            self.place = Place { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(c)
    }

    /// Skips blanks and comments, keeping the comment lines; a blank line forgets them. False at
    /// the end of the file.
    fn skip_space(&mut self) -> bool {
        let mut newlines = 0;
        while let Some(c) = self.peek() {
            if c == ';' {
                let mut line = String::new();
                while let Some(c) = self.peek().filter(|c| *c != '\n') {
                    line.push(c);
                    self.next();
                }
                self.next();
                newlines = 0;
                self.comments.push(line.trim_start_matches(';').trim().to_string());
            } else if c.is_whitespace() {
                newlines += usize::from(c == '\n');
                if newlines > 1 {
                    self.comments.clear();
                }
                self.next();
            } else {
                return true;
            }
        }
        false
    }

    fn expression(&mut self) -> Result<Sexp, RuleError> {
        let place = self.place;
        match self.peek() {
            Some('(') => {
                let comments = std::mem::take(&mut self.comments);
                self.next();
                if self.depth == DEPTH {
                    return Err(self.error(place, "too many `(` are open", &format!("{DEPTH} lists inside of lists are read")));
                }
                self.depth += 1;
                let mut items = Vec::new();
                loop {
                    if !self.skip_space() {
                        return Err(self.error(place, "this `(` is never closed", "add the missing `)`"));
                    }
                    if self.peek() == Some(')') {
                        self.next();
                        self.comments.clear();
                        self.depth -= 1;
                        return Ok(Sexp::List(items, place, comments));
                    }
                    items.push(self.expression()?);
                }
            }
            Some(')') => Err(self.error(place, "unexpected `)`", "remove it, or add the `(` that it closes")),
            Some('"') => {
                self.next();
                let mut text = String::new();
                loop {
                    match self.next() {
                        Some('"') => return Ok(Sexp::Text(text, place)),
                        Some(c) => text.push(c),
                        None => return Err(self.error(place, "this string is never closed", "add the missing `\"`")),
                    }
                }
            }
            _ => {
                let mut word = String::new();
                while let Some(c) = self.peek().filter(|c| !c.is_whitespace() && !matches!(c, '(' | ')' | '"' | ';')) {
                    word.push(c);
                    self.next();
                }
                Ok(Sexp::Atom(word, place))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_to_a_depth() {
        let nested = |depth: usize| format!("{}{}", "(".repeat(depth), ")".repeat(depth));
        let read = |depth: usize| parse("deep.rules", &nested(depth));
        assert!(read(DEPTH).is_ok());
        let error = read(100_000).expect_err("too deep").to_string();
        assert_eq!(error, "deep.rules:1:201: too many `(` are open (hint: 200 lists inside of lists are read)");
        assert!(parse("wide.rules", &"(a) ".repeat(2 * DEPTH)).is_ok());
    }
}
