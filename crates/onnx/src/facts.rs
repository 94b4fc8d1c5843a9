//! Facts about the sizes that a model is fed: conditions without which it does not run.
//!
//! An operator that compares sizes when it runs, such as the join of a map of size `H` with one of
//! size `2 * floor(H / 2)`, says that they are equal wherever the model runs at all. What follows
//! for a symbol of the inputs is put in its place: `H` becomes `2 * n`, with `n` named `H/2`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use regraft_ir::{Bindings, Dim, Implied, TensorType, implied};

/// Largest factor of a symbol.
const LARGEST: i64 = 1 << 20;

/// What a size of the inputs must be, or the model does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The size as the model declares it, or `input_dAXIS` if it has no name there.
    pub symbol: String,
    /// What it is, in terms of symbols that may have any value of at least 1.
    pub size: Dim,
    /// In words: `H is a multiple of 4`.
    pub claim: String,
    /// The nodes that do not run otherwise.
    pub nodes: Vec<String>,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, more) = (self.nodes.first().map_or("the model", String::as_str), self.nodes.len().saturating_sub(1));
        match more {
            0 => write!(f, "{}, since {first} needs it", self.claim),
            _ => write!(f, "{}, since {first} and {more} more need it", self.claim),
        }
    }
}

/// What the symbols of a model's inputs are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Given {
    /// By the name in the model.
    sizes: BTreeMap<String, Dim>,
    /// Symbols that these sizes contain, whose names mean nothing else here.
    taken: BTreeSet<String>,
}

impl Given {
    /// What the inputs of a model are, whose own symbols are in `own`, where it is fed values of
    /// these types.
    pub(crate) fn fed<'t>(pairs: impl IntoIterator<Item = (&'t TensorType, &'t TensorType)>) -> Given {
        let mut given = Given::default();
        for (own, fed) in pairs {
            for (own, fed) in own.shape.iter().zip(&fed.shape).filter(|_| own.rank() == fed.rank()) {
                if let Some(symbol) = own.as_symbol() {
                    given.sizes.entry(symbol.to_string()).or_insert_with(|| fed.clone());
                }
            }
        }
        given.taken = given.sizes.values().flat_map(symbols).collect();
        given
    }

    /// What a symbol is; `None` if it has lost its name to another one.
    pub(crate) fn size(&self, symbol: &str) -> Option<Dim> {
        self.sizes.get(symbol).cloned().or_else(|| (!self.taken.contains(symbol)).then(|| Dim::symbol(symbol)))
    }
}

fn symbols(size: &Dim) -> Vec<String> {
    let mut symbols = Vec::new();
    size.symbols(&mut symbols);
    symbols
}

/// Two sizes that a node compares, and the node.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub node: String,
    pub sizes: (Dim, Dim),
}

/// What was found about one symbol of the model.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    symbol: String,
    size: Dim,
    nodes: Vec<String>,
}

/// The facts of a model, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    found: Vec<Found>,
    /// Symbols that were made up, and those of the model that they are named after.
    roots: BTreeMap<String, String>,
}

impl Facts {
    /// The same as sizes of the inputs' symbols.
    pub(crate) fn given(&self) -> Given {
        let sizes: BTreeMap<String, Dim> = self.found.iter().map(|found| (found.symbol.clone(), found.size.clone())).collect();
        Given { sizes, taken: self.roots.keys().cloned().collect() }
    }

    /// Adds what follows from these needs; false if nothing does. `free` are the symbols of the
    /// inputs' sizes, in order, and `is_taken` tells the names that new symbols avoid.
    pub(crate) fn learn(&mut self, needs: &[Need], free: &[String], is_taken: &dyn Fn(&str) -> bool) -> bool {
        let mut free = free.to_vec();
        let mut changes: Vec<(String, Dim)> = Vec::new();
        for need in needs {
            let (mut a, mut b) = need.sizes.clone();
            for change in &changes {
                let (Some(x), Some(y)) = (replaced(&a, change), replaced(&b, change)) else { continue };
                (a, b) = (x, y);
            }
            while let Some(change) = implied(&a, &b, &free).and_then(|implied| self.add(implied, &need.node, is_taken)) {
                let new = symbols(&change.1).into_iter().filter(|symbol| !free.contains(symbol)).collect::<Vec<_>>();
                if let Some(at) = free.iter().position(|symbol| *symbol == change.0) {
                    free.splice(at..=at, new);
                }
                let both = replaced(&a, &change).zip(replaced(&b, &change));
                changes.push(change);
                let Some(both) = both else { break };
                (a, b) = both;
            }
        }
        !changes.is_empty()
    }

