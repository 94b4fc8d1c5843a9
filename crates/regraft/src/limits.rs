//! What a process may take that loads a result: absolute limits, and limits relative to the input.

use regraft_runtime::Startup;

use crate::units::{parse_bytes, parse_duration, show_bytes, show_ns};

/// The most that something may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// So many ns or bytes.
    Most(u64),
    /// So many times what it is for the input.
    Times(f64),
}

/// Limits on what a process takes that loads the result and runs it once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Time to load it, ns.
    pub load: Option<Limit>,
    /// Peak memory, bytes.
    pub memory: Option<Limit>,
}

/// What is limited: the option, what is known of the input and of the model, and how it is said.
struct Quantity {
    limit: Limit,
    option: &'static str,
    verb: &'static str,
    input: Option<u64>,
    model: Option<u64>,
    show: fn(u64) -> String,
}

impl Limit {
    /// The most, given what it is for the input; `None` if that is needed and not known.
    pub fn most(self, input: Option<u64>) -> Option<u64> {
        match self {
            Limit::Most(most) => Some(most),
            Limit::Times(factor) => input.map(|input| (input as f64 * factor) as u64),
        }
    }
}

impl Limits {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.load.is_none() && self.memory.is_none()
    }

    /// Why a model exceeds them. What is not known is not within a limit.
    pub fn exceeded(&self, input: Option<&Startup>, model: Option<&Startup>) -> Option<String> {
        let exceeded = |quantity: Quantity| {
            let Quantity { limit, option, verb, input, model, show } = quantity;
            let (Some(most), Some(taken)) = (limit.most(input), model) else {
                return Some(format!("it is not known what a process takes to {verb} it, so {option} cannot be shown to hold"));
            };
            let than = input.map_or_else(String::new, |input| format!(" (the input {})", show(input)));
            let why = || format!("a process takes {} to {verb} it{than}, {} are allowed ({option} allows more)", show(taken), show(most));
            (taken > most).then(why)
        };
        self.quantities(input, model).filter_map(exceeded).reduce(|all, why| format!("{all}; {why}"))
    }

    /// The share of what a model takes beyond the input that the limits allow, from 0 to 1.
    pub fn allowed_share(&self, input: Option<&Startup>, model: Option<&Startup>) -> f64 {
        let share = |quantity: Quantity| {
            let (Some(input), Some(model)) = (quantity.input, quantity.model) else { return 0.0 };
            let Some(most) = quantity.limit.most(Some(input)) else { return 0.0 };
            let (allowed, more) = (most as f64 - input as f64, model as f64 - input as f64);
            if model <= most { 1.0 } else { (allowed / more.max(1.0)).clamp(0.0, 1.0) }
        };
        self.quantities(input, model).map(share).fold(1.0, f64::min)
    }

    fn quantities(&self, input: Option<&Startup>, model: Option<&Startup>) -> impl Iterator<Item = Quantity> {
        let load = |startup: Option<&Startup>| startup.map(|startup| startup.load_ns);
        let peak = |startup: Option<&Startup>| startup.and_then(|startup| startup.peak_bytes);
        let (loads, peaks) = ((load(input), load(model)), (peak(input), peak(model)));
        let time = self.load.map(|limit| Quantity {
            limit,
            option: "--max-load",
            verb: "load",
            input: loads.0,
            model: loads.1,
            show: |ns| show_ns(ns as f64),
        });
        let memory = self.memory.map(|limit| Quantity {
            limit,
            option: "--max-memory",
            verb: "load and run",
            input: peaks.0,
            model: peaks.1,
            show: show_bytes,
        });
        time.into_iter().chain(memory)
    }
}

/// Parses a `--max-load`: `2s`, `500ms`, `1.5x`.
pub fn parse_max_load(text: &str) -> Result<Limit, String> {
    let time = || parse_duration(text).map_err(|why| format!("{why}, or 1.5x for that much of the input's"));
    factor(text).unwrap_or_else(|| Ok(Limit::Most(u64::try_from(time()?.as_nanos()).unwrap_or(u64::MAX))))
}

