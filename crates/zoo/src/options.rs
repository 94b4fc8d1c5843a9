//! What a caller may choose about a network.

/// How to build a network. The default is seed 0, a fixed batch, random weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Seed of all weights. Every tensor has its own stream, derived from this seed and the
    /// tensor's name.
    pub seed: u64,
    /// Makes the first dimension of every input and output the symbol `N`.
    pub dynamic_batch: bool,
    /// What the weight tensors hold.
    pub weights: Weights,
}

/// What the weight tensors of a built network hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Seeded random values.
    #[default]
    Random,
    /// Zeros of the right size, which cost almost no time or memory. For uses that look at the
    /// structure only.
    Zeros,
}
