//! False rules with narrow instances: true on what their authors wrote, but applied where they are
//! false.

use std::path::Path;

use anyhow::{Context, Result};
use regraft::optimize::{Choice, load_library};
use regraft_ir::Trust;
use regraft_prove::Premises;
use regraft_rules::Library;
use regraft_search::RandomWalk;

use super::claim::Claim;
use super::term::{Attribute, Program, Term};
use crate::trial::Bench;

/// Steps of a walk that applies a rule.
const STEPS: usize = 2;

/// Operators that generated rules may use: not those that rules call by another name, or whose
/// operands rules have among the attributes.
const PLAIN: &[&str] = &[
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Max",
    "Min",
    "Neg",
    "Abs",
    "Sign",
    "Relu",
    "Equal",
    "Less",
    "Greater",
    "LessOrEqual",
    "GreaterOrEqual",
    "Where",
    "Not",
    "And",
    "Or",
    "Xor",
    "Pow",
    "Sqrt",
    "Exp",
    "Log",
    "Floor",
    "Ceil",
    "Reciprocal",
    "MatMul",
    "Cast",
    "Transpose",
];

/// A rule that claims that `a` equals `b`, on float instances; `None` if it cannot be stated.
pub fn rule(name: &str, a: &Program, b: &Program) -> Option<String> {
    let ([left], [right]) = (&a.results[..], &b.results[..]) else { return None };
    if !a.lets.is_empty() || !b.lets.is_empty() {
        return None;
    }
    let (left, right) = if matches!(bare(left), Term::Call { .. }) { (left, right) } else { (right, left) };
    let (mut names, mut others) = (Vec::new(), Vec::new());
    let (source, target) = (said(bare(left), None, &mut names)?, {
        let like = first(left)?;
        said(bare(right), Some(&like), &mut others)?
    });
    if !source.starts_with('(') || others.iter().any(|name| !names.contains(name)) {
        return None;
    }
    let operands =
        names.iter().map(|name| if matches!(name.as_str(), "m" | "n") { format!("(?{name} bool n 3)") } else { format!("(?{name} n 3)") });
    let operands = operands.collect::<Vec<_>>().join(" ");
    Some(format!(
        ";; false\n(rule {name}\n  {source}  =>  {target}\n  (numeric exact)\n  (doc \"False.\")\n  (instance (n 1 2 3) {operands}))\n"
    ))
}

/// A term without identities, which the reader drops.
fn bare(term: &Term) -> &Term {
    match term {
        Term::Call { op, operands, .. } if op == "Identity" => operands.first().map_or(term, bare),
        _ => term,
    }
}

/// The first input of the family's type that a term reads.
fn first(term: &Term) -> Option<String> {
    match term {
        Term::Name(name) => Some(name.clone()).filter(|n| !matches!(n.as_str(), "m" | "n")),
        Term::Call { operands, .. } => operands.iter().find_map(first),
        _ => None,
    }
}

/// A term in the rule language; a number in a target has the type of `like`.
fn said(term: &Term, like: Option<&str>, names: &mut Vec<String>) -> Option<String> {
    match bare(term) {
        Term::Name(name) => {
            if !names.contains(name) {
                names.push(name.clone());
            }
            Some(format!("?{name}"))
        }
        Term::Number { text, ty: None } => {
            let value: f64 = text.parse().ok()?;
            Some(like.map_or_else(|| format!("{value:?}"), |like| format!("(scalar {value:?} ?{like})")))
        }
        Term::Call { op, operands, attributes, port: 0 } if PLAIN.contains(&op.as_str()) => {
            let operands = operands.iter().map(|o| said(o, like, names)).collect::<Option<Vec<_>>>()?;
            let mut text = format!("({} {}", kebab(op), operands.join(" "));
            for (name, value) in attributes {
                match value {
                    Attribute::Type(ty) if ty != "T" => text.push_str(&format!(" :{name} {ty}")),
                    Attribute::Ints(values) => {
                        text.push_str(&format!(" :{name} (list {})", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")))
                    }
                    _ => return None,
                }
            }
            Some(text + ")")
        }
        _ => None,
    }
}

fn kebab(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// The rules of this text that `optimize` would apply: those that are proved when read. The error
/// says why the text has none.
pub fn believed(folder: &Path, text: &str) -> Result<Library> {
    let file = folder.join("false.rules");
    std::fs::write(&file, text).context("a rule file cannot be written")?;
    let usable = load_library(&Choice { files: vec![file], ..Choice::default() }, regraft_runtime::Backend::default().name())
        .map_err(|e| anyhow::anyhow!("{e}"))?;
    Ok(usable.library.filter(|rule| usable.own.contains(rule.name.as_ref())))
}

/// True if a text is a rule.
pub fn is_rule(text: &str) -> bool {
    Library::default().with_file(Path::new("false.rules"), text).is_ok()
}

/// The result of applying a rule to a model, and the claim about its rewrites at their sites;
/// `None` if it applies nowhere.
pub fn applied(bench: &Bench, model: &[u8], seed: u64) -> Result<Option<(Vec<u8>, Claim)>> {
    let rewritten = bench.rewrite(model, RandomWalk { steps: STEPS, seed })?;
    if rewritten.rules.is_empty() {
        return Ok(None);
    }
    let proved = rewritten.uncertified.is_none() && rewritten.judged.iter().all(|step| step.trust == Trust::Proved);
    let premises = rewritten.judged.iter().fold(Premises::default(), |all, step| all.and(step.premises));
    let claim = match proved {
        false => Claim::Refused,
        true if premises.is_empty() => Claim::Exact,
        true => Claim::Assuming(vec![premises.to_string()]),
    };
    Ok(Some((rewritten.bytes, claim)))
}
