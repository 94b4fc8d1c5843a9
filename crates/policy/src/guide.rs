//! `Guide`: what says which move to take next.

use crate::weights::Weights;

/// What says which move to take next.
#[derive(Clone, Copy, Debug)]
pub enum Guide<'w> {
    /// A trained policy.
    Policy(&'w Weights),
    /// What a move adds to the cost, and nothing else.
    Delta,
}
