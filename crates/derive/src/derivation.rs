//! A derivation, and its replay.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use regraft_ir::{Graph, canonical_key, text};
use regraft_prove::Verdict;

use crate::difference::differences;
use crate::laws::Laws;
use crate::moves::{leads_to, normalize};
use crate::numbering::same;

/// One step of a derivation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The name of the law.
    pub law: Arc<str>,
    /// Whether the law leads from the later graph to the earlier one.
    pub reversed: bool,
}

/// How one graph follows from another: graphs, and the law that leads from each to the next.
///
/// All graphs are in normal form and have the same inputs.
#[derive(Clone, Debug)]
pub struct Derivation {
    /// The graphs on the way, both ends included; never empty.
    pub graphs: Vec<Graph>,
    /// The steps: number `i` is between graph `i` and graph `i + 1`.
    pub links: Vec<Link>,
}

/// Why a derivation shows nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// It does not lead from one graph to the other.
    #[error("it {0}")]
    Ends(&'static str),
    /// There is no law of that name.
    #[error("step {step}: there is no law `{law}`")]
    Unknown {
        /// Which step, from 1.
        step: usize,
        /// The name.
        law: Arc<str>,
    },
    /// The law does not lead there.
    #[error("step {step}: `{law}` does not lead from the one graph to the other")]
    Astray {
        /// Which step, from 1.
        step: usize,
        /// The law.
        law: Arc<str>,
    },
    /// The prover does not agree.
    #[error("step {step}, by `{law}`, is not proved: {why}")]
    Unproved {
        /// Which step, from 1.
        step: usize,
        /// The law.
        law: Arc<str>,
        /// What the prover says.
        why: String,
    },
}

impl Derivation {
    /// Names of the laws, in order. A law read from right to left has a `'`.
    pub fn names(&self) -> Vec<String> {
        self.links.iter().map(Link::to_string).collect()
    }

    /// Checks that it leads from `before` to `after` by these laws, and proves every step for all
    /// sizes.
    ///
    /// A step is accepted if a single application of its law turns one graph into the other, and if
    /// the prover finds both equal. Parts that both graphs share are arbitrary tensors to the
    /// prover, so proofs are small.
    ///
    /// # Errors
    /// The first flaw.
    pub fn replay(&self, before: &Graph, after: &Graph, laws: &Laws) -> Result<(), Flaw> {
        let ([first, ..], [.., last]) = (self.graphs.as_slice(), self.graphs.as_slice()) else { return Err(Flaw::Ends("is empty")) };
        if self.links.len() + 1 != self.graphs.len() {
            return Err(Flaw::Ends("has gaps"));
        }
        if !same(before, first) || !same(last, after) {
            return Err(Flaw::Ends("does not lead from the one side to the other"));
        }
        for (at, (link, pair)) in self.links.iter().zip(self.graphs.windows(2)).enumerate() {
            let (step, law) = (at + 1, link.law.clone());
            let Some(rule) = laws.get(&law) else { return Err(Flaw::Unknown { step, law }) };
            let (from, to) = if link.reversed { (&pair[1], &pair[0]) } else { (&pair[0], &pair[1]) };
            if !leads_to(&normal(from), rule, canonical_key(&normal(to))) {
                return Err(Flaw::Astray { step, law });
            }
            let verdict = equal(&pair[0], &pair[1]);
            if !verdict.is_shown() {
                return Err(Flaw::Unproved { step, law, why: verdict.to_string() });
            }
        }
        Ok(())
    }
}

fn normal(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    normalize(&mut graph);
    graph
}

/// Whether two graphs of the same inputs are equal for all sizes, by their differences if those
/// suffice.
fn equal(a: &Graph, b: &Graph) -> Verdict {
    let mut verdict = Verdict::Unproved("they have different numbers of outputs".into());
    if a.outputs().len() != b.outputs().len() {
        return verdict;
    }
    for (a, b) in differences(a, b) {
        verdict = regraft_prove::equal(&a, &b);
        if verdict.is_proved() {
            return verdict;
        }
    }
    verdict
}

/// The text of a derivation: graphs, and between them `by LAW`. [`FromStr`] reads it back.
impl fmt::Display for Derivation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, graph) in self.graphs.iter().enumerate() {
            if let Some(link) = at.checked_sub(1).and_then(|before| self.links.get(before)) {
                writeln!(f, "{BY}{link}")?;
            }
            writeln!(f, "{}", text::print(graph).trim_end())?;
        }
        Ok(())
    }
}

impl FromStr for Derivation {
    type Err = DerivationError;

    fn from_str(text: &str) -> Result<Derivation, DerivationError> {
        let mut derivation = Derivation { graphs: Vec::new(), links: Vec::new() };
        let (mut from, mut graph) = (1, String::new());
        for (at, line) in (1..).zip(text.lines()) {
            let Some(law) = line.strip_prefix(BY) else {
                graph.push_str(line);
                graph.push('\n');
                continue;
            };
            derivation.graphs.push(read(&graph, from)?);
            let name = law.trim_end_matches('\'');
            derivation.links.push(Link { law: name.into(), reversed: name != law });
            (from, graph) = (at + 1, String::new());
        }
        derivation.graphs.push(read(&graph, from)?);
        Ok(derivation)
    }
}

/// Before the name of a law.
const BY: &str = "by ";

/// A graph of a derivation cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the graph that begins on line {line}: {why}")]
pub struct DerivationError {
    /// Where the graph begins, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

fn read(graph: &str, line: usize) -> Result<Graph, DerivationError> {
    text::parse(graph).map_err(|e| DerivationError { line, why: e.to_string() })
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.law, if self.reversed { "'" } else { "" })
    }
}
