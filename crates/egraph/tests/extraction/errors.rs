//! Bad input is told with its place and a hint.

use regraft_egraph::{EGraph, EGraphError, Steps, Tree};

fn message(text: &str) -> String {
    let error = match EGraph::read(text.as_bytes()) {
        Err(error) => error,
        Ok(egraph) => match egraph.extract(&Tree, None, &mut Steps(9)) {
            Err(regraft_egraph::ExtractError::EGraph(error)) => error,
            other => panic!("`{text}` is not refused: {other:?}"),
        },
    };
    assert!(!error.hint().is_empty());
    error.to_string()
}

#[test]
fn each_mistake_has_its_message() {
    let leaf = r#""n": {"op": "x", "eclass": "c"}"#;
    for (text, part) in [
        (String::new(), "ends in the middle"),
        (format!(r#"{{"nodes": {{{leaf},"#), "ends in the middle"),
        ("[1, 2]".into(), "not an e-graph"),
        (r#"{"nodes": [], "root_eclasses": []}"#.into(), "an object with the nodes by their names"),
        (r#"{"root_eclasses": ["c"]}"#.into(), "missing field `nodes`"),
        (r#"{"nodes": {"n": {"op": "x"}}, "root_eclasses": ["c"]}"#.into(), "missing field `eclass`"),
        (format!(r#"{{"nodes": {{{leaf}, {leaf}}}, "root_eclasses": ["c"]}}"#), "`n` is defined twice"),
        (format!(r#"{{"nodes": {{{leaf}}}}}"#), "no root classes"),
        (format!(r#"{{"nodes": {{{leaf}}}, "root_eclasses": ["d"]}}"#), "root class `d` has no nodes"),
        (r#"{"nodes": {"n": {"op": "x", "eclass": "c", "children": ["m"]}}, "root_eclasses": ["c"]}"#.into(), "the child `m`"),
        (r#"{"nodes": {"n": {"op": "x", "eclass": "c", "cost": -1}}, "root_eclasses": ["c"]}"#.into(), "`n` costs -1"),
        (r#"{"nodes": {"n": {"op": "x", "eclass": "c", "cost": 1e999}}, "root_eclasses": ["c"]}"#.into(), "out of range"),
        (r#"{"nodes": {"n": {"op": "x", "eclass": "c", "children": ["n"]}}, "root_eclasses": ["c"]}"#.into(), "`c` has no finite term"),
        (r#"{"nodes": {"n": {"op": "x", "eclass": "c", "subsumed": true}}, "root_eclasses": ["c"]}"#.into(), "is subsumed"),
    ] {
        let message = message(&text);
        assert!(message.contains(part), "`{text}`: {message}");
    }
}

#[test]
fn every_prefix_of_a_file_is_an_error() {
    let text = r#"{"nodes": {"n": {"op": "x", "eclass": "c", "children": ["n"], "cost": 0.5}}, "root_eclasses": ["c"]}"#;
    assert!(EGraph::read(text.as_bytes()).is_ok());
    for end in 0..text.len() {
        let error = EGraph::read(&text.as_bytes()[..end]).expect_err("the end is missing");
        assert!(matches!(error, EGraphError::CutOff { .. }), "{end}: {error}");
    }
}
