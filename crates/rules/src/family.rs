//! Families: one rule text for many operators or spellings.
//!
//! `(family $op (relu sigmoid (half-div (div ?x 2.0))) (rule act-$op ($op ?x) => ...) ...)` stands
//! for its rules once per alternative, with `$op` replaced. An alternative is a word, or a label
//! and a form: the label goes into names and documentation, the form elsewhere. Families nest.

use regraft_ir::text::Position;

use crate::error::RuleError;
use crate::sexp::Sexp;

/// One replacement of a family's placeholder.
#[derive(Clone, Debug)]
pub struct Choice {
    name: String,
    label: String,
    form: Sexp,
}

/// The rules of a `family` form with the replacements that led to each; any other form unchanged.
pub fn expand(file: &str, form: &Sexp) -> Result<Vec<(Sexp, Vec<Choice>)>, RuleError> {
    let mut found = Vec::new();
    walk(file, form, &[], &mut found)?;
    Ok(found)
}

fn walk(file: &str, form: &Sexp, choices: &[Choice], into: &mut Vec<(Sexp, Vec<Choice>)>) -> Result<(), RuleError> {
    if form.head() != Some("family") {
        into.push((form.clone(), choices.to_vec()));
        return Ok(());
    }
    let Sexp::List(items, place, comments) = form else { return Ok(()) };
    let fail = |place: Position, message: &str, hint: &str| {
        Err(RuleError { file: file.into(), line: place.line, column: place.column, message: message.into(), hint: hint.into() })
    };
    let name = items.get(1).and_then(Sexp::atom).filter(|n| n.starts_with('$') && n.len() > 1);
    let (Some(name), Some(alternatives)) = (name, items.get(2).and_then(Sexp::list)) else {
        return fail(*place, "a family needs a placeholder and alternatives", "(family $op (relu sigmoid) (rule name-$op ...))");
    };
    for alternative in alternatives {
        let (label, form) = match alternative {
            Sexp::Atom(word, _) => (word.clone(), alternative.clone()),
            Sexp::List(pair, ..) => match pair.as_slice() {
                [Sexp::Atom(label, _), form] => (label.clone(), form.clone()),
                _ => return fail(alternative.position(), "an alternative is a word, or a label and a form", "(half (mul ?x 0.5))"),
            },
            Sexp::Text(_, p) => return fail(*p, "an alternative is a word, or a label and a form", ""),
        };
        let choice = Choice { name: name.into(), label, form };
        let chosen: Vec<Choice> = choices.iter().cloned().chain([choice.clone()]).collect();
        for inner in &items[3..] {
            let mut inner = substitute(inner, &choice);
            if let Sexp::List(_, _, own) = &mut inner
                && own.is_empty()
            {
                own.clone_from(comments);
            }
            walk(file, &inner, &chosen, into)?;
        }
    }
    Ok(())
}

fn substitute(form: &Sexp, choice: &Choice) -> Sexp {
    match form {
        Sexp::Atom(word, _) if *word == choice.name => choice.form.clone(),
        Sexp::Atom(word, place) => Sexp::Atom(word.replace(&choice.name, &choice.label), *place),
        Sexp::Text(text, place) => Sexp::Text(text.replace(&choice.name, &choice.label), *place),
        Sexp::List(items, place, comments) => Sexp::List(items.iter().map(|i| substitute(i, choice)).collect(), *place, comments.clone()),
    }
}

/// A rule's source text with its placeholders replaced.
pub fn substitute_text(text: String, choices: &[Choice]) -> String {
    let mut text = text;
    for choice in choices {
        let form = choice.form.to_string();
        let mut result = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(&choice.name) {
            let after = &rest[at + choice.name.len()..];
            let starts = rest[..at].ends_with(|c: char| c.is_whitespace() || c == '(');
            let ends = after.starts_with(|c: char| c.is_whitespace() || c == ')');
            result.push_str(&rest[..at]);
            result.push_str(if starts && ends { &form } else { &choice.label });
            rest = after;
        }
        result.push_str(rest);
        text = result;
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;

    #[test]
    fn a_family_stands_for_one_rule_per_alternative() {
        let text = ";; algebra\n(family $op (relu (twice (mul ?x 2.0)))\n (family $f (neg abs)\n  (rule r-$op-$f ($f $op) => ?x (numeric exact) (doc \"$op of $f\"))))";
        let text = text.replace("(family $op (relu ", "(family $op ((once (relu ?x)) ");
        let rules = parse("t", &text).unwrap();
        let names: Vec<&str> = rules.iter().map(|r| r.name.as_ref()).collect();
        assert_eq!(names, ["r-once-neg", "r-once-abs", "r-twice-neg", "r-twice-abs"]);
        assert_eq!(rules[2].doc, "twice of neg");
        assert_eq!(rules[2].algebra, ["algebra"]);
        assert!(rules[2].text.starts_with("(rule r-twice-neg (neg (mul ?x 2.0)) =>"), "{}", rules[2].text);
    }

    #[test]
    fn a_family_without_a_placeholder_is_refused() {
        let error = parse("t", "(family op (relu) (rule r (relu ?x) => ?x (numeric exact)))").unwrap_err();
        assert!(error.to_string().contains("placeholder"), "{error}");
    }
}
