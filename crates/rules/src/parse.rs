//! From rule files to rules: every name is resolved, every variable is bound, every mistake has its place and a hint.

use std::collections::BTreeMap;

use regraft_ir::{DType, OpKind, Trust};

use crate::builtins;
use crate::error::RuleError;
use crate::expr::{Expr, Val};
use crate::family;
use crate::rule::{Instance, NodePattern, Numeric, Operand, Pattern, Rule, Target, Values, Var};
use crate::sexp::{self, Place, Sexp};

/// The largest choice of a `(size ..)` parameter where nobody names a bound.
const SIZES: i64 = 4;

/// All rules of a file.
pub fn parse(file: &str, text: &str) -> Result<Vec<Rule>, RuleError> {
    let mut matrices = BTreeMap::new();
    let mut domains = BTreeMap::new();
    let mut rules: Vec<Rule> = Vec::new();
    let mut forms = Vec::new();
    for form in sexp::parse(file, text)? {
        forms.extend(family::expand(file, &form)?);
    }
    for (form, choices) in forms {
        match form.head() {
            Some("rule") => {
                let mut rule =
                    Parser { file, text, matrices: &matrices, domains: &domains, variables: Vec::new(), bound: Vec::new() }.rule(&form)?;
                rule.text = family::substitute_text(rule.text, &choices);
                if let Some(twin) = rules.iter().find(|r| r.name == rule.name) {
                    let message = format!("rule `{}` is already defined on line {}", rule.name, twin.line);
                    return Err(error(file, form.place(), message, "rule names are unique"));
                }
                rules.push(rule);
            }
            Some("matrix") => {
                let (name, rows) = matrix(file, &form)?;
                matrices.insert(name, rows);
            }
            Some("domain") => {
                let items = form.list().unwrap_or_default();
                let name = items.get(1).and_then(Sexp::atom).ok_or_else(|| error(file, form.place(), "a domain needs a name", ""))?;
                domains.insert(name.to_string(), items[2..].to_vec());
            }
            _ => {
                return Err(error(
                    file,
                    form.place(),
                    "expected `(rule NAME SOURCE => TARGET ...)`, `(family $X (...) RULE...)`, `(matrix NAME (ROW...)...)` or `(domain NAME CLAUSE...)`",
                    "",
                ));
            }
        }
    }
    Ok(rules)
}

type Matrix = Vec<Vec<f64>>;

fn error(file: &str, place: Place, message: impl Into<String>, hint: impl Into<String>) -> RuleError {
    RuleError { file: file.into(), line: place.line, column: place.column, message: message.into(), hint: hint.into() }
}

fn number(word: &str) -> Option<f64> {
    match word.split_once('/') {
        Some((a, b)) if !a.is_empty() => Some(a.parse::<f64>().ok()? / b.parse::<f64>().ok()?),
        _ if word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') => word.parse().ok(),
        _ => None,
    }
}

fn matrix(file: &str, form: &Sexp) -> Result<(String, Matrix), RuleError> {
    let items = form.list().unwrap_or_default();
    let name = items.get(1).and_then(Sexp::atom).ok_or_else(|| error(file, form.place(), "a matrix needs a name", ""))?;
    let mut rows = Vec::new();
    for row in &items[2..] {
        let entries = row.list().and_then(|r| r.iter().map(|e| number(e.atom()?)).collect::<Option<Vec<f64>>>());
        rows.push(entries.ok_or_else(|| error(file, row.place(), "a row is a list of numbers", "fractions are written 1/6"))?);
    }
    if rows.is_empty() || rows.iter().any(|r| r.len() != rows[0].len()) {
        return Err(error(file, form.place(), format!("matrix `{name}` has rows of different lengths"), ""));
    }
    Ok((name.to_string(), rows))
}

struct Parser<'a> {
    file: &'a str,
    text: &'a str,
    matrices: &'a BTreeMap<String, Matrix>,
    domains: &'a BTreeMap<String, Vec<Sexp>>,
    variables: Vec<String>,
    /// Variables that a source pattern or a `let` binds.
    bound: Vec<bool>,
}

