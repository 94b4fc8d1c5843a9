//! The most general sizes at which a pair is proved.
//!
//! A specification has few size parameters, so sizes agree that need not: `x` of `[m, k]` and
//! weights of `[k, k]`. Every site of a parameter, an axis of a variable or a term of a cut point,
//! is given a parameter of its own, alone or together with others, as long as the prover still
//! proves the pair.

use regraft_ir::dim::Factor;
use regraft_ir::{Dim, TensorType};
use regraft_prove::{Allowance, Assumptions, equal_within};

use crate::candidate::{Candidate, Written};
use crate::spec::Spec;

/// Maximum number of sites renamed together.
const TOGETHER: usize = 4;
/// Maximum number of renamings tried for a pair.
const TRIES: usize = 3000;

/// A pair over more general sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct General {
    /// The pair, with cut points over these sizes.
    pub pair: Candidate,
    /// Types of the specification's variables.
    pub types: Vec<TensorType>,
}

/// A site of a size parameter.
#[derive(Clone, Debug, PartialEq)]
enum Site {
    /// An axis of a variable.
    Axis(usize, usize),
    /// A term of a cut point: which cut, which term.
    Cut(usize, usize),
}

/// Sites, and their parameters.
struct Sites<'a> {
    spec: &'a Spec,
    pair: &'a Candidate,
    /// Applications with a cut: the value, and the terms of the cut point.
    cuts: Vec<(Written, Vec<String>, i64)>,
    sites: Vec<Site>,
    names: Vec<String>,
}

/// The most general sizes for a pair proved at those of the specification. No attempt costs more
/// than `allowance`.
pub fn generalized(spec: &Spec, pair: &Candidate, allowance: Allowance) -> General {
    let mut sites = Sites::new(spec, pair);
    let (mut tries, mut fresh) = (0, 0);
    'renamed: loop {
        for subset in sites.subsets() {
            tries += 1;
            if tries > TRIES {
                break 'renamed;
            }
            let before = sites.names.clone();
            fresh += 1;
            for at in &subset {
                sites.names[*at] = format!("{}{fresh}", base(&before[*at]));
            }
            if sites.general().is_some_and(|general| is_proved(spec, &general, allowance)) {
                continue 'renamed;
            }
            fresh -= 1;
            sites.names = before;
        }
        break;
    }
    sites.general().unwrap_or_else(|| General { pair: pair.clone(), types: spec.variables.iter().map(|v| v.ty.clone()).collect() })
}

fn is_proved(spec: &Spec, general: &General, allowance: Allowance) -> bool {
    let graphs = general.pair.graphs_over(spec, &general.types);
    graphs.is_ok_and(|[left, right]| equal_within(&left, &right, &Assumptions::default(), allowance).is_proved())
}

/// The parameter that a fresh one was made from.
fn base(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

impl<'a> Sites<'a> {
    fn new(spec: &'a Spec, pair: &'a Candidate) -> Sites<'a> {
        let mut found = Sites { spec, pair, cuts: Vec::new(), sites: Vec::new(), names: Vec::new() };
        for variable in pair.variables() {
            for (axis, size) in spec.variables[variable].ty.shape.iter().enumerate() {
                if let Some(name) = size.as_symbol() {
                    found.sites.push(Site::Axis(variable, axis));
                    found.names.push(name.to_string());
                }
            }
        }
        pair.left.iter().chain(&pair.right).for_each(|written| found.add_cuts(written));
        found
    }

    fn add_cuts(&mut self, written: &Written) {
        let Written::Result { cut, operands, .. } = written else { return };
        operands.iter().for_each(|o| self.add_cuts(o));
        let known = self.cuts.iter().any(|(have, ..)| same_application(have, written));
        let Some((terms, number)) = cut.as_ref().filter(|_| !known).and_then(terms) else { return };
        for (at, name) in terms.iter().enumerate() {
            self.sites.push(Site::Cut(self.cuts.len(), at));
            self.names.push(name.clone());
        }
        self.cuts.push((written.clone(), terms, number));
    }

    /// Sets of sites that share a parameter, at most half of those that have it, small ones first.
    fn subsets(&self) -> Vec<Vec<usize>> {
        let mut sets = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for name in &self.names {
            if seen.contains(&name.as_str()) {
                continue;
            }
            seen.push(name);
            let all: Vec<usize> = (0..self.names.len()).filter(|at| self.names[*at] == *name).collect();
            let most = (all.len() / 2).min(TOGETHER);
            // If a constant has the parameter too, all sites may be given another.
            sets.extend(
                (1u32..1 << all.len().min(16))
                    .filter(|mask| mask.count_ones() as usize <= most)
                    .map(|mask| all.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, at)| *at).collect::<Vec<usize>>()),
            );
        }
        sets.sort_by_key(Vec::len);
        sets
    }

    /// The pair over the parameters as currently named.
    fn general(&self) -> Option<General> {
        let mut types: Vec<TensorType> = self.spec.variables.iter().map(|v| v.ty.clone()).collect();
        for (site, name) in self.sites.iter().zip(&self.names) {
            if let Site::Axis(variable, axis) = site {
                types[*variable].shape[*axis] = Dim::symbol(name);
            }
        }
        let side = |side: &[Written]| side.iter().map(|written| self.renamed(written)).collect::<Vec<_>>();
        Some(General { pair: Candidate { left: side(&self.pair.left), right: side(&self.pair.right) }, types })
    }

    fn renamed(&self, written: &Written) -> Written {
        let Written::Result { operator, cut, port, operands } = written else { return written.clone() };
        let known = self.cuts.iter().position(|(have, ..)| same_application(have, written));
        let point = known.map(|at| {
            let mine = self.sites.iter().zip(&self.names).filter(|(site, _)| matches!(site, Site::Cut(cut, _) if *cut == at));
            mine.fold(Dim::from(self.cuts[at].2), |sum, (_, name)| sum + Dim::symbol(name))
        });
        let operands = operands.iter().map(|o| self.renamed(o)).collect();
        Written::Result { operator: *operator, cut: point.or_else(|| cut.clone()), port: *port, operands }
    }
}

/// Whether two values are results of one application.
fn same_application(a: &Written, b: &Written) -> bool {
    match (a, b) {
        (Written::Result { operator: o, cut: c, operands: a, .. }, Written::Result { operator: p, cut: d, operands: b, .. }) => {
            (o, c, a) == (p, d, b)
        }
        _ => false,
    }
}

/// A sum of parameters and a number, with every parameter as often as it is added; `None` if it is
/// no such sum.
fn terms(size: &Dim) -> Option<(Vec<String>, i64)> {
    let (mut names, mut number) = (Vec::new(), 0);
    for (coefficient, factors) in size.products() {
        match factors.as_slice() {
            [] => number += coefficient,
            [Factor::Symbol(name)] if coefficient > 0 => names.extend((0..coefficient).map(|_| (*name).to_string())),
            _ => return None,
        }
    }
    Some((names, number))
}
