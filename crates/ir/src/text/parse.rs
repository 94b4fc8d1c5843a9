//! Reading graphs from text.

use std::collections::HashMap;

use crate::attr::Attr;
use crate::error::{AttrError, TypeError};
use crate::graph::{Graph, NodeId, ValueId};
use crate::op::{Op, OpKind};
use crate::ops::OpaqueOp;
use crate::text::cursor::Position;
use crate::text::lexer::{Lexer, Token};
use crate::text::literal::{constant, seeded};
use crate::text::names::nearest;

/// Deeper nesting of calls and sizes is refused, so that no text can exhaust the stack.
const MAX_DEPTH: usize = 200;

/// Why a text is not a graph. Always the text's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message} (hint: {hint})")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

impl ParseError {
    pub(super) fn new(position: Position, message: impl Into<String>, hint: impl Into<String>) -> ParseError {
        ParseError { line: position.line, column: position.column, message: message.into(), hint: hint.into() }
    }
}

/// Reads a text that is a single graph.
pub fn parse(text: &str) -> Result<Graph, ParseError> {
    let mut parser = Parser::new(text)?;
    let graph = parser.graph()?;
    parser.advance()?;
    match parser.current {
        Token::End => Ok(graph),
        ref other => Err(ParseError::new(parser.position, format!("{other} after the graph"), "the text ends with the graph's `}`")),
    }
}

/// Reads the graph at the start of a text; also returns the byte offset of the text after it.
pub fn parse_first(text: &str) -> Result<(Graph, usize), ParseError> {
    let mut parser = Parser::new(text)?;
    let graph = parser.graph()?;
    Ok((graph, parser.lexer.offset()))
}

/// A value as written: a name or the result of a call.
type Operand = (Position, ValueId);

