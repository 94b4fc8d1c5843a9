//! What a model declares to its callers: names, element types, sizes and defaults of inputs and
//! outputs.

use std::collections::HashMap;

use regraft_ir::{Const, DType};

use crate::proto::tensor_shape_proto::dimension::Value as Size;
use crate::proto::type_proto::Value as Kind;
use crate::proto::{GraphProto, ModelProto, SparseTensorProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto};
use crate::tensor::{self, Decoded};

/// Declared inputs and outputs, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signature {
    /// Inputs that callers feed; parameters of old models are not among them.
    pub inputs: Vec<Slot>,
    /// Results that callers get.
    pub outputs: Vec<Slot>,
}

/// One declared input or output.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Name.
    pub name: String,
    /// Element type or kind, in full but for the sizes of a tensor: `f32`, `sequence of f32[N]`, ..
    pub kind: String,
    /// Sizes as declared, `None` for an unknown rank and for values without sizes. A size is a
    /// number, a symbol, or `?`.
    pub sizes: Option<Vec<String>>,
    /// The value used if none is fed: an initializer of the same name. Inputs only.
    pub default: Option<Preset>,
}

/// The value of an initializer, without its name.
#[derive(Clone, Debug, PartialEq)]
pub enum Preset {
    /// A tensor of a type with arithmetic here, however it is stored.
    Const(Const),
    /// Any other tensor, as it is stored.
    Verbatim(Box<TensorProto>),
    /// A sparse one, as it is stored.
    Sparse(Box<SparseTensorProto>),
}

impl Preset {
    fn dense(tensor: &TensorProto) -> Preset {
        match tensor::decode(tensor) {
            Ok(Decoded::Const(value)) => Preset::Const(value),
            _ => Preset::Verbatim(Box::new(TensorProto { name: None, doc_string: None, ..tensor.clone() })),
        }
    }
}

impl Slot {
    fn new(info: &ValueInfoProto, default: Option<Preset>) -> Slot {
        let (kind, sizes) = kind(info.r#type.as_ref());
        Slot { name: info.name().to_string(), kind, sizes, default }
    }

    /// Whether both accept the same sizes; the name of an open size does not matter.
    fn fits(&self, other: &Slot) -> bool {
        let fixed = |slot: &Slot| slot.sizes.as_ref().map(|s| s.iter().map(|d| d.parse::<u64>().ok()).collect::<Vec<_>>());
        self.kind == other.kind && fixed(self) == fixed(other)
    }
}

impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown(&self.kind, self.sizes.as_deref()))
    }
}

fn shown(kind: &str, sizes: Option<&[String]>) -> String {
    sizes.map_or_else(|| format!("{kind}[..]"), |sizes| format!("{kind}[{}]", sizes.join(",")))
}

fn kind(ty: Option<&TypeProto>) -> (String, Option<Vec<String>>) {
    let inner = |ty: Option<&TypeProto>| match (kind(ty), ty.and_then(|t| t.value.as_ref())) {
        ((kind, sizes), Some(Kind::TensorType(_) | Kind::SparseTensorType(_))) => shown(&kind, sizes.as_deref()),
        ((kind, _), _) => kind,
    };
    let element = |code: i32| DType::from_onnx(code).to_string();
    match ty.and_then(|t| t.value.as_ref()) {
        Some(Kind::TensorType(tensor)) => (element(tensor.elem_type()), tensor.shape.as_ref().map(sizes)),
        Some(Kind::SparseTensorType(tensor)) => (format!("sparse {}", element(tensor.elem_type())), tensor.shape.as_ref().map(sizes)),
        Some(Kind::SequenceType(sequence)) => (format!("sequence of {}", inner(sequence.elem_type.as_deref())), None),
        Some(Kind::MapType(map)) => (format!("map from {} to {}", element(map.key_type()), inner(map.value_type.as_deref())), None),
        Some(Kind::OptionalType(optional)) => (format!("optional {}", inner(optional.elem_type.as_deref())), None),
        Some(other) => (format!("{other:?}"), None),
        None => ("?".into(), None),
    }
}

