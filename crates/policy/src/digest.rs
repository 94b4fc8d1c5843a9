//! What weights were trained for: they mean nothing for other numbers or other rules. A rule is
//! what the network is told of it: a guard may change, and rules that came later are told like all
//! others.

use std::fmt;

use regraft_ir::fnv1a;
use regraft_rules::Library;

use crate::descriptor::descriptor;
use crate::features::{VERSION, known};

/// Rules that came after the shipped weights were trained. To be emptied when they are trained
/// again.
const NEW: [&str; 28] = [
    "conv-of-first-channels",
    "depthwise-conv-of-whole-blocks",
    "conv-transpose-by-phases",
    "gemm-merge-right",
    "add-of-few-columns",
    "sub-of-few-columns",
    "mul-of-few-columns",
    "div-of-few-columns",
    "conv-mul-above-squeeze",
    "conv-add-above-squeeze",
    "where-from-products",
    "layer-norm-from-scale-over-and-sum",
    "layer-norm-from-scale-over-and-difference",
    "layer-norm-from-scale-times-and-sum",
    "layer-norm-from-scale-times-and-difference",
    "squeeze-below-relu",
    "squeeze-below-sigmoid",
    "squeeze-below-tanh",
    "squeeze-below-clip",
    "squeeze-below-hard-sigmoid",
    "squeeze-below-hard-swish",
    "squeeze-below-leaky-relu",
    "squeeze-below-elu",
    "squeeze-below-add",
    "squeeze-below-mul",
    "squeeze-below-sub",
    "squeeze-below-div",
    "squeeze-below-pad",
];

/// A digest of what the numbers of nodes mean, and of the rules that weights were trained with, but
/// for those that came later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest {
    features: u64,
    rules: u64,
}

impl Digest {
    /// Of the features of this build, and the rules of a library.
    pub fn of(library: &Library) -> Digest {
        let rules = library.rules().iter().filter(|rule| !NEW.contains(&&*rule.name)).fold(0u64, |sum, rule| {
            let numbers = descriptor(rule).into_iter().flat_map(f32::to_le_bytes);
            sum.wrapping_add(fnv1a(rule.name.bytes().chain([0]).chain(numbers)))
        });
        let names = known().flat_map(|kind| kind.name().bytes().chain([0]));
        Digest { features: fnv1a(VERSION.to_le_bytes().into_iter().chain(names)), rules }
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.features.to_le_bytes());
        bytes[8..].copy_from_slice(&self.rules.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Digest {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[at + k]));
        Digest { features: number(0), rules: number(8) }
    }

    /// What differs between what weights were trained for and what is there; `None` if nothing
    /// does.
    pub fn differs(self, there: Digest) -> Option<&'static str> {
        match () {
            () if self.features != there.features => Some("it was trained with other features of nodes"),
            () if self.rules != there.rules => Some("it was trained with other rules"),
            () => None,
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:016x}", self.features, self.rules)
    }
}

#[cfg(test)]
mod tests {
    use regraft_rules::Library;

    use super::{Digest, NEW};

    #[test]
    fn rules_that_came_later_are_there_and_need_no_other_weights() {
        let library = Library::shipped().unwrap();
        let older = Library::shipped().unwrap().filter(|rule| !NEW.contains(&&*rule.name));
        assert_eq!(older.rules().len() + NEW.len(), library.rules().len());
        assert_eq!(Digest::of(&older).differs(Digest::of(&library)), None);
    }
}
