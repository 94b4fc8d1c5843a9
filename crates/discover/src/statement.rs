//! States pairs, read in one direction, as rules of the rule language (`rules/README.md`).
//!
//! The guards state the types at which the pair is proved in full: ranks, numeric sizes, and equal
//! sizes. Any match is then an instance of the proved pair, and nothing relies on operators
//! rejecting other operands.

use std::collections::BTreeSet;
use std::fmt::Write;

use regraft_ir::dim::Factor;
use regraft_ir::{Attr, Dim, Op, OpKind, TensorType};

use crate::candidate::Written;
use crate::expr::{Program, Step};
use crate::lower::{Constants, cut_axis};
use crate::spec::Spec;

/// A rewrite over general sizes.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    /// The specification.
    pub spec: &'a Spec,
    /// Types of its variables.
    pub types: &'a [TensorType],
    /// What is replaced.
    pub source: &'a [Written],
    /// By what.
    pub target: &'a [Written],
    /// Which variables must be constants.
    pub constants: Constants,
}

/// Text of one side, and its requirements.
struct Side<'a> {
    of: &'a Statement<'a>,
    is_source: bool,
    /// Repeated values of the source that have been written already.
    named: Vec<&'a Written>,
    repeated: Vec<&'a Written>,
    guards: Vec<String>,
    instance: Vec<String>,
    /// Cut points that have a name.
    cuts: Vec<(String, String)>,
}