/// Sizes as text. A symbol that looks like a number or an unnamed size is quoted.
fn sizes(shape: &TensorShapeProto) -> Vec<String> {
    let size = |value: &Option<Size>| match value {
        Some(Size::DimValue(n)) => n.to_string(),
        Some(Size::DimParam(symbol)) if symbol == "?" || symbol.parse::<i64>().is_ok() => format!("{symbol:?}"),
        Some(Size::DimParam(symbol)) if !symbol.is_empty() => symbol.clone(),
        _ => "?".to_string(),
    };
    shape.dim.iter().map(|d| size(&d.value)).collect()
}

impl Signature {
    /// The signature of a model.
    pub fn of(model: &ModelProto) -> Signature {
        // Before IR version 4, weights are listed as inputs but not fed by callers.
        model.graph.as_ref().map_or_else(Signature::default, |graph| Signature::new(graph, model.ir_version() < 4))
    }

    /// The signature of a body: its formal inputs and its outputs.
    pub fn of_body(body: &GraphProto) -> Signature {
        Signature::new(body, false)
    }

    fn new(graph: &GraphProto, parameters: bool) -> Signature {
        let dense = graph.initializer.iter().map(|t| (t.name(), Ok(t)));
        let sparse = graph.sparse_initializer.iter().filter_map(|s| Some((s.values.as_ref()?.name(), Err(s))));
        let presets: HashMap<&str, Result<&TensorProto, &SparseTensorProto>> = dense.chain(sparse).collect();
        let preset = |name: &str| match presets.get(name)? {
            Ok(tensor) => Some(Preset::dense(tensor)),
            Err(tensor) => Some(Preset::Sparse(Box::new((*tensor).clone()))),
        };
        let fed = graph.input.iter().filter(|i| !(parameters && presets.contains_key(i.name())));
        Signature {
            inputs: fed.map(|info| Slot::new(info, preset(info.name()))).collect(),
            outputs: graph.output.iter().map(|info| Slot::new(info, None)).collect(),
        }
    }

    /// What a caller of `self` would find different in `other`, one line each; and remarks on
    /// differences that callers cannot notice.
    pub fn compare(&self, other: &Signature) -> (Vec<String>, Vec<String>) {
        let (mut differences, mut remarks) = (Vec::new(), Vec::new());
        for (what, a, b) in [("input", &self.inputs, &other.inputs), ("output", &self.outputs, &other.outputs)] {
            let names = |slots: &[Slot]| slots.iter().map(|s| s.name.clone()).collect::<Vec<_>>();
            if names(a) != names(b) {
                differences.push(format!("{what}s are {} instead of {}", listed(b), listed(a)));
                continue;
            }
            for (x, y) in a.iter().zip(b) {
                if !x.fits(y) {
                    differences.push(format!("{what} `{}` is {y} instead of {x}", x.name));
                } else if x.default != y.default {
                    differences.push(format!("{what} `{}` has another value where it is not given", x.name));
                } else if x != y {
                    remarks.push(format!("{what} `{}` is called {y} and {x}", x.name));
                }
            }
        }
        (differences, remarks)
    }

    /// The first way in which `other` is declared differently from `self`, names of open sizes
    /// included.
    pub fn difference(&self, other: &Signature) -> Option<String> {
        let (differences, remarks) = self.compare(other);
        differences.into_iter().chain(remarks).next()
    }
}

