//! Complete operators, and their text.

use std::fmt::Write;

use crate::coordinate::{Coord, Coordinate, Coordinates};
use crate::error::FormulaError;
use crate::size::Size;
use crate::spec::Spec;
use crate::state::{Coords, State};

/// A linear operator with weights:
///
/// `y[i0, i1, ..] = sum over r0, r1, .. of x[input] * w0[weights[0]] * w1[weights[1]] ..`
///
/// A term in which a window leaves its axis is nothing. The batch is not mentioned: it passes
/// through.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Operator {
    /// Where the input is read, one coordinate for each of its axes.
    pub input: Coords,
    /// Where each weight is read.
    pub weights: Vec<Coords>,
    /// What is summed over.
    pub sums: Coords,
}

impl Operator {
    /// The operators that a state is, one for each way to tell axes of one size apart.
    ///
    /// Where an axis of the input can be read along the same axis of the output, those that
    /// exchange axes are left out: they only transpose what the others compute.
    pub fn of(state: &State, coordinates: &Coordinates<'_>) -> Vec<Operator> {
        if state.weights.is_empty() || state.data.iter().any(|coord| coordinates.facts(*coord).skips) {
            return vec![];
        }
        let spec = coordinates.spec;
        if state.data.len() != spec.input.len() {
            return vec![];
        }
        let mut orders: Vec<Coords> = vec![Coords::new()];
        for axis in &spec.input {
            orders = orders
                .iter()
                .flat_map(|order| {
                    let free = state.data.iter().filter(|coord| !order.contains(coord) && coordinates.size(**coord) == axis.size);
                    free.map(|coord| order.iter().copied().chain([*coord]).collect::<Coords>())
                })
                .collect();
        }
        let own = |input: &Coords| {
            let own = |axis: usize, coord: Coord| {
                spec.output
                    .get(axis)
                    .is_some_and(|output| output.size == spec.input[axis].size && coordinates.contains(coord, coordinates.output(axis)))
            };
            input.iter().enumerate().filter(|(axis, coord)| own(*axis, **coord)).count()
        };
        let most = orders.iter().map(own).max().unwrap_or(0);
        orders.retain(|order| own(order) == most);
        let weights: Vec<Coords> = state.weights.to_vec();
        orders.into_iter().map(|input| Operator { input, weights: weights.clone(), sums: state.sums.clone() }).collect()
    }

    /// The state that it ends.
    pub fn state(&self, coordinates: &mut Coordinates<'_>) -> State {
        let mut data = self.input.clone();
        data.sort_unstable();
        let mut state = State { data, weights: self.weights.iter().cloned().collect(), dropped: Coords::new(), sums: self.sums.clone() };
        for weight in &mut state.weights {
            weight.sort_unstable();
        }
        state.sums.sort_unstable();
        let all = self.closure(coordinates);
        for &coord in &all {
            let other = match coordinates.get(coord) {
                Coordinate::Quotient(a, block) => coordinates.make(Coordinate::Remainder(a, block)),
                Coordinate::Remainder(a, block) => coordinates.make(Coordinate::Quotient(a, block)),
                _ => continue,
            };
            if !all.contains(&other) && !state.dropped.contains(&other) {
                state.dropped.push(other);
            }
        }
        state.dropped.sort_unstable();
        state
    }

    /// All coordinates in it, ascending: parts come before what they are part of.
    pub fn closure(&self, coordinates: &Coordinates<'_>) -> Vec<Coord> {
        coordinates.with_parts(self.input.iter().chain(self.weights.iter().flatten()).copied())
    }

    /// Whether a window slides over an axis.
    pub fn has_window(&self, coordinates: &Coordinates<'_>) -> bool {
        self.closure(coordinates).iter().any(|coord| matches!(coordinates.get(*coord), Coordinate::Unfold(..)))
    }

    /// The elements of all weights, in each layer.
    pub fn parameters(&self, coordinates: &Coordinates<'_>) -> Vec<f64> {
        let spec = coordinates.spec;
        let sizes: Vec<Size> = self.weights.iter().map(|weight| weight.iter().map(|coord| coordinates.size(*coord)).collect()).collect();
        spec.layers.iter().map(|layer| sizes.iter().map(|size| spec.real(*size, layer)).sum()).collect()
    }

