//! A place in a text that is being read.

use crate::error::{ImportError, Place};

/// Terms nested deeper are refused: reading them recurses.
pub(crate) const DEEPEST: usize = 48;

/// The rest of a text, and where it is in the whole.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    end: usize,
    /// Number of the rule that is being read.
    pub rule: usize,
}

impl<'a> Cursor<'a> {
    /// From byte `from` of `text` up to byte `to`; both are bounds of characters.
    pub fn new(text: &'a str, from: usize, to: usize) -> Cursor<'a> {
        Cursor { text, at: from, end: to, rule: 0 }
    }

    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn skip_blanks(&mut self) {
        self.at = self.end - self.rest().trim_start().len();
    }

    pub fn is_done(&self) -> bool {
        self.rest().trim_start().is_empty()
    }

    /// Steps over `word` if it comes next.
    pub fn take(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    pub fn expect(&mut self, word: &str, hint: &str) -> Result<(), ImportError> {
        if self.take(word) {
            return Ok(());
        }
        let found = self.rest().chars().next().map_or("the end".to_owned(), |c| format!("`{c}`"));
        Err(self.error(format!("`{word}` is expected, not {found}"), hint))
    }

    /// The next letters, digits and underscores, a leading `?` or `-` included.
    pub fn word(&mut self, hint: &str) -> Result<&'a str, ImportError> {
        self.skip_blanks();
        let rest = self.rest();
        let sign = rest.chars().next().filter(|c| matches!(c, '?' | '-')).map_or(0, char::len_utf8);
        let length: usize = rest[sign..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum();
        if length == 0 {
            let found = rest.chars().next().map_or("the end".to_owned(), |c| format!("`{c}`"));
            return Err(self.error(format!("a name or a number is expected, not {found}"), hint));
        }
        self.at += sign + length;
        Ok(&rest[..sign + length])
    }

    pub fn error(&self, message: impl Into<String>, hint: &str) -> ImportError {
        self.error_at(self.at, message, hint)
    }

    pub fn error_at(&self, at: usize, message: impl Into<String>, hint: &str) -> ImportError {
        ImportError { rule: Some(self.rule), place: Place::of(self.text, at), message: message.into(), hint: hint.into() }
    }
}