    /// Enters a condition: the symbol that it is about, and what to put in its place.
    fn add(&mut self, implied: Implied, node: &str, is_taken: &dyn Fn(&str) -> bool) -> Option<(String, Dim)> {
        let (symbol, modulus, offset, same) = match implied {
            Implied::Is(symbol, size) => (symbol, 1, 0, Some(size)),
            Implied::Steps { symbol, modulus, offset } => (symbol, modulus, offset, None),
        };
        let root = self.roots.get(&symbol).cloned().unwrap_or_else(|| symbol.clone());
        if !self.found.iter().any(|found| found.symbol == root) {
            self.found.push(Found { symbol: root.clone(), size: Dim::symbol(&root), nodes: Vec::new() });
        }
        let known = self.found.iter().find(|found| found.symbol == root)?.size.clone();
        let size = same.unwrap_or_else(|| {
            let (a, _, b) = known.linear().unwrap_or((1, &symbol, 0));
            let (a, b) = (a.saturating_mul(modulus), b - a.saturating_mul(offset));
            let base = if b == 0 { format!("{root}/{a}") } else { format!("({root} {} {})/{a}", if b < 0 { '+' } else { '-' }, b.abs()) };
            let name = (1..).map(|n| if n == 1 { base.clone() } else { format!("{base}_{n}") });
            let name = name.into_iter().find(|name| !is_taken(name) && !self.roots.contains_key(name)).unwrap_or_default();
            self.roots.insert(name.clone(), root.clone());
            Dim::symbol(&name) * Dim::from(modulus) - Dim::from(offset)
        });
        let change = (symbol, size);
        let sizes: Vec<Dim> = self.found.iter().map(|found| replaced(&found.size, &change)).collect::<Option<_>>()?;
        if sizes.iter().any(|size| size.linear().is_some_and(|(a, ..)| a > LARGEST) || size.known().is_some_and(|n| n < 1)) {
            return None;
        }
        for (found, size) in self.found.iter_mut().zip(sizes) {
            found.size = size;
            if found.symbol == root && !found.nodes.iter().any(|known| known == node) {
                found.nodes.push(node.to_string());
            }
        }
        Some(change)
    }

    /// All facts, in words.
    pub(crate) fn list(&self) -> Vec<Fact> {
        let claim = |found: &Found| {
            let Found { symbol, size, .. } = found;
            match size.linear() {
                Some((a, name, b)) if self.roots.get(name) == Some(symbol) => match b.rem_euclid(a) {
                    0 => format!("{symbol} is a multiple of {a}"),
                    rest => format!("{symbol} is {rest} more than a multiple of {a}"),
                },
                _ => match self.found.iter().find(|other| other.symbol != *symbol && other.size == *size && size.known().is_none()) {
                    Some(other) => format!("{symbol} is {}", other.symbol),
                    None => format!("{symbol} is {size}"),
                },
            }
        };
        let fact = |found: &Found| Fact {
            symbol: found.symbol.clone(),
            size: found.size.clone(),
            claim: claim(found),
            nodes: found.nodes.clone(),
        };
        self.found.iter().filter(|found| !found.nodes.is_empty()).map(fact).collect()
    }
}

/// The size with another one in place of a symbol.
fn replaced(size: &Dim, (symbol, instead): &(String, Dim)) -> Option<Dim> {
    size.substitute(&|name| Some(if name == symbol { instead.clone() } else { Dim::symbol(name) }))
}

/// Sizes at which a model does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input `{input}` cannot have size {size} at axis {axis}: {why}")]
pub struct Contradiction {
    /// Name of the input.
    pub input: String,
    /// Axis, from 0.
    pub axis: usize,
    /// The size it was to have.
    pub size: i64,
    /// The fact that excludes it, and the node behind it.
    pub why: String,
}

