use regraft_ir::Const;

use super::*;
use crate::symbolic::Sizes;

/// Types, sizes and presence of the inputs that a signature requires: every axis has two positions,
/// every list and every group two members, and all elements are 1.
fn fitting(inputs: &str) -> (Vec<Option<TensorType>>, Vec<Option<Sizes>>, Vec<bool>) {
    let (mut types, mut sizes, mut given) = (Vec::new(), Vec::new(), Vec::new());
    for input in inputs.split(", ").filter(|input| !input.is_empty()) {
        let (input, count) = input.strip_suffix('*').map_or((input, 1), |input| (input, 2));
        let (name, pattern) = input.split_at(input.find(['[', '{']).unwrap_or(input.len()));
        let pattern = if pattern.starts_with('{') { pattern.split('=').next().unwrap() } else { pattern };
        let axes = pattern.trim_matches(['[', ']', '{', '}']).split_whitespace().filter(|axis| !axis.starts_with('@'));
        let length: usize = axes.map(|axis| if axis.starts_with('*') { 2 } else { 1 }).sum();
        let elements = pattern.starts_with('{').then(|| Sizes { scalar: false, dims: vec![Dim::from(1); length] });
        let shape = if elements.is_some() { vec![length as i64] } else { vec![2; length] };
        for _ in 0..count {
            types.push((name != "none").then(|| TensorType::new(DType::F32, shape.iter().copied())));
            sizes.push(elements.clone());
            given.push(name != "none");
        }
    }
    (types, sizes, given)
}

/// The attributes that it requires; others are 1, or two of them where the name suggests so.
fn attribute(conditions: &str, name: &str) -> Option<Attr> {
    for condition in conditions.split(", ").filter_map(|condition| condition.strip_prefix('$')) {
        let (left, word) = condition.split_once("==").map_or((condition, None), |(left, word)| (left, Some(word)));
        match word {
            _ if left.split('=').next() != Some(name) => {}
            Some(word) => return Some(word.parse().map_or(Attr::Str(word.replace('\'', "")), Attr::Int)),
            None if name == "values_tensor" => return Const::from_f64(DType::F32, &[1], &[0.0]).map(Attr::Tensor),
            None => return Some(Attr::Ints(vec![1, 1])),
        }
    }
    Some(if name.ends_with("shape") || name.ends_with("axes") { Attr::Ints(vec![1, 1]) } else { Attr::Int(1) })
}

/// The results of a node constructed from the signature.
fn results(text: &str) -> Option<Vec<Option<PartialType>>> {
    let (left, _) = text.split_once(" -> ")?;
    let (inputs, conditions) = left.split_once(") if ").unwrap_or((left.trim_end_matches(')'), ""));
    let (types, sizes, given) = fitting(inputs);
    let attr = |name: &str| attribute(conditions, name);
    let version = if conditions.contains("version<20") { 19 } else { 23 };
    let view = View { op_type: "", version, attr: &attr, results: 2, given: &given, types: &types, sizes: &sizes };
    super::types(text, &view, &|_| Some(TensorType::new(DType::F32, [2]).into()))
}

#[test]
fn every_signature_tells_all_results_of_a_node_that_fits() {
    assert!(signatures().count() > 100);
    for (names, text) in signatures() {
        assert!(!names.is_empty() && names.split(' ').all(|name| !name.is_empty()), "{names}({text}");
        let types = results(text).unwrap_or_default();
        assert!(!types.is_empty() && types.iter().all(Option::is_some), "{names}({text}: {types:?}");
    }
}

/// An operator consulted by others consults none itself, so that the recursion ends.
#[test]
fn operators_that_are_asked_about_ask_only_themselves() {
    let asked = |text: &'static str| {
        let results = text.split_once(" -> ").map_or("", |(_, results)| results).split(", ");
        let calls =
            results.filter_map(|result| result.split_once([' ', '[']).filter(|(element, _)| result[element.len()..].starts_with(' ')));
        calls.filter_map(|(_, call)| call.split('(').next()).collect::<Vec<_>>()
    };
    let targets: Vec<&str> = signatures().flat_map(|(_, text)| asked(text)).filter(|name| *name != "self").collect();
    assert!(targets.contains(&"Conv") && targets.contains(&"MatMul"), "{targets:?}");
    for (names, text) in signatures().filter(|(names, _)| names.split(' ').any(|name| targets.contains(&name))) {
        assert!(asked(text).iter().all(|name| *name == "self"), "{names}({text}");
    }
}

#[test]
fn what_is_no_signature_tells_nothing() {
    for text in [
        "x) x",
        "x -> x",
        "x) -> y",
        "x[n) -> x[n]",
        "x[n]) -> x[m]",
        "x[n]) -> x[n",
        "x[n]) -> x[n+]",
        "x[n]) -> x[(n]",
        "x[n]) -> x[half(n)]",
        "x{n) -> x[n]",
        "x) if what -> x",
        "x) -> x self(y)",
        "x[*s *t]) -> x[*s]",
    ] {
        assert!(results(text).is_none_or(|types| types.iter().all(Option::is_none)), "{text}");
    }
    assert!(results("x[n]) -> x[n n*2 (n+1)/2 ?]").is_some_and(|types| types[0].is_some()));
}
