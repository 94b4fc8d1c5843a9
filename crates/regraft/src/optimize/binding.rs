//! Bindings of symbolic sizes. A model is measured and checked at each.

use regraft_onnx::Model;
use regraft_runtime::{Feeds, Fill, ModelSource, Runtime};

use crate::data::Data;
use crate::error::Failure;
use crate::optimize::request::Request;
use crate::report::Speedup;
use crate::sizes::Sizes;

/// Maximum number of bindings per run: each is compared and checked separately.
const MOST: usize = 16;

/// One binding: sizes of all inputs, and values to run with.
pub struct Binding {
    /// The symbols that have several values, with those of this binding: `N=8`. Empty if there is
    /// only one binding.
    pub label: String,
    /// Sizes of all inputs.
    pub sizes: Sizes,
    /// Values to measure with.
    pub feeds: Feeds,
    /// The user's own values, if they have these sizes.
    pub data: Vec<(String, Feeds)>,
}

impl Binding {
    /// The label of this binding at one thread, in a run with several: `N=8, 1 thread`.
    pub fn label_at_one_thread(&self) -> String {
        let separator = if self.label.is_empty() { "" } else { ", " };
        format!("{}{separator}1 thread", self.label)
    }

    /// All bindings of a request, in the order given. With `run`,
    /// open sizes are guessed by running the model; otherwise, from what it declares.
    pub fn all(request: &Request, model: &Model, run: Option<(ModelSource<'_>, &dyn Runtime)>) -> Result<Vec<Binding>, Failure> {
        let bindings = combinations(&request.binds)?;
        let several: Vec<&str> = request.binds.iter().filter(|(_, values)| values.len() > 1).map(|(name, _)| name.as_str()).collect();
        let data = Data::read(&request.data, model)?;
        let mut bound: Vec<Binding> = Vec::new();
        for binds in bindings {
            let shapes = data.sizes(model, &request.shapes, &binds);
            let sizes = match run {
                Some((original, runtime)) => Sizes::resolve(model, original, runtime, &shapes, &binds)?,
                None => Sizes::declared(model, &shapes, &binds)?,
            };
            let varied = binds.iter().filter(|(name, _)| several.contains(&name.as_str()));
            let label = varied.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
            if let Some(same) = bound.iter().find(|p| p.sizes.inputs == sizes.inputs) {
                return Err(Failure::new(format!("--bind {} and {label} give the same sizes", same.label))
                    .hint("name a symbol that an input declares, or that --shape gives to one"));
            }
            // The user's own values come with sizes: they belong to the first binding.
            let data = if bound.is_empty() { data.fitting(&sizes)? } else { Vec::new() };
            let feeds = data.first().map_or_else(|| sizes.feeds(Fill::Normal, request.seed), |(_, feeds)| Ok(feeds.clone()))?;
            bound.push(Binding { label, sizes, feeds, data });
        }
        Ok(bound)
    }
}

/// Every combination of the values of all symbols, the last symbol varying fastest.
fn combinations(binds: &[(String, Vec<i64>)]) -> Result<Vec<Vec<(String, i64)>>, Failure> {
    let mut all: Vec<Vec<(String, i64)>> = vec![Vec::new()];
    for (at, (name, values)) in binds.iter().enumerate() {
        if binds[..at].iter().any(|(before, _)| before == name) {
            return Err(Failure::new(format!("--bind gives `{name}` twice")).hint(format!("write all its values in one: {name}=1,8")));
        }
        let extend = |so_far: &Vec<(String, i64)>| {
            let one = |value: &i64| so_far.iter().cloned().chain([(name.clone(), *value)]).collect::<Vec<_>>();
            values.iter().map(one).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extend).collect();
        if all.len() > MOST {
            return Err(Failure::new(format!("--bind gives more than {MOST} combinations of sizes")).hint("give fewer values"));
        }
    }
    Ok(all)
}

/// The geometric mean of speed-ups; its interval is that of the ends, and its number of pairs the
/// smallest of theirs.
pub fn geometric_mean(speedups: &[Speedup]) -> Speedup {
    let Some(pairs) = speedups.iter().map(|s| s.pairs).min() else { return Speedup::NONE };
    let mean = |part: &dyn Fn(&Speedup) -> f64| (speedups.iter().map(|s| part(s).ln()).sum::<f64>() / speedups.len() as f64).exp();
    if let [one] = speedups {
        return *one;
    }
    Speedup { median: mean(&|s| s.median), low: mean(&|s| s.low), high: mean(&|s| s.high), pairs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_combined() {
        let binds = [("N".to_string(), vec![1, 8]), ("S".to_string(), vec![128]), ("T".to_string(), vec![2, 3])];
        let all = combinations(&binds).unwrap_or_default();
        let shown: Vec<Vec<i64>> = all.iter().map(|b| b.iter().map(|(_, v)| *v).collect()).collect();
        assert_eq!(shown, [[1, 128, 2], [1, 128, 3], [8, 128, 2], [8, 128, 3]]);
        assert_eq!(combinations(&[]).map(|all| all.len()).ok(), Some(1));
        assert!(combinations(&[("N".into(), (1..18).collect())]).is_err());
        assert!(combinations(&[("N".into(), vec![1]), ("N".into(), vec![2])]).is_err());
    }

    #[test]
    fn means_are_geometric() {
        let speedup = |median, pairs| Speedup { median, low: median - 0.1, high: median + 0.1, pairs };
        let mean = geometric_mean(&[speedup(2.0, 20), speedup(0.5, 8)]);
        assert!((mean.median - 1.0).abs() < 1e-12 && mean.pairs == 8 && mean.low < 1.0 && mean.high > 1.0);
        assert_eq!(geometric_mean(&[speedup(1.5, 3)]), speedup(1.5, 3));
        assert_eq!(geometric_mean(&[]), Speedup::NONE);
    }
}
