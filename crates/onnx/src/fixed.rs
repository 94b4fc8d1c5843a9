//! A model for fewer sizes than it was made for: open sizes of its inputs become numbers.

use std::collections::BTreeMap;
use std::fmt;

use crate::declared::meaningful;
use crate::error::LoadError;
use crate::facts::Contradiction;
use crate::model::Model;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::{TensorShapeProto, ValueInfoProto, type_proto};

/// Sizes that a model is to accept only, input by input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixedSizes(pub Vec<FixedInput>);

/// Sizes of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedInput {
    /// Name.
    pub name: String,
    /// One size per axis; `None` stays as the model declares it.
    pub sizes: Vec<Option<i64>>,
}

/// Why a model cannot be fixed at some sizes. Always the fault of who asked for them, except for
/// `Unsound`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixedError {
    /// No such input.
    #[error("`{name}` is no input")]
    Unknown {
        /// The name given.
        name: String,
    },
    /// A sequence, a map or the like.
    #[error("input `{name}` is not a tensor: it has no sizes")]
    NotTensor {
        /// Name of the input.
        name: String,
    },
    /// Another number of axes.
    #[error("input `{name}` declares {declared} sizes, not {given}")]
    Rank {
        /// Name of the input.
        name: String,
        /// Sizes given.
        given: usize,
        /// Sizes declared.
        declared: usize,
    },
    /// The model fixes this size differently.
    #[error("input `{name}` declares size {declared} at axis {axis}, not {given}")]
    Fixed {
        /// Name of the input.
        name: String,
        /// Axis, from 0.
        axis: usize,
        /// The size given.
        given: i64,
        /// The size declared.
        declared: i64,
    },
    /// Axes with the same symbol get different sizes.
    #[error("`{symbol}` cannot be {first} and {second}")]
    Contradiction {
        /// The symbol.
        symbol: String,
        /// Its size where it occurs first.
        first: i64,
        /// Its size elsewhere.
        second: i64,
    },
    /// The model does not run at these sizes.
    #[error(transparent)]
    Excluded(#[from] Contradiction),
    /// The result is not a sound model: the sizes contradict what it computes.
    #[error("at these sizes, {0}")]
    Unsound(#[from] LoadError),
}

impl FixedSizes {
    /// True if nothing is fixed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FixedInput {
    /// Reads what `Display` writes: `x:1,3,?`. The name may contain colons itself.
    pub fn parse(text: &str) -> Option<FixedInput> {
        let (name, sizes) = text.rsplit_once(':')?;
        let number = |word: &str| word.parse().ok().filter(|n: &u32| n.to_string() == word);
        let size = |word: &str| if word == "?" { Some(None) } else { number(word).map(|n| Some(i64::from(n))) };
        Some(FixedInput { name: name.into(), sizes: sizes.split(',').map(size).collect::<Option<_>>()? })
    }
}

impl fmt::Display for FixedInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(|size| size.map_or_else(|| "?".into(), |n| n.to_string())).collect();
        write!(f, "{}:{}", self.name, sizes.join(","))
    }
}

/// As on the command line, `?` being a size that stays as it is: `x:1,3,224,224 mask:1,?`.
impl fmt::Display for FixedSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }
}

impl Model {
    /// The same model for these sizes only. A symbol that is fixed at one axis is fixed wherever it
    /// is declared; everything else stays.
    ///
    /// # Errors
    ///
    /// Sizes that contradict each other or the model, or that belong to none of its inputs.
    pub fn at_sizes(mut self, fixed: &FixedSizes) -> Result<Model, FixedError> {
        let mut symbols: BTreeMap<String, i64> = BTreeMap::new();
        for FixedInput { name, sizes } in &fixed.0 {
            let is_fed = self.inputs().iter().any(|input| input.name == *name);
            let input = self.proto.graph.iter_mut().flat_map(|graph| &mut graph.input).find(|input| is_fed && input.name() == name);
            let input = input.ok_or_else(|| FixedError::Unknown { name: name.clone() })?;
            let shape = shape(input).ok_or_else(|| FixedError::NotTensor { name: name.clone() })?;
            let dims = &mut shape.get_or_insert_with(|| TensorShapeProto { dim: vec![Dimension::default(); sizes.len()] }).dim;
            if dims.len() != sizes.len() {
                return Err(FixedError::Rank { name: name.clone(), given: sizes.len(), declared: dims.len() });
            }
            for (axis, (dim, size)) in dims.iter_mut().zip(sizes).enumerate() {
                let Some(size) = *size else { continue };
                match &dim.value {
                    Some(dimension::Value::DimValue(declared)) if *declared >= 0 && *declared != size => {
                        return Err(FixedError::Fixed { name: name.clone(), axis, given: size, declared: *declared });
                    }
                    Some(dimension::Value::DimParam(symbol)) if meaningful(symbol) => {
                        let first = *symbols.entry(symbol.clone()).or_insert(size);
                        if first != size {
                            return Err(FixedError::Contradiction { symbol: symbol.clone(), first, second: size });
                        }
                    }
                    _ => {}
                }
                dim.value = Some(dimension::Value::DimValue(size));
            }
        }
        if let (_, Some(excluded)) = self.bind(fixed.0.iter().map(|input| (input.name.as_str(), input.sizes.as_slice()))) {
            return Err(excluded.into());
        }
        let graph = self.proto.graph.iter_mut();
        for value in graph.flat_map(|graph| graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info)) {
            let dims = shape(value).and_then(|shape| shape.as_mut()).into_iter().flat_map(|shape| &mut shape.dim);
            for dim in dims {
                let Some(dimension::Value::DimParam(symbol)) = &dim.value else { continue };
                if let Some(size) = symbols.get(symbol) {
                    dim.value = Some(dimension::Value::DimValue(*size));
                }
            }
        }
        let (external, unknown_field) = (self.external, self.unknown_field().map(str::to_string));
        Ok(Model::from_proto(self.proto)?.with_origin(external, unknown_field))
    }
}

