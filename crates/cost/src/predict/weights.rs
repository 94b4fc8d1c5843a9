//! A predictor as bytes, little-endian, as it comes with the program.
//!
//! ```text
//! mean: f32, words: u32, for each: key u32, value f32
//! trees: u32, for each: nodes: u32, for each: feature u8, and bound f32, other child u32;
//!                                              or 255, and mean f32, mean square f32
//! ```

use crate::predict::Predictor;
use crate::predict::features::{FEATURES, Vocabulary};
use crate::predict::forest::{Forest, Node};

/// Stands for a leaf where others name their feature.
const LEAF: u8 = u8::MAX;

impl Predictor {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.vocabulary.mean.to_le_bytes().to_vec();
        bytes.extend((self.vocabulary.words.len() as u32).to_le_bytes());
        for (key, value) in &self.vocabulary.words {
            bytes.extend(key.to_le_bytes().into_iter().chain(value.to_le_bytes()));
        }
        bytes.extend((self.forest.trees.len() as u32).to_le_bytes());
        for tree in &self.forest.trees {
            bytes.extend((tree.len() as u32).to_le_bytes());
            for node in tree {
                let (tag, first, second) = match *node {
                    Node::Split { feature, at, above } => (feature, at.to_le_bytes(), above.to_le_bytes()),
                    Node::Leaf { mean, square } => (LEAF, mean.to_le_bytes(), square.to_le_bytes()),
                };
                bytes.push(tag);
                bytes.extend(first.into_iter().chain(second));
            }
        }
        bytes
    }

    /// From [`Predictor::to_bytes`]; `None` if they are cut off, or of other features.
    pub fn from_bytes(bytes: &[u8]) -> Option<Predictor> {
        let mut bytes = Reader(bytes);
        let mut vocabulary = Vocabulary { mean: f32::from_le_bytes(bytes.four()?), ..Vocabulary::default() };
        for _ in 0..bytes.count()? {
            let (key, value) = (u32::from_le_bytes(bytes.four()?), f32::from_le_bytes(bytes.four()?));
            vocabulary.words.insert(key, value);
        }
        let mut trees = Vec::new();
        for _ in 0..bytes.count()? {
            let mut tree = Vec::new();
            let nodes = bytes.count()?;
            for at in 0..nodes {
                let (tag, first, second) = (bytes.one()?, f32::from_le_bytes(bytes.four()?), bytes.four()?);
                tree.push(match tag {
                    LEAF => Node::Leaf { mean: first, square: f32::from_le_bytes(second) },
                    feature => Node::Split { feature, at: first, above: u32::from_le_bytes(second) },
                });
                // Ways lead onward, or none might end.
                if let Some(Node::Split { feature, above, .. }) = tree.last()
                    && (usize::from(*feature) >= FEATURES || *above <= at || *above >= nodes)
                {
                    return None;
                }
            }
            trees.push(tree);
        }
        bytes.0.is_empty().then_some(Predictor { vocabulary, forest: Forest { trees } })
    }
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn one(&mut self) -> Option<u8> {
        let (one, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*one)
    }

    fn four(&mut self) -> Option<[u8; 4]> {
        let (four, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*four)
    }

    fn count(&mut self) -> Option<u32> {
        self.four().map(u32::from_le_bytes)
    }
}
