//! Sums of products: a tensor element as an expression over the inputs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use num_traits::{One, ToPrimitive, Zero};
use regraft_ir::DType;

use crate::index::{Atom, Poly, Source, Var};
use crate::value::number::{Number, whole};
use crate::value::scope::merge_powers;

/// A function of real numbers about which little is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Function {
    /// The largest argument; arguments ascending, at least two.
    Max,
    /// The exponential.
    Exp,
    /// The square root.
    Sqrt,
    /// 1 where the argument is above 0, else 0.
    Positive,
    /// 1 where the argument is 0, else 0.
    Zero,
    /// An integer wrapped into an integer type, modulo the type's power of two.
    Wrapped(DType),
    /// Any other function with values in an integer type, by name.
    Integer(Arc<str>, DType),
    /// Any other function, by name.
    Named(Arc<str>),
}

/// A reduction other than a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Fold {
    /// The largest element.
    Max,
    /// The product.
    Product,
}

/// A factor of a product.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Factor {
    /// An element of a tensor.
    Read(Source, Vec<Poly>),
    /// An integer as a real number.
    Whole(Atom),
    /// A function.
    Apply(Function, Vec<Sum>),
    /// A reduction of a sum over index variables where conditions hold.
    Over(Fold, Vec<(Var, Poly)>, Vec<Poly>, Sum),
    /// A sum of several terms; only with negative powers.
    Of(Sum),
}

/// The sum over index variables (`0 ≤ v < extent`), where conditions hold (`poly ≥ 0`), of a
/// product of powers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Term {
    /// Summed variables with their extents.
    pub binders: Vec<(Var, Poly)>,
    /// Sums that must be at least 0, ascending.
    pub conds: Vec<Poly>,
    /// Factors ascending, with their nonzero powers.
    pub factors: Vec<(Factor, i32)>,
}

/// A sum of terms with nonzero coefficients, terms ascending.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Sum(Vec<(Term, Number)>);

impl Sum {
    /// A number.
    pub fn number(value: Number) -> Sum {
        Sum::new([(Term::default(), value)])
    }

    /// Number of factors, nested ones included: the cost of a copy.
    pub fn weight(&self) -> usize {
        self.0.iter().map(|(term, _)| term.weight()).sum()
    }

    /// 1.
    pub fn one() -> Sum {
        Sum::number(Number::one())
    }

    /// One factor.
    pub fn factor(factor: Factor) -> Sum {
        Sum::new([(Term { factors: vec![(factor, 1)], ..Term::default() }, Number::one())])
    }

    /// An element of a tensor.
    pub fn read(source: Source, index: Vec<Poly>) -> Sum {
        Sum::factor(Factor::Read(source, index))
    }

    /// An integer as a real number.
    pub fn whole(poly: &Poly) -> Sum {
        Sum::new(poly.terms().iter().map(|(atoms, coefficient)| {
            let mut factors: Vec<(Factor, i32)> = Vec::new();
            for atom in atoms.iter() {
                factors.push(match atom {
                    Atom::Element(source, index) => (Factor::Read(source.clone(), index.clone()), 1),
                    other => (Factor::Whole(other.clone()), 1),
                });
            }
            merge_powers(&mut factors);
            (Term { factors, ..Term::default() }, whole(*coefficient))
        }))
    }

    /// The sum of these terms, with equal ones combined.
    pub fn new(terms: impl IntoIterator<Item = (Term, Number)>) -> Sum {
        let mut merged: BTreeMap<Term, Number> = BTreeMap::new();
        for (term, coefficient) in terms {
            *merged.entry(term).or_insert_with(Number::zero) += coefficient;
        }
        Sum(merged.into_iter().filter(|(_, c)| !c.is_zero()).collect())
    }

    /// The sum as an index expression, if it is integral.
    pub fn as_poly(&self) -> Option<Poly> {
        self.0.iter().try_fold(Poly::default(), |sum, (term, c)| {
            if !term.binders.is_empty() || !term.conds.is_empty() || !c.is_integer() {
                return None;
            }
            let mut product = Poly::number(c.to_integer().to_i64()?);
            for (factor, power) in &term.factors {
                let atom = match factor {
                    Factor::Whole(atom) => atom.clone(),
                    Factor::Read(source, index) => Atom::Element(source.clone(), index.clone()),
                    _ => return None,
                };
                for _ in 0..u32::try_from(*power).ok()? {
                    product = product.mul(&Poly::atom(atom.clone()));
                }
            }
            Some(sum.add(&product))
        })
    }

