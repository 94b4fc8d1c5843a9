//! An application of a rule, as text.

use regraft_ir::{Graph, text};
use regraft_rules::{Anything, Rule, instantiate, matches_at, sample};
use serde::Serialize;

/// Random instances from which the smallest is shown.
const DRAWS: u64 = 400;
/// Numbers of a constant to show.
const NUMBERS_SHOWN: usize = 4;

/// A small graph before and after applying a rule. Long constants are truncated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    pub before: String,
    pub after: String,
}

impl Example {
    /// The smallest of many random instances.
    pub fn smallest(rule: &Rule) -> Option<Example> {
        let size = |(before, after): &(Graph, Graph)| {
            let inputs: i64 = before.ids().filter_map(|id| before.ty(id.out())?.elements().known()).sum();
            (before.len() + after.len(), inputs)
        };
        (0..DRAWS).filter_map(|seed| instance(rule, seed)).min_by_key(size).map(Example::new)
    }

    /// The instance of a seed.
    pub fn of(rule: &Rule, seed: u64) -> Option<Example> {
        instance(rule, seed).map(Example::new)
    }

    fn new((before, after): (Graph, Graph)) -> Example {
        Example { before: shortened(&text::print(&before)), after: shortened(&text::print(&after)) }
    }
}

fn instance(rule: &Rule, seed: u64) -> Option<(Graph, Graph)> {
    let (graph, roots) = sample::graph(rule, seed).ok()?;
    let found = matches_at(&graph, rule, 0, roots.first()?.node);
    let found = found.into_iter().find(|f| f.roots.iter().all(|r| roots.contains(r)))?;
    let patch = instantiate(&graph, rule, &found, &Anything).ok()?;
    let mut after = graph.clone();
    after.apply(&patch);
    regraft_ir::normal::dce(&mut after);
    Some((graph, after))
}

/// A graph's text with long lists of numbers truncated.
fn shortened(text: &str) -> String {
    let cut = |line: &str| -> String {
        let Some((head, rest)) = line.split_once(" = [").filter(|(head, _)| head.trim_start().starts_with("const ")) else {
            return line.to_string();
        };
        let numbers: Vec<&str> = rest.trim_end().trim_end_matches(']').split(", ").collect();
        if numbers.len() <= NUMBERS_SHOWN {
            return line.to_string();
        }
        format!("{head} = [{}, ...]", numbers[..NUMBERS_SHOWN].join(", "))
    };
    text.lines().map(|line| format!("{}\n", cut(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_constants_are_cut() {
        let text =
            "graph (x: f32[2]) {\n  const a: f32[5] = [1, 2, 3, 4, 5]\n  const b: f32[2] = [1, 2]\n  y = Split(x, sizes=[1, 1])\n}\n";
        let want = text.replace("3, 4, 5]", "3, 4, ...]");
        assert_eq!(shortened(text), want);
    }

    #[test]
    fn an_example_is_a_real_application() {
        let text = ";; a\n(rule double-relu (relu (relu ?x)) => (relu ?x) (numeric exact) (doc \"d\") (instance (?x 2 3)))";
        let rules = regraft_rules::parse("t.rules", text).unwrap_or_else(|e| panic!("{e}"));
        let Example { before, after } = Example::smallest(&rules[0]).expect("it has instances");
        assert_eq!((before.matches("Relu(").count(), after.matches("Relu(").count()), (2, 1), "{before}{after}");
    }
}
