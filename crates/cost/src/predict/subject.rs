//! `Subject`: what a signature says of a node, as numbers and words again.

use regraft_ir::{Attr, AttrError, Bindings, DType, Dim, Float, Op, OpKind, TensorType};

use crate::roofline::fuses;
use crate::signature::Signature;
use crate::workload::Workload;

/// A node, as far as its signature tells of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// The operator. Floats among its attributes are 0, 1 or anything else.
    pub op: Op,
    /// Sizes of its operands.
    pub inputs: Vec<Vec<usize>>,
    /// Which of them are constant.
    pub constants: Vec<bool>,
    /// Sizes of its results.
    pub outputs: Vec<Vec<usize>>,
    /// Arithmetic and traffic.
    pub load: Workload,
    /// Kinds of the producers of its operands (`c` for constants), and whether this node is the
    /// only reader.
    pub producers: Vec<(String, bool)>,
    /// Kinds of its readers; `out` if a result is an output.
    pub readers: Vec<String>,
}

/// What a float that is neither 0 nor 1 is taken for.
const SOME: f64 = 0.5;

impl Subject {
    /// Of a signature; `None` if its operator has no definition, or something about it is unknown.
    pub fn of(signature: &Signature) -> Option<Subject> {
        let core = &signature.core;
        let open = core.find(['{', '('])?;
        let kind = OpKind::from_name(core.get(..open)?)?;
        let (attrs, operands) = match core.get(open..)?.strip_prefix('{') {
            Some(rest) => rest.rsplit_once("}(")?,
            None => ("", core.get(open + 1..)?),
        };
        let op = operator(kind, attrs)?;
        let operands = split(operands.strip_suffix(')')?);
        let constants = operands.iter().map(|text| text.starts_with("c ")).collect();
        let types = operands.iter().map(|text| tensor(text.strip_prefix("c ").unwrap_or(text))).collect::<Option<Vec<_>>>()?;
        let results = op.infer(&types).ok()?;
        let none = Bindings::new();
        let bound = |types: &[TensorType]| types.iter().map(|ty| ty.bind(&none)).collect::<Option<Vec<_>>>();
        let (inputs, outputs) = (bound(&types)?, bound(&results)?);
        let work = op.work(&inputs, &outputs);
        let bytes =
            |types: &[TensorType], shapes: &[Vec<usize>]| -> f64 { types.iter().zip(shapes).map(|(ty, s)| ty.dtype.bytes(s)).sum() };
        let load = Workload { work, bytes: bytes(&types, &inputs) + bytes(&results, &outputs) + work.extra_bytes };
        let producer = |text: &str| match text.rsplit_once('.') {
            Some((kind, alone)) => (kind.to_owned(), alone == "1"),
            None => (text.to_owned(), false),
        };
        let reader = |text: &str| text.split('.').next().unwrap_or_default().to_owned();
        let listed = |text: &'_ str| -> Vec<String> { text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect() };
        let producers = listed(&signature.producers).iter().map(|text| producer(text)).collect();
        let readers = listed(&signature.readers).iter().map(|text| reader(text)).collect();
        Some(Subject { op, inputs, constants, outputs, load, producers, readers })
    }

    /// Whether a runtime computes it within the operator before it, which has no other reader.
    pub fn is_fused(&self) -> bool {
        let producer = self.producers.first().filter(|(_, alone)| *alone).and_then(|(kind, _)| OpKind::from_name(kind));
        producer.is_some_and(|producer| fuses(self.op.kind(), producer))
    }
}

/// The parts of a list, whose items may have lists in brackets.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if !list.is_empty() {
        parts.push(&list[from..]);
    }
    parts
}

/// A type such as `f32[1,64]`, perhaps with the value of an exponent.
fn tensor(text: &str) -> Option<TensorType> {
    let (dtype, sizes) = text.split_once('[')?;
    let sizes = sizes.split_once(']')?.0;
    let sizes = sizes.split(',').filter(|size| !size.is_empty()).map(|size| size.parse::<i64>().ok().map(Dim::from));
    Some(TensorType::new(DType::from_name(dtype)?, sizes.collect::<Option<Vec<_>>>()?))
}