/// The declared shape of a tensor; `None` for other kinds of values.
fn shape(value: &mut ValueInfoProto) -> Option<&mut Option<TensorShapeProto>> {
    match value.r#type.as_mut()?.value.as_mut()? {
        type_proto::Value::TensorType(tensor) => Some(&mut tensor.shape),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Signature;
    use crate::proto::type_proto::Tensor;
    use crate::proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TypeProto};

    /// A tensor declared with these sizes: numbers, symbols, or `?`.
    fn value(name: &str, sizes: &str) -> ValueInfoProto {
        let dim = |size: &str| match size.parse() {
            Ok(number) => Some(dimension::Value::DimValue(number)),
            Err(_) if size == "?" => None,
            Err(_) => Some(dimension::Value::DimParam(size.into())),
        };
        let dim = sizes.split(',').map(|size| Dimension { value: dim(size), denotation: None }).collect();
        let tensor = Tensor { elem_type: Some(1), shape: Some(TensorShapeProto { dim }) };
        let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None };
        ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
    }

    /// The sum of `x` and `y`, both with these sizes.
    fn sum(x: &str, y: &str) -> Model {
        let node = NodeProto {
            op_type: Some("Add".into()),
            input: vec!["x".into(), "y".into()],
            output: vec!["z".into()],
            ..NodeProto::default()
        };
        let graph = GraphProto {
            node: vec![node],
            input: vec![value("x", x), value("y", y)],
            output: vec![value("z", x)],
            ..GraphProto::default()
        };
        let opset = OperatorSetIdProto { domain: None, version: Some(17) };
        let proto = ModelProto { ir_version: Some(8), opset_import: vec![opset], graph: Some(graph), ..ModelProto::default() };
        Model::from_proto(proto).expect("a model")
    }

    fn at(name: &str, sizes: &[i64]) -> FixedSizes {
        let sizes = sizes.iter().map(|size| (*size > 0).then_some(*size)).collect();
        FixedSizes(vec![FixedInput { name: name.into(), sizes }])
    }

    fn declared(model: &Model) -> String {
        let signature = Signature::of(model.proto());
        signature.inputs.iter().chain(&signature.outputs).map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_symbol_is_fixed_wherever_it_occurs() {
        let model = sum("N,H", "N,H");
        let fixed = model.clone().at_sizes(&at("x", &[2, 0])).expect("no contradiction");
        assert_eq!(declared(&fixed), "f32[2,H] f32[2,H] f32[2,H]");
        let fixed = model.at_sizes(&at("y", &[2, 5])).expect("no contradiction");
        assert_eq!(declared(&fixed), "f32[2,5] f32[2,5] f32[2,5]");
        assert_eq!(fixed.outputs()[0].ty.as_ref().map(ToString::to_string).as_deref(), Some("f32[2,5]"));
    }

    #[test]
    fn sizes_without_a_name_are_fixed_alone() {
        for open in ["?", "unk"] {
            let fixed = sum(&format!("{open},4"), &format!("{open},4")).at_sizes(&at("x", &[2, 4])).expect("no contradiction");
            assert_eq!(declared(&fixed), format!("f32[2,4] f32[{open},4] f32[{open},4]"));
        }
    }

    #[test]
    fn contradictions_are_errors() {
        let both = FixedSizes([at("x", &[2, 3]).0, at("y", &[4, 3]).0].concat());
        for (fixed, want) in [
            (at("z", &[2, 3]), "`z` is no input"),
            (at("x", &[2]), "input `x` declares 2 sizes, not 1"),
            (at("x", &[2, 7]), "input `x` declares size 3 at axis 1, not 7"),
            (both, "`N` cannot be 2 and 4"),
        ] {
            let error = sum("N,3", "N,3").at_sizes(&fixed).err().map(|e| e.to_string());
            assert_eq!(error.as_deref(), Some(want));
        }
    }

    #[test]
    fn sizes_are_shown_as_they_are_written() {
        for input in [at("x", &[2, 0]), at("a:0", &[7])] {
            assert_eq!(FixedInput::parse(&input.to_string()).as_ref(), input.0.first());
        }
        for bad in ["x", "x:", "x:01", "x:-1", "x:1,N"] {
            assert_eq!(FixedInput::parse(bad), None, "{bad}");
        }
        assert_eq!(FixedSizes([at("x", &[2, 3]).0, at("y", &[0, 3]).0].concat()).to_string(), "x:2,3 y:?,3");
    }
}
