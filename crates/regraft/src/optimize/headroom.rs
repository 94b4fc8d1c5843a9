//! How far the result is from what the machine can do.

use std::time::Instant;

use regraft_cost::{Arithmetic, Attribution, Ceiling, Spot, spots};
use regraft_ir::Graph;

use crate::error::Failure;
use crate::optimize::candidate::{Candidate, Timed};
use crate::optimize::ceiling;
use crate::optimize::observer::Phase;
use crate::optimize::run::Run;
use crate::optimize::tune::place;
use crate::optimize::validate::Decision;
use crate::report::{Headroom, Slow};

/// Operators that are named.
const NAMED: usize = 3;
/// A share of the peak beyond which the peak was not one: it was measured at a bad time.
const BEYOND: f64 = 1.0;

/// Where the time of one model's runs went.
pub struct Profiled {
    /// The graph.
    pub graph: Graph,
    /// Time of its operators.
    pub attribution: Attribution,
    /// Time of a whole run that was not profiled, ns, if there was one.
    pub run_ns: Option<f64>,
}

/// How far input and output are from the limit. What was not measured is left out.
pub fn headroom(run: &mut Run<'_>, decision: &Decision) -> Headroom {
    let start = Instant::now();
    run.phase(Phase::Measure, "how far it is from the limit");
    let winner = decision.winner();
    let symbols = run.job.sizes().symbols.clone();
    let input = Arithmetic::of(&run.job.input.graph, &symbols);
    let output = winner.map_or(input, |winner| Arithmetic::of(&winner.graph, &symbols));
    let mut headroom =
        Headroom { flops: (input.flops, output.flops), uncounted: (input.uncounted, output.uncounted), ..Headroom::default() };
    if let Err(why) = measured(run, decision, winner, &mut headroom) {
        run.journal.warnings.push(format!("how far the result is from the limit was not measured: {}", why.cause));
    }
    run.journal.seconds.measure += start.elapsed().as_secs_f64();
    headroom
}

fn measured(run: &mut Run<'_>, decision: &Decision, winner: Option<&Candidate>, headroom: &mut Headroom) -> Result<(), Failure> {
    let affordable = !run.is_interrupted() && run.clock.affords(ceiling::TAKES);
    let profiled = run.evaluator.profiled(winner, affordable)?;
    let median = |timed: Option<&Timed>| timed.map(|timed| timed.median_ns).filter(|ns| *ns > 0.0);
    let ran = profiled.as_ref().and_then(|profiled| profiled.run_ns);
    let input = median(decision.comparison.input.deciding.first());
    let times = match winner {
        Some(winner) => input.zip(median(winner.timings.deciding.first())),
        None => input.or(ran).map(|ns| (ns, ns)),
    };
    let shares = |ceiling: &Ceiling| times.map(|(a, b)| (headroom.flops.0 / a / ceiling.flops, headroom.flops.1 / b / ceiling.flops));
    let Some(mut ceiling) = run.evaluator.ceiling(affordable)? else { return Ok(()) };
    if affordable && shares(&ceiling).is_some_and(|(a, b)| a.max(b) > BEYOND) {
        ceiling = run.evaluator.renewed_ceiling(ceiling)?;
    }
    headroom.share = shares(&ceiling).filter(|_| run.evaluator.is_timed());
    (headroom.peak, headroom.bandwidth) = (Some(ceiling.flops * 1e9), Some(ceiling.bandwidth * 1e9));
    if let Some(Profiled { graph, attribution, .. }) = profiled {
        let total = attribution.total();
        let found = spots(&graph, run.evaluator.prices().bindings(), &attribution, &ceiling);
        headroom.slowest = found.iter().filter(|spot| spot.above() > 0.0).take(NAMED).map(|spot| slow(&graph, spot, total)).collect();
    }
    Ok(())
}

fn slow(graph: &Graph, spot: &Spot, total: f64) -> Slow {
    Slow {
        operator: graph.node(spot.node).op.kind().name().into(),
        at: place(graph, spot.node.out()),
        ns: spot.ns,
        share: spot.ns / total,
        flops_per_second: spot.flops / spot.ns * 1e9,
        limit_ns: spot.limit_ns,
    }
}
