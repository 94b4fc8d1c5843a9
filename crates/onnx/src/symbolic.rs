//! Symbolic values of small integer tensors: tracks `Shape` and the arithmetic that exporters put
//! between it and a `Reshape`.

use regraft_ir::{Attr, DType, Dim, TensorType};

/// A scalar or 1-D integer tensor whose elements are known as symbolic sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Rank 0 or 1.
    pub scalar: bool,
    /// The elements.
    pub dims: Vec<Dim>,
}

/// Longest tensor that is tracked.
const MAX_LENGTH: usize = 64;

/// The tracker's view of a node.
pub(crate) struct View<'a> {
    /// Operator type, with its domain unless it is the standard one (`ai.onnx.ml:LabelEncoder`).
    pub op_type: &'a str,
    /// Opset version.
    pub version: i64,
    /// Attribute by name.
    pub attr: &'a dyn Fn(&str) -> Option<Attr>,
    /// Number of results.
    pub results: usize,
    /// Which inputs are present.
    pub given: &'a [bool],
    /// Type of each input, where known.
    pub types: &'a [Option<TensorType>],
    /// Symbolic elements of each input, where known (constants included).
    pub sizes: &'a [Option<Sizes>],
}

impl View<'_> {
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        match (self.attr)(name)? {
            Attr::Int(v) => Some(v),
            _ => None,
        }
    }

    pub(crate) fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match (self.attr)(name)? {
            Attr::Ints(v) => Some(v),
            _ => None,
        }
    }

    /// The type of an input, if known.
    pub(crate) fn ty(&self, input: usize) -> Option<&TensorType> {
        self.types.get(input)?.as_ref()
    }

    fn at(&self, input: usize) -> Option<&Sizes> {
        self.sizes.get(input)?.as_ref()
    }

    /// Elements of an input that are numbers.
    pub(crate) fn numbers(&self, input: usize) -> Option<Vec<i64>> {
        self.at(input)?.dims.iter().map(Dim::known).collect()
    }

    /// Whether the input is present.
    pub(crate) fn given(&self, input: usize) -> bool {
        self.given.get(input).copied().unwrap_or(false)
    }
}

/// The symbolic elements of the node's first result, if they follow from its inputs.
pub(crate) fn follow(view: &View<'_>) -> Option<Sizes> {
    let sizes = match view.op_type {
        "Shape" => shape(view)?,
        "Size" => Sizes { scalar: true, dims: vec![view.types.first()?.as_ref()?.elements()] },
        "Identity" => view.at(0)?.clone(),
        "Cast" => cast(view)?,
        "Gather" => gather(view)?,
        "Slice" => slice(view)?,
        "Concat" => concat(view)?,
        "Squeeze" | "Unsqueeze" | "Reshape" | "Flatten" => reshape(view)?,
        "Neg" => {
            let x = view.at(0)?;
            Sizes { scalar: x.scalar, dims: x.dims.iter().map(|d| d.clone() * Dim::from(-1)).collect() }
        }
        "ReduceProd" => reduce_prod(view)?,
        "Add" | "Sub" | "Mul" | "Div" => elementwise(view, arithmetic(view.op_type))?,
        "Max" => elementwise(view, |x, y| extreme(x, y, true))?,
        "Min" => elementwise(view, |x, y| extreme(x, y, false))?,
        _ => return None,
    };
    (sizes.dims.len() <= MAX_LENGTH).then_some(sizes)
}

fn list(dims: Vec<Dim>) -> Sizes {
    Sizes { scalar: false, dims }
}

fn shape(view: &View<'_>) -> Option<Sizes> {
    let ty = view.types.first()?.as_ref()?;
    let rank = ty.rank() as i64;
    let clamp = |v: i64| (if v < 0 { v + rank } else { v }).clamp(0, rank) as usize;
    let (start, end) = (clamp(view.int("start").unwrap_or(0)), clamp(view.int("end").unwrap_or(rank)));
    Some(list(ty.shape.get(start..end.max(start))?.to_vec()))
}

fn cast(view: &View<'_>) -> Option<Sizes> {
    let to = DType::from_onnx(i32::try_from(view.int("to")?).ok()?);
    matches!(to, DType::I64 | DType::I32).then(|| view.at(0).cloned()).flatten()
}

fn gather(view: &View<'_>) -> Option<Sizes> {
    let (data, indices) = (view.at(0)?, view.at(1)?);
    if data.scalar || view.int("axis").is_some_and(|axis| axis != 0 && axis != -1) {
        return None;
    }
    let n = data.dims.len() as i64;
    let picked: Option<Vec<Dim>> =
        view.numbers(1)?.into_iter().map(|i| data.dims.get(usize::try_from(if i < 0 { i + n } else { i }).ok()?).cloned()).collect();
    Some(Sizes { scalar: indices.scalar, dims: picked? })
}

