//! The numbers of X-RLflow's training, and its defects as switches.

use serde::{Deserialize, Serialize};

/// How an agent looks at graphs, how it is rewarded, and how it is trained (X-RLflow, MLSys 2023,
/// table 4 and section 4; what the paper leaves open is as in its code).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Rewrites of an episode at most.
    pub horizon: usize,
    /// A state is timed after every so many rewrites, and when the agent stops.
    pub feedback: usize,
    /// Candidates that the heads have a place for, with the one that stops.
    pub slots: usize,
    /// Graphs with so many times the operators of the current one are no candidates.
    pub growth: f64,
    /// What a reward is worth a step later.
    pub discount: f32,
    /// How far advantages look ahead (Schulman and others, "Generalized advantage estimation",
    /// 2016).
    pub lambda: f32,
    /// By how much a probability may change in an update (Schulman and others, "Proximal policy
    /// optimization", 2017).
    pub clip: f32,
    /// Size of a step of Adam.
    pub rate: f32,
    /// Gradients are scaled down to this norm.
    pub norm: f32,
    /// Weight of the error of values.
    pub value: f32,
    /// Weight of entropy.
    pub entropy: f32,
    /// Episodes between updates.
    pub episodes: usize,
    /// Passes over their steps in an update.
    pub epochs: usize,
    /// Steps of a minibatch.
    pub minibatch: usize,
    /// An update ends where the probabilities have come this far from those that were acted by...
    pub divergence: f32,
    /// ...once there have been so many updates.
    pub warm_up: usize,
    /// What unmeasured steps earn.
    pub shaping: Shaping,
    /// What of the published program is restored.
    pub defects: Defects,
}

/// What steps earn that are not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shaping {
    /// Nothing.
    None,
    /// 0.1, as published: as much for eighty idle steps as for a gain of 8 %.
    Bonus,
    /// By what the price list says of the state before and after (potential-based shaping: Ng,
    /// Harada and Russell, ICML 1999), which changes no optimum.
    Potential,
}

/// Defects of the published program, each of which can be restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defects {
    /// Attention depends on the sender alone: the receiver adds the same to the logits of all its
    /// senders, which a softmax takes out again. Mended, a leaky ReLU lies between (Velickovic and
    /// others, "Graph attention networks", 2018).
    pub blind_attention: bool,
    /// Advantages flow from an episode that was cut off into the next one, and the last step of a
    /// batch is not compared with its value. Mended, an episode that was cut off ends with the
    /// value of its last state.
    pub crossing_advantages: bool,
    /// The last state of an episode is returned, not the best one.
    pub last_state: bool,
    /// Sizes are divided by 4096 rather than taken as logarithms.
    pub linear_sizes: bool,
}

impl Default for Settings {
    /// The published numbers, without the defects.
    fn default() -> Settings {
        Settings {
            horizon: 100,
            feedback: 5,
            slots: 500,
            growth: 2.0,
            discount: 0.99,
            lambda: 0.95,
            clip: 0.2,
            rate: 5e-4,
            norm: 0.5,
            value: 0.5,
            entropy: 0.01,
            episodes: 10,
            epochs: 4,
            minibatch: 16,
            divergence: 0.05,
            warm_up: 10,
            shaping: Shaping::Potential,
            defects: Defects::default(),
        }
    }
}

impl Settings {
    /// As published, defects and all.
    pub fn published() -> Settings {
        let defects = Defects { blind_attention: true, crossing_advantages: true, last_state: true, linear_sizes: true };
        Settings { shaping: Shaping::Bonus, defects, ..Settings::default() }
    }
}
