//! Expressions of sizes in a signature.

use regraft_ir::{Attr, Dim};

use super::{Call, List};

/// The sizes of each axis of a pattern; at most one of them, `*s`, takes any number.
pub(super) fn spread(axes: &[&str], have: &[Option<Dim>]) -> Option<Vec<List>> {
    let single = axes.iter().filter(|axis| !axis.starts_with('*')).count();
    let spare = have.len().checked_sub(single).filter(|spare| *spare == 0 || single < axes.len())?;
    let mut rest = have;
    let own = axes.iter().map(|axis| rest.split_off(..if axis.starts_with('*') { spare } else { 1 }).map(<[_]>::to_vec));
    own.collect()
}

/// The only number of the list, as one of `length` places; negative ones count from the end.
pub(super) fn index(list: &[Option<Dim>], length: usize) -> Option<usize> {
    let [Some(number)] = list else { return None };
    let number = number.known()?;
    usize::try_from(if number < 0 { number + length as i64 } else { number }).ok().filter(|at| *at < length)
}

impl Call<'_> {
    /// The sizes of `n *s ?`.
    pub(super) fn list(&self, text: &str) -> Option<List> {
        let lists = text.split_whitespace().map(|item| self.value(item.strip_prefix('*').unwrap_or(item)));
        lists.collect::<Option<Vec<List>>>().map(|lists| lists.concat())
    }

    /// The value of an expression.
    pub(super) fn value(&self, text: &str) -> Option<List> {
        let mut rest = text;
        self.chain(0, &mut rest).filter(|_| rest.is_empty())
    }

    /// Sums (level 0) of products (level 1) of atoms.
    fn chain(&self, level: usize, rest: &mut &str) -> Option<List> {
        let Some(operations) = [["+", "-"], ["*", "/"]].get(level) else { return self.atom(rest) };
        let mut left = self.chain(level + 1, rest)?;
        while let Some(operation) = operations.iter().find(|operation| eat(rest, operation)) {
            left = each(&left, &self.chain(level + 1, rest)?, |a, b| match *operation {
                "+" => Some(a? + b?),
                "-" => Some(a? - b?),
                "*" => Some(a? * b?),
                _ => Some(a?.floor_div(&b.filter(|b| !b.is(0))?)),
            })?;
        }
        Some(left)
    }

    fn atom(&self, rest: &mut &str) -> Option<List> {
        if eat(rest, "?") {
            return Some(vec![None]);
        }
        if eat(rest, "(") {
            return self.chain(0, rest).filter(|_| eat(rest, ")"));
        }
        let (attr, negative) = (eat(rest, "$"), eat(rest, "-"));
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name;
        (name, *rest) = rest.split_at(end);
        if attr {
            let default = if eat(rest, "=") { self.atom(rest) } else { None };
            return match (self.view.attr)(name) {
                Some(Attr::Int(number)) => Some(vec![Some(Dim::from(number))]),
                Some(Attr::Ints(numbers)) => Some(numbers.into_iter().map(|number| Some(Dim::from(number))).collect()),
                _ => default,
            };
        }
        if let Ok(number) = name.parse::<i64>() {
            return Some(vec![Some(Dim::from(if negative { -number } else { number }))]);
        }
        if !eat(rest, "(") {
            return self.values.get(name).cloned();
        }
        let mut arguments = vec![self.chain(0, rest)?];
        while eat(rest, ",") {
            arguments.push(self.chain(0, rest)?);
        }
        function(name, &arguments).filter(|_| eat(rest, ")"))
    }
}

fn function(name: &str, arguments: &[List]) -> Option<List> {
    match (name, arguments) {
        ("len", [list]) => Some(vec![Some(Dim::from(list.len() as i64))]),
        ("ones", [list]) => Some(vec![Some(Dim::from(1)); list.len()]),
        ("open", [count]) => Some(vec![None; usize::try_from(count.first()?.as_ref()?.known()?).ok()?]),
        ("prod", [list]) => Some(vec![list.iter().try_fold(Dim::from(1), |product, size| Some(product * size.clone()?))]),
        ("max", [list]) => Some(vec![list.iter().map(|size| size.as_ref()?.known()).max()?.map(Dim::from)]),
        ("at", [list, at]) => Some(vec![list[index(at, list.len())?].clone()]),
        ("put", [list, axes, sizes]) => put(list, axes, sizes),
        ("broadcast", lists) => lists.iter().cloned().reduce(|a, b| broadcast(&a, &b)),
        _ => None,
    }
}

/// Axis by axis; a list of one size is as long as the other.
fn each(a: &[Option<Dim>], b: &[Option<Dim>], f: impl Fn(Option<Dim>, Option<Dim>) -> Option<Dim>) -> Option<List> {
    let length = if a.len() == 1 { b.len() } else { a.len() };
    let pick = |list: &[Option<Dim>], at: usize| list[if list.len() == 1 { 0 } else { at }].clone();
    (b.len() == 1 || b.len() == length).then(|| (0..length).map(|at| f(pick(a, at), pick(b, at))).collect())
}

fn put(list: &[Option<Dim>], axes: &[Option<Dim>], sizes: &[Option<Dim>]) -> Option<List> {
    let mut result = list.to_vec();
    for (at, axis) in axes.iter().enumerate() {
        result[index(std::slice::from_ref(axis), list.len())?] = sizes.get(if sizes.len() == 1 { 0 } else { at })?.clone();
    }
    Some(result)
}

/// By NumPy's rule: a number other than 1 stays, whatever it meets.
fn broadcast(a: &[Option<Dim>], b: &[Option<Dim>]) -> List {
    let rank = a.len().max(b.len());
    let size = |list: &[Option<Dim>], at: usize| (at + list.len()).checked_sub(rank).map_or(Some(Dim::from(1)), |at| list[at].clone());
    let both = |at: usize| match (size(a, at), size(b, at)) {
        (Some(a), Some(b)) => a.broadcast(&b),
        (a, b) => a.or(b).filter(|size| size.known().is_some_and(|n| n != 1)),
    };
    (0..rank).map(both).collect()
}

fn eat(rest: &mut &str, token: &str) -> bool {
    rest.strip_prefix(token).inspect(|after| *rest = after).is_some()
}