/// Parses a `--max-memory`: `1GB`, `900M`, `1.2x`.
pub fn parse_max_memory(text: &str) -> Result<Limit, String> {
    let bytes = || parse_bytes(text).map_err(|why| format!("{why}, or 1.5x for that much of the input's"));
    factor(text).unwrap_or_else(|| bytes().map(Limit::Most))
}

/// A factor, if the text is written as one.
fn factor(text: &str) -> Option<Result<Limit, String>> {
    let number = text.strip_suffix('x')?;
    Some(match number.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(Limit::Times(factor)),
        _ => Err(format!("`{text}` is no factor; write 1.5x")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn startup(load_ms: u64, megabytes: u64) -> Startup {
        Startup { load_ns: load_ms * 1_000_000, peak_bytes: Some(megabytes * 1_000_000) }
    }

    #[test]
    fn limits_are_amounts_or_factors() {
        assert_eq!(parse_max_load("2s"), Ok(Limit::Most(2_000_000_000)));
        assert_eq!(parse_max_load("500ms"), Ok(Limit::Most(500_000_000)));
        assert_eq!(parse_max_load("1.5x"), Ok(Limit::Times(1.5)));
        assert_eq!(parse_max_memory("1G"), Ok(Limit::Most(1 << 30)));
        assert_eq!(parse_max_memory("1.2x"), Ok(Limit::Times(1.2)));
        for (bad, says) in [("fast", "1.5x"), ("-1x", "no factor"), ("x", "no factor"), ("infx", "no factor"), ("1y", "1.5x")] {
            let (load, memory) = (parse_max_load(bad).unwrap_err(), parse_max_memory(bad).unwrap_err());
            assert!(load.contains(says) && memory.contains(says), "{load}, {memory}");
        }
    }

    #[test]
    fn only_what_is_known_is_within_a_limit() {
        let input = startup(100, 50);
        let exceeded = |load, memory, model: Option<Startup>| Limits { load, memory }.exceeded(Some(&input), model.as_ref());
        let twice = Some(Limit::Times(2.0));
        assert_eq!(exceeded(None, None, None), None);
        assert_eq!(exceeded(twice, twice, Some(startup(200, 100))), None);
        let why = exceeded(twice, None, Some(startup(201, 1))).expect("too slow");
        assert_eq!(why, "a process takes 201.00 ms to load it (the input 100.00 ms), 200.00 ms are allowed (--max-load allows more)");
        let why = exceeded(Some(Limit::Most(1)), Some(Limit::Most(60_000_000)), Some(startup(1, 61))).expect("too much of both");
        assert!(why.contains("--max-load") && why.contains("takes 61.0 MB to load and run it (the input 50.0 MB), 60.0 MB are"), "{why}");
        let why = exceeded(twice, None, None).expect("unknown");
        assert!(why.contains("not known") && why.contains("--max-load"), "{why}");
        assert!(exceeded(None, twice, Some(Startup { peak_bytes: None, ..input })).is_some());
        assert!(Limits { load: twice, memory: None }.exceeded(None, Some(&input)).is_some());
        assert_eq!(Limits { load: Some(Limit::Most(u64::MAX)), memory: None }.exceeded(None, Some(&input)), None);
    }

    #[test]
    fn the_share_that_is_allowed_is_that_of_the_tighter_limit() {
        let limits = Limits { load: Some(Limit::Most(150_000_000)), memory: Some(Limit::Times(1.5)) };
        let share = |load, memory| limits.allowed_share(Some(&startup(100, 100)), Some(&startup(load, memory)));
        assert_eq!(share(120, 140), 1.0);
        assert_eq!(share(200, 140), 0.5);
        assert_eq!(share(200, 300), 0.25);
        assert_eq!(limits.allowed_share(Some(&startup(200, 100)), Some(&startup(300, 100))), 0.0);
        assert_eq!(limits.allowed_share(None, Some(&startup(1, 1))), 0.0);
    }
}