impl<'a> Statement<'a> {
    /// Names of the specification's operators on both sides, from which a rule's name is built.
    pub fn words(&self) -> String {
        fn add<'w>(spec: &'w Spec, written: &Written, words: &mut Vec<&'w str>) {
            if let Written::Result { operator, operands, .. } = written {
                words.push(&spec.operators[*operator].name);
                operands.iter().for_each(|o| add(spec, o, words));
            }
        }
        let side = |side: &[Written]| {
            let mut words = Vec::new();
            side.iter().for_each(|written| add(self.spec, written, &mut words));
            words.dedup();
            words.join("-")
        };
        let target = side(self.target);
        format!("{}-as-{}", side(self.source), if target.is_empty() { "operand".into() } else { target })
    }

    /// The rule under a name, with a line of documentation and a comment; otherwise why it cannot
    /// be stated.
    pub fn rule(&self, name: &str, comment: &str, doc: &str) -> Result<String, String> {
        let variables = variables(self.source);
        if let Some(free) = variables_of(self.target).difference(&variables_of(self.source)).next() {
            return Err(format!("its source does not read `{}`", self.spec.variables[*free].name));
        }
        if self.source.iter().any(|root| matches!(root, Written::Variable(_))) {
            return Err("its source returns an operand".into());
        }
        if self
            .source
            .iter()
            .enumerate()
            .any(|(at, root)| self.source.iter().enumerate().any(|(other, w)| at != other && contains(w, root)))
        {
            return Err("its source reads what it returns".into());
        }
        let mut source = Side::new(self, true);
        let roots = self.source.iter().map(|w| source.value(w)).collect::<Result<Vec<_>, _>>()?;
        let mut target = Side::new(self, false);
        let results = self.target.iter().map(|w| target.value(w)).collect::<Result<Vec<_>, _>>()?;
        let join = |parts: &[String]| if parts.len() == 1 { parts[0].clone() } else { format!("(all {})", parts.join(" ")) };
        let mut guards = vec![format!("(float-type {})", self.variable(variables[0]))];
        guards.extend(self.guards(&variables));
        guards.extend(source.guards);
        let mut text = format!("{comment}(rule {name}\n  {}\n  =>  {}\n  (when {})\n", join(&roots), join(&results), guards.join(" "));
        let _ = writeln!(text, "  (numeric {})\n  (doc \"{doc}\")", self.numeric());
        let mut instance = Vec::new();
        for label in self.labels(&variables) {
            instance.push(format!("({label} 1 2 3)"));
        }
        for at in &variables {
            let constant = if self.constants.has(self.spec, *at) { " const" } else { "" };
            let sizes: Vec<String> = self.types[*at].shape.iter().map(plain).collect();
            instance.push(format!("({}{constant}{}{})", self.variable(*at), if sizes.is_empty() { "" } else { " " }, sizes.join(" ")));
        }
        instance.extend(source.instance);
        let _ = writeln!(text, "  (instance {}))", instance.join(" "));
        Ok(text)
    }

    fn variable(&self, at: usize) -> String {
        format!("?{}", self.spec.variables[at].name)
    }

    /// Size parameters of these variables, in order.
    fn labels(&self, variables: &[usize]) -> Vec<String> {
        let mut labels: Vec<String> = Vec::new();
        for size in variables.iter().flat_map(|at| &self.types[*at].shape) {
            if let Some(name) = size.as_symbol()
                && !labels.iter().any(|have| have == name)
            {
                labels.push(name.to_string());
            }
        }
        labels
    }

    /// Ranks, numeric sizes, equal sizes.
    fn guards(&self, variables: &[usize]) -> Vec<String> {
        let mut guards: Vec<String> =
            variables.iter().map(|at| format!("(= (rank {}) {})", self.variable(*at), self.types[*at].rank())).collect();
        let mut met: Vec<(&str, String)> = Vec::new();
        for at in variables {
            for (axis, size) in self.types[*at].shape.iter().enumerate() {
                let here = format!("(dim {} {axis})", self.variable(*at));
                match (size.known(), size.as_symbol()) {
                    (Some(number), _) => guards.push(format!("(= {here} {number})")),
                    (None, Some(name)) => match met.iter().find(|(have, _)| *have == name) {
                        Some((_, there)) => guards.push(format!("(= {there} {here})")),
                        None => met.push((name, here)),
                    },
                    (None, None) => {}
                }
            }
        }
        guards
    }

    /// A size as an expression over the match.
    fn size(&self, size: &Dim) -> Result<String, String> {
        let variables = variables(self.source);
        let place = |name: &str| {
            variables.iter().find_map(|at| {
                let axis = self.types[*at].shape.iter().position(|s| s.as_symbol() == Some(name))?;
                Some(format!("(dim {} {axis})", self.variable(*at)))
            })
        };
        let mut sum = Vec::new();
        for (coefficient, factors) in size.products() {
            let mut product = Vec::new();
            if coefficient != 1 || factors.is_empty() {
                product.push(coefficient.to_string());
            }
            for factor in factors {
                let Factor::Symbol(name) = factor else { return Err("a size is no sum of products".into()) };
                product.push(place(name).ok_or_else(|| format!("no operand has the size `{name}`"))?);
            }
            sum.push(if product.len() == 1 { product.remove(0) } else { format!("(* {})", product.join(" ")) });
        }
        Ok(if sum.len() == 1 { sum.remove(0) } else { format!("(+ {})", sum.join(" ")) })
    }

    /// The numeric class: the most that floating-point results may differ.
    fn numeric(&self) -> &'static str {
        let moves = |spec: &Spec, w: &Written| moves_only(spec, w);
        let both = || self.source.iter().chain(self.target);
        match both().all(|w| moves(self.spec, w)) {
            true => "exact",
            false if self.constants == Constants::Weights => "rounds-constants",
            false => "reassociates",
        }
    }
}

/// Whether elements are only moved, chosen or dropped.
fn moves_only(spec: &Spec, written: &Written) -> bool {
    fn expression(expr: &crate::expr::Expr) -> bool {
        use crate::expr::Expr;
        match expr {
            Expr::Operand(_) | Expr::Constant(_) | Expr::Fill(..) => true,
            Expr::Apply { kind, args, .. } => {
                (kind.moves_elements() || matches!(kind, OpKind::MaxPool | OpKind::Relu)) && args.iter().all(expression)
            }
        }
    }
    match written {
        Written::Variable(_) => true,
        Written::Result { operator, operands, .. } => {
            spec.operators[*operator].results.iter().all(expression) && operands.iter().all(|o| moves_only(spec, o))
        }
    }
}

fn variables(side: &[Written]) -> Vec<usize> {
    variables_of(side).into_iter().collect()
}

