//! What a model declares to its callers: names, element types and sizes of inputs and outputs.

use regraft_onnx::proto::tensor_shape_proto::dimension::Value as Size;
use regraft_onnx::proto::{ModelProto, TypeProto, ValueInfoProto, type_proto};

use regraft_ir::DType;

/// Declared inputs and outputs, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// What callers feed; parameters of old models are not among them.
    pub inputs: Vec<Slot>,
    /// What callers get.
    pub outputs: Vec<Slot>,
}

/// One declared input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Name.
    pub name: String,
    /// Element type or kind: `f32`, `sequence`, ...
    pub kind: String,
    /// Sizes as declared, `None` for an unknown rank. A size is a number, a symbol, or `?`.
    pub sizes: Option<Vec<String>>,
}

impl Slot {
    fn new(info: &ValueInfoProto) -> Slot {
        let (kind, sizes) = kind(info.r#type.as_ref());
        Slot { name: info.name().to_string(), kind, sizes }
    }

    /// True if both accept the same sizes; how a size that is not fixed is called does not matter.
    fn fits(&self, other: &Slot) -> bool {
        let fixed = |slot: &Slot| slot.sizes.as_ref().map(|s| s.iter().map(|d| d.parse::<u64>().ok()).collect::<Vec<_>>());
        self.kind == other.kind && fixed(self) == fixed(other)
    }
}

impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.sizes {
            Some(sizes) => write!(f, "{}[{}]", self.kind, sizes.join(",")),
            None => write!(f, "{}[..]", self.kind),
        }
    }
}

fn kind(ty: Option<&TypeProto>) -> (String, Option<Vec<String>>) {
    match ty.and_then(|t| t.value.as_ref()) {
        Some(type_proto::Value::TensorType(tensor)) => {
            let size = |value: &Option<Size>| match value {
                Some(Size::DimValue(n)) => n.to_string(),
                Some(Size::DimParam(symbol)) if !symbol.is_empty() => symbol.clone(),
                _ => "?".to_string(),
            };
            let sizes = tensor.shape.as_ref().map(|s| s.dim.iter().map(|d| size(&d.value)).collect());
            (DType::from_onnx(tensor.elem_type()).to_string(), sizes)
        }
        Some(type_proto::Value::SparseTensorType(_)) => ("sparse tensor".into(), None),
        Some(type_proto::Value::SequenceType(_)) => ("sequence".into(), None),
        Some(type_proto::Value::MapType(_)) => ("map".into(), None),
        Some(type_proto::Value::OptionalType(_)) => ("optional".into(), None),
        _ => ("?".into(), None),
    }
}

impl Signature {
    /// The signature of a model.
    pub fn of(model: &ModelProto) -> Signature {
        let Some(graph) = &model.graph else { return Signature { inputs: Vec::new(), outputs: Vec::new() } };
        // Before IR version 4 weights are listed as inputs, and callers do not feed them.
        let parameter = |info: &&ValueInfoProto| model.ir_version() < 4 && graph.initializer.iter().any(|t| t.name() == info.name());
        Signature {
            inputs: graph.input.iter().filter(|i| !parameter(i)).map(Slot::new).collect(),
            outputs: graph.output.iter().map(Slot::new).collect(),
        }
    }

    /// What a caller of `self` would find different in `other`, one line each; and remarks on differences that no caller notices.
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
                } else if x != y {
                    remarks.push(format!("{what} `{}` is called {y} and {x}", x.name));
                }
            }
        }
        (differences, remarks)
    }
}

fn listed(slots: &[Slot]) -> String {
    if slots.is_empty() { "none".into() } else { slots.iter().map(|s| format!("`{}`", s.name)).collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(name: &str, kind: &str, sizes: &[&str]) -> Slot {
        Slot { name: name.into(), kind: kind.into(), sizes: Some(sizes.iter().map(ToString::to_string).collect()) }
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
            assert_eq!(a.compare(&outputs(vec![b])).0, [want]);
        }
    }

    #[test]
    fn the_name_of_a_free_size_is_only_a_remark() {
        let (a, b) = (outputs(vec![slot("y", "f32", &["N"])]), outputs(vec![slot("y", "f32", &["batch"])]));
        assert_eq!(a.compare(&b), (Vec::new(), vec!["output `y` is called f32[batch] and f32[N]".to_string()]));
        assert_eq!(a.compare(&a), (Vec::new(), Vec::new()));
    }
}
