//! Sizes in a signature. A size that mentions a symbol with `?`, which no model has, is open.

use regraft_ir::{Attr, Dim, PartialType, TensorType, broadcast_shapes};

use super::Call;

/// Longest list of open sizes; a malformed model can ask for any number.
const MAX_OPEN: usize = 64;

/// This many open sizes; `place` distinguishes them from those of other places.
pub(super) fn open(place: usize, count: usize) -> Option<Vec<Dim>> {
    (count <= MAX_OPEN).then(|| (0..count).map(|at| Dim::symbol(&format!("?{place}:{at}"))).collect())
}

/// The sizes, with symbols for the open ones.
pub(super) fn complete(shape: Vec<Option<Dim>>) -> Option<Vec<Dim>> {
    let symbols = open(usize::MAX, shape.len())?;
    Some(shape.into_iter().zip(symbols).map(|(size, symbol)| size.unwrap_or(symbol)).collect())
}

/// The certain part of a type; no size is negative.
pub(super) fn sure(ty: TensorType) -> PartialType {
    let known = |size: &Dim| size.known().is_none_or(|n| n >= 0) && !size.has_symbol(|name| name.starts_with('?'));
    PartialType { dtype: ty.dtype, shape: ty.shape.into_iter().map(|size| Some(size).filter(known)).collect() }
}

/// The sizes of each axis of a pattern; at most one of them, `*s`, takes any number of axes.
pub(super) fn spread(axes: &[&str], have: &[Dim]) -> Option<Vec<Vec<Dim>>> {
    let single = axes.iter().filter(|axis| !axis.starts_with('*')).count();
    let spare = have.len().checked_sub(single).filter(|spare| *spare == 0 || single < axes.len())?;
    let mut rest = have;
    axes.iter().map(|axis| rest.split_off(..if axis.starts_with('*') { spare } else { 1 }).map(<[_]>::to_vec)).collect()
}

/// The only number in the list, as an index into `length` places; negative ones count from the end.
pub(super) fn index(list: &[Dim], length: usize) -> Option<usize> {
    let number = <&[Dim; 1]>::try_from(list).ok()?[0].known()?;
    usize::try_from(if number < 0 { number + length as i64 } else { number }).ok().filter(|at| *at < length)
}

impl Call<'_> {
    /// The value of an expression.
    pub(super) fn value(&self, text: &str) -> Option<Vec<Dim>> {
        let mut rest = text;
        self.chain(0, &mut rest).filter(|_| rest.is_empty())
    }

    /// Sums (level 0) of products (level 1) of atoms.
    fn chain(&self, level: usize, rest: &mut &str) -> Option<Vec<Dim>> {
        let Some(operations) = [["+", "-"], ["*", "/"]].get(level) else { return self.atom(rest) };
        let mut left = self.chain(level + 1, rest)?;
        while let Some(operation) = operations.iter().find(|operation| eat(rest, operation)) {
            left = each(&left, &self.chain(level + 1, rest)?, |a, b| match *operation {
                "+" => Some(a + b),
                "-" => Some(a - b),
                "*" => Some(a * b),
                _ => (!b.is(0)).then(|| a.floor_div(&b)),
            })?;
        }
        Some(left)
    }

    fn atom(&self, rest: &mut &str) -> Option<Vec<Dim>> {
        let place = rest.len();
        if eat(rest, "?") {
            return open(place, 1);
        }
        if eat(rest, "(") {
            return self.chain(0, rest).filter(|_| eat(rest, ")"));
        }
        let (attr, word, negative) = (eat(rest, "$"), eat(rest, "'"), eat(rest, "-"));
        let name;
        (name, *rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len()));
        if attr {
            let default = if !rest.starts_with("==") && eat(rest, "=") { self.atom(rest) } else { None };
            return match (self.view.attr)(name) {
                Some(Attr::Int(number)) => Some(vec![Dim::from(number)]),
                Some(Attr::Ints(numbers)) => Some(numbers.into_iter().map(Dim::from).collect()),
                Some(Attr::Str(word)) => Some(vec![Dim::symbol(&format!("?{word}"))]),
                _ => default,
            };
        }
        if word {
            return Some(vec![Dim::symbol(&format!("?{name}"))]);
        }
        if let Ok(number) = name.parse::<i64>() {
            return Some(vec![Dim::from(if negative { -number } else { number })]);
        }
        if !eat(rest, "(") {
            return self.values.get(name).cloned();
        }
        let mut arguments = vec![self.chain(0, rest)?];
        while eat(rest, ",") {
            arguments.push(self.chain(0, rest)?);
        }
        function(name, place, &arguments).filter(|_| eat(rest, ")"))
    }
}

fn function(name: &str, place: usize, arguments: &[Vec<Dim>]) -> Option<Vec<Dim>> {
    match (name, arguments) {
        ("len", [list]) => Some(vec![Dim::from(list.len() as i64)]),
        ("open", [count]) => open(place, usize::try_from(count.first()?.known()?).ok()?),
        ("prod", [list]) => Some(vec![list.iter().fold(Dim::from(1), |product, size| product * size.clone())]),
        ("max", [list]) => Some(vec![Dim::from(list.iter().map(Dim::known).collect::<Option<Vec<i64>>>()?.into_iter().max()?)]),
        ("at", [list, at]) => Some(vec![list[index(at, list.len())?].clone()]),
        ("put", [list, axes, sizes]) => {
            let mut list = list.clone();
            for (at, axis) in axes.iter().enumerate() {
                let at = if sizes.len() == 1 { 0 } else { at };
                let axis = index(std::slice::from_ref(axis), list.len())?;
                list[axis] = sizes.get(at)?.clone();
            }
            Some(list)
        }
        ("broadcast", lists) => broadcast_shapes(lists.iter().map(Vec::as_slice)).map(|shape| shape.to_vec()),
        _ => None,
    }
}

/// Axis by axis; a list of one size is broadcast to the other.
fn each(a: &[Dim], b: &[Dim], f: impl Fn(Dim, Dim) -> Option<Dim>) -> Option<Vec<Dim>> {
    let length = if a.len() == 1 { b.len() } else { a.len() };
    let pick = |list: &[Dim], at: usize| list.get(if list.len() == 1 { 0 } else { at }).cloned();
    (b.len() == 1 || b.len() == length).then(|| (0..length).map(|at| f(pick(a, at)?, pick(b, at)?)).collect())?
}

fn eat(rest: &mut &str, token: &str) -> bool {
    rest.strip_prefix(token).inspect(|after| *rest = after).is_some()
}
