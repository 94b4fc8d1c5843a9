//! The prover's semantics of operators against the evaluator's: the same numbers at every index.

use std::collections::HashMap;

use regraft_ir::{Const, Graph, Op, Value, eval};
use regraft_rules::Library;
use regraft_rules::sample::draw;

use crate::index::{Atom, Fuel, Poly, Source, Var};
use crate::meaning::{Meaning, Memory, Shared};
use crate::value::{Factor, Fold, Function, Simplifier, Sum};

/// Elements of each output to compare.
const ELEMENTS: usize = 6;
/// Sums with more terms than this are not computed here.
const LARGEST: usize = 4_000;

/// Numbers for everything that a sum reads.
struct Numbers<'a> {
    tensors: HashMap<Source, (Vec<i64>, Vec<f64>)>,
    vars: HashMap<Var, i64>,
    left: usize,
    graph: &'a Graph,
}

impl Numbers<'_> {
    fn poly(&self, poly: &Poly) -> Option<i64> {
        poly.terms().iter().try_fold(0i64, |sum, (atoms, c)| {
            let product = atoms.iter().try_fold(*c, |product, atom| Some(product * self.atom(atom)?))?;
            Some(sum + product)
        })
    }

    fn atom(&self, atom: &Atom) -> Option<i64> {
        Some(match atom {
            Atom::Var(var) => *self.vars.get(var)?,
            Atom::Floor(a, b) => self.poly(a)?.div_euclid(self.poly(b)?),
            Atom::Stretch(a, n) => {
                if self.poly(n)? == 1 {
                    0
                } else {
                    self.poly(a)?
                }
            }
            Atom::Element(source, index) => self.read(source, index)? as i64,
            Atom::Size(_) | Atom::Broadcast(..) => return None,
        })
    }

    fn read(&self, source: &Source, index: &[Poly]) -> Option<f64> {
        let (shape, data) = self.tensors.get(source)?;
        let mut flat = 0;
        for (at, size) in index.iter().zip(shape) {
            let at = self.poly(at)?;
            assert!(
                (0..*size).contains(&at),
                "an index of {source} is outside of {shape:?}: {at} in {}",
                regraft_ir::text::print(self.graph)
            );
            flat = flat * size + at;
        }
        data.get(flat as usize).copied()
    }

    /// Calls `f` for every point of a domain.
    fn domain(&mut self, binders: &[(Var, Poly)], conds: &[Poly], f: &mut dyn FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let Some(((var, extent), rest)) = binders.split_first() else {
            for cond in conds {
                if self.poly(cond)? < 0 {
                    return Some(());
                }
            }
            self.left = self.left.checked_sub(1)?;
            return f(self);
        };
        // A sum inside another one may use the same name.
        let outer = self.vars.get(var).copied();
        for value in 0..self.poly(extent)? {
            self.vars.insert(*var, value);
            self.domain(rest, conds, f)?;
        }
        match outer {
            Some(value) => self.vars.insert(*var, value),
            None => self.vars.remove(var),
        };
        Some(())
    }

    fn sum(&mut self, sum: &Sum) -> Option<f64> {
        let mut total = 0.0;
        for (term, c) in sum.terms() {
            let c = c.to_f64();
            let mut part = 0.0;
            self.domain(&term.binders, &term.conds, &mut |m| {
                let mut product = 1.0;
                for (factor, power) in &term.factors {
                    product *= m.factor(factor)?.powi(*power);
                }
                part += product;
                Some(())
            })?;
            total += c * part;
        }
        Some(total)
    }

    fn factor(&mut self, factor: &Factor) -> Option<f64> {
        Some(match factor {
            Factor::Read(source, index) => self.read(source, index)?,
            Factor::Whole(atom) => self.atom(atom)? as f64,
            Factor::Of(sum) => self.sum(sum)?,
            Factor::Over(fold, binders, conds, body) => {
                let mut result: Option<f64> = None;
                self.domain(binders, conds, &mut |m| {
                    let value = m.sum(body)?;
                    result = Some(match (result, fold) {
                        (None, _) => value,
                        (Some(r), Fold::Max) => r.max(value),
                        (Some(r), Fold::Product) => r * value,
                    });
                    Some(())
                })?;
                result?
            }
            Factor::Apply(function, arguments) => {
                let x: Vec<f64> = arguments.iter().map(|a| self.sum(a)).collect::<Option<_>>()?;
                match function {
                    Function::Max => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                    Function::Exp => x[0].exp(),
                    Function::Sqrt => x[0].sqrt(),
                    Function::Positive => f64::from(x[0] > 1e-12),
                    Function::Zero => f64::from(x[0].abs() < 1e-12),
                    Function::Wrapped(dtype) => {
                        let modulus = (8.0 * dtype.size() as f64).exp2();
                        let low = if dtype.to_string().starts_with('i') { modulus / -2.0 } else { 0.0 };
                        (x[0] - low).rem_euclid(modulus) + low
                    }
                    Function::Integer(name, _) if matches!(name.as_ref(), "quotient" | "mean") => (x[0] / x[1]).trunc(),
                    Function::Integer(name, dtype) if name.as_ref() == "quantized" => {
                        let (low, high) = match dtype {
                            regraft_ir::DType::U8 => (0.0, 255.0),
                            regraft_ir::DType::I8 => (-128.0, 127.0),
                            _ => return None,
                        };
                        let quotient = (x[0] / x[1]) as f32;
                        (f64::from(quotient.round_ties_even()) + x[2]).clamp(low, high)
                    }
                    Function::Integer(..) => return None,
                    Function::Named(name) => match name.as_ref() {
                        "log" => x[0].ln(),
                        "pi" => std::f64::consts::PI,
                        "power" => x[0].powf(x[1]),
                        _ => return None,
                    },
                }
            }
        })
    }
}