fn variables_of(side: &[Written]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut todo: Vec<&Written> = side.iter().collect();
    while let Some(written) = todo.pop() {
        match written {
            Written::Variable(at) => {
                found.insert(*at);
            }
            Written::Result { operands, .. } => todo.extend(operands),
        }
    }
    found
}

/// Whether a value contains another.
fn contains(whole: &Written, part: &Written) -> bool {
    whole == part || matches!(whole, Written::Result { operands, .. } if operands.iter().any(|o| contains(o, part)))
}

/// A size in the notation of instance clauses.
fn plain(size: &Dim) -> String {
    let products: Vec<String> = size
        .products()
        .iter()
        .map(|(coefficient, factors)| {
            let mut parts: Vec<String> =
                factors.iter().map(|f| if let Factor::Symbol(name) = f { (*name).to_string() } else { "1".into() }).collect();
            if *coefficient != 1 || parts.is_empty() {
                parts.insert(0, coefficient.to_string());
            }
            if parts.len() == 1 { parts.remove(0) } else { format!("(* {})", parts.join(" ")) }
        })
        .collect();
    if products.len() == 1 { products[0].clone() } else { format!("(+ {})", products.join(" ")) }
}

impl<'a> Side<'a> {
    fn new(of: &'a Statement<'a>, is_source: bool) -> Side<'a> {
        let roots = if is_source { of.source } else { of.target };
        let (mut met, mut repeated) = (Vec::new(), Vec::new());
        roots.iter().for_each(|root| count(root, &mut met, &mut repeated));
        Side { of, is_source, named: Vec::new(), repeated, guards: Vec::new(), instance: Vec::new(), cuts: Vec::new() }
    }

    /// The type of a value.
    fn ty(&self, written: &Written) -> Result<TensorType, String> {
        match written {
            Written::Variable(at) => Ok(self.of.types[*at].clone()),
            Written::Result { port, .. } => {
                let program = self.program(written)?;
                program.types().nth(*port).cloned().ok_or_else(|| "no such result".into())
            }
        }
    }

    fn program(&self, written: &Written) -> Result<Program, String> {
        let Written::Result { operator, cut, operands, .. } = written else { return Err("a variable computes nothing".into()) };
        let types = operands.iter().map(|o| self.ty(o)).collect::<Result<Vec<_>, _>>()?;
        Program::compile(&self.of.spec.operators[*operator].results, &types, cut.as_ref()).map_err(|e| e.to_string())
    }

    fn value(&mut self, written: &'a Written) -> Result<String, String> {
        let (operator, cut, port, operands) = match written {
            Written::Variable(at) if self.is_source && self.of.constants.has(self.of.spec, *at) => {
                return Ok(format!("(const {})", self.of.variable(*at)));
            }
            Written::Variable(at) => return Ok(self.of.variable(*at)),
            Written::Result { operator, cut, port, operands } => (&self.of.spec.operators[*operator], cut, *port, operands),
        };
        if let Some(at) = self.named.iter().position(|have| *have == written) {
            return Ok(format!("?t{at}"));
        }
        let program = self.program(written)?;
        let args = operands.iter().map(|o| self.value(o)).collect::<Result<Vec<_>, _>>()?;
        let text = match (cut_axis(operator, &program), cut) {
            (Some(axis), Some(point)) => {
                let whole = self.ty(&operands[0])?.shape[axis as usize].clone();
                self.split(axis, point, &(whole - point.clone()), port, &args[0])?
            }
            _ => self.steps(&program, port, args)?,
        };
        if self.is_source && self.repeated.contains(&written) {
            self.named.push(written);
            return Ok(format!("(as ?t{} {text})", self.named.len() - 1));
        }
        Ok(text)
    }

    fn split(&mut self, axis: i64, point: &Dim, rest: &Dim, port: usize, arg: &str) -> Result<String, String> {
        let sizes = format!("(list {} {})", self.of.size(point)?, self.of.size(rest)?);
        if !self.is_source {
            return Ok(format!("(out {port} (split {arg} :axis {axis} :sizes {sizes}))"));
        }
        let name = match self.cuts.iter().find(|(have, _)| *have == sizes) {
            Some((_, name)) => name.clone(),
            None => {
                let name = format!("?p{}", self.cuts.len());
                self.guards.push(format!("(= {name} {sizes})"));
                self.instance.push(format!("({name} choice (list {} {}))", plain(point), plain(rest)));
                self.cuts.push((sizes, name.clone()));
                name
            }
        };
        Ok(format!("(out {port} (split {arg} :axis {axis} :sizes {name}))"))
    }

    /// The text of a program's result.
    fn steps(&self, program: &Program, port: usize, mut slots: Vec<String>) -> Result<String, String> {
        for step in &program.steps {
            slots.push(self.step(step, &slots)?);
        }
        program.results.get(port).and_then(|slot| slots.get(*slot)).cloned().ok_or_else(|| "no such result".into())
    }

    fn step(&self, step: &Step, slots: &[String]) -> Result<String, String> {
        if step.args.is_empty() {
            return self.constant(&step.op);
        }
        let mut text = format!("({}", kebab(step.op.kind().name()));
        step.args.iter().for_each(|slot| text.push_str(&format!(" {}", slots[*slot])));
        for (name, attr) in step.op.attrs() {
            let symbolic = matches!(&attr, Attr::Dims(sizes) if sizes.iter().any(|size| size.known().is_none()));
            if symbolic && self.is_source {
                return Err(format!("its source has sizes in `{name}` that depend on operands"));
            }
            let _ = write!(text, " :{name} {}", self.attribute(&attr)?);
        }
        text.push(')');
        Ok(text)
    }

    /// A constant: only targets can create one.
    fn constant(&self, op: &Op) -> Result<String, String> {
        if self.is_source {
            return Err("its source has a constant of the specification".into());
        }
        let witness = self.of.variable(variables(self.of.source)[0]);
        match op {
            Op::Constant(constant) => match constant.value.splat().filter(|_| constant.value.shape().is_empty()) {
                Some(value) if constant.value.dtype().is_float() => Ok(format!("(scalar {value:?} {witness})")),
                _ => Err("its target has a constant that rules do not write".into()),
            },
            Op::ConstantOfShape(fill) => {
                let sizes = fill.shape.iter().map(|size| self.of.size(size)).collect::<Result<Vec<_>, _>>()?;
                let value = fill.value.splat().ok_or("a fill without a value")?;
                Ok(format!("(fill (list {}) {value:?} {witness})", sizes.join(" ")))
            }
            _ => Err("its target has a constant that rules do not write".into()),
        }
    }

    fn attribute(&self, attr: &Attr) -> Result<String, String> {
        let list = |items: Vec<String>| format!("(list{}{})", if items.is_empty() { "" } else { " " }, items.join(" "));
        Ok(match attr {
            Attr::Int(n) => n.to_string(),
            Attr::Float(x) => format!("{:?}", x.0),
            Attr::Bool(b) => b.to_string(),
            Attr::Str(word) => word.clone(),
            Attr::Ints(items) => list(items.iter().map(ToString::to_string).collect()),
            Attr::Floats(items) => list(items.iter().map(|x| format!("{:?}", x.0)).collect()),
            Attr::Strs(items) => list(items.clone()),
            Attr::Dims(sizes) => list(sizes.iter().map(|size| self.of.size(size)).collect::<Result<_, _>>()?),
            Attr::Absent => "none".into(),
            Attr::DType(_) | Attr::Tensor(_) => return Err("an attribute that rules do not write".into()),
        })
    }
}

/// Values that recur, in the order a side is written.
fn count<'a>(written: &'a Written, met: &mut Vec<&'a Written>, repeated: &mut Vec<&'a Written>) {
    let Written::Result { operands, .. } = written else { return };
    if met.contains(&written) {
        repeated.push(written);
        return;
    }
    operands.iter().for_each(|o| count(o, met, repeated));
    met.push(written);
}

/// A name such as `MaxPool` in the notation of rule files.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for (at, c) in name.chars().enumerate() {
        if c.is_uppercase() && at > 0 {
            text.push('-');
        }
        text.extend(c.to_lowercase());
    }
    text
}
