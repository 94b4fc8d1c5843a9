//! Multiplies out known tables: sums over variables that only choose elements of constants are
//! carried out in numbers.
//!
//! A fast convolution (Winograd, Arithmetic Complexity of Computations, 1980; here its nested form)
//! is `sum a: C[r, a] (sum p: B[a, p] x[p]) (sum q: G[a, q] w[q])`. Its product has thousands of
//! terms, but `sum a: C[r, a] B[a, p] G[a, q]` is a table over p and q alone, with a handful of
//! nonzero elements.

use std::collections::BTreeMap;

use num_traits::{One, Zero};

use crate::index::{Facts, Fuel, Poly, Source, Table, Var};
use crate::value::algebra::Trouble;
use crate::value::canonical::ordered;
use crate::value::number::Number;
use crate::value::sum::{Factor, Sum, Term};

/// Maximum number of elements in a product of tables.
const MOST_ELEMENTS: i64 = 1 << 20;
/// Maximum number of terms that are written out.
const MOST_TERMS: usize = 4_096;

/// The sum with known tables multiplied out, and written out where they are nonzero.
pub(crate) fn contracted(sum: &Sum, facts: &Facts) -> Result<Sum, Trouble> {
    let mut plain: Vec<(Term, Number)> = Vec::new();
    let mut tables: BTreeMap<(Term, Vec<Var>), BTreeMap<Vec<i64>, Number>> = BTreeMap::new();
    for (term, c) in sum.terms() {
        let Some(split) = Split::of(term, facts) else {
            plain.push((term.clone(), c.clone()));
            continue;
        };
        let (rest, names) = ordered(&split.rest);
        // Tables' variables by their names in the rest; those not occurring there are summed here.
        let mut kept: Vec<(Var, usize)> = split
            .variables
            .iter()
            .enumerate()
            .filter_map(|(at, (var, _))| Some((names.iter().find(|(old, _)| old == var)?.1, at)))
            .collect();
        kept.sort_unstable();
        let table = tables.entry((rest, kept.iter().map(|(name, _)| *name).collect())).or_default();
        split.add(c, &mut |index, value| {
            let key: Vec<i64> = kept.iter().map(|(_, at)| index[*at]).collect();
            *table.entry(key).or_insert_with(Number::zero) += value;
        })?;
    }
    for ((rest, names), table) in tables {
        for (index, value) in table.into_iter().filter(|(_, value)| !value.is_zero()) {
            if plain.len() == MOST_TERMS {
                return Trouble::new("a product of tables has too many elements");
            }
            let values = names.iter().zip(&index).map(|(name, value)| (*name, Poly::number(*value))).collect();
            let binders = rest.binders.iter().filter(|(var, _)| !names.contains(var)).cloned().collect();
            plain.push((rest.rebind(binders, values), value));
        }
    }
    Ok(Sum::new(plain))
}

/// A read of a table: each index as a number plus multiples of the tables' variables.
struct Read<'a> {
    table: &'a Table,
    index: Vec<(i64, Vec<(usize, i64)>)>,
}

impl<'a> Read<'a> {
    /// The element at given values of the variables.
    fn at(&self, values: &[i64]) -> Option<&'a Number> {
        self.table.at(self.index.iter().map(|(start, multiples)| start + multiples.iter().map(|(v, c)| c * values[*v]).sum::<i64>()))
    }
}

/// A term split into table reads and the rest.
struct Split<'a> {
    /// Summed variables in the indices of tables, and their ranges.
    variables: Vec<(Var, i64)>,
    reads: Vec<Read<'a>>,
    /// The term without those reads and without variables that occur nowhere else.
    rest: Term,
}

