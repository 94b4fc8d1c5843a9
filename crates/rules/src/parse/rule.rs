//! A rule: its name, its sides and its clauses.

use regraft_ir::Trust;
use regraft_ir::text::Position;

use super::names::Parser;
use super::today;
use crate::error::RuleError;
use crate::rule::{Instance, Numeric, Pattern, Rule};
use crate::sexp::Sexp;

/// Clauses of which a second one would replace the first.
const ONCE: [&str; 6] = ["numeric", "doc", "runtime", "shared", "explore", "instance"];

impl Parser<'_> {
    /// Parses a rule.
    pub(super) fn rule(mut self, form: &Sexp) -> Result<Rule, RuleError> {
        let Sexp::List(items, place, comments) = form else { return self.fail(form.position(), "a rule is a list", "") };
        let Some(name) = items.get(1).and_then(Sexp::atom) else {
            return self.fail(*place, "a rule needs a name", "write `(rule my-rule SOURCE => TARGET (numeric exact))`");
        };
        if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
            return self.fail(items[1].position(), format!("`{name}` is not kebab-case"), "use small letters, digits and dashes");
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
                target.position(),
                format!("{} roots in the source, {} in the target", sources.len(), targets.len()),
                "every root needs its replacement",
            );
        }
        let mut patterns = Vec::new();
        for s in sources {
            let pattern = self.pattern(s)?;
            if !matches!(pattern, Pattern::Node(_)) {
                return self.fail(s.position(), "a root must be an operator", "");
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
            profitable: Vec::new(),
            hints: Vec::new(),
            numeric: Numeric::Exact,
            trust: Trust::Tested,
            runtime: None,
            shared: false,
            explore: false,
            prepared_by: Vec::new(),
            variables: Vec::new(),
            instance: Instance::default(),
        };
        let mut numeric = None;
        for clause in items[5..].iter().filter(|c| c.head() == Some("where")) {
            for binding in &clause.list().unwrap_or_default()[1..] {
                let Some([var, body]) = binding.list() else {
                    return self.fail(binding.position(), "`where` takes (?name EXPRESSION) pairs", "");
                };
                let body = self.expr(body)?;
                let var = self.define(var)?;
                rule.wheres.push((var, body));
            }
        }
        // `let` first: the target and the guards may use it wherever it stands.
        for clause in items[5..].iter().filter(|c| c.head() == Some("let")) {
            for binding in &clause.list().unwrap_or_default()[1..] {
                let Some([var, body]) = binding.list() else {
                    return self.fail(binding.position(), "`let` takes (?name TARGET) pairs", "");
                };
                let body = self.target(body)?;
                let var = self.define(var)?;
                rule.lets.push((var, body));
            }
        }
        for t in targets {
            rule.target.push(self.target(t)?);
        }
        let mut met = Vec::new();
        for clause in &items[5..] {
            let args = clause.list().unwrap_or_default().get(1..).unwrap_or_default();
            if let Some(word) = clause.head().filter(|word| ONCE.contains(word)) {
                if met.contains(&word) {
                    return self.fail(clause.position(), format!("rule `{name}` has two clauses `{word}`"), "leave one of them out");
                }
                met.push(word);
            }
            match clause.head() {
                Some("let" | "where") => {}
                Some("when") => {
                    for guard in args {
                        rule.guards.push(self.expr(guard)?);
                    }
                }
                Some(word) if today(word) == "profitable" => {
                    if word != today(word) {
                        let hint = format!("`({word} ..)` is spelled `({} ..)` now", today(word));
                        rule.hints.push(format!("{}:{}: {hint}", self.file, clause.position()));
                    }
                    for guard in args {
                        rule.profitable.push(self.expr(guard)?);
                    }
                }
                Some("numeric") => {
                    let class = args.first().and_then(Sexp::atom).unwrap_or_default();
                    let Some((_, found)) = Numeric::NAMES.iter().find(|(n, _)| *n == class) else {
                        let known: Vec<&str> = Numeric::NAMES.iter().map(|(n, _)| *n).collect();
                        return self.fail(
                            clause.position(),
                            format!("no numeric class `{class}`"),
                            format!("one of: {}", known.join(", ")),
                        );
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
                Some("explore") => {
                    rule.explore = true;
                    rule.prepared_by = args.iter().filter_map(Sexp::atom).map(str::to_string).collect();
                }
                Some("instance") => rule.instance = self.instance(args)?,
                other => {
                    let message = format!("rule `{name}` has no clause `{}`", other.unwrap_or("?"));
                    return self.fail(
                        clause.position(),
                        message,
                        "clauses: where, let, when, profitable, numeric, doc, runtime, shared, explore, instance",
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
        rule.variables = self.into_variables();
        Ok(rule)
    }

    /// The rule's own text, from its opening parenthesis to the matching one.
    fn source_text(&self, place: Position) -> String {
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
}
