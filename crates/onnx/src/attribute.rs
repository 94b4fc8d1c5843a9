//! `AttributeProto` to [`Attr`] and back.

use regraft_ir::{Attr, Float};

use crate::proto::AttributeProto;
use crate::proto::attribute_proto::AttributeType;
use crate::tensor::{self, Decoded};

/// The neutral view of an attribute; `None` for kinds that no defined operator uses (graphs, sparse
/// tensors, types, exotic tensors).
pub(crate) fn decode(attribute: &AttributeProto) -> Option<Attr> {
    if !attribute.ref_attr_name().is_empty() {
        return None;
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let float = |v: &f32| Float(f64::from(*v));
    Some(match kind(attribute)? {
        AttributeType::Float => Attr::Float(float(&attribute.f())),
        AttributeType::Int => Attr::Int(attribute.i()),
        AttributeType::String => Attr::Str(text(attribute.s())?),
        AttributeType::Floats => Attr::Floats(attribute.floats.iter().map(float).collect()),
        AttributeType::Ints => Attr::Ints(attribute.ints.clone()),
        AttributeType::Strings => Attr::Strs(attribute.strings.iter().map(|s| text(s)).collect::<Option<_>>()?),
        AttributeType::Tensor => match tensor::decode(attribute.t.as_ref()?) {
            Ok(Decoded::Const(value)) => Attr::Tensor(value),
            _ => return None,
        },
        _ => return None,
    })
}

/// The attribute's kind; old models omit it, and then the field that is set determines it.
fn kind(attribute: &AttributeProto) -> Option<AttributeType> {
    match AttributeType::try_from(attribute.r#type.unwrap_or(0)).ok()? {
        AttributeType::Undefined => {}
        known => return Some(known),
    }
    let set = [
        (attribute.f.is_some(), AttributeType::Float),
        (attribute.i.is_some(), AttributeType::Int),
        (attribute.s.is_some(), AttributeType::String),
        (attribute.t.is_some(), AttributeType::Tensor),
        (attribute.g.is_some(), AttributeType::Graph),
        (!attribute.floats.is_empty(), AttributeType::Floats),
        (!attribute.ints.is_empty(), AttributeType::Ints),
        (!attribute.strings.is_empty(), AttributeType::Strings),
        (!attribute.tensors.is_empty(), AttributeType::Tensors),
        (!attribute.graphs.is_empty(), AttributeType::Graphs),
    ];
    set.into_iter().find(|(is_set, _)| *is_set).map(|(_, kind)| kind)
}

/// The attribute as ONNX writes it: `Ok(None)` where it is absent, `Err` for symbolic sizes, which
/// only inputs can carry.
pub(crate) fn encode(name: &str, value: &Attr) -> Result<Option<AttributeProto>, String> {
    let base =
        |kind: AttributeType| AttributeProto { name: Some(name.to_string()), r#type: Some(kind as i32), ..AttributeProto::default() };
    Ok(Some(match value {
        Attr::Absent => return Ok(None),
        Attr::Int(v) => AttributeProto { i: Some(*v), ..base(AttributeType::Int) },
        Attr::Bool(v) => AttributeProto { i: Some(i64::from(*v)), ..base(AttributeType::Int) },
        Attr::DType(v) => AttributeProto { i: Some(i64::from(v.to_onnx())), ..base(AttributeType::Int) },
        Attr::Float(v) => AttributeProto { f: Some(v.0 as f32), ..base(AttributeType::Float) },
        Attr::Str(v) => AttributeProto { s: Some(v.clone().into_bytes()), ..base(AttributeType::String) },
        Attr::Ints(v) => AttributeProto { ints: v.clone(), ..base(AttributeType::Ints) },
        Attr::Floats(v) => AttributeProto { floats: v.iter().map(|f| f.0 as f32).collect(), ..base(AttributeType::Floats) },
        Attr::Strs(v) => AttributeProto { strings: v.iter().map(|s| s.clone().into_bytes()).collect(), ..base(AttributeType::Strings) },
        Attr::Tensor(v) => AttributeProto { t: Some(tensor::encode("", v)), ..base(AttributeType::Tensor) },
        Attr::Dims(v) => {
            let known: Option<Vec<i64>> = v.iter().map(regraft_ir::Dim::known).collect();
            AttributeProto { ints: known.ok_or_else(|| format!("`{name}` = {value} is symbolic"))?, ..base(AttributeType::Ints) }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::{Const, DType, Dim};

    #[test]
    fn attributes_survive_both_ways() {
        let tensor = Const::from_f64(DType::F32, &[2], &[1.0, 2.0]).unwrap();
        for attr in [
            Attr::Int(-3),
            Attr::Float(Float(0.25)),
            Attr::Str("reflect".into()),
            Attr::Ints(vec![1, -2]),
            Attr::Floats(vec![Float(1.5)]),
            Attr::Strs(vec!["a".into()]),
            Attr::Tensor(tensor),
        ] {
            let proto = encode("a", &attr).unwrap().unwrap();
            assert_eq!(decode(&proto), Some(attr.clone()));
            let untyped = AttributeProto { r#type: None, ..proto };
            assert_eq!(decode(&untyped), Some(attr));
        }
        assert_eq!(encode("a", &Attr::Absent), Ok(None));
        assert_eq!(encode("a", &Attr::Bool(true)).unwrap().unwrap().i, Some(1));
        assert!(encode("a", &Attr::Dims(vec![Dim::symbol("N")])).is_err());
    }
}
