//! Arguments of a term in a text format: leading numbers and operands, in each operator's order.

use crate::operator::{Activation, Padding};
use crate::rule::Ref;

/// An argument: a number, a bare word or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    Number(i64),
    Word(String),
    Value(Ref),
}

/// Arguments consumed one by one.
pub(crate) struct Arguments(std::vec::IntoIter<Argument>);

impl Arguments {
    pub fn new(arguments: Vec<Argument>) -> Arguments {
        Arguments(arguments.into_iter())
    }

    pub fn number(&mut self, what: &str) -> Result<i64, String> {
        match self.0.next() {
            Some(Argument::Number(value)) => Ok(value),
            Some(_) => Err(format!("its {what} is no number")),
            None => Err(format!("its {what} is missing")),
        }
    }

    pub fn pair(&mut self, what: &str) -> Result<[i64; 2], String> {
        Ok([self.number(what)?, self.number(what)?])
    }

    pub fn index(&mut self, what: &str) -> Result<usize, String> {
        let value = self.number(what)?;
        usize::try_from(value).map_err(|_| format!("its {what} is {value}"))
    }

    pub fn word(&mut self, what: &str) -> Result<String, String> {
        match self.0.next() {
            Some(Argument::Word(word)) => Ok(word),
            Some(Argument::Number(value)) => Ok(value.to_string()),
            _ => Err(format!("its {what} is missing")),
        }
    }

    pub fn padding(&mut self) -> Result<Padding, String> {
        let code = self.number("padding")?;
        Padding::of_code(code).ok_or_else(|| format!("there is no padding {code}"))
    }

    pub fn activation(&mut self) -> Result<Activation, String> {
        let code = self.number("activation")?;
        Activation::of_code(code).ok_or_else(|| format!("there is no activation {code}"))
    }

    pub fn value(&mut self, what: &str) -> Result<Ref, String> {
        match self.0.next() {
            Some(Argument::Value(value)) => Ok(value),
            Some(_) => Err(format!("its {what} is no term")),
            None => Err(format!("its {what} is missing")),
        }
    }

    /// All remaining arguments, which must be values.
    pub fn values(&mut self) -> Result<Vec<Ref>, String> {
        let mut values = Vec::new();
        while !self.is_done() {
            values.push(self.value("operand")?);
        }
        Ok(values)
    }

    /// The values among the remaining arguments.
    pub fn only_values(self) -> Vec<Ref> {
        self.0.filter_map(|a| if let Argument::Value(value) = a { Some(value) } else { None }).collect()
    }

    pub fn is_done(&self) -> bool {
        self.0.len() == 0
    }
}