    /// The terms, ascending.
    pub fn terms(&self) -> &[(Term, Number)] {
        &self.0
    }

    /// The terms, ascending.
    pub fn into_terms(self) -> Vec<(Term, Number)> {
        self.0
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The number, if the sum is constant.
    pub fn known(&self) -> Option<Number> {
        match self.0.as_slice() {
            [] => Some(Number::zero()),
            [(term, value)] if *term == Term::default() => Some(value.clone()),
            _ => None,
        }
    }

    pub fn add(&self, other: &Sum) -> Sum {
        if other.is_zero() {
            return self.clone();
        }
        if self.is_zero() {
            return other.clone();
        }
        Sum::new(self.0.iter().chain(&other.0).cloned())
    }

    pub fn scale(&self, by: &Number) -> Sum {
        if by.is_zero() {
            return Sum::default();
        }
        Sum(self.0.iter().map(|(term, c)| (term.clone(), c * by)).collect())
    }

    pub fn negated(&self) -> Sum {
        self.scale(&whole(-1))
    }

    pub fn sub(&self, other: &Sum) -> Sum {
        self.add(&other.negated())
    }

    /// The sum where `condition ≥ 0`, and 0 elsewhere.
    pub fn only_where(&self, condition: &Poly) -> Sum {
        match condition.known() {
            Some(value) if value >= 0 => self.clone(),
            Some(_) => Sum::default(),
            None => Sum::new(self.0.iter().map(|(term, c)| {
                let mut term = term.clone();
                if let Err(at) = term.conds.binary_search(condition) {
                    term.conds.insert(at, condition.clone());
                }
                (term, c.clone())
            })),
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        for (at, (term, c)) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(" + ")?;
            }
            if at >= 6 {
                return write!(f, "{} more terms", self.0.len() - at);
            }
            match (c.is_one(), term.factors.is_empty() && term.binders.is_empty() && term.conds.is_empty()) {
                (_, true) => write!(f, "{c}")?,
                (true, false) => write!(f, "{term}")?,
                (false, false) => write!(f, "{c} {term}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        domain(f, "sum", &self.binders, &self.conds)?;
        for (at, (factor, power)) in self.factors.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { " " })?;
            write!(f, "{factor}")?;
            if *power != 1 {
                write!(f, "^{power}")?;
            }
        }
        if self.factors.is_empty() { f.write_str("1") } else { Ok(()) }
    }
}

fn domain(f: &mut fmt::Formatter<'_>, name: &str, binders: &[(Var, Poly)], conds: &[Poly]) -> fmt::Result {
    if !binders.is_empty() {
        f.write_str(name)?;
        for (var, extent) in binders {
            write!(f, " i{var}<{extent}")?;
        }
        f.write_str(": ")?;
    }
    conds.iter().try_for_each(|c| write!(f, "[{c} >= 0] "))
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Factor::Read(source, index) => write!(f, "{source}{index:?}"),
            Factor::Whole(atom) => write!(f, "{atom}"),
            Factor::Apply(function, arguments) => {
                match function {
                    Function::Named(name) => write!(f, "{name}")?,
                    Function::Integer(name, dtype) => write!(f, "{name} as {dtype}")?,
                    Function::Wrapped(dtype) => write!(f, "{dtype}")?,
                    other => write!(f, "{}", format!("{other:?}").to_lowercase())?,
                }
                for (at, argument) in arguments.iter().enumerate() {
                    write!(f, "{}{argument}", if at == 0 { "(" } else { ", " })?;
                }
                f.write_str(")")
            }
            Factor::Over(fold, binders, conds, body) => {
                f.write_str("(")?;
                domain(f, &format!("{fold:?}").to_lowercase(), binders, conds)?;
                write!(f, "{body})")
            }
            Factor::Of(sum) => write!(f, "({sum})"),
        }
    }
}
