//! Tokens of the text format, with their places.

use super::names::{continues_word, starts_word};
use super::parse::ParseError;

/// Line and column, from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A plain word: a name or a word of the format.
    Word(String),
    /// A name in backquotes.
    Quoted(String),
    /// A word in double quotes.
    Text(String),
    /// An unsigned integer.
    Int(u64),
    /// An unsigned float.
    Float(f64),
    /// Punctuation; `->` is `'>'`.
    Mark(char),
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Quoted(name) => write!(f, "the name `{name}`"),
            Token::Text(text) => write!(f, "{text:?}"),
            Token::Int(value) => write!(f, "`{value}`"),
            Token::Float(value) => write!(f, "`{value:?}`"),
            Token::Mark('>') => write!(f, "`->`"),
            Token::Mark(mark) => write!(f, "`{mark}`"),
            Token::End => write!(f, "the end of the text"),
        }
    }
}

/// Reads tokens one at a time, so that text after a graph need not be in this format.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    place: Place,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, place: Place { line: 1, column: 1 } }
    }

    /// Byte offset of the text that is not read yet.
    pub fn offset(&self) -> usize {
        self.at
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn second(&self) -> Option<char> {
        self.text[self.at..].chars().nth(1)
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        if c == '\n' {
            self.place = Place { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(c)
    }

    fn skip(&mut self) {
        while let Some(c) = self.peek() {
            if c == ';' {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.bump();
                }
            } else if c.is_whitespace() {
                self.bump();
            } else {
                return;
            }
        }
    }

    /// The next token and where it starts.
    pub fn next(&mut self) -> Result<(Place, Token), ParseError> {
        self.skip();
        let place = self.place;
        let Some(c) = self.peek() else { return Ok((place, Token::End)) };
        if starts_word(c) {
            return Ok((place, Token::Word(self.word())));
        }
        if c.is_ascii_digit() {
            return Ok((place, self.number(place)?));
        }
        if c == '"' || c == '`' {
            let text = self.until(c, place)?;
            return Ok((place, if c == '"' { Token::Text(text) } else { Token::Quoted(text) }));
        }
        if c == '-' && self.second() == Some('>') {
            self.bump();
            self.bump();
            return Ok((place, Token::Mark('>')));
        }
        if "()[]{}:=,+-*?|".contains(c) {
            self.bump();
            return Ok((place, Token::Mark(c)));
        }
        let hint = if c == '#' || c == '/' { "a comment starts with `;`" } else { "a name with other characters is put in backquotes" };
        Err(ParseError::new(place, format!("`{}` has no meaning here", c.escape_default()), hint))
    }

    fn word(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(continues_word) {
            self.bump();
        }
        self.text[start..self.at].to_string()
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.bump();
        }
    }

    fn number(&mut self, place: Place) -> Result<Token, ParseError> {
        let start = self.at;
        self.digits();
        let mut float = false;
        if self.peek() == Some('.') {
            float = true;
            self.bump();
            self.digits();
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            float = true;
            self.bump();
            if matches!(self.peek(), Some('+' | '-')) {
                self.bump();
            }
            self.digits();
        }
        let text = &self.text[start..self.at];
        let glued = self.peek().is_some_and(continues_word);
        let token = if float { text.parse().ok().map(Token::Float) } else { text.parse().ok().map(Token::Int) };
        match token {
            Some(token) if !glued => Ok(token),
            _ if glued => Err(ParseError::new(place, format!("`{text}{}` is no number", self.word()), "write products with `*`: 2*N")),
            _ => Err(ParseError::new(place, format!("`{text}` is no number"), "integers have 64 bits, floats look like 0.5 or 1e-5")),
        }
    }

    /// The text up to the closing `quote`, escapes resolved.
    fn until(&mut self, quote: char, place: Place) -> Result<String, ParseError> {
        self.bump();
        let mut text = String::new();
        loop {
            let here = self.place;
            match self.bump() {
                None => return Err(ParseError::new(place, "a quote is opened and not closed", "close it with the same mark")),
                Some(c) if c == quote => return Ok(text),
                Some('\\') => text.push(self.escape(here)?),
                Some(c) => text.push(c),
            }
        }
    }

    fn escape(&mut self, place: Place) -> Result<char, ParseError> {
        let unknown = || ParseError::new(place, "an unknown escape", "known ones: \\n \\t \\r \\0 \\\\ \\\" \\' \\` \\u{hex}");
        match self.bump() {
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some('r') => Ok('\r'),
            Some('0') => Ok('\0'),
            Some(c @ ('\\' | '"' | '\'' | '`')) => Ok(c),
            Some('u') => {
                let rest = &self.text[self.at..];
                let inside = rest.strip_prefix('{').and_then(|r| r.split_once('}')).map(|(hex, _)| hex).ok_or_else(unknown)?;
                let c = u32::from_str_radix(inside, 16).ok().and_then(char::from_u32).ok_or_else(unknown)?;
                for _ in 0..inside.chars().count() + 2 {
                    self.bump();
                }
                Ok(c)
            }
            _ => Err(unknown()),
        }
    }
}