fn slice(view: &View<'_>) -> Option<Sizes> {
    let data = view.at(0).filter(|d| !d.scalar)?;
    let one = |from_input: Option<Vec<i64>>| from_input.filter(|v| v.len() == 1).map(|v| v[0]);
    let (start, end, step) = if view.version < 10 {
        if view.ints("axes").is_some_and(|axes| axes != [0]) {
            return None;
        }
        (one(view.ints("starts"))?, one(view.ints("ends"))?, 1)
    } else {
        if view.given(3) && !matches!(one(view.numbers(3))?, 0 | -1) {
            return None;
        }
        let step = if view.given(4) { one(view.numbers(4))? } else { 1 };
        (one(view.numbers(1))?, one(view.numbers(2))?, step)
    };
    if step < 1 {
        return None;
    }
    let n = data.dims.len() as i64;
    let clamp = |v: i64| (if v < 0 { v.saturating_add(n) } else { v }).clamp(0, n) as usize;
    let (start, end) = (clamp(start), clamp(end));
    Some(list(data.dims.get(start..end.max(start))?.iter().step_by(usize::try_from(step).ok()?).cloned().collect()))
}

fn concat(view: &View<'_>) -> Option<Sizes> {
    if !matches!(view.int("axis").unwrap_or(0), 0 | -1) {
        return None;
    }
    let mut dims = Vec::new();
    for input in view.sizes {
        let part = input.as_ref().filter(|s| !s.scalar)?;
        dims.extend(part.dims.iter().cloned());
    }
    Some(list(dims))
}

/// `Squeeze`, `Unsqueeze`, `Reshape` and `Flatten` between rank 0 and rank 1: the elements stay.
fn reshape(view: &View<'_>) -> Option<Sizes> {
    let data = view.at(0)?;
    let axes = || if view.version >= 13 { view.numbers(1) } else { view.ints("axes") };
    let scalar = match view.op_type {
        "Unsqueeze" if data.scalar && matches!(axes()?.as_slice(), [0 | -1]) => false,
        "Squeeze" if !data.scalar && data.dims.len() == 1 => true,
        "Reshape" => match view.numbers(1)?.as_slice() {
            [] if data.dims.len() == 1 => true,
            [-1] => false,
            [n] if *n == data.dims.len() as i64 => false,
            _ => return None,
        },
        _ => return None,
    };
    Some(Sizes { scalar, dims: data.dims.clone() })
}

fn reduce_prod(view: &View<'_>) -> Option<Sizes> {
    let data = view.at(0).filter(|d| !d.scalar)?;
    let axes = if view.given(1) { Some(view.numbers(1)?) } else { view.ints("axes") };
    if axes.is_some_and(|a| !matches!(a.as_slice(), [] | [0] | [-1])) || view.int("noop_with_empty_axes").is_some_and(|v| v != 0) {
        return None;
    }
    let product = data.dims.iter().fold(Dim::from(1), |p, d| p * d.clone());
    Some(Sizes { scalar: view.int("keepdims") == Some(0), dims: vec![product] })
}

fn arithmetic(op_type: &str) -> impl Fn(&Dim, &Dim) -> Option<Dim> {
    move |x, y| {
        let (x, y) = (x.clone(), y.clone());
        Some(match op_type {
            "Add" => x + y,
            "Sub" => x - y,
            "Mul" => x * y,
            // ONNX truncates towards zero, which equals the floor only if both are known to be
            // non-negative.
            _ if x.at_least(0) && y.at_least(1) => x.floor_div(&y),
            _ => return None,
        })
    }
}

/// The larger or the smaller one of two sizes, if it is known which that is.
fn extreme(x: &Dim, y: &Dim, larger: bool) -> Option<Dim> {
    let difference = x.clone() - y.clone();
    let first = if difference.at_least(0) {
        larger
    } else if (y.clone() - x.clone()).at_least(0) {
        !larger
    } else {
        return None;
    };
    Some(if first { x } else { y }.clone())
}