fn numbers(value: &Value<f64>) -> Option<(Vec<i64>, Vec<f64>)> {
    let shape = |s: &[usize]| s.iter().map(|d| *d as i64).collect();
    Some(match value {
        Value::Real(t) => (shape(&t.shape), t.data.clone()),
        Value::Int(t) => (shape(&t.shape), t.data.iter().map(|v| *v as f64).collect()),
        Value::Bool(t) => (shape(&t.shape), t.data.iter().map(|v| f64::from(u8::from(*v))).collect()),
    })
}

/// Compares some elements of a graph's outputs; returns how many.
fn compared(graph: &Graph, feeds: &HashMap<String, Const>) -> usize {
    let values: HashMap<String, Value<f64>> = feeds.iter().filter_map(|(n, c)| Some((n.clone(), Value::from_const(c)?))).collect();
    let Ok(expected) = eval::run::<f64>(graph, &values, &mut eval::NoOpaque) else { return 0 };
    let mut tensors: HashMap<Source, (Vec<i64>, Vec<f64>)> = HashMap::new();
    for (name, value) in &values {
        tensors.insert(Source::Input(name.as_str().into()), numbers(value).unwrap());
    }
    for id in graph.ids() {
        if let Op::Constant(c) = &graph.node(id).op
            && let Some(data) = c.value.to_f64()
        {
            tensors.insert(Source::Constant(c.value.fingerprint()), (c.value.shape().to_vec(), data));
        }
    }
    let mut count = 0;
    for (output, expected) in graph.outputs().iter().zip(&expected) {
        let Some((shape, data)) = numbers(expected) else { continue };
        for step in 0..ELEMENTS.min(data.len()) {
            let flat = step * data.len() / ELEMENTS.min(data.len());
            let mut rest = flat as i64;
            let mut index: Vec<Poly> = shape
                .iter()
                .rev()
                .map(|size| {
                    let digit = rest % size;
                    rest /= size;
                    Poly::number(digit)
                })
                .collect();
            index.reverse();
            Fuel::fill(1 << 20);
            let mut shared = Shared::default();
            let Ok(sum) = Meaning::new(graph, &mut shared, &mut Memory::default(), Simplifier::default()).at(output.value, &index) else {
                continue;
            };
            let mut reader = Numbers { tensors: tensors.clone(), vars: HashMap::new(), left: LARGEST, graph };
            let Some(found) = reader.sum(&sum) else { continue };
            let wanted = data[flat];
            let close = (found - wanted).abs() <= 1e-6 * wanted.abs().max(1.0) || (found.is_nan() && wanted.is_nan());
            assert!(close || !wanted.is_finite(), "{found} against {wanted} at {index:?} of\n{}\nby {sum}", regraft_ir::text::print(graph));
            count += 1;
        }
    }
    count
}

#[test]
fn operators_mean_what_the_evaluator_computes() {
    let library = Library::shipped().unwrap();
    let (mut count, mut kinds) = (0, std::collections::BTreeSet::new());
    for rule in library.rules().iter().filter(|r| !r.name.starts_with("winograd")) {
        let instances = (0..24u64).filter_map(|t| draw(rule, t.wrapping_mul(0x9e37_79b9_7f4a_7c15)).ok());
        for instance in instances.take(2) {
            for graph in [&instance.before, &instance.after] {
                let compared = compared(graph, &instance.feeds);
                if compared > 0 {
                    kinds.extend(graph.ids().map(|id| graph.node(id).op.kind()));
                }
                count += compared;
            }
        }
    }
    assert!(count > 8_000 && kinds.len() > 60, "{count} elements of {} kinds of operators", kinds.len());
}

const ANGLES: &str = "const c: f64[1,4,2] const s: f64[1,4,2]";
const FEWER: &str = "const c: f64[1,2,2] const s: f64[1,2,2]";

fn resize(axes: &str, sizes: &str, mode: &str, antialias: bool) -> String {
    format!(
        "Resize(x, axes={axes}, sizes={sizes}, scales=[], keep_aspect_ratio_policy=\"stretch\", mode=\"{mode}\", \
         coordinate_transformation_mode=\"half_pixel\", nearest_mode=\"floor\", cubic_coeff_a=-0.75, exclude_outside=false, \
         antialias={antialias}, roi=[], extrapolation_value=0.0)"
    )
}

