//! Steps down a gradient (Kingma and Ba, "Adam", 2015, algorithm 1), at a rate that rises and then falls.

/// Decay of the running means.
const DECAY: (f32, f32) = (0.9, 0.99);

/// The rate of a step: it rises to `peak` over the first `warm_up` steps, and falls to zero with the share
/// of training that is done, along a cosine.
pub(crate) fn rate(peak: f32, warm_up: f32, steps: i32, done: f32) -> f32 {
    let risen = (steps as f32 / warm_up).min(1.0);
    peak * risen * 0.5 * (1.0 + (std::f32::consts::PI * done.min(1.0)).cos())
}

/// What running means are divided by after so many steps, for they began with zeros.
pub(crate) fn corrections(steps: i32) -> (f32, f32) {
    (1.0 - DECAY.0.powi(steps), 1.0 - DECAY.1.powi(steps))
}

/// Adds a gradient to its running mean and that of its square; the corrected mean, and the root that it is
/// divided by.
pub(crate) fn moments(mean: &mut f32, square: &mut f32, g: f32, corrections: (f32, f32)) -> (f32, f32) {
    *mean = DECAY.0 * *mean + (1.0 - DECAY.0) * g;
    *square = DECAY.1 * *square + (1.0 - DECAY.1) * g * g;
    (*mean / corrections.0, (*square / corrections.1).sqrt() + 1e-8)
}