/// The symbols of inputs of these types under given sizes, `None` where none is given, and the
/// first size that `facts` exclude.
pub(crate) fn bind<'a>(
    inputs: impl IntoIterator<Item = (&'a str, &'a TensorType, &'a [Option<i64>])>,
    facts: &[Fact],
) -> (Bindings, Option<Contradiction>) {
    let (mut bindings, mut wrong) = (Bindings::new(), None);
    for (input, ty, sizes) in inputs {
        for (axis, (own, size)) in ty.shape.iter().zip(sizes).enumerate() {
            let Some(size) = *size else { continue };
            let holds = match own.linear() {
                None => own.known().is_none_or(|known| known == size),
                Some(_) => own.solve_number(size).is_some_and(|(symbol, n)| *bindings.entry(symbol.to_string()).or_insert(n) == n && n > 0),
            };
            let own = symbols(own);
            let about = |fact: &&Fact| fact.size == ty.shape[axis] || symbols(&fact.size).iter().any(|symbol| own.contains(symbol));
            if let (false, Some(fact)) = (holds || wrong.is_some(), facts.iter().find(about)) {
                wrong = Some(Contradiction { input: input.to_string(), axis, size, why: fact.to_string() });
            }
        }
    }
    (bindings, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(symbol: &str, factor: i64) -> Dim {
        Dim::symbol(symbol) * Dim::from(factor)
    }

    /// What follows from these needs, one after the other.
    fn learned(needs: &[(Dim, Dim)]) -> Facts {
        let mut facts = Facts::default();
        let needs: Vec<Need> = needs.iter().map(|sizes| Need { node: "n".into(), sizes: sizes.clone() }).collect();
        facts.learn(&needs, &["H".to_string(), "W".to_string()], &|name| name == "W/2");
        facts
    }

    #[test]
    fn facts_compose_and_are_said_in_words() {
        let whole = |symbol: &str, by: i64| (Dim::symbol(symbol), Dim::symbol(symbol).floor_div(&Dim::from(by)) * Dim::from(by));
        let odd = (Dim::symbol("H") + Dim::from(1), (Dim::symbol("H") + Dim::from(1)).floor_div(&Dim::from(2)) * Dim::from(2));
        let same = (Dim::symbol("H"), Dim::symbol("W"));
        let half = || n("H/2", 2);
        type Said = [(&'static str, Dim, &'static str)];
        let cases: [(_, &Said); 6] = [
            (vec![whole("H", 2), whole("H", 3)], &[("H", n("H/6", 6), "H is a multiple of 6")]),
            (vec![whole("H", 4), whole("H", 2)], &[("H", n("H/4", 4), "H is a multiple of 4")]),
            (vec![whole("W", 2)], &[("W", n("W/2_2", 2), "W is a multiple of 2")]),
            (vec![odd], &[("H", n("(H + 1)/2", 2) - Dim::from(1), "H is 1 more than a multiple of 2")]),
            (vec![same.clone(), whole("H", 2)], &[("W", half(), "W is H"), ("H", half(), "H is a multiple of 2")]),
            (vec![same, (n("H", 3), Dim::from(12))], &[("W", Dim::from(4), "W is 4"), ("H", Dim::from(4), "H is 4")]),
        ];
        for (needs, want) in cases {
            let found = learned(&needs).list();
            let shown: Vec<_> = found.iter().map(|fact| (fact.symbol.as_str(), fact.size.clone(), fact.claim.as_str())).collect();
            assert_eq!(shown, want, "{needs:?}");
        }
    }

    #[test]
    fn names_of_given_sizes_mean_nothing_else() {
        let ty = |sizes: &[Dim]| TensorType::new(regraft_ir::DType::F32, sizes.to_vec());
        let own = ty(&[Dim::symbol("batch"), Dim::symbol("s"), Dim::symbol("s")]);
        let fed = ty(&[Dim::symbol("N"), n("H/2", 2), Dim::symbol("W")]);
        let given = Given::fed([(&own, &fed)]);
        let sizes = ["batch", "s", "N", "H/2", "other"].map(|symbol| given.size(symbol));
        assert_eq!(sizes, [Some(Dim::symbol("N")), Some(n("H/2", 2)), None, None, Some(Dim::symbol("other"))]);
    }

    #[test]
    fn sizes_that_a_fact_excludes_are_told() {
        let facts = learned(&[(Dim::symbol("H"), Dim::symbol("H").floor_div(&Dim::from(2)) * Dim::from(2))]).list();
        let ty = TensorType::new(regraft_ir::DType::F32, [Dim::symbol("N"), n("H/2", 2)]);
        for (size, want) in [(8, None), (0, Some(0)), (7, Some(7))] {
            let (bindings, wrong) = bind([("x", &ty, &[Some(3), Some(size)][..])], &facts);
            assert_eq!((bindings["N"], wrong.map(|wrong| wrong.size)), (3, want));
        }
        let (_, wrong) = bind([("x", &ty, &[None, Some(7)][..])], &facts);
        assert_eq!(
            wrong.map(|wrong| wrong.to_string()).as_deref(),
            Some("input `x` cannot have size 7 at axis 1: H is a multiple of 2, since n needs it")
        );
    }
}
