//! The catalogue of pairs that look alike but differ: families of two expressions each, in
//! `catalogue/*.pairs`.
//!
//! ```text
//! ; A whole quotient times its divisor is not what was divided.
//! family division-undone
//!   for i8 i32 u64
//!   let c 2 3
//!   Mul(Div(x, $c), $c) != x
//! ```
//!
//! A `rule` behind a pair claims that its first model equals another, and is true only on its own
//! instances; pairs of a `narrow` family are rules on float instances.
//!
//! `x`, `y`, `z` are inputs of type `T` and `m`, `n` boolean inputs, all of one shape, unless an
//! `input NAME TYPE SHAPE [LEAST LARGEST]` says otherwise.

use anyhow::{Context, Result, bail};
use regraft_ir::DType;

use super::build::{Frame, Input};
use super::claim::Clause;
use super::term::{Attribute, Program, Term};
use crate::generate::random::Random;

/// Topics, and their contents.
const FILES: &[(&str, &str)] = &[
    ("constants", include_str!("catalogue/constants.pairs")),
    ("integers", include_str!("catalogue/integers.pairs")),
    ("casts", include_str!("catalogue/casts.pairs")),
    ("floats", include_str!("catalogue/floats.pairs")),
    ("logic", include_str!("catalogue/logic.pairs")),
    ("arrangement", include_str!("catalogue/arrangement.pairs")),
    ("windows", include_str!("catalogue/windows.pairs")),
    ("effects", include_str!("catalogue/effects.pairs")),
    ("versions", include_str!("catalogue/versions.pairs")),
    ("rules", include_str!("catalogue/rules.pairs")),
];

/// Default shapes of inputs.
const SHAPES: &[&[&str]] = &[&["48"], &["N"], &["4", "12"], &["N", "3"], &["2", "3", "4"], &["N", "1", "5"]];

/// Default versions of the standard operators.
const OPSETS: &[i64] = &[18, 21, 22];

/// Which values to feed to inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Finite numbers far from the ends of floating-point types.
    #[default]
    Moderate,
    /// Finite numbers of all magnitudes.
    Large,
    /// Also infinities and NaN.
    Wild,
}

/// An input as a family declares it.
#[derive(Clone, Debug)]
struct Declared {
    name: String,
    ty: String,
    shape: String,
    range: Option<(i64, i64)>,
}

/// Pairs of one kind.
#[derive(Clone, Debug, Default)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// The possible types `T`.
    pub types: Vec<DType>,
    inputs: Vec<Declared>,
    /// Words that stand for one of several texts.
    choices: Vec<(String, Vec<String>)>,
    functions: Vec<(String, Vec<String>, String)>,
    /// Versions of the standard operators in the two models, if they matter.
    opsets: Option<(i64, i64)>,
    /// An assumption under which the two are equal, if there is one.
    pub clause: Option<Clause>,
    /// Whether any difference counts, however small: the results differ over the reals too.
    pub exact: bool,
    /// Values of inputs.
    pub fill: Fill,
    /// Whether the two differ by construction, though not on every run.
    pub constructed: bool,
    /// Whether both sides are equal on instances of some kind, at least over the reals, so that
    /// rules made from them are accepted.
    pub narrow: bool,
    /// Rules that claim that a model equals the other, by pair number.
    pub rules: Vec<(usize, String)>,
    /// Both sides of every pair.
    pub laws: Vec<(String, String)>,
}

/// A pair with all choices fixed.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Both expressions as text.
    pub text: String,
    /// The first expression.
    pub a: Program,
    /// The second.
    pub b: Program,
    /// The context; its operator versions are those of the first model.
    pub frame: Frame,
    /// The operator version of the second model.
    pub opset_b: i64,
    /// Sizes for `N` and other symbols, by input and axis.
    pub sizes: Vec<Vec<usize>>,
}

/// All families.
pub fn families() -> Result<Vec<Family>> {
    let mut families = Vec::new();
    for (file, text) in FILES {
        families.extend(read(text).with_context(|| format!("catalogue/{file}.pairs"))?);
    }
    Ok(families)
}

fn read(text: &str) -> Result<Vec<Family>> {
    let mut families: Vec<Family> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split_once(';').filter(|(before, _)| before.trim().is_empty()).map_or(line, |(before, _)| before).trim();
        if let Some(name) = line.strip_prefix("family ") {
            families.push(Family { name: name.trim().into(), types: vec![DType::F32], ..Family::default() });
        } else if !line.is_empty() {
            let family = families.last_mut().with_context(|| format!("line {number}: a family is expected"))?;
            family.line(line).with_context(|| format!("line {number}"))?;
        }
    }
    Ok(families)
}

