//! Searches the models that rules reach: one engine, many strategies.
//!
//! ```
//! use regraft_cost::Roofline;
//! use regraft_ir::{Bindings, text};
//! use regraft_rules::{Anything, Library, parse};
//! use regraft_search::{Engine, Greedy, Matcher, Steps, Strategy};
//!
//! let rule = "(rule relu-relu (relu (relu ?x)) => (relu ?x) (numeric exact))";
//! let library = Library::new(parse("my.rules", rule)?)?;
//! let model = Roofline::new(Bindings::new());
//! let graph = text::parse("graph (x: f32[64]) { a = Relu(x) b = Relu(a) y = Relu(b) output y }")?;
//! let mut engine = Engine::new(graph, &model);
//! let mut matcher = Matcher::new(&library, &Anything);
//! let found = Greedy::default().search(&mut engine, &mut matcher, &mut Steps(100));
//! found.scripts[0].moves.iter().for_each(|step| engine.apply(step));
//! assert_eq!((engine.graph().len(), engine.cost()), (2, found.scripts[0].cost));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abridge;
pub mod advice;
pub mod backtrack;
mod beam;
mod beside;
mod best;
mod best_first;
mod chain;
pub mod descents;
pub mod dpp;
pub mod engine;
pub mod enumerate;
pub mod exact;
mod flow_split;
pub mod greedy;
pub mod guided;
mod lineage;
pub mod metaflow;
mod min_cut;
mod offers;
mod ordered;
pub mod portfolio;
pub mod prune;
pub mod random_walk;
mod region_search;
mod regions;
pub mod sample;
pub mod savings;
pub mod sleep_sets;
pub mod spell;
pub mod spread;
pub mod strategy;
pub mod table;
mod transfer;
mod traversal;

pub use advice::{Advice, Advisor};
pub use backtrack::Backtrack;
pub use descents::Descents;
pub use dpp::Dpp;
pub use engine::{Counters, Engine, MatchCache, Matcher, Move, Moves, Refusals, all_moves, next_moves};
pub use enumerate::Enumerate;
pub use exact::Exact;
pub use greedy::Greedy;
pub use guided::Guided;
pub use metaflow::MetaFlow;
pub use ordered::Order;
pub use portfolio::Portfolio;
pub use prune::Prune;
pub use random_walk::RandomWalk;
pub use regraft_ir::{Budget, Steps};
pub use sample::Sample;
pub use savings::{Savings, Testbed, meets};
pub use sleep_sets::SleepSets;
pub use spell::spell;
pub use spread::Spread;
pub use strategy::{Outcome, Region, Script, Strategy};
pub use table::Table;
pub use traversal::Exhaustive;