impl<'a> Split<'a> {
    /// `None` if the term reads no known table at summed variables only.
    fn of(term: &Term, facts: &'a Facts) -> Option<Split<'a>> {
        let extent = |var: Var| term.binders.iter().find(|(v, _)| *v == var).and_then(|(_, extent)| extent.known());
        let mut variables: Vec<(Var, i64)> = Vec::new();
        let (mut reads, mut factors) = (Vec::new(), Vec::new());
        for (factor, power) in &term.factors {
            let read = match factor {
                Factor::Read(source @ Source::Constant(_), index) if *power == 1 => facts.table(source).and_then(|table| {
                    let index = index.iter().map(|p| linear(p, &extent, &mut variables)).collect::<Option<Vec<_>>>()?;
                    Some(Read { table, index })
                }),
                _ => None,
            };
            match read {
                Some(read) => reads.push(read),
                None => factors.push((factor.clone(), *power)),
            }
        }
        if reads.is_empty() {
            return None;
        }
        let mut rest = Term { binders: Vec::new(), conds: term.conds.clone(), factors };
        let used = |var: Var| {
            let mut used = term.binders.iter().any(|(_, extent)| extent.has(var));
            rest.inner_polys(&mut |p| used |= p.has(var));
            used
        };
        let binders = term.binders.iter().filter(|(var, _)| used(*var) || !variables.iter().any(|(v, _)| v == var)).cloned().collect();
        rest.binders = binders;
        Some(Split { variables, reads, rest })
    }

    /// Calls `add` with every index of the variables at which the product of all reads is nonzero,
    /// and with that product times `c`.
    fn add(&self, c: &Number, add: &mut dyn FnMut(&[i64], Number)) -> Result<(), Trouble> {
        let elements = self.variables.iter().try_fold(1i64, |n, (_, extent)| n.checked_mul(*extent)).unwrap_or(i64::MAX);
        if elements > MOST_ELEMENTS || !Fuel::spend(elements.unsigned_abs() / 4) {
            return Trouble::new("a product of too large tables");
        }
        // Reads are evaluated as soon as all their variables have values, so that a 0 cuts the
        // search short.
        let last = |read: &Read<'_>| read.index.iter().flat_map(|(_, multiples)| multiples.iter().map(|(at, _)| at + 1)).max().unwrap_or(0);
        let mut by_last: Vec<Vec<&Read<'_>>> = vec![Vec::new(); self.variables.len() + 1];
        self.reads.iter().for_each(|read| by_last[last(read)].push(read));
        self.walk(&by_last, &mut Vec::new(), c.clone(), add)
    }

    fn walk(
        &self,
        by_last: &[Vec<&Read<'_>>],
        index: &mut Vec<i64>,
        mut product: Number,
        add: &mut dyn FnMut(&[i64], Number),
    ) -> Result<(), Trouble> {
        for read in &by_last[index.len()] {
            let Some(value) = read.at(index) else { return Trouble::new("an index beyond a constant") };
            if value.is_zero() {
                return Ok(());
            }
            if !value.is_one() {
                product = product * value;
            }
        }
        let Some((_, extent)) = self.variables.get(index.len()) else {
            add(index, product);
            return Ok(());
        };
        for value in 0..*extent {
            index.push(value);
            self.walk(by_last, index, product.clone(), add)?;
            index.pop();
        }
        Ok(())
    }
}

/// An index as a number plus multiples of variables with known ranges, which are added to the list.
fn linear(p: &Poly, extent: &dyn Fn(Var) -> Option<i64>, variables: &mut Vec<(Var, i64)>) -> Option<(i64, Vec<(usize, i64)>)> {
    let mut vars = Vec::new();
    p.vars(&mut vars);
    let (mut rest, mut multiples) = (p.clone(), Vec::new());
    for var in vars {
        let extent = extent(var)?;
        let (factor, without) = rest.linear(var)?;
        let at = variables.iter().position(|(v, _)| *v == var).unwrap_or_else(|| {
            variables.push((var, extent));
            variables.len() - 1
        });
        multiples.push((at, factor.known()?));
        rest = without;
    }
    Some((rest.known()?, multiples))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    use crate::index::fresh;
    use crate::value::stored;

    fn table(shape: &[i64], elements: &[f64]) -> Rc<Table> {
        Rc::new(Table::new(shape, elements.iter().filter_map(|v| stored(*v)).collect()))
    }

    #[test]
    fn a_fast_product_of_polynomials_is_the_plain_one() {
        Fuel::fill(1 << 20);
        // (w0 + w1 t) (x0 + x1 t) by three products (Karatsuba): c = C ((G w) * (B x)).
        let [c, b, g] = [1, 2, 3].map(Source::Constant);
        let mut facts = Facts::default();
        let transform = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0];
        facts.set_tables(
            [
                (c.clone(), table(&[3, 3], &[1.0, 0.0, 0.0, -1.0, -1.0, 1.0, 0.0, 1.0, 0.0])),
                (b.clone(), table(&[3, 2], &transform)),
                (g.clone(), table(&[3, 2], &transform)),
            ]
            .into(),
        );
        let read = |source: &Source, index: &[Poly]| (Factor::Read(source.clone(), index.to_vec()), 1);
        let element = |name: &str, at: Poly| (Factor::Read(Source::Input(name.into()), vec![at]), 1);
        for (r, expected) in [(0, vec![(0, 0)]), (1, vec![(0, 1), (1, 0)]), (2, vec![(1, 1)])] {
            let [a, p, q] = [fresh(), fresh(), fresh()];
            let binders = vec![(a, Poly::number(3)), (p, Poly::number(2)), (q, Poly::number(2))];
            let [va, vp, vq] = [a, p, q].map(Poly::var);
            let mut factors = vec![
                read(&c, &[Poly::number(r), va.clone()]),
                read(&b, &[va.clone(), vp.clone()]),
                read(&g, &[va, vq.clone()]),
                element("x", vp),
                element("w", vq),
            ];
            factors.sort();
            let sum = Sum::new([(Term { binders, conds: Vec::new(), factors }, Number::one())]);
            let plain = expected.iter().map(|(i, j)| {
                let mut factors = vec![element("x", Poly::number(*j)), element("w", Poly::number(*i))];
                factors.sort();
                (Term { factors, ..Term::default() }, Number::one())
            });
            assert_eq!(contracted(&sum, &facts), Ok(Sum::new(plain)), "coefficient {r}");
        }
    }
}