#[test]
fn operators_in_no_rule_mean_what_the_evaluator_computes() {
    let i = "const i: i64[2,3] = [0, -1, 2, 1, 3, -4]";
    for (operator, others) in [
        ("CumSum(x, axis=1, exclusive=false, reverse=false)", ""),
        ("CumSum(x, axis=0, exclusive=true, reverse=true)", ""),
        ("Trilu(x, upper=true, k=1)", ""),
        ("Trilu(x, upper=false, k=-1)", ""),
        ("GatherElements(x, i, axis=0)", i),
        ("GatherElements(x, i, axis=1)", i),
        (&resize("[0]", "[6]", "linear", false), ""),
        (&resize("[1]", "[3]", "linear", true), ""),
        (&resize("[0, 1]", "[9, 4]", "cubic", false), ""),
        (&resize("[0, 1]", "[3, 7]", "nearest", false), ""),
        ("MultiHeadAttention(Reshape(x, shape=[1,5,4]), Reshape(x, shape=[1,5,4]), k, num_heads=2, scale=0.25)", "const k: f64[1,5,6]"),
        ("MultiHeadAttention(Reshape(x, shape=[2,5,2]), q, q, b, num_heads=1, scale=0.5)", "const q: f64[2,3,2] const b: f64[1,1,5,3]"),
        ("RotaryEmbedding(Reshape(x, shape=[1,1,4,5]), c, s, interleaved=false, rotary_embedding_dim=4, num_heads=0)", ANGLES),
        ("RotaryEmbedding(Reshape(x, shape=[1,1,4,5]), c, s, interleaved=true, rotary_embedding_dim=4, num_heads=0)", ANGLES),
        ("RotaryEmbedding(Reshape(x, shape=[1,2,10]), c, s, interleaved=true, rotary_embedding_dim=4, num_heads=2)", FEWER),
        ("RMSNormalization(x, s, axis=1, epsilon=0.5)", "const s: f64[5]"),
        ("RMSNormalization(x, s, axis=0, epsilon=0.5)", "const s: f64[4,5]"),
    ] {
        let graph = regraft_ir::text::parse(&format!("graph (x: f64[4,5]) {{ {others} output {operator} as y }}")).unwrap();
        let x: Vec<f64> = (0..20).map(|i| f64::from(i * 7 % 11) - 5.0).collect();
        let feeds = HashMap::from([("x".to_owned(), Const::from_f64(regraft_ir::DType::F64, &[4, 5], &x).unwrap())]);
        assert_eq!(compared(&graph, &feeds), ELEMENTS, "{operator}");
    }
}

#[test]
fn quantizing_operators_mean_what_the_evaluator_computes() {
    let scales = "const s: f32[] = 0.75 const z: i8[] = 3 const t: f32[5] = [0.5, 1.25, 2, 0.25, 3] const u: i8[5] = [1, -2, 0, 9, 4]
        const b: f32[4,3] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5, 0.25, 11]";
    let to = "output_dtype=i8";
    for operator in [
        format!("QuantizeLinear(x, s, z, {to})"),
        format!("QuantizeLinear(x, s, {to})"),
        format!("QuantizeLinear(x, t, u, axis=1, {to})"),
        format!("QuantizeLinear(x, b, axis=1, block_size=2, {to})"),
        "DequantizeLinear(q, s, z, output_dtype=f32)".into(),
        "DequantizeLinear(q, t, u, axis=1, output_dtype=f32)".into(),
        "DequantizeLinear(q, b, axis=1, block_size=2, output_dtype=f32)".into(),
        "MatMulInteger(q, w)".into(),
        "MatMulInteger(q, w, z)".into(),
        "MatMulInteger(q, w, z, v)".into(),
        "MatMulInteger(q, w, z, o)".into(),
        "ConvInteger(i, k, strides=[2,1], pads=[1,1,0,1], dilations=[1,1], group=1)".into(),
        "ConvInteger(i, k, z, y, strides=[1,1], pads=[1,1,1,1], dilations=[1,1], group=1)".into(),
    ] {
        let text = format!(
            "graph (x: f32[4,5], q: i8[4,5]) {{ {scales} const w: i8[5,3] const v: i8[3] = [5, -7, 100] const o: i8[1,3] = [1, 2, -3]
                const k: i8[2,1,2,2] const y: i8[] = -9 i = Reshape(q, shape=[1,1,4,5]) output {operator} as r }}"
        );
        let graph = regraft_ir::text::parse(&text).unwrap_or_else(|e| panic!("{operator}: {e}"));
        let x: Vec<f64> = (0..20).map(|i| f64::from(i * 7 % 11) * 1.5 - 5.0).collect();
        let q: Vec<f64> = (0..20).map(|i| f64::from(i * 97 % 256) - 128.0).collect();
        let feeds = [("x", regraft_ir::DType::F32, x), ("q", regraft_ir::DType::I8, q)]
            .map(|(name, dtype, values)| (name.to_owned(), Const::from_f64(dtype, &[4, 5], &values).unwrap()));
        assert_eq!(compared(&graph, &HashMap::from(feeds)), ELEMENTS, "{operator}");
    }
}