impl Family {
    fn line(&mut self, line: &str) -> Result<()> {
        if let Some(rule) = line.strip_prefix("rule ") {
            self.rules.push((self.laws.len().checked_sub(1).context("a pair comes before its rule")?, rule.into()));
            return Ok(());
        }
        if let Some((a, b)) = line.split_once(" != ") {
            self.laws.push((a.trim().into(), b.trim().into()));
            return Ok(());
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        match word {
            "for" => {
                self.types =
                    words.iter().map(|w| DType::from_name(w).with_context(|| format!("`{w}` is no type"))).collect::<Result<_>>()?
            }
            "let" => self.choices.push((words[0].into(), words[1..].iter().map(ToString::to_string).collect())),
            "input" => {
                let range = if let [_, _, _, low, high] = words[..] { Some((low.parse()?, high.parse()?)) } else { None };
                self.inputs.push(Declared { name: words[0].into(), ty: words[1].into(), shape: words[2].into(), range });
            }
            "function" => {
                let (head, body) = rest.split_once('=').context("a function is `NAME FORMALS = BODY`")?;
                let mut head = head.split_whitespace().map(String::from);
                let name = head.next().context("a function has a name")?;
                self.functions.push((name, head.collect(), body.into()));
            }
            "opset" => self.opsets = Some((words[0].parse()?, words.get(1).unwrap_or(&words[0]).parse()?)),
            "clause" => self.clause = Some(Clause::from_name(rest.trim()).with_context(|| format!("`{rest}` is no clause"))?),
            "exact" => self.exact = true,
            "narrow" => self.narrow = true,
            "constructed" => self.constructed = true,
            "fill" => {
                self.fill = match rest.trim() {
                    "large" => Fill::Large,
                    "wild" => Fill::Wild,
                    other => bail!("`{other}` is no fill"),
                }
            }
            _ => bail!("`{line}` has no meaning here"),
        }
        Ok(())
    }

    /// The family's pair number `law` at type `ty`, with all choices fixed.
    pub fn draw(&self, law: usize, ty: DType, random: &mut Random) -> Result<Drawn> {
        let (mut a, mut b) = self.laws[law].clone();
        let mut functions = self.functions.clone();
        for (name, choices) in &self.choices {
            let (word, choice) = (format!("${name}"), random.pick(choices));
            a = a.replace(&word, &choice);
            b = b.replace(&word, &choice);
            functions.iter_mut().for_each(|f| f.2 = f.2.replace(&word, &choice));
        }
        let text = format!("{a} != {b} at {ty}");
        let parse = |text: &str| Program::parse(text).with_context(|| format!("{}: {text}", self.name));
        let (a, b) = (parse(&a)?, parse(&b)?);
        let functions =
            functions.iter().map(|(name, formals, body)| Ok((name.clone(), formals.clone(), parse(body)?))).collect::<Result<_>>()?;
        let (opset, opset_b) = self.opsets.unwrap_or_else(|| {
            let opset = random.pick(OPSETS);
            (opset, opset)
        });
        let same: Vec<String> = random.pick(SHAPES).iter().map(ToString::to_string).collect();
        let symbol = if same.len() == 1 { 48 } else { 2 + random.below(6) };
        let (mut inputs, mut sizes) = (Vec::new(), Vec::new());
        for name in free(&a, &b) {
            let declared = self.inputs.iter().find(|i| i.name == name);
            let (ty_name, shape, range) = match declared {
                Some(input) => (input.ty.as_str(), input.shape.as_str(), input.range),
                None if matches!(name.as_str(), "x" | "y" | "z" | "w") => ("T", "same", None),
                None if matches!(name.as_str(), "m" | "n") => ("bool", "same", None),
                None => bail!("{}: `{name}` is not declared", self.name),
            };
            let ty = if ty_name == "T" { ty } else { DType::from_name(ty_name).with_context(|| format!("`{ty_name}` is no type"))? };
            let dims: Vec<String> = match shape {
                "same" => same.clone(),
                listed => listed.trim_matches(['[', ']']).split(',').filter(|d| !d.is_empty()).map(String::from).collect(),
            };
            // Sizes of the same name differ where they need not be equal.
            let own = if self.clause == Some(Clause::Sizes) { inputs.len() } else { 0 };
            sizes.push(dims.iter().map(|d| d.parse().unwrap_or(symbol + own)).collect());
            inputs.push(Input { name, ty, dims, range });
        }
        Ok(Drawn { text, a, b, frame: Frame { ty, inputs, functions, opset }, opset_b, sizes })
    }
}

/// Names that are read but not defined, in order of occurrence.
fn free(a: &Program, b: &Program) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for program in [a, b] {
        let mut known: Vec<String> = program.lets.iter().map(|(name, _)| name.clone()).collect();
        program.visit(&mut |term| {
            if let Term::Call { attributes, .. } = term {
                for (_, attribute) in attributes {
                    if let Attribute::Body { formals, program } = attribute {
                        known.extend(formals.iter().cloned().chain(program.lets.iter().map(|(name, _)| name.clone())));
                    }
                }
            }
        });
        program.visit(&mut |term| {
            if let Term::Name(name) = term
                && !known.contains(name)
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        });
    }
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_the_catalogue_can_be_made() {
        let mut random = Random::new(1, 0);
        for family in families().unwrap() {
            for (law, (a, b)) in family.laws.iter().enumerate() {
                let made = |ty: &DType| {
                    let mut last = None;
                    // A choice may not be a number of the type.
                    for _ in 0..20 {
                        let drawn = family.draw(law, *ty, &mut Random::new(random.next(), 0)).unwrap();
                        match super::super::build::model(&drawn.a, &drawn.frame, &mut Random::new(2, 0)) {
                            Ok(_) => return Ok(()),
                            Err(why) => last = Some(why),
                        }
                    }
                    Err(last)
                };
                let mut made = made;
                let results: Vec<_> = family.types.iter().map(&mut made).collect();
                assert!(results.iter().any(Result::is_ok), "{}: {a} != {b}: {results:?}", family.name);
            }
        }
    }
}
