//! Drawing: an instance of a rule, made from a seed.

use std::collections::HashMap;

use regraft_ir::{Const, Graph, Op, ValueId};

use super::instance::{Instance, Miss, rewritten};
use super::operands::data;
use super::sampler::{Known, Stop, source};
use crate::expr::{Expr, Val};
use crate::path::{Choices, Rng};
use crate::rule::{Rule, Values};
use crate::spelling::Spelling;

/// Which sizes of an instance are symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sizes {
    /// None: all are numbers.
    Known,
    /// Those given by parameters of the instance clause, each with even odds.
    Some,
    /// All those given by parameters, and all those written as numbers above 1.
    Open,
}

/// Draws an instance of `rule`. Deterministic in `seed`.
pub fn draw(rule: &Rule, seed: u64) -> Result<Instance, Miss> {
    draw_sized(rule, seed, Sizes::Known)
}

/// Draws an instance of `rule` with some symbolic sizes.
///
/// Constants of such sizes are parameters of the graph, without elements. `profitable` clauses are
/// ignored: what is true does not depend on them, and what pays may be too large for a test.
pub fn draw_sized(rule: &Rule, seed: u64, sizes: Sizes) -> Result<Instance, Miss> {
    let (before, roots) = sized_graph(rule, seed, sizes).map_err(Miss::Draw)?;
    let instance = rewritten(&rule.anywhere(), before, &roots)?;
    let feeds = feeds(&instance.before, seed);
    Ok(Instance { feeds, ..instance })
}

/// The source of `rule` as a random graph with its roots as outputs; otherwise the reason why this
/// draw is not an instance.
pub fn graph(rule: &Rule, seed: u64) -> Result<(Graph, Vec<ValueId>), String> {
    sized_graph(rule, seed, Sizes::Known)
}

fn sized_graph(rule: &Rule, seed: u64, open: Sizes) -> Result<(Graph, Vec<ValueId>), String> {
    let mut rng = Rng::new(seed | 1);
    let spelling = Spelling::draw(open, &mut |n| rng.below(n));
    let (sampled, _) = source(rule, Choices::Random(rng), open, spelling, None, &mut Known::default());
    sampled.map_err(|stop| match stop {
        Stop::Untyped(why) => why,
        _ => "out of the domain".to_string(),
    })
}

/// Random values for the inputs of an instance.
pub(crate) fn feeds(graph: &Graph, seed: u64) -> HashMap<String, Const> {
    let mut rng = Choices::Random(Rng::new(seed.rotate_left(17) | 1));
    let mut feeds = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { continue };
        let shape: Vec<i64> = input.ty.known_shape().unwrap_or_default();
        let values = match input.name.split('_').nth(1) {
            Some("positive") => Values::Positive,
            Some("index") => {
                Values::Index(Expr::Literal(Val::int(input.name.rsplit('_').next().and_then(|n| n.parse().ok()).unwrap_or(2))))
            }
            _ => Values::Normal,
        };
        if let Ok(constant) = data(&mut rng, input.ty.dtype, &shape, &values, &[], graph) {
            feeds.insert(input.name.to_string(), constant);
        }
    }
    feeds
}
