//! The options of a network.

/// How to build a network. The default is seed 0, a fixed batch, random weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Seed of all weights. Every tensor has its own stream, derived from this seed and the
    /// tensor's name.
    pub seed: u64,
    /// Makes the first dimension of every input and output the symbol `N`.
    pub dynamic_batch: bool,
    /// Makes the sizes of the image or recording symbols: `H` and `W`, or `L`. What is between
    /// input and output is then declared without sizes.
    pub dynamic_field: bool,
    /// What the weight tensors contain.
    pub weights: Weights,
}

/// The contents of the weight tensors in a built network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Seeded random values.
    #[default]
    Random,
    /// Zeros of the right size, which cost almost no time or memory. For uses that only need the
    /// structure. Weights of one shape are equal, and may be merged.
    Zeros,
    /// A few numbers and zeros, as cheap, such that no two weights begin alike. For searches, which
    /// go by types and by what is the same.
    Outlines,
}
