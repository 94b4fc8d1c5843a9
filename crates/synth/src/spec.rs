//! What an operator must do: shapes in variables, and the layers in which it is to stand.

use rustc_hash::FxHashSet;
use serde::Deserialize;

use crate::error::SpecError;
use crate::size::{Size, VARIABLES};

/// A variable of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name, as in the specification.
    pub name: String,
    /// Whether it is a size of the layer; otherwise it is a coefficient, such as a window's width,
    /// and may stand in a denominator.
    pub primary: bool,
    /// How many times a search may introduce it.
    pub uses: i32,
}

/// One axis of the input or the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its size.
    pub size: Size,
    /// Whether its positions may be permuted without changing what a network can learn, as
    /// channels may.
    pub unordered: bool,
}

/// One layer in which the operator is to stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The number that each variable stands for.
    pub values: Vec<u64>,
    /// How many layers of the network have these sizes.
    pub count: u64,
}

/// How large a search may become.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Steps, of which the last says which axis is which.
    pub depth: usize,
    /// Steps that follow each other on one axis.
    pub chain: u8,
    /// Weights of an operator.
    pub weights: usize,
    /// Sums.
    pub reductions: usize,
    /// Merges of axes.
    pub merges: usize,
    /// Splits of axes.
    pub splits: usize,
    /// Rotations of an axis.
    pub shifts: usize,
    /// Strided axes.
    pub strides: usize,
    /// Sliding windows.
    pub unfolds: usize,
    /// Axes along which the input is repeated.
    pub expands: usize,
    /// Variables in one size.
    pub variables_in_size: usize,
    /// The widest window.
    pub window: u64,
    /// An axis is at least this many times as long as a window on it.
    pub window_ratio: f64,
    /// The elements of all sums together are at most this many times those of the input.
    pub reduction_growth: f64,
    /// The axes that one weight adds have at most this many elements.
    pub added: u64,
    /// The least and the largest size, in the layer where it is largest, of an axis that only
    /// weights share.
    pub shared: (u64, u64),
    /// The fewest elements of a weight.
    pub weight: u64,
    /// The fewest multiplications, as a share of those of the dense layer.
    pub least_macs: f64,
    /// The most multiplications, as a share of those of the dense layer.
    pub most_macs: f64,
    /// The most weights, as a share of those of the dense layer.
    pub most_parameters: f64,
    /// Bytes that the largest intermediate tensor may take.
    pub memory: u64,
    /// The dense layer's windows: elements of one of its kernels.
    pub dense_window: u64,
    /// The dense layer's groups: each output sums over its share of the channels.
    pub dense_groups: u64,
}

impl Default for Limits {
    /// What the published searches for image classifiers ran with (Syno, their command for
    /// ResNet-18), but for what they could not express.
    fn default() -> Limits {
        Limits {
            depth: 12,
            chain: 6,
            weights: 2,
            reductions: 5,
            merges: 1,
            splits: 3,
            shifts: 2,
            strides: 0,
            unfolds: 4,
            expands: 2,
            variables_in_size: 3,
            window: 30,
            window_ratio: 2.3,
            reduction_growth: 4.0,
            added: 8192,
            shared: (2, 64),
            weight: 100,
            least_macs: 0.0,
            most_macs: 1.0,
            most_parameters: f64::INFINITY,
            memory: 4 << 30,
            dense_window: 9,
            dense_groups: 1,
        }
    }
}

/// What is searched for.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// Variables: the primary ones first.
    pub variables: Vec<Variable>,
    /// The layers.
    pub layers: Vec<Layer>,
    /// Axes that only pass through, before those of `input` and `output`.
    pub batch: Vec<Size>,
    /// The input's other axes.
    pub input: Vec<Axis>,
    /// The output's other axes.
    pub output: Vec<Axis>,
    /// The layer that operators are to replace, as a formula; empty if nobody said.
    pub dense: String,
    /// Limits of the search.
    pub limits: Limits,
}

/// The same as text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default)]
    name: String,
    input: Vec<String>,
    output: Vec<String>,
    #[serde(default)]
    batch: Vec<String>,
    #[serde(default)]
    unordered: Vec<String>,
    #[serde(default)]
    dense: String,
    #[serde(default)]
    variables: toml::Table,
    #[serde(default)]
    coefficients: toml::Table,
    layers: Vec<toml::Table>,
    #[serde(default)]
    limits: Limits,
}

