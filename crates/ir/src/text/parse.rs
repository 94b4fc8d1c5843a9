//! Reading graphs from text.

use std::collections::HashMap;

use crate::attr::{Attr, Float};
use crate::constant::Const;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{AttrError, TypeError};
use crate::graph::{Graph, NodeId, ValueId};
use crate::op::{Op, OpKind};
use crate::ops::OpaqueOp;
use crate::text::lexer::{Lexer, Place, Token};
use crate::text::literal::{Number, constant, seeded};
use crate::ty::TensorType;

/// Nesting of calls and sizes beyond this is refused, so that no text can exhaust the stack.
const MAX_DEPTH: usize = 200;

/// Why a text is no graph. Always the text's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message} (hint: {hint})")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl ParseError {
    pub(super) fn new(place: Place, message: impl Into<String>, hint: impl Into<String>) -> ParseError {
        ParseError { line: place.line, column: place.column, message: message.into(), hint: hint.into() }
    }
}

/// Reads a text that is one graph.
pub fn parse(text: &str) -> Result<Graph, ParseError> {
    let mut parser = Parser::new(text)?;
    let graph = parser.graph()?;
    parser.advance()?;
    match parser.current {
        Token::End => Ok(graph),
        ref other => Err(ParseError::new(parser.place, format!("{other} after the graph"), "the text ends with the graph's `}`")),
    }
}

/// Reads the graph that a text starts with; also the byte offset of the text after it.
pub fn parse_first(text: &str) -> Result<(Graph, usize), ParseError> {
    let mut parser = Parser::new(text)?;
    let graph = parser.graph()?;
    Ok((graph, parser.lexer.offset()))
}

/// A value as written: a name or the result of a call.
type Operand = (Place, ValueId);

/// One item of an attribute, before its list decides the kind.
enum Item {
    Size(Dim),
    Float(f64),
    Other(Attr),
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    place: Place,
    current: Token,
    /// The token after the current one, once looked at.
    ahead: Option<(Place, Token)>,
    graph: Graph,
    values: HashMap<String, ValueId>,
    opaque: u32,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>, ParseError> {
        let mut lexer = Lexer::new(text);
        let (place, current) = lexer.next()?;
        Ok(Parser { lexer, place, current, ahead: None, graph: Graph::default(), values: HashMap::new(), opaque: 0, depth: 0 })
    }

