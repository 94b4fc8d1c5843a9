//! Pairs as text, and as graphs of `regraft-ir`.
//!
//! ```text
//! (pair 17
//!   (inputs (x1 m k) (w1 k k) (w2 k k))
//!   (left (matmul (matmul x1 w1) w2))
//!   (right (matmul x1 (matmul w1 w2))))
//! ```
//! Both sides return the same tensors in the same order. `(out I E)` is result number `I` of an
//! operator of several results, `:at P` the point of a cut.

use std::collections::BTreeSet;
use std::fmt::Write;

use regraft_ir::dim::Factor;
use regraft_ir::{DType, Dim, Graph, Op, TensorType, TypeError, ValueId as GraphValue};
use regraft_rules::RuleError;
use regraft_rules::sexp::{self, Sexp};

use crate::expr::Program;
use crate::read::{self, Mistake, mistake};
use crate::spec::Spec;
use crate::terms::{Terms, ValueId};

/// An expression over a specification's operators and variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// A variable, by index in the specification.
    Variable(usize),
    /// A result of an operator.
    Result {
        /// The operator, by index in the specification.
        operator: usize,
        /// Where it cuts.
        cut: Option<Dim>,
        /// Which result.
        port: usize,
        /// Its operands.
        operands: Vec<Written>,
    },
}

/// Two lists of expressions believed to be pairwise equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// One side.
    pub left: Vec<Written>,
    /// The other.
    pub right: Vec<Written>,
}

impl Written {
    /// How a value is computed.
    pub fn of(terms: &Terms, value: ValueId) -> Written {
        let term = terms.get(terms.owner(value));
        let Some(instance) = term.instance else { return Written::Variable(value as usize) };
        let instance = terms.types.instance(instance);
        let operands = term.operands.iter().map(|v| Written::of(terms, *v)).collect();
        Written::Result { operator: instance.operator, cut: instance.cut.clone(), port: (value - term.first) as usize, operands }
    }

    /// As text, in the operators of the specification.
    pub fn shown(&self, spec: &Spec) -> String {
        let mut text = String::new();
        self.text(spec, &mut text);
        text
    }

    fn text(&self, spec: &Spec, out: &mut String) {
        match self {
            Written::Variable(at) => out.push_str(&spec.variables[*at].name),
            Written::Result { operator, cut, port, operands } => {
                let operator = &spec.operators[*operator];
                let several = operator.results.len() > 1;
                if several {
                    let _ = write!(out, "(out {port} ");
                }
                let _ = write!(out, "({}", operator.name);
                if let Some(cut) = cut {
                    let _ = write!(out, " :at {}", size(cut));
                }
                for operand in operands {
                    out.push(' ');
                    operand.text(spec, out);
                }
                out.push_str(if several { "))" } else { ")" });
            }
        }
    }

    fn variables(&self, found: &mut Vec<usize>) {
        match self {
            Written::Variable(at) => found.push(*at),
            Written::Result { operands, .. } => operands.iter().for_each(|o| o.variables(found)),
        }
    }

    fn parse(spec: &Spec, form: &Sexp) -> Result<Written, Mistake> {
        if let Some(name) = form.atom() {
            let at = spec.variables.iter().position(|v| v.name == name);
            return at
                .map(Written::Variable)
                .ok_or_else(|| mistake(form.position(), format!("no variable `{name}`"), "see the specification"));
        }
        let items = form.list().unwrap_or_default();
        if let (Some("out"), [_, port, of]) = (form.head(), items) {
            let Written::Result { operator, cut, operands, .. } = Written::parse(spec, of)? else {
                return Err(mistake(of.position(), "a variable has no results", "drop `out`"));
            };
            let results = spec.operators[operator].results.len();
            let port = read::number(std::slice::from_ref(port), port.position(), 0..=results - 1)?;
            return Ok(Written::Result { operator, cut, port, operands });
        }
        let operator = form.head().and_then(|name| spec.operators.iter().position(|o| o.name == name));
        let operator = operator.ok_or_else(|| mistake(form.position(), format!("no operator in `{form}`"), "see the specification"))?;
        let (cut, rest) = match items.get(1..).unwrap_or_default() {
            [at, point, rest @ ..] if at.atom() == Some(":at") => (Some(read::dim(point, &spec.sizes)?), rest),
            rest => (None, rest),
        };
        let operands: Vec<Written> = rest.iter().map(|o| Written::parse(spec, o)).collect::<Result<_, _>>()?;
        let takes = spec.operators[operator].operands.len();
        if operands.len() != takes {
            return Err(mistake(
                form.position(),
                format!("an operator of {takes} operands has {}", operands.len()),
                "see the specification",
            ));
        }
        Ok(Written::Result { operator, cut, port: 0, operands })
    }
}