fn listed(slots: &[Slot]) -> String {
    if slots.is_empty() { "none".into() } else { slots.iter().map(|s| format!("`{}`", s.name)).collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::tensor_shape_proto::Dimension;
    use crate::proto::type_proto::{Sequence, Tensor};

    fn slot(name: &str, kind: &str, sizes: &[&str]) -> Slot {
        Slot { name: name.into(), kind: kind.into(), sizes: Some(sizes.iter().map(ToString::to_string).collect()), default: None }
    }

    fn outputs(slots: Vec<Slot>) -> Signature {
        Signature { inputs: Vec::new(), outputs: slots }
    }

    #[test]
    fn differences_name_what_differs() {
        let a = outputs(vec![slot("y", "f32", &["N", "10"])]);
        for (b, want) in [
            (slot("y", "f32", &["1", "10"]), "output `y` is f32[1,10] instead of f32[N,10]"),
            (slot("y", "f16", &["N", "10"]), "output `y` is f16[N,10] instead of f32[N,10]"),
            (slot("y", "f32", &["N"]), "output `y` is f32[N] instead of f32[N,10]"),
            (slot("z", "f32", &["N", "10"]), "outputs are `z` instead of `y`"),
        ] {
            assert_eq!(a.compare(&outputs(vec![b.clone()])).0, [want]);
            assert_eq!(a.difference(&outputs(vec![b])).as_deref(), Some(want));
        }
    }

    #[test]
    fn the_name_of_a_free_size_is_only_a_remark() {
        let (a, b) = (outputs(vec![slot("y", "f32", &["N"])]), outputs(vec![slot("y", "f32", &["batch"])]));
        assert_eq!(a.compare(&b), (Vec::new(), vec!["output `y` is called f32[batch] and f32[N]".to_string()]));
        assert_eq!(a.compare(&a), (Vec::new(), Vec::new()));
        assert!(a.difference(&b).is_some() && a.difference(&a).is_none());
    }

    fn tensor(elem_type: i32, sizes: &[Size]) -> TypeProto {
        let dim = sizes.iter().map(|size| Dimension { value: Some(size.clone()), denotation: None }).collect();
        let tensor = Tensor { elem_type: Some(elem_type), shape: Some(TensorShapeProto { dim }) };
        TypeProto { value: Some(Kind::TensorType(tensor)), denotation: None }
    }

    fn info(name: &str, ty: TypeProto) -> ValueInfoProto {
        ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
    }

    #[test]
    fn what_sequences_hold_and_symbols_that_look_like_numbers_count() {
        let sequence = |element: TypeProto| TypeProto {
            value: Some(Kind::SequenceType(Box::new(Sequence { elem_type: Some(Box::new(element)) }))),
            denotation: None,
        };
        let signature = |ty: TypeProto| Signature::new(&GraphProto { output: vec![info("y", ty)], ..GraphProto::default() }, false);
        let (five, named) = ([Size::DimValue(5)], [Size::DimParam("5".into())]);
        assert_eq!(signature(sequence(tensor(1, &five))).outputs[0].kind, "sequence of f32[5]");
        for (a, b) in [
            (sequence(tensor(1, &five)), sequence(tensor(7, &five))),
            (sequence(tensor(1, &five)), sequence(tensor(1, &[Size::DimValue(2)]))),
            (tensor(1, &five), tensor(1, &named)),
        ] {
            assert_eq!(signature(a.clone()).compare(&signature(b)).0.len(), 1, "{a:?}");
        }
    }

    #[test]
    fn defaults_count_however_they_are_stored() {
        let with = |value: TensorProto| {
            let initializer = vec![TensorProto { name: Some("x".into()), dims: vec![1], ..value }];
            let input = vec![info("x", tensor(1, &[Size::DimValue(1)]))];
            ModelProto {
                ir_version: Some(8),
                graph: Some(GraphProto { input, initializer, ..GraphProto::default() }),
                ..Default::default()
            }
        };
        let raw = |v: f32| TensorProto { data_type: Some(1), raw_data: Some(v.to_le_bytes().to_vec().into()), ..TensorProto::default() };
        let typed = |v: f32| TensorProto { data_type: Some(1), float_data: vec![v], ..TensorProto::default() };
        let words = |v: &str| TensorProto { data_type: Some(8), string_data: vec![v.as_bytes().to_vec()], ..TensorProto::default() };
        let (one, two) = (Signature::of(&with(raw(1.0))), Signature::of(&with(typed(2.0))));
        assert_eq!(one.compare(&Signature::of(&with(typed(1.0)))), (Vec::new(), Vec::new()));
        assert_eq!(one.compare(&two).0, ["input `x` has another value where it is not given"]);
        assert_eq!(Signature::of(&with(words("a"))).compare(&Signature::of(&with(words("b")))).0.len(), 1);
        let none = Signature { inputs: one.inputs.iter().map(|s| Slot { default: None, ..s.clone() }).collect(), outputs: Vec::new() };
        assert_eq!(one.compare(&none).0.len(), 1);
        // Before IR version 4 it is a parameter.
        assert!(Signature::of(&ModelProto { ir_version: Some(3), ..with(raw(1.0)) }).inputs.is_empty());
    }
}