/// Reads tokens and builds the graph along the way.
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(super) position: Position,
    pub(super) current: Token,
    /// The token after the current one, if already peeked at.
    pub(super) ahead: Option<(Position, Token)>,
    graph: Graph,
    values: HashMap<String, ValueId>,
    opaque: u32,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>, ParseError> {
        let mut lexer = Lexer::new(text);
        let (position, current) = lexer.next()?;
        Ok(Parser { lexer, position, current, ahead: None, graph: Graph::default(), values: HashMap::new(), opaque: 0, depth: 0 })
    }

    pub(super) fn advance(&mut self) -> Result<Token, ParseError> {
        let (position, token) = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.lexer.next()?,
        };
        self.position = position;
        Ok(std::mem::replace(&mut self.current, token))
    }

    pub(super) fn next_is(&mut self, mark: char) -> Result<bool, ParseError> {
        if self.ahead.is_none() {
            self.ahead = Some(self.lexer.next()?);
        }
        Ok(matches!(&self.ahead, Some((_, Token::Mark(m))) if *m == mark))
    }

    pub(super) fn at(&self, mark: char) -> bool {
        self.current == Token::Mark(mark)
    }

    fn at_word(&self, word: &str) -> bool {
        matches!(&self.current, Token::Word(w) if w == word)
    }

    pub(super) fn unexpected<T>(&self, wanted: &str, hint: &str) -> Result<T, ParseError> {
        Err(ParseError::new(self.position, format!("{} where {wanted} is expected", self.current), hint))
    }

    pub(super) fn expect(&mut self, mark: char, hint: &str) -> Result<(), ParseError> {
        if !self.at(mark) {
            return self.unexpected(&Token::Mark(mark).to_string(), hint);
        }
        self.advance().map(drop)
    }

    pub(super) fn eat(&mut self, mark: char) -> Result<bool, ParseError> {
        let found = self.at(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn name(&mut self, what: &str) -> Result<(Position, String), ParseError> {
        let position = self.position;
        match &self.current {
            Token::Word(word) if crate::text::quoted(word) == *word || word == "_" => {}
            Token::Quoted(_) => {}
            Token::Word(_) => return self.unexpected(what, "words of the format are names only in backquotes"),
            _ => return self.unexpected(what, "names are words, or anything in backquotes"),
        }
        match self.advance()? {
            Token::Word(name) | Token::Quoted(name) => Ok((position, name)),
            _ => self.unexpected(what, "names are words, or anything in backquotes"),
        }
    }

    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(ParseError::new(self.position, "too deeply nested", "name inner results on lines of their own"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads up to the graph's `}`, which stays the current token.
    fn graph(&mut self) -> Result<Graph, ParseError> {
        if !self.at_word("graph") {
            return self.unexpected("`graph`", "a graph looks like: graph (x: f32[N,64]) { y = Relu(x) output y }");
        }
        self.advance()?;
        if !self.at('(') {
            self.graph.name = self.name("the graph's name or `(`")?.1;
        }
        self.expect('(', "the inputs follow in parentheses: (x: f32[N,64])")?;
        while !self.at(')') {
            let (position, name) = self.name("an input's name")?;
            self.expect(':', "an input has a type: x: f32[N,64]")?;
            let ty = self.ty()?;
            let value = self.graph.add_input(&name, ty);
            self.define(position, name, value)?;
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(')', "inputs are separated by commas")?;
        if !self.at('{') {
            return self.unexpected("`{`", "the body follows in braces");
        }
        self.advance()?;
        while !self.at('}') {
            self.statement()?;
        }
        Ok(std::mem::take(&mut self.graph))
    }

    fn define(&mut self, position: Position, name: String, value: ValueId) -> Result<(), ParseError> {
        if name == "_" {
            return Ok(());
        }
        if self.values.contains_key(&name) {
            return Err(ParseError::new(position, format!("`{name}` is defined twice"), "every value has a name of its own"));
        }
        self.graph.set_name(value, &name);
        self.values.insert(name, value);
        Ok(())
    }

    fn statement(&mut self) -> Result<(), ParseError> {
        if self.at_word("const") {
            return self.constant();
        }
        if self.at_word("output") {
            return self.outputs();
        }
        let position = self.position;
        if self.at_word("opaque") {
            let node = self.call()?;
            return match self.graph.node(node).types.len() {
                0 => Ok(()),
                n => Err(ParseError::new(position, format!("{n} results without names"), "write `name = ..`, or `_ = ..`")),
            };
        }
        let mut names = vec![self.name("a statement")?];
        while self.eat(',')? {
            names.push(self.name("the name of another result")?);
        }
        self.expect('=', "a statement looks like: y = Relu(x), const w: f32[2], or: output y")?;
        let position = self.position;
        let node = self.call()?;
        let results = self.graph.node(node).types.len();
        if results != names.len() {
            let message = format!("{} names for {results} results", names.len());
            return Err(ParseError::new(position, message, "name every result; `_` for those that are not needed"));
        }
        for (port, (position, name)) in names.into_iter().enumerate() {
            self.define(position, name, node.port(port as u32))?;
        }
        Ok(())
    }

    fn outputs(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        loop {
            let named = match &self.current {
                Token::Word(name) | Token::Quoted(name) => Some(name.clone()),
                _ => None,
            };
            let (position, value) = self.operand()?;
            let nested = self.graph.node(value.node).names[value.port as usize].is_none();
            let name = if self.at_word("as") {
                self.advance()?;
                self.name("the output's name")?.1
            } else {
                match named.filter(|_| !nested) {
                    Some(name) => name,
                    None => return Err(ParseError::new(position, "an output without a name", "write `output Relu(x) as y`")),
                }
            };
            if self.graph.outputs().iter().any(|o| o.name.as_ref() == name) {
                return Err(ParseError::new(position, format!("two outputs are called `{name}`"), "write `output y as other`"));
            }
            self.graph.add_output(&name, value);
            if !self.eat(',')? {
                return Ok(());
            }
        }
    }

    fn constant(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        let (position, name) = self.name("the constant's name")?;
        self.expect(':', "a constant has a type: const w: f32[64,32]")?;
        let ty_place = self.position;
        let ty = self.ty()?;
        let shape = ty.known_shape().filter(|s| s.iter().all(|d| *d >= 0)).ok_or_else(|| {
            ParseError::new(ty_place, format!("a constant of type {ty}"), "the sizes of a constant are numbers of at least 0")
        })?;
        let data_place = self.position;
        let value = if !self.eat('=')? {
            seeded(ty.dtype, &shape, &name)
        } else if self.at('[') {
            let numbers = self.numbers('[', ']')?;
            constant(ty.dtype, &shape, &numbers)
        } else {
            let number = self.number()?;
            let elements = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d as usize)).filter(|n| *n <= 1 << 28);
            elements.and_then(|n| constant(ty.dtype, &shape, &vec![number; n]))
        };
        let value = value.ok_or_else(|| {
            let hint = "give one number, or all elements in a flat row-major list; integers for integer types";
            ParseError::new(data_place, format!("this data makes no {ty}"), hint)
        })?;
        let value = self.graph.add_const(value);
        self.define(position, name, value)
    }

    fn operand(&mut self) -> Result<Operand, ParseError> {
        let position = self.position;
        let is_call = match &self.current {
            Token::Word(word) if word == "opaque" => true,
            Token::Word(_) => self.next_is('(')?,
            _ => false,
        };
        if is_call {
            let node = self.deeper(Self::call)?;
            return match self.graph.node(node).types.len() {
                1 => Ok((position, node.out())),
                n => Err(ParseError::new(position, format!("an operand with {n} results"), "name the results in a statement before")),
            };
        }
        let (position, name) = self.name("an operand")?;
        match self.values.get(&name) {
            Some(value) => Ok((position, *value)),
            None => {
                let near = nearest(&name, self.values.keys().map(String::as_str));
                let hint = near.unwrap_or_else(|| "define it in a statement before, or as an input".into());
                Err(ParseError::new(position, format!("no value is called `{name}`"), hint))
            }
        }
    }

    fn call(&mut self) -> Result<NodeId, ParseError> {
        if self.at_word("opaque") {
            return self.opaque_call();
        }
        let position = self.position;
        let name = match self.advance()? {
            Token::Word(word) => word,
            other => return Err(ParseError::new(position, format!("{other} where a call is expected"), "a call looks like Relu(x)")),
        };
        let kind = OpKind::from_name(&name).filter(|k| !matches!(k, OpKind::Input | OpKind::Constant | OpKind::Opaque));
        let kind = kind.ok_or_else(|| {
            let near = nearest(&name, OpKind::ALL.iter().map(|k| k.name()));
            let hint = near.unwrap_or_else(|| format!("operators without a definition are written opaque:{name}(..) -> type"));
            ParseError::new(position, format!("no operator is called `{name}`"), hint)
        })?;
        self.expect('(', "operands and attributes follow in parentheses")?;
        let (mut operands, mut attrs) = (Vec::new(), Vec::new());
        while !self.at(')') {
            match self.attr()? {
                Some(attr) => attrs.push(attr),
                None => operands.push(self.operand()?.1),
            }
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(')', "operands and attributes are separated by commas")?;
        let op = kind.with_attrs(&attrs).map_err(|e| {
            let hint = match &e {
                AttrError::Missing { attr, .. } => format!("add `{attr}=..`"),
                AttrError::Kind { .. } => "words are quoted, lists are in brackets, axes are integers".into(),
                AttrError::Unknown { .. } if kind.attr_names().is_empty() => format!("`{}` has no attributes", kind.name()),
                AttrError::Unknown { .. } => format!("known ones: {}", kind.attr_names().join(", ")),
            };
            ParseError::new(position, e.to_string(), hint)
        })?;
        self.graph.add(op, &operands).map_err(|e| {
            let hint = match e {
                TypeError::Invalid(_) => "check the operands' types and the attributes",
                TypeError::Undecided { .. } => "use the same symbols where sizes are the same",
            };
            ParseError::new(position, e.to_string(), hint)
        })
    }

    fn opaque_call(&mut self) -> Result<NodeId, ParseError> {
        let position = self.position;
        let hint = "an operator without a definition is written opaque:Name(x) -> f32[N]";
        self.advance()?;
        self.expect(':', hint)?;
        let (_, mut op_type) = self.name("the operator's name")?;
        let mut domain = String::new();
        if self.eat(':')? {
            self.expect(':', "a domain is written opaque:com.example::Name")?;
            domain = std::mem::replace(&mut op_type, self.name("the operator's name")?.1);
        }
        self.expect('(', hint)?;
        let (mut given, mut operands, mut captured, mut attrs) = (Vec::new(), Vec::new(), false, Vec::new());
        while !self.at(')') {
            if self.at('|') && !captured {
                self.advance()?;
                captured = true;
            }
            if let Some(attr) = self.attr()? {
                attrs.push(attr);
            } else if self.at_word("_") && !captured {
                self.advance()?;
                given.push(false);
            } else {
                operands.push(self.operand()?.1);
                if !captured {
                    given.push(true);
                }
            }
            if !self.eat(',')? && (captured || !self.at('|')) {
                break;
            }
        }
        self.expect(')', "operands are separated by commas")?;
        let mut types = Vec::new();
        if self.eat('>')? {
            loop {
                types.push(if self.eat('?')? { None } else { Some(self.ty()?) });
                if !self.eat(',')? {
                    break;
                }
            }
        }
        let mut op = OpaqueOp {
            op_type: op_type.into(),
            domain: domain.into(),
            given: given.into(),
            results: types.len(),
            why: "".into(),
            effects: false,
            id: self.opaque,
        };
        self.opaque += 1;
        for (name, value) in attrs {
            match (name.as_str(), value) {
                ("id", Attr::Int(id)) if u32::try_from(id).is_ok() => op.id = id as u32,
                ("why", Attr::Str(why)) => op.why = why.into(),
                ("effects", Attr::Bool(effects)) => op.effects = effects,
                _ => {
                    return Err(ParseError::new(
                        position,
                        format!("`{name}` is no attribute here"),
                        "id=0, why=\"..\" and effects=true are known",
                    ));
                }
            }
        }
        Ok(self.graph.add_typed(Op::Opaque(op), &operands, types))
    }
}
