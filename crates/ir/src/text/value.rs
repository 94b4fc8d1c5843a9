//! Values in the text format: numbers, sizes, types, attributes.

use crate::attr::{Attr, Float};
use crate::constant::Const;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::text::cursor::Position;
use crate::text::lexer::Token;
use crate::text::literal::{Number, constant};
use crate::text::parse::{ParseError, Parser};
use crate::ty::TensorType;

/// One item of an attribute, before its list determines the kind.
enum Item {
    Size(Dim),
    Float(f64),
    Other(Attr),
}

impl Parser<'_> {
    /// Numbers between two delimiters, separated by commas.
    pub(super) fn numbers(&mut self, open: char, close: char) -> Result<Vec<Number>, ParseError> {
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

    pub(super) fn number(&mut self) -> Result<Number, ParseError> {
        let negative = self.eat('-')?;
        let position = self.position;
        let sign = if negative { -1.0 } else { 1.0 };
        Ok(match self.advance()? {
            Token::Int(value) => Number::Int(signed(position, negative, value)?),
            Token::Float(value) => Number::Float(sign * value),
            Token::Word(word) if word == "inf" => Number::Float(sign * f64::INFINITY),
            Token::Word(word) if word == "NaN" => Number::Float(f64::NAN),
            Token::Word(word) if !negative && word == "true" => Number::Int(1),
            Token::Word(word) if !negative && word == "false" => Number::Int(0),
            other => {
                return Err(ParseError::new(
                    position,
                    format!("{other} where a number is expected"),
                    "numbers look like 3, -0.5, 1e-5, inf",
                ));
            }
        })
    }

    pub(super) fn ty(&mut self) -> Result<TensorType, ParseError> {
        let position = self.position;
        let hint = "a type looks like f32[N,64]; element types are f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool str";
        let dtype = match self.advance()? {
            Token::Word(word) => {
                element_type(&word).ok_or_else(|| ParseError::new(position, format!("`{word}` is no element type"), hint))?
            }
            other => return Err(ParseError::new(position, format!("{other} where a type is expected"), hint)),
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
            let position = self.position;
            if let Token::Int(value) = self.current {
                self.advance()?;
                return signed(position, true, value).map(Dim::from);
            }
            return self.deeper(|parser| Ok(parser.factor()? * Dim::from(-1)));
        }
        if self.eat('(')? {
            let inner = self.size()?;
            self.expect(')', "a parenthesis is not closed")?;
            return Ok(inner);
        }
        let position = self.position;
        let hint = "a size is a number, a symbol, or made of them by + - * floor(a, b) broadcast(a, b)";
        match self.advance()? {
            Token::Int(value) => signed(position, false, value).map(Dim::from),
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
                a.broadcast(&b).ok_or_else(|| ParseError::new(position, message, "one of the two is 1, or they are equal"))
            }
            Token::Word(word) if crate::text::quoted(&word) == word => Ok(Dim::symbol(&word)),
            other => Err(ParseError::new(position, format!("{other} where a size is expected"), hint)),
        }
    }

    /// `name=value`, if that comes next.
    pub(super) fn attr(&mut self) -> Result<Option<(String, Attr)>, ParseError> {
        let Token::Word(name) = self.current.clone() else { return Ok(None) };
        if !self.next_is('=')? {
            return Ok(None);
        }
        self.advance()?;
        self.advance()?;
        let position = self.position;
        let value = if self.eat('[')? {
            self.list(position)?
        } else {
            match self.item()? {
                Item::Other(attr) => attr,
                Item::Float(value) => Attr::Float(Float(value)),
                Item::Size(size) => match size.known() {
                    Some(value) => Attr::Int(value),
                    None => {
                        return Err(ParseError::new(
                            position,
                            format!("`{size}` as an attribute"),
                            "symbols occur in lists: [N, 64]; words are quoted",
                        ));
                    }
                },
            }
        };
        Ok(Some((name, value)))
    }

    fn list(&mut self, position: Position) -> Result<Attr, ParseError> {
        let mut items = Vec::new();
        while !self.at(']') {
            items.push(self.item()?);
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(']', "items are separated by commas")?;
        let mixed = || ParseError::new(position, "a list of mixed kinds", "a list holds numbers, sizes, or words");
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
        let position = self.position;
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
                    return self.tensor(position).map(|value| Item::Other(Attr::Tensor(value)));
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
    fn tensor(&mut self, position: Position) -> Result<Const, ParseError> {
        let ty = self.ty()?;
        let numbers = self.numbers('(', ')')?;
        let value = ty.known_shape().and_then(|shape| constant(ty.dtype, &shape, &numbers));
        value.ok_or_else(|| ParseError::new(position, format!("this data makes no {ty}"), "give all elements, row-major: f32[2](0.5, 1)"))
    }
}

fn signed(position: Position, negative: bool, value: u64) -> Result<i64, ParseError> {
    let signed = if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() };
    signed.ok_or_else(|| ParseError::new(position, format!("{value} is too large"), "integers have 64 bits, one of them the sign"))
}

fn element_type(word: &str) -> Option<DType> {
    match word.strip_prefix("dtype") {
        Some(code) => code.parse().ok().map(DType::from_onnx),
        None => DType::from_name(word),
    }
}