/// What an operator makes of the elements of its inputs, from the left.
fn elementwise(view: &View<'_>, with: impl Fn(&Dim, &Dim) -> Option<Dim>) -> Option<Sizes> {
    let inputs = view.sizes.iter().map(Option::as_ref).collect::<Option<Vec<&Sizes>>>()?;
    let (first, others) = inputs.split_first()?;
    others.iter().try_fold((*first).clone(), |a, b| {
        let length = match (a.dims.len(), b.dims.len()) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return None,
        };
        let pick = |s: &Sizes, i: usize| s.dims[if s.dims.len() == 1 { 0 } else { i }].clone();
        let dims: Option<Vec<Dim>> = (0..length).map(|i| with(&pick(&a, i), &pick(b, i))).collect();
        Some(Sizes { scalar: a.scalar && b.scalar, dims: dims? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Dim {
        Dim::symbol("N")
    }

    fn known(values: &[i64]) -> Option<Sizes> {
        Some(list(values.iter().map(|v| Dim::from(*v)).collect()))
    }

    fn scalar(d: Dim) -> Option<Sizes> {
        Some(Sizes { scalar: true, dims: vec![d] })
    }

    fn run(op_type: &str, version: i64, attrs: &[(&str, Attr)], types: &[Option<TensorType>], sizes: &[Option<Sizes>]) -> Option<Sizes> {
        let attr = |name: &str| attrs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        let given = vec![true; types.len().max(sizes.len())];
        follow(&View { op_type, version, attr: &attr, results: 1, given: &given, types, sizes })
    }

    #[test]
    fn shape_arithmetic_is_followed() {
        let ty = || Some(TensorType::new(DType::F32, [n(), Dim::from(3), Dim::symbol("H")]));
        let shape = run("Shape", 13, &[], &[ty()], &[None]);
        assert_eq!(shape, Some(list(vec![n(), Dim::from(3), Dim::symbol("H")])));
        assert_eq!(run("Shape", 15, &[("start", Attr::Int(-1))], &[ty()], &[None]), Some(list(vec![Dim::symbol("H")])));
        assert_eq!(run("Gather", 13, &[], &[], &[shape.clone(), scalar(Dim::from(-1))]), scalar(Dim::symbol("H")));
        assert_eq!(run("Slice", 13, &[], &[], &[shape.clone(), known(&[0]), known(&[1]), known(&[0])]), Some(list(vec![n()])));
        assert_eq!(
            run("Slice", 9, &[("starts", Attr::Ints(vec![1])), ("ends", Attr::Ints(vec![i64::MAX]))], &[], std::slice::from_ref(&shape)),
            Some(list(vec![Dim::from(3), Dim::symbol("H")]))
        );
        let head = Some(list(vec![n()]));
        assert_eq!(run("Concat", 13, &[("axis", Attr::Int(0))], &[], &[head.clone(), known(&[-1])]), Some(list(vec![n(), Dim::from(-1)])));
        assert_eq!(run("Unsqueeze", 13, &[], &[], &[scalar(n()), known(&[0])]), head);
        assert_eq!(run("Squeeze", 11, &[("axes", Attr::Ints(vec![0]))], &[], std::slice::from_ref(&head)), scalar(n()));
        assert_eq!(run("Mul", 13, &[], &[], &[head.clone(), known(&[2])]), Some(list(vec![n() * Dim::from(2)])));
        assert_eq!(run("Div", 13, &[], &[], &[scalar(n() * Dim::from(4)), scalar(Dim::from(2))]), scalar(n() * Dim::from(2)));
        assert_eq!(run("Cast", 13, &[("to", Attr::Int(6))], &[], std::slice::from_ref(&head)), head);
        assert_eq!(
            run("ReduceProd", 13, &[("keepdims", Attr::Int(0))], &[], &[Some(list(vec![n(), Dim::from(3)]))]),
            scalar(n() * Dim::from(3))
        );
        let batch = Some(list(vec![n(), Dim::from(8)]));
        assert_eq!(run("Max", 13, &[], &[], &[batch.clone(), known(&[0, 9]), known(&[0, 3])]), Some(list(vec![n(), Dim::from(9)])));
        assert_eq!(run("Min", 13, &[], &[], &[batch.clone(), batch.clone()]), batch);
    }

    #[test]
    fn what_is_not_sure_is_not_followed() {
        let head = Some(list(vec![n()]));
        assert_eq!(run("Cast", 13, &[("to", Attr::Int(1))], &[], std::slice::from_ref(&head)), None);
        assert_eq!(run("Div", 13, &[], &[], &[scalar(n() - Dim::from(3)), scalar(Dim::from(2))]), None);
        assert_eq!(run("Max", 13, &[], &[], &[head.clone(), known(&[7])]), None);
        assert_eq!(run("Slice", 13, &[], &[], &[head.clone(), None, known(&[1])]), None);
        assert_eq!(run("Slice", 13, &[], &[], &[head.clone(), known(&[0]), known(&[-2]), known(&[0]), known(&[-1])]), None);
        assert_eq!(run("Gather", 13, &[], &[], &[head, scalar(Dim::from(3))]), None);
    }
}
