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

pub mod backtrack;
pub mod budget;
pub mod engine;
pub mod greedy;
pub mod random_walk;
pub mod savings;
pub mod spread;
pub mod strategy;

pub use backtrack::Backtrack;
pub use budget::{Budget, Steps};
pub use engine::{Counters, Engine, Matcher, Move, all_moves, next_moves};
pub use greedy::Greedy;
pub use random_walk::RandomWalk;
pub use savings::{Savings, Testbed, meets};
pub use spread::Spread;
pub use strategy::{Outcome, Script, Strategy};
