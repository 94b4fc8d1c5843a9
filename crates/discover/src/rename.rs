//! Variables of the same type are interchangeable: graphs and pairs up to such renamings.

use smallvec::SmallVec;

use crate::set::{TermId, TermSet};
use crate::spec::Spec;
use crate::terms::{Operands, Terms, ValueId};

/// The new name of each used variable.
pub type Names = SmallVec<[(ValueId, ValueId); 8]>;

/// Renames variables within their classes: those of equal type, with weights separate.
pub struct Renaming<'a> {
    spec: &'a Spec,
    terms: &'a Terms,
    classes: Vec<Vec<ValueId>>,
    class_of: Vec<usize>,
}

impl<'a> Renaming<'a> {
    /// The classes of a specification's variables.
    pub fn new(spec: &'a Spec, terms: &'a Terms) -> Renaming<'a> {
        let mut classes: Vec<Vec<ValueId>> = Vec::new();
        let mut class_of = Vec::new();
        for (at, variable) in spec.variables.iter().enumerate() {
            let same = |class: &Vec<ValueId>| {
                let first = &spec.variables[class[0] as usize];
                first.ty == variable.ty && first.weight == variable.weight
            };
            let class = classes.iter().position(same).unwrap_or_else(|| {
                classes.push(Vec::new());
                classes.len() - 1
            });
            classes[class].push(at as ValueId);
            class_of.push(class);
        }
        Renaming { spec, terms, classes, class_of }
    }

    /// Variables that graphs use, ascending.
    pub fn used(&self, graphs: &[&TermSet]) -> SmallVec<[ValueId; 8]> {
        let ids = graphs.iter().flat_map(|graph| graph.as_slice());
        let operands = ids.flat_map(|id| self.terms.get(*id).operands.iter().copied());
        let mut used: SmallVec<[ValueId; 8]> = operands.filter(|v| self.terms.is_variable(*v)).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// All ways to rename these variables one to one, including the identity.
    pub fn all(&self, used: &[ValueId]) -> Vec<Names> {
        let mut all = vec![Names::new()];
        for v in used {
            let class = &self.classes[self.class_of[*v as usize]];
            let wider = all.iter().flat_map(|names| {
                let free = class.iter().filter(|to| names.iter().all(|(_, taken)| taken != *to));
                free.map(|to| names.iter().copied().chain([(*v, *to)]).collect::<Names>()).collect::<Vec<_>>()
            });
            all = wider.collect();
        }
        all
    }

    /// The graph with its variables renamed; `None` only if the table lacks it, which cannot happen
    /// over interchangeable variables.
    pub fn apply(&self, graph: &TermSet, names: &Names) -> Option<TermSet> {
        let renamed = |v: ValueId| names.iter().find(|(from, _)| *from == v).map_or(v, |(_, to)| *to);
        let mut mapped: SmallVec<[(TermId, TermId); 6]> = SmallVec::new();
        let mut result = TermSet::EMPTY;
        for id in graph.as_slice() {
            let term = self.terms.get(*id);
            let new = match term.instance {
                None => renamed(term.first),
                Some(instance) => {
                    let mut operands = Operands::new();
                    for v in &term.operands {
                        operands.push(if self.terms.is_variable(*v) {
                            renamed(*v)
                        } else {
                            let owner = self.terms.owner(*v);
                            let (_, to) = mapped.iter().find(|(from, _)| *from == owner)?;
                            self.terms.get(*to).first + (v - self.terms.get(owner).first)
                        });
                    }
                    if self.terms.operator(self.spec, *id).is_some_and(|o| o.commutative) {
                        operands.sort_unstable();
                    }
                    self.terms.find(instance, &operands)?
                }
            };
            mapped.push((*id, new));
            result = result.with(new)?;
        }
        Some(result)
    }
}

/// Order of preference of graphs: fewer operators, then the list of instances, which renaming does
/// not change, then the terms themselves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    operators: usize,
    applied: SmallVec<[u32; 6]>,
    graph: TermSet,
}

impl Rank {
    /// The rank of a graph.
    pub fn of(terms: &Terms, graph: &TermSet) -> Rank {
        let mut applied: SmallVec<[u32; 6]> = graph.as_slice().iter().filter_map(|id| terms.get(*id).instance).collect();
        applied.sort_unstable();
        Rank { operators: applied.len(), applied, graph: *graph }
    }

    /// How many operators it has.
    pub fn operators(&self) -> usize {
        self.operators
    }

    /// The graph.
    pub fn graph(&self) -> &TermSet {
        &self.graph
    }

    /// Whether renaming might turn one graph into the other, judging by operators and types.
    pub fn alike(&self, other: &Rank) -> bool {
        self.applied == other.applied
    }
}

impl Renaming<'_> {
    /// Whether no renaming of a graph of the group comes before the first of them: of all groups
    /// that are renamings of each other, this holds for one. `ranks` is sorted.
    pub fn is_first(&self, ranks: &[Rank]) -> bool {
        let Some(first) = ranks.first() else { return true };
        ranks.iter().take_while(|rank| rank.alike(first)).all(|rank| {
            self.all(&self.used(&[&rank.graph]))
                .iter()
                .all(|names| self.apply(&rank.graph, names).is_none_or(|renamed| renamed >= first.graph))
        })
    }

    /// The first of all renamings of a pair, in either orientation.
    pub fn first_pair(&self, left: &TermSet, right: &TermSet) -> [TermSet; 2] {
        let all = self.all(&self.used(&[left, right]));
        let renamed = all.iter().filter_map(|names| {
            let mut pair = [self.apply(left, names)?, self.apply(right, names)?];
            pair.sort_unstable();
            Some(pair)
        });
        renamed.min().unwrap_or([*left, *right])
    }
}
