//! A cursor over the text of foreign rules.

use regraft_ir::text::{self, Position};

use crate::error::{ImportError, Location};

/// Maximum nesting of terms: reading them recurses.
pub(crate) const DEEPEST: usize = 48;

/// The rest of a text of rules, and its position in the whole.
pub(crate) struct Cursor<'a> {
    inner: text::Cursor<'a>,
    /// Number of the rule being read.
    pub rule: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor over what `inner` has not read yet.
    pub fn new(inner: text::Cursor<'a>) -> Cursor<'a> {
        Cursor { inner, rule: 0 }
    }

    pub fn rest(&self) -> &'a str {
        self.inner.rest()
    }

    pub fn position(&self) -> Position {
        self.inner.position()
    }

    pub fn skip_blanks(&mut self) {
        self.inner.skip_blanks();
    }

    pub fn is_done(&self) -> bool {
        self.rest().trim_start().is_empty()
    }

    /// Steps over `word` if it comes next.
    pub fn take(&mut self, word: &str) -> bool {
        self.skip_blanks();
        self.inner.take(word)
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
        if rest.starts_with(['?', '-']) {
            self.inner.bump();
        }
        if self.inner.take_while(|c| c.is_alphanumeric() || c == '_').is_empty() {
            let found = rest.chars().next().map_or("the end".to_owned(), |c| format!("`{c}`"));
            return Err(self.error(format!("a name or a number is expected, not {found}"), hint));
        }
        Ok(&rest[..rest.len() - self.rest().len()])
    }

    pub fn error(&self, message: impl Into<String>, hint: &str) -> ImportError {
        self.error_at(self.position(), message, hint)
    }

    pub fn error_at(&self, at: Position, message: impl Into<String>, hint: &str) -> ImportError {
        ImportError { rule: Some(self.rule), location: Location::Text(at), message: message.into(), hint: hint.into() }
    }
}