/// A mistake of the text itself, with its line if it is in one.
fn syntax(text: &str, error: &toml::de::Error) -> SpecError {
    // What is missing is missing from the whole, which begins at its beginning.
    let place = error.span().filter(|span| span.start > 0);
    let line = place.map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    SpecError::Syntax(line.map_or_else(String::new, |line| format!("line {line}: ")) + error.message())
}

impl Spec {
    /// Reads a specification:
    ///
    /// ```
    /// let spec = regraft_synth::Spec::parse(
    ///     r#"
    ///     input = ["N", "C_in", "H", "H"]
    ///     output = ["N", "C_out", "H", "H"]
    ///     batch = ["N"]                       # passes through
    ///     unordered = ["C_in", "C_out"]       # channels
    ///     [variables]                         # how often a search may introduce each
    ///     C_in = 2
    ///     C_out = 4
    ///     [coefficients]                      # value, and the same
    ///     k = [3, 2]
    ///     [[layers]]
    ///     N = 1
    ///     C_in = 64
    ///     C_out = 64
    ///     H = 56
    ///     count = 4
    ///     "#,
    /// )?;
    /// assert_eq!(spec.show(spec.input[0].size), "C_in");
    /// # Ok::<(), regraft_synth::SpecError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the text is not TOML, a size is not a product of variables, a layer lacks a variable or
    /// gives a coefficient another value, no layer is there, or input and output have no size in
    /// common.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let text: Text = toml::from_str(text).map_err(|e| syntax(text, &e))?;
        let mut variables = Vec::new();
        let words = text.input.iter().chain(&text.output).chain(&text.batch).flat_map(|axis| axis.split('*'));
        let names = words.map(|word| word.split('^').next().unwrap_or(word).trim());
        for name in names.chain(text.variables.keys().map(String::as_str)) {
            if name.parse::<u64>().is_err() && !is_name(name) {
                return Err(SpecError::Size(name.into()));
            }
            if name.parse::<u64>().is_err() && !text.coefficients.contains_key(name) && variables.iter().all(|v: &Variable| v.name != name)
            {
                let uses = text.variables.get(name).map(|v| v.as_integer().ok_or(SpecError::Uses(name.into()))).transpose()?;
                variables.push(Variable { name: name.into(), primary: true, uses: uses.unwrap_or(0) as i32 });
            }
        }
        variables.sort_by(|a, b| a.name.cmp(&b.name));
        let mut coefficients = Vec::new();
        for (name, value) in &text.coefficients {
            let pair: Vec<i64> = value.as_array().into_iter().flatten().filter_map(toml::Value::as_integer).collect();
            let [value, uses] = pair[..] else { return Err(SpecError::Coefficient(name.clone())) };
            if value < 2 {
                return Err(SpecError::Coefficient(name.clone()));
            }
            variables.push(Variable { name: name.clone(), primary: false, uses: uses as i32 });
            coefficients.push(value as u64);
        }
        if variables.len() > VARIABLES {
            return Err(SpecError::TooMany(variables.len()));
        }
        let primaries = variables.len() - coefficients.len();
        let mut layers = Vec::new();
        for layer in &text.layers {
            let number = |name: &str| layer.get(name).and_then(toml::Value::as_integer).filter(|v| *v >= 1).map(|v| v as u64);
            if let Some(unknown) = layer.keys().find(|key| *key != "count" && variables.iter().all(|v| v.name != **key)) {
                return Err(SpecError::Unknown(unknown.clone()));
            }
            if let Some((key, value)) = layer.iter().find(|(key, _)| number(key).is_none()) {
                return Err(SpecError::Value(
                    key.clone(),
                    value.as_integer().map_or_else(|| format!("({})", value.type_str()), |number| number.to_string()),
                ));
            }
            let mut values = Vec::new();
            for (v, variable) in variables.iter().enumerate() {
                let fallback = v.checked_sub(primaries).map(|c| coefficients[c]);
                values.push(number(&variable.name).or(fallback).ok_or_else(|| SpecError::Missing(variable.name.clone()))?);
            }
            layers.push(Layer { values, count: number("count").unwrap_or(1) });
        }
        let (name, dense, limits) = (text.name, text.dense, text.limits);
        let spec = Spec { name, variables, layers, batch: vec![], input: vec![], output: vec![], dense, limits };
        let sizes = |texts: &[String]| texts.iter().map(|text| spec.size(text)).collect::<Result<Vec<Size>, _>>();
        let (batch, input, output, unordered) = (sizes(&text.batch)?, sizes(&text.input)?, sizes(&text.output)?, sizes(&text.unordered)?);
        if !input.starts_with(&batch) || !output.starts_with(&batch) {
            return Err(SpecError::Batch);
        }
        let axes = |sizes: Vec<Size>| -> Vec<Axis> {
            sizes[batch.len()..].iter().map(|&size| Axis { size, unordered: unordered.contains(&size) }).collect()
        };
        let spec = Spec { input: axes(input), output: axes(output), batch: batch.clone(), ..spec };
        spec.checked()
    }

    /// The same, if a search in it can succeed.
    fn checked(self) -> Result<Spec, SpecError> {
        if self.layers.is_empty() {
            return Err(SpecError::NoLayer);
        }
        if self.input.is_empty() || self.output.is_empty() {
            return Err(SpecError::NoAxis);
        }
        for size in self.input.iter().chain(&self.output).map(|axis| axis.size).chain(self.batch.iter().copied()) {
            if self.layers.iter().any(|layer| self.value(size, layer).is_none()) {
                return Err(SpecError::Fraction(self.show(size)));
            }
        }
        Ok(self)
    }

    /// Reads a size: `H`, `2 * C`, `C_in * g^-1`.
    fn size(&self, text: &str) -> Result<Size, SpecError> {
        text.split('*')
            .map(|factor| {
                let (name, exponent) = factor.split_once('^').unwrap_or((factor, "1"));
                let exponent: i8 = exponent.trim().parse().map_err(|_| SpecError::Size(text.into()))?;
                let variable = self.variables.iter().position(|v| v.name == name.trim()).ok_or_else(|| SpecError::Size(text.into()))?;
                Ok(Size::power(variable, exponent))
            })
            .collect()
    }

    /// A size as text, numerator first: `C_in/g`.
    pub fn show(&self, size: Size) -> String {
        let power = |(v, e): (usize, i8)| match e.abs() {
            1 => self.variables[v].name.clone(),
            e => format!("{}^{e}", self.variables[v].name),
        };
        let (above, below): (Vec<_>, Vec<_>) = size.exponents().partition(|(_, e)| *e > 0);
        let product = |factors: Vec<(usize, i8)>| factors.into_iter().map(power).collect::<Vec<_>>().join("*");
        match (above.is_empty(), below.len()) {
            (true, 0) => "1".into(),
            (true, 1) => format!("1/{}", product(below)),
            (true, _) => format!("1/({})", product(below)),
            (false, 0) => product(above),
            (false, 1) => format!("{}/{}", product(above), product(below)),
            (false, _) => format!("{}/({})", product(above), product(below)),
        }
    }

    /// What a size is in a layer; `None` if it is no whole number there.
    pub fn value(&self, size: Size, layer: &Layer) -> Option<u64> {
        let (mut above, mut below) = (1u64, 1u64);
        for (variable, exponent) in size.exponents() {
            let part = if exponent > 0 { &mut above } else { &mut below };
            *part = part.checked_mul(layer.values[variable].checked_pow(u32::from(exponent.unsigned_abs()))?)?;
        }
        above.is_multiple_of(below).then_some(above / below)
    }

    /// Whether a variable is a coefficient.
    pub fn is_coefficient(&self, variable: usize) -> bool {
        !self.variables[variable].primary
    }

    /// The product of the input's sizes, without the batch.
    pub fn input_volume(&self) -> Size {
        self.input.iter().map(|axis| axis.size).collect()
    }

    /// Multiplications of the dense layer that the operator stands for, in all layers together:
    /// each output sums over all channels and a window of [`Limits::dense_window`] elements.
    ///
    /// Channels are the unordered axes of the input; without any, all axes that the output lacks.
    pub fn dense_macs(&self) -> f64 {
        let channels = self.summed();
        let size: Size = self.output.iter().map(|axis| axis.size).chain(self.batch.iter().copied()).chain(channels).collect();
        self.layers.iter().map(|layer| self.real(size, layer) * self.dense_terms() * layer.count as f64).sum()
    }

    /// Terms that the dense layer has at some sizes, without the batch, if it goes through half of
    /// the channels.
    pub(crate) fn half_rank_terms_at(&self, layer: &Layer) -> f64 {
        let size: Size = self.output.iter().map(|axis| axis.size).chain(self.summed()).collect();
        let channels = self.input.iter().chain(&self.output).filter(|axis| axis.unordered);
        let rank = channels.map(|axis| self.real(axis.size, layer)).fold(1.0, f64::max) / 2.0;
        self.real(size, layer) * self.dense_terms() * rank.max(1.0)
    }

    /// Elements of the input or the output of a layer, whichever is larger.
    pub fn largest_tensor(&self, layer: &Layer) -> f64 {
        let elements = |axes: &[Axis]| {
            let size: Size = axes.iter().map(|axis| axis.size).chain(self.batch.iter().copied()).collect();
            self.real(size, layer)
        };
        elements(&self.input).max(elements(&self.output))
    }

    /// Weights of the dense layer, in all layers together.
    pub fn dense_parameters(&self) -> f64 {
        let added = self.output.iter().filter(|axis| !self.input.iter().any(|other| other.size == axis.size && !axis.unordered));
        let size: Size = added.map(|axis| axis.size).chain(self.summed()).collect();
        self.layers.iter().map(|layer| self.real(size, layer) * self.dense_terms() * layer.count as f64).sum()
    }

    /// Terms of an output of the dense layer, for each channel of the input.
    fn dense_terms(&self) -> f64 {
        self.limits.dense_window as f64 / self.limits.dense_groups.max(1) as f64
    }

    fn summed(&self) -> Vec<Size> {
        let unordered: Vec<Size> = self.input.iter().filter(|axis| axis.unordered).map(|axis| axis.size).collect();
        let kept: FxHashSet<Size> = self.output.iter().map(|axis| axis.size).collect();
        match unordered.is_empty() {
            true => self.input.iter().map(|axis| axis.size).filter(|size| !kept.contains(size)).collect(),
            false => unordered,
        }
    }

    /// What a size is in a layer, whole or not.
    pub fn real(&self, size: Size, layer: &Layer) -> f64 {
        size.exponents().map(|(v, e)| (layer.values[v] as f64).powi(i32::from(e))).product()
    }
}

