//! Conditions under which a rule may be true.

use std::fmt;

/// A condition on the site where a rule is applied. It concerns both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Guard {
    /// Operands of elementwise operators have the same shape: nothing is broadcast.
    SameShape,
    /// All convolutions have the same number of output channels per group.
    EqualOutputsPerGroup,
    /// All convolutions have one group.
    Ungrouped,
    /// All windows have odd sizes.
    OddKernels,
    /// `SAME` pads equally before and after.
    SymmetricPadding,
    /// Averages count the padding as zeros.
    AveragesCountPadding,
    /// Constant kernels have one input channel, for as many groups as there are channels.
    DepthwiseConstants,
    /// Constant kernels have as many input as output channels.
    DenseConstants,
}

impl Guard {
    /// All of them, in order of preference.
    pub const ALL: [Guard; 8] = [
        Guard::SameShape,
        Guard::EqualOutputsPerGroup,
        Guard::Ungrouped,
        Guard::OddKernels,
        Guard::SymmetricPadding,
        Guard::AveragesCountPadding,
        Guard::DepthwiseConstants,
        Guard::DenseConstants,
    ];
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Guard::SameShape => "no broadcasting",
            Guard::EqualOutputsPerGroup => "equal output channels per group",
            Guard::Ungrouped => "groups = 1",
            Guard::OddKernels => "odd kernels",
            Guard::SymmetricPadding => "symmetric padding",
            Guard::AveragesCountPadding => "averages count padding",
            Guard::DepthwiseConstants => "constant kernels are depthwise",
            Guard::DenseConstants => "constant kernels are dense",
        })
    }
}

/// A set of guards; all of them must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Guards(u8);

impl Guards {
    /// No condition.
    pub const NONE: Guards = Guards(0);

    /// These and one more guard.
    #[must_use]
    pub fn with(self, guard: Guard) -> Guards {
        Guards(self.0 | 1 << guard as u8)
    }

    /// Whether a guard is in the set.
    pub fn has(self, guard: Guard) -> bool {
        self.0 & 1 << guard as u8 != 0
    }

    /// Whether the set contains all of `other`.
    pub fn include(self, other: Guards) -> bool {
        self.0 & other.0 == other.0
    }

    /// The guards in both sets.
    #[must_use]
    pub fn common(self, other: Guards) -> Guards {
        Guards(self.0 & other.0)
    }

    /// The guards, in order.
    pub fn iter(self) -> impl Iterator<Item = Guard> {
        Guard::ALL.into_iter().filter(move |g| self.has(*g))
    }

    /// Number of guards.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// All sets of at most `most` guards, the smaller ones first.
    pub fn up_to(most: usize) -> Vec<Guards> {
        let mut sets: Vec<Guards> = (0..=u8::MAX).map(Guards).filter(|g| g.len() <= most).collect();
        sets.sort_by_key(|g| (g.len(), g.0));
        sets
    }
}

impl FromIterator<Guard> for Guards {
    fn from_iter<T: IntoIterator<Item = Guard>>(guards: T) -> Guards {
        guards.into_iter().fold(Guards::NONE, Guards::with)
    }
}

impl fmt::Display for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, guard) in self.iter().enumerate() {
            write!(f, "{}{guard}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
