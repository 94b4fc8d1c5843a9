//! Whether weights are written with zeros instead of their subnormal elements.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use regraft_ir::Trust;
use regraft_rules::Numeric;

use crate::optimize::request::{CostKind, Request, denied};

/// Their name in reports, and in `--deny`.
pub const NAME: &str = "subnormal-weights";

/// Products that are timed, and how often.
const PRODUCTS: usize = 4096;
const TIMES: usize = 5;
/// By what factor products with subnormal numbers take longer on processors that are slow at them;
/// on others, by less than two.
const SLOW: f64 = 4.0;

/// Whether a result may have them, and would be faster here: what is decided by anything but
/// measurements on this machine keeps its weights.
pub fn are_flushed(request: &Request) -> bool {
    let rules = &request.rules;
    let may = rules.require != Some(Trust::Proved) && !denied(&rules.deny, NAME, Numeric::RoundsConstants);
    may && !request.untimed && matches!(request.cost, CostKind::Measured) && are_slow()
}

/// Whether this machine takes long for products with subnormal numbers.
fn are_slow() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    let time = |factor: f32| {
        let products = || {
            let start = Instant::now();
            let sum: f32 = (0..PRODUCTS).map(|_| black_box(factor) * black_box(0.75f32)).sum();
            black_box(sum);
            start.elapsed().as_secs_f64()
        };
        (0..TIMES).map(|_| products()).fold(f64::INFINITY, f64::min)
    };
    *KNOWN.get_or_init(|| time(1e-39) > SLOW * time(1e-3))
}
