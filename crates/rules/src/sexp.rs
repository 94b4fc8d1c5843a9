//! S-expressions with positions: the outer syntax of rule files.

use std::fmt;

use regraft_ir::text::{Cursor, Position};

use crate::error::RuleError;

/// An atom or a parenthesised list.
#[derive(Clone, Debug, PartialEq)]
pub enum Sexp {
    /// A word, number, variable or keyword.
    Atom(String, Position),
    /// A quoted string.
    Text(String, Position),
    /// A list, with the comment lines directly above it.
    List(Vec<Sexp>, Position, Vec<String>),
}

impl Sexp {
    /// Where it starts.
    pub fn position(&self) -> Position {
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

/// Maximum nesting of lists; everything that walks an expression needs some stack for each level.
const DEPTH: usize = 200;

/// All expressions of a file.
pub fn parse(file: &str, text: &str) -> Result<Vec<Sexp>, RuleError> {
    let mut reader = Reader { file, cursor: Cursor::new(text), comments: Vec::new(), depth: 0 };
    let mut found = Vec::new();
    while reader.skip_space() {
        found.push(reader.expression()?);
    }
    Ok(found)
}

struct Reader<'a> {
    file: &'a str,
    cursor: Cursor<'a>,
    comments: Vec<String>,
    /// Number of open lists.
    depth: usize,
}

impl Reader<'_> {
    fn error(&self, position: Position, message: &str, hint: &str) -> RuleError {
        RuleError { file: self.file.into(), line: position.line, column: position.column, message: message.into(), hint: hint.into() }
    }

    /// Skips blanks and comments, keeping the comment lines; a blank line forgets them. False at
    /// the end of the file.
    fn skip_space(&mut self) -> bool {
        let mut newlines = 0;
        while let Some(c) = self.cursor.peek() {
            if c == ';' {
                let line = self.cursor.take_while(|c| c != '\n');
                self.cursor.bump();
                newlines = 0;
                self.comments.push(line.trim_start_matches(';').trim().to_string());
            } else if c.is_whitespace() {
                newlines += usize::from(c == '\n');
                if newlines > 1 {
                    self.comments.clear();
                }
                self.cursor.bump();
            } else {
                return true;
            }
        }
        false
    }

    fn expression(&mut self) -> Result<Sexp, RuleError> {
        let position = self.cursor.position();
        match self.cursor.peek() {
            Some('(') => {
                let comments = std::mem::take(&mut self.comments);
                self.cursor.bump();
                if self.depth == DEPTH {
                    return Err(self.error(position, "too many `(` are open", &format!("{DEPTH} lists inside of lists are read")));
                }
                self.depth += 1;
                let mut items = Vec::new();
                loop {
                    if !self.skip_space() {
                        return Err(self.error(position, "this `(` is never closed", "add the missing `)`"));
                    }
                    if self.cursor.peek() == Some(')') {
                        self.cursor.bump();
                        self.comments.clear();
                        self.depth -= 1;
                        return Ok(Sexp::List(items, position, comments));
                    }
                    items.push(self.expression()?);
                }
            }
            Some(')') => Err(self.error(position, "unexpected `)`", "remove it, or add the `(` that it closes")),
            Some('"') => {
                self.cursor.bump();
                let text = self.cursor.take_while(|c| c != '"');
                if !self.cursor.take("\"") {
                    return Err(self.error(position, "this string is never closed", "add the missing `\"`"));
                }
                Ok(Sexp::Text(text.to_string(), position))
            }
            _ => {
                let word = self.cursor.take_while(|c| !c.is_whitespace() && !matches!(c, '(' | ')' | '"' | ';'));
                Ok(Sexp::Atom(word.to_string(), position))
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
