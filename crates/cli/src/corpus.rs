//! What the benchmark corpus shows about rules.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The results of `make bench` at the time this program was built.
const RESULTS: &str = include_str!("../../../bench/results/corpus.json");

/// Models that were optimized and timed.
#[derive(Debug, Deserialize)]
pub struct Corpus {
    date: String,
    processor: String,
    runtime: String,
    threads: u32,
    models: Vec<Model>,
}

#[derive(Debug, Deserialize)]
struct Model {
    model: String,
    #[serde(default)]
    rules: BTreeMap<String, usize>,
    independent: Option<Timing>,
}

#[derive(Debug, Deserialize)]
struct Timing {
    speedup: f64,
}

/// A model whose fastest form uses a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Use {
    /// Name of the model.
    pub model: String,
    /// How often the rule was applied to it.
    pub places: usize,
    /// The speedup of the whole model by all its rules together.
    pub speedup: f64,
}

impl Corpus {
    /// The results shipped with this program.
    pub fn shipped() -> Result<Corpus, serde_json::Error> {
        serde_json::from_str(RESULTS)
    }

    /// The models the rule was applied to, the largest gain first.
    pub fn uses(&self, rule: &str) -> Vec<Use> {
        let used = |m: &Model| Some(Use { model: m.model.clone(), places: *m.rules.get(rule)?, speedup: m.independent.as_ref()?.speedup });
        let mut uses: Vec<Use> = self.models.iter().filter_map(used).collect();
        uses.sort_by(|a, b| b.speedup.total_cmp(&a.speedup).then_with(|| a.model.cmp(&b.model)));
        uses
    }
}

impl fmt::Display for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Corpus { date, processor, runtime, threads, models } = self;
        write!(f, "{} models, {runtime}, {processor}, {threads} thread(s), {date}", models.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_sorted_by_gain() {
        let text = r#"{"date": "2026-01-01", "processor": "p", "runtime": "r", "threads": 1, "models": [
            {"model": "a", "rules": {"x": 2}, "independent": {"speedup": 1.2}},
            {"model": "b", "rules": {"x": 1, "y": 3}, "independent": {"speedup": 1.5}},
            {"model": "c", "error": "no output"}]}"#;
        let corpus: Corpus = serde_json::from_str(text).expect("results");
        let uses: Vec<_> = corpus.uses("x").into_iter().map(|u| (u.model, u.places, u.speedup)).collect();
        assert_eq!(uses, [("b".to_string(), 1, 1.5), ("a".to_string(), 2, 1.2)]);
        assert!(corpus.uses("z").is_empty());
    }

    #[test]
    fn the_shipped_results_are_read_and_name_rules_of_the_library() {
        let corpus = Corpus::shipped().expect("bench/results/corpus.json");
        let library = regraft_rules::Library::shipped().expect("rules");
        assert!(corpus.models.iter().any(|m| m.rules.keys().any(|name| library.get(name).is_some())));
    }
}
