//! A position in a text being read: the basis of every reader of a text format.

use std::fmt;

/// Line and column, each from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl Default for Position {
    fn default() -> Position {
        Position { line: 1, column: 1 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The rest of a text, and its position in the whole.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
    position: Position,
}

impl<'a> Cursor<'a> {
    /// At the start of a text.
    pub fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0, position: Position::default() }
    }

    /// The unread text.
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Number of bytes read.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The position where the rest starts.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The next character.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Consumes the next character.
    pub fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        self.position = match c {
            '\n' => Position { line: self.position.line + 1, column: 1 },
            _ => Position { column: self.position.column + 1, ..self.position },
        };
        Some(c)
    }

    /// Consumes `word` if it comes next.
    pub fn take(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            word.chars().for_each(|_| {
                self.bump();
            });
        }
        found
    }

    /// Consumes the characters that fit, and returns them.
    pub fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&fits) {
            self.bump();
        }
        &self.text[start..self.at]
    }

    /// Consumes the rest of the line, and returns a cursor over it.
    pub fn line(&mut self) -> Cursor<'a> {
        let start = self.clone();
        self.take_while(|c| c != '\n');
        let line = Cursor { text: &self.text[..self.at], ..start };
        self.bump();
        line
    }

    /// Skips blanks.
    pub fn skip_blanks(&mut self) {
        self.take_while(char::is_whitespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters() {
        let mut cursor = Cursor::new("ab\nçd = 1\n");
        let mut seen = vec![cursor.position().to_string()];
        for word in ["ab\n", "çd", " =", " 1\n"] {
            assert!(cursor.take(word));
            seen.push(cursor.position().to_string());
        }
        assert_eq!(seen, ["1:1", "2:1", "2:3", "2:5", "3:1"]);
        assert_eq!((cursor.bump(), cursor.offset()), (None, 11));
    }

    #[test]
    fn a_line_ends_where_the_next_begins() {
        let mut cursor = Cursor::new("ab\n\ncd");
        let lines: Vec<(&str, Position)> = std::iter::from_fn(|| {
            let line = cursor.peek().map(|_| cursor.line());
            line.map(|line| (line.rest(), line.position()))
        })
        .collect();
        let at = |line| Position { line, column: 1 };
        assert_eq!(lines, [("ab", at(1)), ("", at(2)), ("cd", at(3))]);
    }

    #[test]
    fn what_does_not_come_next_is_not_taken() {
        let mut cursor = Cursor::new("  x1+y");
        assert!(!cursor.take("x1"));
        cursor.skip_blanks();
        assert_eq!(cursor.take_while(char::is_alphanumeric), "x1");
        assert_eq!((cursor.rest(), cursor.peek()), ("+y", Some('+')));
    }
}
