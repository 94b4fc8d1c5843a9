//! Steps down a gradient (Kingma and Ba, "Adam", 2015, algorithm 1), at a rate that rises and then
//! falls.

/// Decay of the running means, and what is added to the root that a step is divided by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adam {
    /// Of the means of gradients, and of their squares.
    pub decay: (f32, f32),
    /// Added to the root.
    pub epsilon: f32,
}

/// That of all training but reinforcement learning.
pub(crate) const USUAL: Adam = Adam { decay: (0.9, 0.99), epsilon: 1e-8 };

/// The rate of a step: it rises to `peak` over the first `warm_up` steps, and falls to zero with
/// the share of training that is done, along a cosine.
pub(crate) fn rate(peak: f32, warm_up: f32, steps: i32, done: f32) -> f32 {
    let risen = (steps as f32 / warm_up).min(1.0);
    peak * risen * 0.5 * (1.0 + (std::f32::consts::PI * done.min(1.0)).cos())
}

impl Adam {
    /// What running means are divided by after so many steps, for they began with zeros.
    pub fn corrections(self, steps: i32) -> (f32, f32) {
        (1.0 - self.decay.0.powi(steps), 1.0 - self.decay.1.powi(steps))
    }

    /// Adds a gradient to its running mean and that of its square; the corrected mean, and the root
    /// that it is divided by.
    pub fn moments(self, mean: &mut f32, square: &mut f32, g: f32, corrections: (f32, f32)) -> (f32, f32) {
        *mean = self.decay.0 * *mean + (1.0 - self.decay.0) * g;
        *square = self.decay.1 * *square + (1.0 - self.decay.1) * g * g;
        (*mean / corrections.0, (*square / corrections.1).sqrt() + self.epsilon)
    }
}
