//! How far a model is from what the machine can do, human-readable.

use std::fmt::Write;

use crate::render::{count, lines, plain_table};
use crate::report::{Headroom, Slow};
use crate::units::show_ns;

/// Arithmetic, and the share of the peak that whole runs reach.
pub fn arithmetic(headroom: &Headroom) -> String {
    let Headroom { flops, uncounted, peak, share, .. } = headroom;
    let both = |(before, after): (String, String)| if before == after { before } else { format!("{before} -> {after}") };
    let (factor, prefix) = scale(flops.0.max(flops.1));
    let mut text = format!("arithmetic {} {prefix}FLOP", both((figures(flops.0 / factor), figures(flops.1 / factor))));
    if uncounted.1 > 0 {
        let _ = write!(text, ", without {}", count(uncounted.1, "unknown operator"));
    }
    if let (Some(peak), Some((before, after))) = (peak, share) {
        let percent = |share: &f64| format!("{:.0} %", 100.0 * share);
        let (factor, prefix) = scale(*peak);
        let reached = format!("{} {prefix}FLOP/s", figures(peak / factor));
        let _ = write!(text, "; {} of the {reached} that this machine reaches in products", both((percent(before), percent(after))));
    }
    text
}

/// The operators with the most time above their roofline.
pub fn slowest(headroom: &Headroom) -> String {
    let mut table = plain_table(&["above its limit", "at", "time", "of the run", "GFLOP/s", "limit"], &[2, 3, 4, 5]);
    for Slow { operator, at, ns, share, flops_per_second, limit_ns } in &headroom.slowest {
        let (share, speed) = (format!("{:.0} %", 100.0 * share), figures(flops_per_second / 1e9));
        table.add_row([operator.clone(), at.clone(), show_ns(*ns), share, speed, show_ns(*limit_ns)]);
    }
    lines(&table)
}

/// The unit for a number of operations.
fn scale(flops: f64) -> (f64, &'static str) {
    match flops {
        n if n < 1e6 => (1e3, "k"),
        n if n < 1e9 => (1e6, "M"),
        n if n < 1e13 => (1e9, "G"),
        _ => (1e12, "T"),
    }
}

/// A number with two significant digits or more: `3.9`, `112`.
fn figures(value: f64) -> String {
    match value {
        n if n < 0.095 => format!("{n:.3}"),
        n if n < 0.95 => format!("{n:.2}"),
        n if n < 9.95 => format!("{n:.1}"),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_told() {
        let mut headroom = Headroom { flops: (3.86e9, 2.1e9), ..Headroom::default() };
        assert_eq!(arithmetic(&headroom), "arithmetic 3.9 -> 2.1 GFLOP");
        (headroom.peak, headroom.share) = (Some(112.4e9), Some((0.612, 0.58)));
        assert_eq!(
            arithmetic(&headroom),
            "arithmetic 3.9 -> 2.1 GFLOP; 61 % -> 58 % of the 112 GFLOP/s that this machine reaches in products"
        );
        (headroom.flops.1, headroom.share, headroom.uncounted.1) = (headroom.flops.0, Some((0.612, 0.612)), 1);
        assert_eq!(
            arithmetic(&headroom),
            "arithmetic 3.9 GFLOP, without 1 unknown operator; 61 % of the 112 GFLOP/s that this machine reaches in products"
        );
    }

    #[test]
    fn an_operator_is_a_row() {
        let slow = Slow { operator: "Conv".into(), at: "y".into(), ns: 2e6, share: 0.25, flops_per_second: 40e9, limit_ns: 7e5 };
        let text = slowest(&Headroom { slowest: vec![slow], ..Headroom::default() });
        let row = text.lines().nth(1).expect("a row");
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["Conv", "y", "2.00", "ms", "25", "%", "40", "700.0", "µs"]);
    }
}