/// An operator with the attributes of a signature, which do not tell what kind of value each has:
/// the first that it can have is taken.
fn operator(kind: OpKind, text: &str) -> Option<Op> {
    let mut given: Vec<(&str, Vec<Attr>)> = Vec::new();
    for attr in text.split(';').filter(|attr| !attr.is_empty()) {
        let (name, value) = attr.split_once('=')?;
        given.push((name, readings(value)));
    }
    loop {
        let attrs = given.iter().map(|(name, readings)| Some((name.to_string(), readings.last()?.clone())));
        match kind.with_attrs(&attrs.collect::<Option<Vec<_>>>()?) {
            Ok(op) => return Some(op),
            Err(AttrError::Kind { attr, .. }) => given.iter_mut().find(|(name, _)| *name == attr)?.1.pop()?,
            Err(_) => return None,
        };
    }
}

/// What the text of an attribute may mean, the likeliest last.
fn readings(text: &str) -> Vec<Attr> {
    let float = |word: &str| if word == "~" { Some(Float(SOME)) } else { word.parse().ok().map(Float) };
    let words: Vec<&str> = text.split(',').filter(|word| !word.is_empty()).collect();
    let mut all = vec![Attr::Strs(words.iter().map(|word| (*word).to_owned()).collect()), Attr::Str(text.to_owned())];
    all.extend(words.iter().map(|word| float(word)).collect::<Option<Vec<_>>>().map(Attr::Floats));
    all.extend(words.iter().map(|word| word.parse().ok()).collect::<Option<Vec<i64>>>().map(Attr::Ints));
    all.extend(float(text).map(Attr::Float));
    all.extend(DType::from_name(text).map(Attr::DType));
    all.extend(text.parse().ok().map(Attr::Int));
    all.extend((text == "-").then_some(Attr::Absent));
    all
}

#[cfg(test)]
mod tests {
    use regraft_ir::text::parse;

    use super::*;

    #[test]
    fn a_signature_tells_what_its_node_does() {
        let graph = parse(
            "graph (x: f32[2,8,9,9], y: f32[2,8,9,9]) {
               const w: f32[4,8,3,3]
               const one: f32[1] = [2.0]
               a = Conv(x, w, strides=[2,2], pads=[1,1,1,1], dilations=[1,1], group=1)
               b = Transpose(a, perm=[0,2,3,1])
               c = Relu(b)
               d = Softmax(c, axis=3)
               e = Concat(x, y, axis=1)
               f = ReduceMean(e, axes=[2,3], keepdims=true)
               g = Cast(f, to=f64)
               h = Pow(x, one)
               output d, g, h
             }",
        );
        let graph = graph.unwrap_or_else(|e| panic!("{e}"));
        let mut seen = 0;
        for id in graph.ids().filter(|id| crate::is_priced(&graph, *id)) {
            let signature = Signature::of(&graph, &Bindings::new(), id);
            let subject = Subject::of(&signature).unwrap_or_else(|| panic!("{signature}"));
            assert_eq!(subject.op, graph.node(id).op, "{signature}");
            assert_eq!(Some(subject.load), Workload::of(&graph, &Bindings::new(), id), "{signature}");
            assert_eq!(subject.producers.len(), subject.inputs.len());
            seen += 1;
        }
        assert_eq!(seen, 8);
        for unknown in ["ai.onnx.NonZero<1>(f32[2]) |  > ", "Relu(?) |  > ", "Relu", "Nope(f32[1]) | c > out", "Relu(f32[1],) | c > "] {
            assert!(Signature::parse(unknown).and_then(|signature| Subject::of(&signature)).is_none(), "{unknown}");
        }
    }
}