/// A size in the notation of specifications.
fn size(dim: &Dim) -> String {
    let products: Vec<String> = dim
        .products()
        .iter()
        .map(|(coefficient, factors)| {
            let mut parts: Vec<String> = factors
                .iter()
                .map(|f| match f {
                    Factor::Symbol(name) => (*name).to_string(),
                    Factor::FloorDiv(a, b) => format!("(/ {} {})", size(a), size(b)),
                    Factor::Broadcast(a, b) => format!("(broadcast {} {})", size(a), size(b)),
                })
                .collect();
            if *coefficient != 1 || parts.is_empty() {
                parts.insert(0, coefficient.to_string());
            }
            if parts.len() == 1 { parts.remove(0) } else { format!("(* {})", parts.join(" ")) }
        })
        .collect();
    if products.len() == 1 { products[0].clone() } else { format!("(+ {})", products.join(" ")) }
}

impl Candidate {
    /// Variables of both sides, in the order of the specification.
    pub fn variables(&self) -> Vec<usize> {
        let mut found = Vec::new();
        self.left.iter().chain(&self.right).for_each(|written| written.variables(&mut found));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The pair as text, under a number.
    pub fn text(&self, spec: &Spec, number: usize) -> String {
        let mut out = format!("(pair {number}\n  (inputs");
        for at in self.variables() {
            let variable = &spec.variables[at];
            let sizes: Vec<String> = [variable.name.clone()].into_iter().chain(variable.ty.shape.iter().map(size)).collect();
            let _ = write!(out, " ({})", sizes.join(" "));
        }
        for (name, side) in [("left", &self.left), ("right", &self.right)] {
            let _ = write!(out, ")\n  ({name}");
            for written in side {
                out.push(' ');
                written.text(spec, &mut out);
            }
        }
        out.push_str("))\n");
        out
    }

    /// Parses pairs. `inputs` are determined by the specification, and ignored.
    pub fn parse(spec: &Spec, file: &str, text: &str) -> Result<Vec<Candidate>, RuleError> {
        let one = |form: &Sexp| {
            let items = form.list().unwrap_or_default();
            let side = |name: &str| {
                let side = items.iter().find(|item| item.head() == Some(name));
                let side = side.ok_or_else(|| mistake(form.position(), format!("a pair without `({name} ..)`"), "write both sides"))?;
                side.list().unwrap_or_default().iter().skip(1).map(|w| Written::parse(spec, w)).collect::<Result<Vec<_>, _>>()
            };
            let pair = Candidate { left: side("left")?, right: side("right")? };
            if pair.left.len() == pair.right.len() && !pair.left.is_empty() {
                Ok(pair)
            } else {
                Err(mistake(form.position(), "sides that return different numbers of tensors", ""))
            }
        };
        sexp::parse(file, text)?.iter().map(|form| one(form).map_err(|e| e.in_file(file))).collect()
    }

    /// Both sides as graphs, over the specification's size parameters as symbols: the same inputs
    /// in the same order, outputs in the same order.
    ///
    /// A size `n` that occurs in a constant but in no variable gets an extra input `size.n`, which
    /// nothing reads: sizes come with inputs.
    ///
    /// Fails only for handwritten pairs in which an operator does not accept its operands.
    pub fn graphs(&self, spec: &Spec) -> Result<[Graph; 2], TypeError> {
        let types: Vec<TensorType> = spec.variables.iter().map(|v| v.ty.clone()).collect();
        self.graphs_over(spec, &types)
    }

    /// Like [`graphs`](Candidate::graphs), over variables of other types.
    pub fn graphs_over(&self, spec: &Spec, types: &[TensorType]) -> Result<[Graph; 2], TypeError> {
        let side = |side: &[Written]| {
            let mut builder = Builder { spec, graph: Graph::new(""), inputs: Vec::new(), done: Vec::new() };
            for at in self.variables() {
                let variable = &spec.variables[at];
                let value = builder.graph.add_input(&variable.name, types[at].clone());
                builder.inputs.push((at, value));
            }
            for (at, written) in side.iter().enumerate() {
                let value = builder.value(written)?;
                builder.graph.add_output(&format!("y{at}"), value);
            }
            Ok(builder.graph)
        };
        let mut graphs = [side(&self.left)?, side(&self.right)?];
        for name in unbound(&graphs) {
            for graph in &mut graphs {
                graph.add_input(&format!("size.{name}"), TensorType::new(DType::F32, [Dim::symbol(&name)]));
            }
        }
        Ok(graphs)
    }
}

/// Size parameters that occur in the graphs, but not as sizes of their inputs.
fn unbound(graphs: &[Graph; 2]) -> BTreeSet<String> {
    let (mut met, mut bound) = (Vec::new(), BTreeSet::new());
    for graph in graphs {
        for id in graph.ids() {
            let node = graph.node(id);
            for size in node.types.iter().flatten().flat_map(|ty| &ty.shape) {
                size.symbols(&mut met);
                if matches!(node.op, Op::Input(_)) {
                    bound.extend(size.as_symbol().map(str::to_string));
                }
            }
        }
    }
    met.into_iter().filter(|name| !bound.contains(name)).collect()
}

/// An operator application that is already in the graph.
type Applied<'a> = (usize, &'a Option<Dim>, &'a [Written], Vec<GraphValue>);

struct Builder<'a> {
    spec: &'a Spec,
    graph: Graph,
    inputs: Vec<(usize, GraphValue)>,
    done: Vec<Applied<'a>>,
}

