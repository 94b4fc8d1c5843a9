//! Inferred types, ours and those of the `onnx` package, and how they compare.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result};
use regraft_ir::{DType, Dim, Op, TensorType};
use regraft_onnx::Model;
use serde::Deserialize;

/// The package's result for a model.
#[derive(Debug, Default, Deserialize)]
pub struct Theirs {
    /// Types by value.
    #[serde(default)]
    pub types: HashMap<String, TheirType>,
    /// Why the package refuses the model.
    pub refused: Option<Vec<String>>,
}

/// A type as reported by the package.
#[derive(Debug, Deserialize)]
pub struct TheirType {
    dtype: i32,
    /// Sizes, if the rank is known; `None` for an unknown size.
    dims: Option<Vec<Option<TheirDim>>>,
}

/// A size as reported by the package.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TheirDim {
    Size(i64),
    Symbol(String),
}

/// Regraft's result for a model.
pub struct Ours {
    /// Types by value; `None` where nothing is known.
    pub types: HashMap<String, Option<TensorType>>,
    /// Symbols of the declared inputs: any other symbol means that a size is unknown.
    pub symbols: HashSet<String>,
}

/// How two types compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Ours says everything theirs says.
    Covers,
    /// Theirs is only an element type, ours is unknown: a type has a rank here.
    NoRank,
    /// Theirs says more: what.
    Weaker(String),
    /// They cannot both be right: how they differ.
    Contradicts(String),
}

impl TheirType {
    /// True if a run shows other sizes than these.
    pub fn is_refuted(&self, shape: &[usize]) -> bool {
        let Some(dims) = &self.dims else { return false };
        let refutes = |(dim, size): (&Option<TheirDim>, &usize)| matches!(dim, Some(TheirDim::Size(said)) if *said != *size as i64);
        dims.len() != shape.len() || dims.iter().zip(shape).any(refutes)
    }
}

impl Theirs {
    /// Reads the script's output.
    pub fn read(path: &Path) -> Result<Theirs> {
        let text = std::fs::read(path).with_context(|| path.display().to_string())?;
        serde_json::from_slice(&text).with_context(|| path.display().to_string())
    }
}

impl Ours {
    /// The types of all named values.
    pub fn of(model: &Model) -> Ours {
        let graph = model.graph();
        let mut types = HashMap::new();
        let mut symbols = Vec::new();
        for id in graph.ids() {
            let node = graph.node(id);
            for (name, ty) in node.names.iter().zip(&node.types) {
                if let Some(name) = name {
                    types.insert(name.to_string(), ty.clone());
                }
                if let (Op::Input(_), Some(ty)) = (&node.op, ty) {
                    ty.shape.iter().for_each(|d| d.symbols(&mut symbols));
                }
            }
        }
        Ours { types, symbols: symbols.into_iter().collect() }
    }

    /// Compares our type of a value with theirs.
    pub fn relate(&self, ours: Option<&TensorType>, theirs: &TheirType) -> Relation {
        let dtype = DType::from_onnx(theirs.dtype);
        let Some(ours) = ours else {
            if theirs.dims.is_none() {
                return Relation::NoRank;
            }
            return Relation::Weaker(format!("nothing is known of it; the package says {dtype} {:?}", theirs.dims));
        };
        if ours.dtype != dtype {
            return Relation::Contradicts(format!("{} against {dtype}", ours.dtype));
        }
        let Some(dims) = &theirs.dims else { return Relation::Covers };
        if ours.rank() != dims.len() {
            return Relation::Contradicts(format!("rank {} against {}", ours.rank(), dims.len()));
        }
        let mut weaker = None;
        for (axis, (mine, other)) in ours.shape.iter().zip(dims).enumerate() {
            match (other, mine.known()) {
                (Some(TheirDim::Size(size)), Some(known)) if *size != known => {
                    return Relation::Contradicts(format!("axis {axis} is {known} against {size}"));
                }
                (Some(TheirDim::Size(size)), None) => weaker = weaker.or(Some(format!("axis {axis} is `{mine}`, the package says {size}"))),
                (Some(TheirDim::Symbol(symbol)), None) if self.symbols.contains(symbol) && !self.is_known(mine) => {
                    weaker = weaker.or(Some(format!("axis {axis} is `{mine}`, the package says {symbol}")));
                }
                _ => {}
            }
        }
        weaker.map_or(Relation::Covers, Relation::Weaker)
    }

    /// True if a size follows from those of the inputs.
    fn is_known(&self, size: &Dim) -> bool {
        let mut symbols = Vec::new();
        size.symbols(&mut symbols);
        symbols.iter().all(|s| self.symbols.contains(s))
    }
}
