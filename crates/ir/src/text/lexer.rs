//! Tokens of the text format, with their positions.

use super::cursor::{Cursor, Position};
use super::names::{continues_word, starts_word};
use super::parse::ParseError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A plain word: a name or a keyword of the format.
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

/// Reads tokens one at a time, so that text after a graph may be in another format.
pub(super) struct Lexer<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { cursor: Cursor::new(text) }
    }

    /// Byte offset of the unread text.
    pub fn offset(&self) -> usize {
        self.cursor.offset()
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        self.cursor.skip_blanks();
        while self.cursor.take(";") {
            self.cursor.take_while(|c| c != '\n');
            self.cursor.skip_blanks();
        }
    }

    /// The next token and where it starts.
    pub fn next(&mut self) -> Result<(Position, Token), ParseError> {
        self.skip();
        let position = self.cursor.position();
        let Some(c) = self.cursor.peek() else { return Ok((position, Token::End)) };
        if starts_word(c) {
            return Ok((position, Token::Word(self.word())));
        }
        if c.is_ascii_digit() {
            return Ok((position, self.number(position)?));
        }
        if c == '"' || c == '`' {
            let text = self.until(c, position)?;
            return Ok((position, if c == '"' { Token::Text(text) } else { Token::Quoted(text) }));
        }
        if self.cursor.take("->") {
            return Ok((position, Token::Mark('>')));
        }
        if "()[]{}:=,+-*?|".contains(c) {
            self.cursor.bump();
            return Ok((position, Token::Mark(c)));
        }
        let hint = if c == '#' || c == '/' { "a comment starts with `;`" } else { "a name with other characters is put in backquotes" };
        Err(ParseError::new(position, format!("`{}` has no meaning here", c.escape_default()), hint))
    }

    fn word(&mut self) -> String {
        self.cursor.take_while(continues_word).to_string()
    }

    fn digits(&mut self) {
        self.cursor.take_while(|c| c.is_ascii_digit());
    }

    fn number(&mut self, position: Position) -> Result<Token, ParseError> {
        let start = self.cursor.rest();
        self.digits();
        let mut float = false;
        if self.cursor.peek() == Some('.') {
            float = true;
            self.cursor.bump();
            self.digits();
        }
        if matches!(self.cursor.peek(), Some('e' | 'E')) {
            float = true;
            self.cursor.bump();
            if matches!(self.cursor.peek(), Some('+' | '-')) {
                self.cursor.bump();
            }
            self.digits();
        }
        let text = &start[..start.len() - self.cursor.rest().len()];
        let glued = self.cursor.peek().is_some_and(continues_word);
        let token = if float { text.parse().ok().map(Token::Float) } else { text.parse().ok().map(Token::Int) };
        match token {
            Some(token) if !glued => Ok(token),
            _ if glued => Err(ParseError::new(position, format!("`{text}{}` is no number", self.word()), "write products with `*`: 2*N")),
            _ => Err(ParseError::new(position, format!("`{text}` is no number"), "integers have 64 bits, floats look like 0.5 or 1e-5")),
        }
    }

    /// The text up to the closing `quote`, with escapes resolved.
    fn until(&mut self, quote: char, position: Position) -> Result<String, ParseError> {
        self.cursor.bump();
        let mut text = String::new();
        loop {
            let here = self.cursor.position();
            match self.cursor.bump() {
                None => return Err(ParseError::new(position, "a quote is opened and not closed", "close it with the same mark")),
                Some(c) if c == quote => return Ok(text),
                Some('\\') => text.push(self.escape(here)?),
                Some(c) => text.push(c),
            }
        }
    }

    fn escape(&mut self, position: Position) -> Result<char, ParseError> {
        let unknown = || ParseError::new(position, "an unknown escape", "known ones: \\n \\t \\r \\0 \\\\ \\\" \\' \\` \\u{hex}");
        match self.cursor.bump() {
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some('r') => Ok('\r'),
            Some('0') => Ok('\0'),
            Some(c @ ('\\' | '"' | '\'' | '`')) => Ok(c),
            Some('u') => {
                let rest = self.cursor.rest();
                let inside = rest.strip_prefix('{').and_then(|r| r.split_once('}')).map(|(hex, _)| hex).ok_or_else(unknown)?;
                let c = u32::from_str_radix(inside, 16).ok().and_then(char::from_u32).ok_or_else(unknown)?;
                for _ in 0..inside.chars().count() + 2 {
                    self.cursor.bump();
                }
                Ok(c)
            }
            _ => Err(unknown()),
        }
    }
}