    /// The multiplications that it takes as one sum, without intermediate results, in each layer.
    pub fn plain_macs(&self, coordinates: &Coordinates<'_>) -> Vec<f64> {
        let spec = coordinates.spec;
        let size: Size = coordinates
            .outputs()
            .chain(self.sums.iter().copied())
            .map(|coord| coordinates.size(coord))
            .chain(spec.batch.iter().copied())
            .collect();
        spec.layers.iter().map(|layer| spec.real(size, layer) * self.weights.len() as f64).collect()
    }

    /// Its text, as [`parse`](Operator::parse) reads it.
    pub fn show(&self, coordinates: &Coordinates<'_>) -> String {
        let mut text = String::new();
        for (k, sum) in self.sums.iter().enumerate() {
            let _ = write!(text, "{}r{k}: {}", if k == 0 { "sum " } else { ", " }, coordinates.spec.show(coordinates.size(*sum)));
        }
        if !self.sums.is_empty() {
            text += "; ";
        }
        let list = |coords: &Coords| coords.iter().map(|coord| written(*coord, &self.sums, coordinates)).collect::<Vec<_>>().join(", ");
        let _ = write!(text, "x[{}]", list(&self.input));
        for weight in &self.weights {
            let _ = write!(text, " * w[{}]", list(weight));
        }
        text
    }

    /// Reads an operator:
    ///
    /// `sum r0: C_in, r1: k, r2: k; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0, r1, r2]`
    ///
    /// Coordinates are `split(a, b)`, `quotient(a, B)`, `remainder(a, B)`, `shift(a)`, `stride(a,
    /// S)`, `unfold(a, b)`, outputs `i0`, `i1`, .. and sums.
    ///
    /// # Errors
    ///
    /// If it is not of this form, or its input does not have the sizes of the specification.
    pub fn parse(text: &str, coordinates: &mut Coordinates<'_>) -> Result<Operator, FormulaError> {
        Reader { rest: text, coordinates, sums: vec![] }.operator()
    }
}

/// A coordinate as a call.
fn written(coord: Coord, sums: &Coords, coordinates: &Coordinates<'_>) -> String {
    let of = |coord| written(coord, sums, coordinates);
    let size = |size| coordinates.spec.show(size);
    match coordinates.get(coord) {
        Coordinate::Output(axis) => format!("i{axis}"),
        Coordinate::Reduce(..) => format!("r{}", sums.iter().position(|sum| *sum == coord).unwrap_or(usize::MAX)),
        Coordinate::Split(a, b) => format!("split({}, {})", of(a), of(b)),
        Coordinate::Quotient(a, block) => format!("quotient({}, {})", of(a), size(block)),
        Coordinate::Remainder(a, block) => format!("remainder({}, {})", of(a), size(block)),
        Coordinate::Shift(a) => format!("shift({})", of(a)),
        Coordinate::Stride(a, stride) => format!("stride({}, {})", of(a), size(stride)),
        Coordinate::Unfold(a, b) => format!("unfold({}, {})", of(a), of(b)),
    }
}

struct Reader<'t, 'c, 's> {
    rest: &'t str,
    coordinates: &'c mut Coordinates<'s>,
    sums: Vec<(String, Coord)>,
}