    fn advance(&mut self) -> Result<Token, ParseError> {
        let (place, token) = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.lexer.next()?,
        };
        self.place = place;
        Ok(std::mem::replace(&mut self.current, token))
    }

    fn next_is(&mut self, mark: char) -> Result<bool, ParseError> {
        if self.ahead.is_none() {
            self.ahead = Some(self.lexer.next()?);
        }
        Ok(matches!(&self.ahead, Some((_, Token::Mark(m))) if *m == mark))
    }

    fn at(&self, mark: char) -> bool {
        self.current == Token::Mark(mark)
    }

    fn at_word(&self, word: &str) -> bool {
        matches!(&self.current, Token::Word(w) if w == word)
    }

    fn unexpected<T>(&self, wanted: &str, hint: &str) -> Result<T, ParseError> {
        Err(ParseError::new(self.place, format!("{} where {wanted} is expected", self.current), hint))
    }

    fn expect(&mut self, mark: char, hint: &str) -> Result<(), ParseError> {
        if !self.at(mark) {
            return self.unexpected(&Token::Mark(mark).to_string(), hint);
        }
        self.advance().map(drop)
    }

    fn eat(&mut self, mark: char) -> Result<bool, ParseError> {
        let found = self.at(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn name(&mut self, what: &str) -> Result<(Place, String), ParseError> {
        let place = self.place;
        match &self.current {
            Token::Word(word) if crate::text::quoted(word) == *word || word == "_" => {}
            Token::Quoted(_) => {}
            Token::Word(_) => return self.unexpected(what, "words of the format are names only in backquotes"),
            _ => return self.unexpected(what, "names are words, or anything in backquotes"),
        }
        match self.advance()? {
            Token::Word(name) | Token::Quoted(name) => Ok((place, name)),
            _ => self.unexpected(what, "names are words, or anything in backquotes"),
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(ParseError::new(self.place, "too deeply nested", "name inner results on lines of their own"));
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
            let (place, name) = self.name("an input's name")?;
            self.expect(':', "an input has a type: x: f32[N,64]")?;
            let ty = self.ty()?;
            let value = self.graph.add_input(&name, ty);
            self.define(place, name, value)?;
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

    fn define(&mut self, place: Place, name: String, value: ValueId) -> Result<(), ParseError> {
        if name == "_" {
            return Ok(());
        }
        if self.values.contains_key(&name) {
            return Err(ParseError::new(place, format!("`{name}` is defined twice"), "every value has a name of its own"));
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
        let place = self.place;
        if self.at_word("opaque") {
            let node = self.call()?;
            return match self.graph.node(node).types.len() {
                0 => Ok(()),
                n => Err(ParseError::new(place, format!("{n} results without names"), "write `name = ..`, or `_ = ..`")),
            };
        }
        let mut names = vec![self.name("a statement")?];
        while self.eat(',')? {
            names.push(self.name("the name of another result")?);
        }
        self.expect('=', "a statement looks like: y = Relu(x), const w: f32[2], or: output y")?;
        let place = self.place;
        let node = self.call()?;
        let results = self.graph.node(node).types.len();
        if results != names.len() {
            let message = format!("{} names for {results} results", names.len());
            return Err(ParseError::new(place, message, "name every result; `_` for those that are not needed"));
        }
        for (port, (place, name)) in names.into_iter().enumerate() {
            self.define(place, name, node.port(port as u32))?;
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
            let (place, value) = self.operand()?;
            let nested = self.graph.node(value.node).names[value.port as usize].is_none();
            let name = if self.at_word("as") {
                self.advance()?;
                self.name("the output's name")?.1
            } else {
                match named.filter(|_| !nested) {
                    Some(name) => name,
                    None => return Err(ParseError::new(place, "an output without a name", "write `output Relu(x) as y`")),
                }
            };
            if self.graph.outputs().iter().any(|o| o.name.as_ref() == name) {
                return Err(ParseError::new(place, format!("two outputs are called `{name}`"), "write `output y as other`"));
            }
            self.graph.add_output(&name, value);
            if !self.eat(',')? {
                return Ok(());
            }
        }
    }

    fn constant(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        let (place, name) = self.name("the constant's name")?;
        self.expect(':', "a constant has a type: const w: f32[64,32]")?;
        let ty_place = self.place;
        let ty = self.ty()?;
        let shape = ty.known_shape().filter(|s| s.iter().all(|d| *d >= 0)).ok_or_else(|| {
            ParseError::new(ty_place, format!("a constant of type {ty}"), "the sizes of a constant are numbers of at least 0")
        })?;
        let data_place = self.place;
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
        self.define(place, name, value)
    }

    /// Numbers between two marks, separated by commas.
    fn numbers(&mut self, open: char, close: char) -> Result<Vec<Number>, ParseError> {
        self.expect(open, "the elements follow")?;
        let mut numbers = Vec::new();
        while !self.at(close) {
            numbers.push(self.number()?);
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(close, "elements are separated by commas")?;
        Ok(numbers)
    }

    fn number(&mut self) -> Result<Number, ParseError> {
        let negative = self.eat('-')?;
        let place = self.place;
        let sign = if negative { -1.0 } else { 1.0 };
        Ok(match self.advance()? {
            Token::Int(value) => Number::Int(signed(place, negative, value)?),
            Token::Float(value) => Number::Float(sign * value),
            Token::Word(word) if word == "inf" => Number::Float(sign * f64::INFINITY),
            Token::Word(word) if word == "NaN" => Number::Float(f64::NAN),
            Token::Word(word) if !negative && word == "true" => Number::Int(1),
            Token::Word(word) if !negative && word == "false" => Number::Int(0),
            other => {
                return Err(ParseError::new(place, format!("{other} where a number is expected"), "numbers look like 3, -0.5, 1e-5, inf"));
            }
        })
    }

    fn ty(&mut self) -> Result<TensorType, ParseError> {
        let place = self.place;
        let hint = "a type looks like f32[N,64]; element types are f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool str";
        let dtype = match self.advance()? {
            Token::Word(word) => element_type(&word).ok_or_else(|| ParseError::new(place, format!("`{word}` is no element type"), hint))?,
            other => return Err(ParseError::new(place, format!("{other} where a type is expected"), hint)),
        };
        self.expect('[', hint)?;
        let mut shape = Vec::new();
        while !self.at(']') {
            shape.push(self.size()?);
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(']', "sizes are separated by commas")?;
        Ok(TensorType::new(dtype, shape))
    }

    /// A sum of products.
    fn size(&mut self) -> Result<Dim, ParseError> {
        self.deeper(|parser| {
            let mut sum = parser.product()?;
            loop {
                if parser.eat('+')? {
                    sum = sum + parser.product()?;
                } else if parser.eat('-')? {
                    sum = sum - parser.product()?;
                } else {
                    return Ok(sum);
                }
            }
        })
    }

    fn product(&mut self) -> Result<Dim, ParseError> {
        let mut product = self.factor()?;
        while self.eat('*')? {
            product = product * self.factor()?;
        }
        Ok(product)
    }

    fn factor(&mut self) -> Result<Dim, ParseError> {
        if self.eat('-')? {
            let place = self.place;
            if let Token::Int(value) = self.current {
                self.advance()?;
                return signed(place, true, value).map(Dim::from);
            }
            return self.deeper(|parser| Ok(parser.factor()? * Dim::from(-1)));
        }
        if self.eat('(')? {
            let inner = self.size()?;
            self.expect(')', "a parenthesis is not closed")?;
            return Ok(inner);
        }
        let place = self.place;
        let hint = "a size is a number, a symbol, or made of them by + - * floor(a, b) broadcast(a, b)";
        match self.advance()? {
            Token::Int(value) => signed(place, false, value).map(Dim::from),
            Token::Quoted(name) => Ok(Dim::symbol(&name)),
            Token::Word(word) if word == "floor" || word == "broadcast" => {
                self.expect('(', hint)?;
                let a = self.size()?;
                self.expect(',', hint)?;
                let b = self.size()?;
                self.expect(')', hint)?;
                if word == "floor" {
                    return Ok(a.floor_div(&b));
                }
                let message = format!("{a} and {b} can never broadcast");
                a.broadcast(&b).ok_or_else(|| ParseError::new(place, message, "one of the two is 1, or they are equal"))
            }
            Token::Word(word) if crate::text::quoted(&word) == word => Ok(Dim::symbol(&word)),
            other => Err(ParseError::new(place, format!("{other} where a size is expected"), hint)),
        }
    }

    fn operand(&mut self) -> Result<Operand, ParseError> {
        let place = self.place;
        let is_call = match &self.current {
            Token::Word(word) if word == "opaque" => true,
            Token::Word(_) => self.next_is('(')?,
            _ => false,
        };
        if is_call {
            let node = self.deeper(Self::call)?;
            return match self.graph.node(node).types.len() {
                1 => Ok((place, node.out())),
                n => Err(ParseError::new(place, format!("an operand with {n} results"), "name the results in a statement before")),
            };
        }
        let (place, name) = self.name("an operand")?;
        match self.values.get(&name) {
            Some(value) => Ok((place, *value)),
            None => {
                let near = nearest(&name, self.values.keys().map(String::as_str));
                let hint = near.unwrap_or_else(|| "define it in a statement before, or as an input".into());
                Err(ParseError::new(place, format!("no value is called `{name}`"), hint))
            }
        }
    }

    fn call(&mut self) -> Result<NodeId, ParseError> {
        if self.at_word("opaque") {
            return self.opaque_call();
        }
        let place = self.place;
        let name = match self.advance()? {
            Token::Word(word) => word,
            other => return Err(ParseError::new(place, format!("{other} where a call is expected"), "a call looks like Relu(x)")),
        };
        let kind = OpKind::from_name(&name).filter(|k| !matches!(k, OpKind::Input | OpKind::Constant | OpKind::Opaque));
        let kind = kind.ok_or_else(|| {
            let near = nearest(&name, OpKind::ALL.iter().map(|k| k.name()));
            let hint = near.unwrap_or_else(|| format!("operators without a definition are written opaque:{name}(..) -> type"));
            ParseError::new(place, format!("no operator is called `{name}`"), hint)
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
            ParseError::new(place, e.to_string(), hint)
        })?;
        self.graph.add(op, &operands).map_err(|e| {
            let hint = match e {
                TypeError::Invalid(_) => "check the operands' types and the attributes",
                TypeError::Undecided(_) => "use the same symbols where sizes are the same",
            };
            ParseError::new(place, e.to_string(), hint)
        })
    }

    fn opaque_call(&mut self) -> Result<NodeId, ParseError> {
        let place = self.place;
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
            id: self.opaque,
        };
        self.opaque += 1;
        for (name, value) in attrs {
            match (name.as_str(), value) {
                ("id", Attr::Int(id)) if u32::try_from(id).is_ok() => op.id = id as u32,
                ("why", Attr::Str(why)) => op.why = why.into(),
                _ => return Err(ParseError::new(place, format!("`{name}` is no attribute here"), "id=0 and why=\"..\" are known")),
            }
        }
        Ok(self.graph.add_typed(Op::Opaque(op), &operands, types))
    }

    /// `name=value`, if that comes next.
    fn attr(&mut self) -> Result<Option<(String, Attr)>, ParseError> {
        let Token::Word(name) = self.current.clone() else { return Ok(None) };
        if !self.next_is('=')? {
            return Ok(None);
        }
        self.advance()?;
        self.advance()?;
        let place = self.place;
        let value = if self.eat('[')? {
            self.list(place)?
        } else {
            match self.item()? {
                Item::Other(attr) => attr,
                Item::Float(value) => Attr::Float(Float(value)),
                Item::Size(size) => match size.known() {
                    Some(value) => Attr::Int(value),
                    None => {
                        return Err(ParseError::new(
                            place,
                            format!("`{size}` as an attribute"),
                            "symbols occur in lists: [N, 64]; words are quoted",
                        ));
                    }
                },
            }
        };
        Ok(Some((name, value)))
    }

    fn list(&mut self, place: Place) -> Result<Attr, ParseError> {
        let mut items = Vec::new();
        while !self.at(']') {
            items.push(self.item()?);
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(']', "items are separated by commas")?;
        let mixed = || ParseError::new(place, "a list of mixed kinds", "a list holds numbers, sizes, or words");
        if items.iter().all(|i| matches!(i, Item::Size(_))) {
            let sizes: Vec<Dim> = items.into_iter().filter_map(|i| if let Item::Size(d) = i { Some(d) } else { None }).collect();
            let known: Option<Vec<i64>> = sizes.iter().map(Dim::known).collect();
            return Ok(known.map_or(Attr::Dims(sizes), Attr::Ints));
        }
        if items.iter().any(|i| matches!(i, Item::Float(_))) {
            let float = |item: Item| match item {
                Item::Float(value) => Ok(Float(value)),
                Item::Size(size) => size.known().map(|v| Float(v as f64)).ok_or_else(mixed),
                Item::Other(_) => Err(mixed()),
            };
            return items.into_iter().map(float).collect::<Result<_, _>>().map(Attr::Floats);
        }
        let word = |item: Item| if let Item::Other(Attr::Str(word)) = item { Ok(word) } else { Err(mixed()) };
        items.into_iter().map(word).collect::<Result<_, _>>().map(Attr::Strs)
    }

    fn item(&mut self) -> Result<Item, ParseError> {
        if self.at('-') && self.float_follows()? {
            return self.number().map(|n| Item::Float(n.as_f64()));
        }
        let place = self.place;
        Ok(match self.current.clone() {
            Token::Float(_) => Item::Float(self.number()?.as_f64()),
            Token::Word(word) if word == "inf" || word == "NaN" => Item::Float(self.number()?.as_f64()),
            Token::Text(text) => {
                self.advance()?;
                Item::Other(Attr::Str(text))
            }
            Token::Word(word) if word == "true" || word == "false" || word == "none" => {
                self.advance()?;
                Item::Other(if word == "none" { Attr::Absent } else { Attr::Bool(word == "true") })
            }
            Token::Word(word) if element_type(&word).is_some() => {
                if self.next_is('[')? {
                    return self.tensor(place).map(|value| Item::Other(Attr::Tensor(value)));
                }
                self.advance()?;
                Item::Other(Attr::DType(element_type(&word).unwrap_or(DType::F32)))
            }
            _ => Item::Size(self.size()?),
        })
    }

    fn float_follows(&mut self) -> Result<bool, ParseError> {
        self.next_is('-')?;
        Ok(match &self.ahead {
            Some((_, Token::Float(_))) => true,
            Some((_, Token::Word(word))) => word == "inf" || word == "NaN",
            _ => false,
        })
    }

    /// `f32[2](0.5, 1)`.
    fn tensor(&mut self, place: Place) -> Result<Const, ParseError> {
        let ty = self.ty()?;
        let numbers = self.numbers('(', ')')?;
        let value = ty.known_shape().and_then(|shape| constant(ty.dtype, &shape, &numbers));
        value.ok_or_else(|| ParseError::new(place, format!("this data makes no {ty}"), "give all elements, row-major: f32[2](0.5, 1)"))
    }
}

fn signed(place: Place, negative: bool, value: u64) -> Result<i64, ParseError> {
    let signed = if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() };
    signed.ok_or_else(|| ParseError::new(place, format!("{value} is too large"), "integers have 64 bits, one of them the sign"))
}

fn element_type(word: &str) -> Option<DType> {
    match word.strip_prefix("dtype") {
        Some(code) => code.parse().ok().map(DType::from_onnx),
        None => DType::from_name(word),
    }
}

/// `did you mean ..?` for the closest of some names, if one is close.
fn nearest<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> Option<String> {
    let distance = |other: &str| {
        let other: Vec<char> = other.to_lowercase().chars().collect();
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, c) in name.to_lowercase().chars().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, d) in other.iter().enumerate() {
                let best = (diagonal + usize::from(c != *d)).min(row[j] + 1).min(row[j + 1] + 1);
                diagonal = std::mem::replace(&mut row[j + 1], best);
            }
        }
        row[other.len()]
    };
    let (far, best) = among.map(|other| (distance(other), other)).min()?;
    (far <= 1 + name.chars().count() / 4).then(|| format!("did you mean `{best}`?"))
}