impl Parser<'_> {
    fn fail<T>(&self, place: Place, message: impl Into<String>, hint: impl Into<String>) -> Result<T, RuleError> {
        Err(error(self.file, place, message, hint))
    }

    fn rule(mut self, form: &Sexp) -> Result<Rule, RuleError> {
        let Sexp::List(items, place, comments) = form else { return self.fail(form.place(), "a rule is a list", "") };
        let Some(name) = items.get(1).and_then(Sexp::atom) else {
            return self.fail(*place, "a rule needs a name", "write `(rule my-rule SOURCE => TARGET (numeric exact))`");
        };
        if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
            return self.fail(items[1].place(), format!("`{name}` is not kebab-case"), "use small letters, digits and dashes");
        }
        let (Some(source), Some("=>"), Some(target)) = (items.get(2), items.get(3).and_then(Sexp::atom), items.get(4)) else {
            return self.fail(
                *place,
                format!("rule `{name}` needs `SOURCE => TARGET` after its name"),
                "several roots are written `(all P1 P2) => (all T1 T2)`",
            );
        };
        let sources = if source.head() == Some("all") { &source.list().unwrap_or_default()[1..] } else { std::slice::from_ref(source) };
        let targets = if target.head() == Some("all") { &target.list().unwrap_or_default()[1..] } else { std::slice::from_ref(target) };
        if sources.len() != targets.len() || sources.is_empty() {
            return self.fail(
                target.place(),
                format!("{} roots in the source, {} in the target", sources.len(), targets.len()),
                "every root needs its replacement",
            );
        }
        let mut patterns = Vec::new();
        for s in sources {
            let pattern = self.pattern(s)?;
            if !matches!(pattern, Pattern::Node(_)) {
                return self.fail(s.place(), "a root must be an operator", "");
            }
            patterns.push(pattern);
        }
        let mut rule = Rule {
            name: name.into(),
            file: self.file.into(),
            line: place.line,
            algebra: comments.clone(),
            doc: String::new(),
            text: self.source_text(*place),
            source: patterns,
            wheres: Vec::new(),
            lets: Vec::new(),
            target: Vec::new(),
            guards: Vec::new(),
            worth: Vec::new(),
            numeric: Numeric::Exact,
            trust: Trust::Tested,
            runtime: None,
            shared: false,
            explore: false,
            variables: Vec::new(),
            instance: Instance::default(),
        };
        let mut numeric = None;
        for clause in items[5..].iter().filter(|c| c.head() == Some("where")) {
            for binding in &clause.list().unwrap_or_default()[1..] {
                let Some([var, body]) = binding.list() else {
                    return self.fail(binding.place(), "`where` takes (?name EXPRESSION) pairs", "");
                };
                let body = self.expr(body)?;
                let var = self.define(var)?;
                rule.wheres.push((var, body));
            }
        }
        // `let` first: the target and the guards may use it wherever it stands.
        for clause in items[5..].iter().filter(|c| c.head() == Some("let")) {
            for binding in &clause.list().unwrap_or_default()[1..] {
                let Some([var, body]) = binding.list() else { return self.fail(binding.place(), "`let` takes (?name TARGET) pairs", "") };
                let body = self.target(body)?;
                let var = self.define(var)?;
                rule.lets.push((var, body));
            }
        }
        for t in targets {
            rule.target.push(self.target(t)?);
        }
        for clause in &items[5..] {
            let args = clause.list().unwrap_or_default().get(1..).unwrap_or_default();
            match clause.head() {
                Some("let" | "where") => {}
                Some("when") => {
                    for guard in args {
                        rule.guards.push(self.expr(guard)?);
                    }
                }
                Some("worth") => {
                    for guard in args {
                        rule.worth.push(self.expr(guard)?);
                    }
                }
                Some("numeric") => {
                    let class = args.first().and_then(Sexp::atom).unwrap_or_default();
                    let Some((_, found)) = Numeric::NAMES.iter().find(|(n, _)| *n == class) else {
                        let known: Vec<&str> = Numeric::NAMES.iter().map(|(n, _)| *n).collect();
                        return self.fail(clause.place(), format!("no numeric class `{class}`"), format!("one of: {}", known.join(", ")));
                    };
                    numeric = Some(*found);
                }
                Some("doc") => {
                    if let Some(Sexp::Text(text, _)) = args.first() {
                        rule.doc = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    }
                }
                Some("runtime") => rule.runtime = args.first().and_then(Sexp::atom).map(str::to_string),
                Some("shared") => rule.shared = true,
                Some("explore") => rule.explore = true,
                Some("instance") => rule.instance = self.instance(args)?,
                other => {
                    let message = format!("rule `{name}` has no clause `{}`", other.unwrap_or("?"));
                    return self.fail(
                        clause.place(),
                        message,
                        "clauses: where, let, when, worth, numeric, doc, runtime, shared, explore, instance",
                    );
                }
            }
        }
        let Some(numeric) = numeric else {
            return self.fail(
                *place,
                format!("rule `{name}` does not state its numeric class"),
                "add `(numeric exact)`, or reassociates, rounds-constants, fast-bilinear",
            );
        };
        rule.numeric = numeric;
        rule.variables = self.variables;
        Ok(rule)
    }

    /// The rule's own text, from its opening parenthesis to the matching one.
    fn source_text(&self, place: Place) -> String {
        let start: usize = self.text.split_inclusive('\n').take(place.line - 1).map(str::len).sum::<usize>() + place.column - 1;
        let mut depth = 0;
        let (mut quoted, mut comment) = (false, false);
        let Some(rest) = self.text.get(start..) else { return String::new() };
        for (at, c) in rest.char_indices() {
            match c {
                '\n' => comment = false,
                _ if comment => {}
                '"' => quoted = !quoted,
                _ if quoted => {}
                ';' => comment = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return rest[..=at].to_string();
            }
        }
        String::new()
    }

    fn var(&mut self, name: &str) -> Var {
        if let Some(at) = self.variables.iter().position(|v| v == name) {
            return at;
        }
        self.variables.push(name.to_string());
        self.bound.push(false);
        self.variables.len() - 1
    }

    /// Binds the variable of this atom.
    fn define(&mut self, atom: &Sexp) -> Result<Var, RuleError> {
        let Some(name) = atom.atom().filter(|a| a.starts_with('?')) else {
            return self.fail(atom.place(), "expected a variable", "variables start with `?`");
        };
        let var = self.var(&name[1..]);
        self.bound[var] = true;
        Ok(var)
    }

    /// The bound variable of this word.
    fn lookup(&mut self, word: &str, place: Place) -> Result<Var, RuleError> {
        match self.variables.iter().position(|v| *v == word[1..]) {
            Some(var) if self.bound[var] => Ok(var),
            _ => {
                let known: Vec<String> = self.variables.iter().filter(|v| !v.starts_with('$')).map(|v| format!("?{v}")).collect();
                self.fail(place, format!("`{word}` is not bound by the source"), format!("bound here: {}", known.join(" ")))
            }
        }
    }

    fn kind(&self, word: &str, place: Place) -> Result<OpKind, RuleError> {
        match OpKind::from_name(word).filter(|k| !matches!(k, OpKind::Input | OpKind::Opaque)) {
            Some(kind) => Ok(kind),
            None => {
                let near =
                    OpKind::ALL.iter().map(|k| k.name()).min_by_key(|n| distance(&n.to_lowercase(), &word.to_lowercase())).unwrap_or("");
                self.fail(place, format!("no operator `{word}`"), format!("did you mean `{}`?", near.to_lowercase()))
            }
        }
    }

    fn pattern(&mut self, form: &Sexp) -> Result<Pattern, RuleError> {
        let place = form.place();
        if let Some(word) = form.atom() {
            if let Some(value) = number(word) {
                return Ok(Pattern::Number(value));
            }
            if let Some(name) = word.strip_suffix("...").filter(|n| n.starts_with('?')) {
                return Ok(Pattern::Rest(self.define(&Sexp::Atom(name.into(), place))?));
            }
            if let Some(name) = word.strip_suffix('?').filter(|n| n.len() > 1 && n.starts_with('?')) {
                return Ok(Pattern::Optional(self.define(&Sexp::Atom(name.into(), place))?));
            }
            return self.define(form).map(Pattern::Any);
        }
        let items = form.list().unwrap_or_default();
        match form.head() {
            Some("as") => {
                let [_, var, inner] = items else {
                    return self.fail(place, "`as` takes a variable and an operator", "(as ?c (conv ?x ?w))");
                };
                let Pattern::Node(mut node) = self.pattern(inner)? else { return self.fail(inner.place(), "`as` names an operator", "") };
                node.bind = Some(self.define(var)?);
                Ok(Pattern::Node(node))
            }
            Some("const") => {
                let [_, var] = items else { return self.fail(place, "`const` takes one variable", "(const ?c)") };
                self.define(var).map(Pattern::Constant)
            }
            Some("out") => {
                let [_, port, inner] = items else {
                    return self.fail(place, "`out` takes a result index and an operator", "(out 0 (split ?x))");
                };
                let Pattern::Node(mut node) = self.pattern(inner)? else { return self.fail(inner.place(), "`out` needs an operator", "") };
                node.port = self.attribute_pattern(port)?;
                Ok(Pattern::Node(node))
            }
            Some("each") => {
                let before = self.bound.clone();
                let [_, inner] = items else { return self.fail(place, "`each` takes one pattern", "(each (relu ?x))") };
                let pattern = self.pattern(inner)?;
                let fresh = (0..self.bound.len()).filter(|v| self.bound[*v] && !before.get(*v).copied().unwrap_or(false)).collect();
                Ok(Pattern::Each(Box::new(pattern), fresh))
            }
            Some(word) => {
                let kind = self.kind(word, place)?;
                let (mut attrs, mut operands) = (Vec::new(), Vec::new());
                let mut at = 1;
                while at < items.len() {
                    if let Some(attr) = items[at].atom().and_then(|a| a.strip_prefix(':')) {
                        let Some(value) = items.get(at + 1) else {
                            return self.fail(items[at].place(), format!("`:{attr}` needs a value"), "");
                        };
                        self.check_attr(kind, attr, items[at].place())?;
                        attrs.push((attr.to_string(), self.attribute_pattern(value)?));
                        at += 2;
                    } else {
                        operands.push(self.pattern(&items[at])?);
                        at += 1;
                    }
                }
                let last = operands.len().saturating_sub(1);
                if operands.iter().take(last).any(|p| matches!(p, Pattern::Rest(_) | Pattern::Each(..) | Pattern::Optional(_))) {
                    return self.fail(place, "`...`, `each` and optional operands stand last", "");
                }
                Ok(Pattern::Node(NodePattern { kind, bind: None, port: Expr::Literal(Val::int(0)), attrs, operands }))
            }
            None => self.fail(place, "expected a pattern", "a variable, a number, or (operator ...)"),
        }
    }

    /// An attribute in a source: a variable is bound, anything else is compared.
    fn attribute_pattern(&mut self, form: &Sexp) -> Result<Expr, RuleError> {
        match form.atom() {
            Some(word) if word.starts_with('?') => self.define(form).map(Expr::Var),
            _ => self.expr(form),
        }
    }

    fn check_attr(&self, kind: OpKind, attr: &str, place: Place) -> Result<(), RuleError> {
        if kind.attr_names().contains(&attr) {
            return Ok(());
        }
        let hint = format!("its attributes: {}", kind.attr_names().join(", "));
        self.fail(place, format!("`{}` has no attribute `{attr}`", kind.name()), hint)
    }

    fn target(&mut self, form: &Sexp) -> Result<Target, RuleError> {
        let place = form.place();
        if let Some(word) = form.atom() {
            if word.starts_with('?') {
                let plain = word.strip_suffix("...").unwrap_or(word);
                let plain = plain.strip_suffix('?').filter(|w| w.len() > 1).unwrap_or(plain);
                return self.lookup(plain, place).map(Target::Use);
            }
            return self.fail(
                place,
                format!("`{word}` cannot stand in a target"),
                "constants are written `(scalar 2.0 ?x)`, with the element type of `?x`",
            );
        }
        let items = form.list().unwrap_or_default();
        let arity = |n: usize| {
            if items.len() == n + 1 {
                Ok(())
            } else {
                self.fail(place, format!("`{}` takes {n} arguments", form.head().unwrap_or("?")), "")
            }
        };
        match form.head() {
            Some("scalar") => {
                arity(2)?;
                Ok(Target::Scalar(self.expr(&items[1])?, self.reference(&items[2])?))
            }
            Some("tensor") => {
                arity(3)?;
                Ok(Target::Tensor(self.expr(&items[1])?, self.expr(&items[2])?, self.reference(&items[3])?))
            }
            Some("vector") => {
                arity(2)?;
                Ok(Target::Vector(self.expr(&items[1])?, Box::new(self.target(&items[2])?)))
            }
            Some("item") => {
                arity(2)?;
                Ok(Target::Item(self.expr(&items[1])?, self.reference(&items[2])?))
            }
            Some("ints") => {
                arity(1)?;
                Ok(Target::Ints(self.expr(&items[1])?))
            }
            Some("fill") => {
                arity(3)?;
                Ok(Target::Fill(self.expr(&items[1])?, self.expr(&items[2])?, self.reference(&items[3])?))
            }
            Some("out") => {
                arity(2)?;
                Ok(Target::Out(self.expr(&items[1])?, Box::new(self.target(&items[2])?)))
            }
            Some("if") => {
                let otherwise = items.get(3).map(|e| self.target(e)).transpose()?;
                let (Some(condition), Some(then)) = (items.get(1), items.get(2)) else {
                    return self.fail(place, "`if` takes a condition and a target", "");
                };
                Ok(Target::If(self.expr(condition)?, Box::new(self.target(then)?), otherwise.map(Box::new)))
            }
            Some("each") => {
                arity(2)?;
                let names = items[1].list().map_or_else(|| vec![items[1].clone()], <[Sexp]>::to_vec);
                let vars = names.iter().map(|n| self.reference(n)).collect::<Result<_, _>>()?;
                Ok(Target::Each(vars, Box::new(self.target(&items[2])?)))
            }
            Some("with") => {
                arity(3)?;
                let value = self.target(&items[2])?;
                let var = self.define(&items[1])?;
                Ok(Target::With(var, Box::new(value), Box::new(self.target(&items[3])?)))
            }
            Some("repeat") => {
                arity(3)?;
                let list = self.expr(&items[2])?;
                let var = self.define(&items[1])?;
                Ok(Target::Repeat(var, list, Box::new(self.target(&items[3])?)))
            }
            Some(word) => {
                let kind = self.kind(word, place)?;
                let (mut like, mut attrs, mut operands) = (None, Vec::new(), Vec::new());
                let mut at = 1;
                while at < items.len() {
                    if let Some(attr) = items[at].atom().and_then(|a| a.strip_prefix(':')) {
                        let Some(value) = items.get(at + 1) else {
                            return self.fail(items[at].place(), format!("`:{attr}` needs a value"), "");
                        };
                        if attr == "like" {
                            like = Some(self.reference(value)?);
                        } else {
                            self.check_attr(kind, attr, items[at].place())?;
                            attrs.push((attr.to_string(), self.expr(value)?));
                        }
                        at += 2;
                    } else {
                        operands.push(self.target(&items[at])?);
                        at += 1;
                    }
                }
                Ok(Target::Node { kind, like, attrs, operands })
            }
            None => self.fail(place, "expected a target", "a variable or (operator ...)"),
        }
    }

    fn reference(&mut self, form: &Sexp) -> Result<Var, RuleError> {
        match form.atom() {
            Some(word) if word.starts_with('?') => self.lookup(word, form.place()),
            _ => self.fail(form.place(), "expected a variable", "variables start with `?`"),
        }
    }

    fn expr(&mut self, form: &Sexp) -> Result<Expr, RuleError> {
        let place = form.place();
        match form {
            Sexp::Text(text, _) => Ok(Expr::Literal(Val::Str(text.clone()))),
            Sexp::Atom(word, _) => {
                match word.as_str() {
                    "true" => Ok(Expr::Literal(Val::Bool(true))),
                    "false" => Ok(Expr::Literal(Val::Bool(false))),
                    "none" => Ok(Expr::Literal(Val::Absent)),
                    _ if word.starts_with('?') => self.lookup(word.strip_suffix("...").unwrap_or(word), place).map(Expr::Var),
                    _ => match (word.parse::<i64>(), number(word)) {
                        (Ok(int), _) => Ok(Expr::Literal(Val::int(int))),
                        (_, Some(float)) => Ok(Expr::Literal(Val::Float(float))),
                        _ => match self.variables.iter().position(|v| v.strip_prefix('$') == Some(word)) {
                            // Parameters of the instance clause are written without the question mark, and kept apart from variables.
                            Some(var) => Ok(Expr::Var(var)),
                            None => Ok(DType::from_name(word)
                                .map_or_else(|| Expr::Literal(Val::Str(word.clone())), |t| Expr::Literal(Val::DType(t)))),
                        },
                    },
                }
            }
            Sexp::List(items, ..) => {
                let Some(head) = form.head() else { return self.fail(place, "expected a function", "") };
                let args = &items[1..];
                match head {
                    "attr" => {
                        let [var, name] = args else { return self.fail(place, "`attr` takes a variable and a name", "(attr ?c group)") };
                        Ok(Expr::Attr(self.reference(var)?, name.atom().unwrap_or_default().to_string()))
                    }
                    "if" => {
                        let [c, a, b] = args else { return self.fail(place, "`if` takes three expressions", "") };
                        Ok(Expr::If(Box::new([self.expr(c)?, self.expr(a)?, self.expr(b)?])))
                    }
                    "and" => Ok(Expr::And(args.iter().map(|a| self.expr(a)).collect::<Result<_, _>>()?)),
                    "shown" => {
                        let [condition] = args else { return self.fail(place, "`shown` takes one condition", "(shown (= (dim ?x 0) 1))") };
                        Ok(Expr::Shown(Box::new(self.expr(condition)?)))
                    }
                    "or" => Ok(Expr::Or(args.iter().map(|a| self.expr(a)).collect::<Result<_, _>>()?)),
                    "for" => {
                        let [var, list, body] = args else {
                            return self.fail(place, "`for` takes a variable, a list and an expression", "(for ?i (range 0 4) (* ?i 2))");
                        };
                        let list = self.expr(list)?;
                        let var = self.define(var)?;
                        Ok(Expr::For(var, Box::new(list), Box::new(self.expr(body)?)))
                    }
                    "matrix" | "matrix-rows" => {
                        let name = args.first().and_then(Sexp::atom).unwrap_or_default();
                        let Some(rows) = self.matrices.get(name) else {
                            return self.fail(place, format!("no matrix `{name}`"), "define it above with `(matrix NAME (ROW...)...)`");
                        };
                        Ok(Expr::Literal(match head {
                            "matrix-rows" => Val::int(rows.len() as i64),
                            _ => Val::List(rows.iter().flatten().map(|v| Val::Float(*v)).collect()),
                        }))
                    }
                    _ => {
                        let Some(builtin) = builtins::find(head) else {
                            let near = builtins::TABLE.iter().map(|b| b.name).min_by_key(|n| distance(n, head)).unwrap_or("");
                            return self.fail(place, format!("no function `{head}`"), format!("did you mean `{near}`?"));
                        };
                        if args.len() < builtin.arity.0 || args.len() > builtin.arity.1 {
                            return self.fail(
                                place,
                                format!("`{head}` takes {} arguments, not {}", builtin.arity.0, args.len()),
                                builtin.help,
                            );
                        }
                        Ok(Expr::Call(builtin, args.iter().map(|a| self.expr(a)).collect::<Result<_, _>>()?))
                    }
                }
            }
        }
    }

    fn instance(&mut self, clauses: &[Sexp]) -> Result<Instance, RuleError> {
        let mut instance = Instance::default();
        for clause in clauses {
            let named = clause.list().filter(|_| clause.head() == Some("use")).unwrap_or_default();
            if named.is_empty() {
                self.instance_clause(clause, &mut instance)?;
            }
            for name in named.iter().skip(1) {
                let Some(domain) = name.atom().and_then(|n| self.domains.get(n)) else {
                    return self.fail(name.place(), format!("no domain `{name}`"), "define it above with `(domain NAME CLAUSE...)`");
                };
                for clause in domain {
                    // What a domain says of variables that the rule does not have is for other rules.
                    let about = clause.head().and_then(|h| h.strip_prefix('?'));
                    if about.is_none_or(|name| self.variables.iter().any(|v| v == name)) {
                        self.instance_clause(clause, &mut instance)?;
                    }
                }
            }
        }
        Ok(instance)
    }

    fn instance_clause(&mut self, clause: &Sexp, instance: &mut Instance) -> Result<(), RuleError> {
        let Some(head) = clause.head() else {
            return self.fail(clause.place(), "an instance clause starts with a name", "(n 1 2), (?x n c), (:strides (list 1 1))");
        };
        let items = clause.list().unwrap_or_default();
        match head {
            "size" => {
                for name in &items[1..] {
                    let var = self.parameter(name)?;
                    instance.parameters.push((var, (1..=SIZES).map(|n| Expr::Literal(Val::int(n))).collect()));
                    instance.sizes.push(var);
                }
            }
            "vary" | "fixed" if items.len() > 2 => {
                let choices = items[2..].iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?;
                let var = self.parameter(&items[1])?;
                instance.parameters.push((var, choices));
                if head == "vary" { instance.varying.push(var) } else { instance.fixed.push(var) }
            }
            "within" => {
                for size in &items[1..] {
                    let size = self.expr(size)?;
                    instance.within.push(size);
                }
            }
            "mirror" => {
                let mut lists = items[1..].iter().map(|list| {
                    list.list().unwrap_or_default().iter().map(|name| self.parameter(name)).collect::<Result<Vec<Var>, RuleError>>()
                });
                match (lists.next(), lists.next(), lists.next()) {
                    (Some(one), Some(other), None) => instance.mirrors.push((one?, other?)),
                    _ => return self.fail(clause.place(), "`mirror` takes two lists of parameters", "(mirror (h s) (w t))"),
                }
            }
            _ if head.starts_with(':') => {
                let choices = items[1..].iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?;
                instance.attrs.push((head[1..].to_string(), choices));
            }
            _ if head.starts_with('?') => {
                let var = self.reference(&items[0])?;
                let operand = self.operand(&items[1..], clause.place())?;
                instance.operands.retain(|(earlier, _)| *earlier != var);
                instance.operands.push((var, operand));
            }
            _ => {
                let choices = items[1..].iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?;
                let var = self.parameter(&items[0])?;
                instance.parameters.push((var, choices));
            }
        }
        Ok(())
    }

    /// The parameter of this name, which is kept apart from variables.
    fn parameter(&mut self, name: &Sexp) -> Result<Var, RuleError> {
        match name.atom() {
            Some(word) => Ok(self.var(&format!("${word}"))),
            None => self.fail(name.place(), "expected the name of a parameter", "(size n c), (fixed s 1 2)"),
        }
    }

    /// `[same] [optional] [list N] [const] [positive | (splat E) | (data LIST) | (index E)] [DTYPE] SIZE...` or `choice E...`.
    fn operand(&mut self, words: &[Sexp], place: Place) -> Result<Operand, RuleError> {
        match words.first().and_then(Sexp::atom) {
            Some("choice") => return Ok(Operand::Choice(words[1..].iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?)),
            Some("optional") => return Ok(Operand::Optional(Box::new(self.operand(&words[1..], place)?))),
            Some("same") => return Ok(Operand::Same(Box::new(self.operand(&words[1..], place)?))),
            Some("list") => {
                let Some(count) = words.get(1) else { return self.fail(place, "`list` needs a number", "") };
                let count = self.expr(count)?;
                return Ok(Operand::List(count, Box::new(self.operand(&words[2..], place)?)));
            }
            _ => {}
        }
        let (mut constant, mut values, mut dtype, mut shape) = (false, Values::Normal, DType::F32, Vec::new());
        for word in words {
            match (word.atom(), word.head()) {
                (Some("const"), _) => constant = true,
                (Some("positive"), _) => values = Values::Positive,
                (_, Some("splat")) => values = Values::Splat(self.expr(&word.list().unwrap_or_default()[1])?),
                (_, Some("data")) => values = Values::Data(self.expr(&word.list().unwrap_or_default()[1])?),
                (_, Some("index")) => {
                    values = Values::Index(self.expr(&word.list().unwrap_or_default()[1])?);
                    dtype = DType::I64;
                }
                (Some(w), _) if DType::from_name(w).is_some() => dtype = DType::from_name(w).unwrap_or(DType::F32),
                _ => shape.push(self.expr(word)?),
            }
        }
        Ok(Operand::Tensor { constant, shape, values, dtype })
    }
}

/// Edit distance, for hints.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}