impl<'t> Reader<'t, '_, '_> {
    fn operator(mut self) -> Result<Operator, FormulaError> {
        if self.take_word("sum") {
            loop {
                let name = self.name()?;
                self.expect(":")?;
                let size = self.size()?;
                let copies = self.sums.iter().filter(|(_, sum)| self.coordinates.size(*sum) == size).count();
                let sum = self.coordinates.make(Coordinate::Reduce(size, copies as u8));
                self.sums.push((name.to_string(), sum));
                if !self.take(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        self.expect("x")?;
        let input = self.list()?;
        let mut weights = Vec::new();
        while self.take("*") {
            self.expect("w")?;
            weights.push(self.list()?);
        }
        if !self.rest.trim().is_empty() {
            return Err(self.error("an end, or `*`"));
        }
        let spec = self.coordinates.spec;
        let found: Vec<Size> = input.iter().map(|coord| self.coordinates.size(*coord)).collect();
        let wanted: Vec<Size> = spec.input.iter().map(|axis| axis.size).collect();
        if found != wanted {
            let show = |sizes: &[Size]| sizes.iter().map(|size| spec.show(*size)).collect::<Vec<_>>().join(", ");
            return Err(FormulaError::Shape { found: show(&found), wanted: show(&wanted) });
        }
        let sums: Coords = self.sums.iter().map(|(_, sum)| *sum).collect();
        Ok(Operator { input, weights, sums })
    }

    fn list(&mut self) -> Result<Coords, FormulaError> {
        self.expect("[")?;
        let mut coords = Coords::new();
        if self.take("]") {
            return Ok(coords);
        }
        loop {
            coords.push(self.coordinate()?);
            if !self.take(",") {
                self.expect("]")?;
                return Ok(coords);
            }
        }
    }

    fn coordinate(&mut self) -> Result<Coord, FormulaError> {
        let name = self.name()?;
        if !self.take("(") {
            let output = name.strip_prefix('i').and_then(|axis| axis.parse::<usize>().ok());
            let output = output.filter(|axis| *axis < self.coordinates.spec.output.len()).map(|axis| self.coordinates.output(axis));
            let sum = self.sums.iter().find(|(sum, _)| sum == name).map(|(_, sum)| *sum);
            return sum.or(output).ok_or_else(|| FormulaError::Unknown(name.to_string()));
        }
        let a = self.coordinate()?;
        let coordinate = match name {
            "shift" => Coordinate::Shift(a),
            "split" | "unfold" => {
                self.expect(",")?;
                let b = self.coordinate()?;
                if name == "split" { Coordinate::Split(a, b) } else { Coordinate::Unfold(a, b) }
            }
            "quotient" | "remainder" | "stride" => {
                self.expect(",")?;
                let size = self.size()?;
                match name {
                    "quotient" => Coordinate::Quotient(a, size),
                    "remainder" => Coordinate::Remainder(a, size),
                    _ => Coordinate::Stride(a, size),
                }
            }
            _ => return Err(FormulaError::Unknown(name.to_string())),
        };
        self.expect(")")?;
        Ok(self.coordinates.make(coordinate))
    }

    /// `C_in*k/(g*s)`.
    fn size(&mut self) -> Result<Size, FormulaError> {
        let mut size = self.product()?;
        if self.take("/") {
            let below = if self.take("(") {
                let below = self.product()?;
                self.expect(")")?;
                below
            } else {
                self.power()?
            };
            size = size / below;
        }
        Ok(size)
    }

    fn product(&mut self) -> Result<Size, FormulaError> {
        let mut size = self.power()?;
        while self.take("*") {
            size = size * self.power()?;
        }
        Ok(size)
    }

    fn power(&mut self) -> Result<Size, FormulaError> {
        if self.take("1") {
            return Ok(Size::ONE);
        }
        let name = self.name()?;
        let spec: &Spec = self.coordinates.spec;
        let variable = spec.variables.iter().position(|v| v.name == name).ok_or_else(|| FormulaError::Unknown(name.to_string()))?;
        let exponent = if self.take("^") { self.name()?.parse().map_err(|_| self.error("an exponent"))? } else { 1 };
        Ok(Size::power(variable, exponent))
    }

    fn name(&mut self) -> Result<&'t str, FormulaError> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            return Err(self.error("a name"));
        }
        self.rest = rest;
        Ok(name)
    }

    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(word).filter(|rest| rest.starts_with(char::is_whitespace)) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), FormulaError> {
        if self.take(token) { Ok(()) } else { Err(self.error(&format!("`{token}`"))) }
    }

    fn error(&self, expected: &str) -> FormulaError {
        let near: String = self.rest.trim_start().chars().take(20).collect();
        FormulaError::Syntax { expected: expected.into(), near: if near.is_empty() { "the end".into() } else { format!("`{near}`") } }
    }
}