/// Whether this is a name that a variable may have.
fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_') && !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        input = ["H", "W", "c"]
        output = ["H", "W"]
        [coefficients]
        c = [2, 3]
        g = [32, 4]
        [[layers]]
        H = 128
        W = 64
    "#;

    #[test]
    fn sizes_read_as_fractions() {
        let spec = Spec::parse(TEXT).unwrap();
        let size = |text| spec.size(text).unwrap();
        assert_eq!(spec.show(size("H*W*c^-1")), "H*W/c");
        assert_eq!(spec.show(size("c^-1*g^-2")), "1/(c*g^2)");
        assert_eq!(spec.show(Size::ONE), "1");
        assert_eq!(spec.value(size("H*c^-1"), &spec.layers[0]), Some(64));
        assert_eq!(spec.value(size("W*g^-2"), &spec.layers[0]), None);
    }

    #[test]
    fn a_bad_specification_says_what_is_wrong() {
        for (from, to, expected) in [
            ("H = 128\n", "", "no value for `H` in a layer"),
            ("W = 64", "W = 64\nX = 1", "no variable is called `X`"),
            ("W = 64", "W = 0", "`W = 0` in a layer: a size is a whole number from 1 on"),
            ("c = [2, 3]", "c = [1, 3]", "`c`: a coefficient is `[value, uses]`, and its value at least 2"),
            ("\"H\", \"W\", \"c\"", "\"H\", \"W\", \"c^\"", "`c^` is no size: a product of variables, such as `C*g^-1`"),
            ("\"H\", \"W\", \"c\"", "\"H\", \"W*c^-9\"", "`W/c^9` is no whole number in every layer"),
            ("[[layers]]\n        H = 128\n        W = 64", "", "missing field `layers`"),
            ("c = [2, 3]", "c = 2 3", "line 5: string values must be quoted, expected literal string"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            assert_eq!(Spec::parse(&TEXT.replace(from, to)).unwrap_err().to_string(), expected);
        }
    }
}