impl<'a> Builder<'a> {
    fn value(&mut self, written: &'a Written) -> Result<GraphValue, TypeError> {
        let missing = || TypeError::invalid("no such result");
        match written {
            Written::Variable(at) => self.inputs.iter().find(|(have, _)| have == at).map(|(_, value)| *value).ok_or_else(missing),
            Written::Result { operator, cut, port, operands } => {
                let same = |(o, c, args, _): &&Applied<'a>| o == operator && *c == cut && *args == operands.as_slice();
                if let Some((.., results)) = self.done.iter().find(same) {
                    return results.get(*port).copied().ok_or_else(missing);
                }
                let args = operands.iter().map(|o| self.value(o)).collect::<Result<Vec<_>, _>>()?;
                let results = self.apply(*operator, cut.as_ref(), args)?;
                self.done.push((*operator, cut, operands, results.clone()));
                results.get(*port).copied().ok_or_else(missing)
            }
        }
    }

    fn apply(&mut self, operator: usize, cut: Option<&Dim>, args: Vec<GraphValue>) -> Result<Vec<GraphValue>, TypeError> {
        let operator = &self.spec.operators[operator];
        let types: Option<Vec<TensorType>> = args.iter().map(|v| self.graph.ty(*v).cloned()).collect();
        let types = types.ok_or_else(|| TypeError::undecided("an operand of unknown type"))?;
        if !operator.accepts(&types) {
            return Err(TypeError::invalid(format!("operator `{}` does not take these operands", operator.name)));
        }
        let program = Program::compile(&operator.results, &types, cut)?;
        let mut slots = args;
        for step in &program.steps {
            let value = match &step.op {
                Op::Constant(constant) => self.graph.add_const(constant.value.clone()),
                op => {
                    let inputs: Vec<GraphValue> = step.args.iter().map(|slot| slots[*slot]).collect();
                    self.graph.add(op.clone(), &inputs)?.out()
                }
            };
            slots.push(value);
        }
        Ok(program.results.iter().map(|slot| slots[*slot]).collect())
    }
}
