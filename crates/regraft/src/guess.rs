//! Guesses at sizes that a model leaves open.

/// Sizes tried for open spatial dimensions, in this order, until the model runs.
const SPATIAL: [(usize, usize); 8] = [(224, 224), (48, 320), (48, 192), (640, 640), (32, 320), (299, 299), (512, 512), (64, 64)];
/// Sizes tried for open dimensions of other inputs.
const LENGTHS: [usize; 4] = [128, 32, 16, 1];
/// Sizes tried after those: of signals, which models cut into windows of hundreds of samples.
const SIGNALS: [usize; 6] = [256, 512, 1024, 4096, 16_000, 64_000];

/// How open sizes are guessed.
#[derive(Clone, Copy)]
pub(crate) enum Guess {
    /// At their usual values; the number of the attempt.
    Usual(usize),
    /// The same where lengths are those of signals; with a `state` of recurrent layers, not of many
    /// steps.
    Signal { at: usize, state: bool },
    /// Above 1 and all different; those of images as usual unless `spatial`.
    Other { odd: bool, spatial: bool, signal: bool },
}

impl Guess {
    /// The first one.
    pub(crate) const USUAL: Guess = Guess::Usual(0);

    /// Guesses of two kinds, each from the most revealing to the most usual.
    pub(crate) const OTHERS: [[Guess; 3]; 2] = [Guess::others(true), Guess::others(false)];

    const fn others(odd: bool) -> [Guess; 3] {
        [
            Guess::Other { odd, spatial: true, signal: false },
            Guess::Other { odd, spatial: false, signal: false },
            Guess::Other { odd, spatial: true, signal: true },
        ]
    }

    /// All of them, from the most usual.
    pub(crate) fn all() -> impl Iterator<Item = Guess> {
        let usual = (0..SPATIAL.len()).map(Guess::Usual);
        let signals = |state| (0..SIGNALS.len()).map(move |at| Guess::Signal { at, state });
        usual.chain(signals(true)).chain(signals(false)).chain(Guess::OTHERS.into_iter().flatten())
    }

    /// The size of an axis of an input with these sizes, after this many other guesses.
    pub(crate) fn size(self, dims: &[Option<usize>], axis: usize, others: usize) -> usize {
        match (self, dims.len(), axis) {
            (Guess::Usual(_) | Guess::Signal { .. }, _, 0) => 1,
            // Layers, batch and channels: as well a sequence.
            (Guess::Signal { state: true, .. }, 3, 1) if dims[0].is_some() && dims[2].is_some() => 1,
            (_, 4, 1) => 3,
            (Guess::Usual(at) | Guess::Signal { at, .. }, 4, 2) => SPATIAL[at].0,
            (Guess::Usual(at) | Guess::Signal { at, .. }, 4, _) => SPATIAL[at].1,
            (Guess::Usual(at), ..) => LENGTHS[at % LENGTHS.len()],
            (Guess::Signal { at, .. }, ..) => SIGNALS[at],
            (Guess::Other { spatial: false, .. }, 4, 2) => SPATIAL[0].0,
            (Guess::Other { spatial: false, .. }, 4, 3) => SPATIAL[0].1,
            (Guess::Other { odd, .. }, 4, 2..) => 2 * others + if odd { 65 } else { 66 },
            (Guess::Other { odd: false, .. }, 4, 0) => 4,
            (Guess::Other { odd, signal: true, .. }, _, 1..) => 2 * others + if odd { 1021 } else { 1536 },
            (Guess::Other { odd, .. }, ..) => 2 * others + if odd { 3 } else { 8 },
        }
    }
}
