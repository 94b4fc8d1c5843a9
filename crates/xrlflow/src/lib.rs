//! X-RLflow (He and others, "X-RLflow: graph reinforcement learning for neural network subgraphs
//! transformation", MLSys 2023): rewriting as a Markov decision process, and the agent that walks
//! in it.
//!
//! An agent is trained on one graph, by `regraft policy xrlflow`; here it is only computed, in
//! plain loops. The defects of the published program are mended, and each can be restored: see
//! [`Defects`].

mod agent;
mod encoded;
mod environment;
mod rollout;
mod rows;
mod settings;
mod view;
mod weights;

pub use agent::{Agent, Judgement, SLOPE};
pub use encoded::{EDGE, Encoded, Sizes, TYPES};
pub use environment::{Best, Candidate, Environment, Timer, Transition};
pub use rollout::{Random, XRLflow};
pub use rows::{Pool, ROUNDS, Round, Rows, Union};
pub use settings::{Defects, Settings, Shaping};
pub use view::View;
pub use weights::{About, HEAD, NODE, POOLED, Part, WIDTH, Weights, WeightsError};
