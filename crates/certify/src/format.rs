//! Certificates as text: one fact per line, new nodes in the text format of graphs, and a digest.

use std::fmt::Write;

use regraft_ir::NodeId;
use regraft_onnx::{FixedInput, FixedSizes};

use crate::certificate::{Certificate, GraphPath, Trail};
use crate::digest::{FileDigest, Hash, ModelDigest};
use crate::error::{Broken, CertifyError};
use crate::step::{self, Step};

/// Version of the layout. Those before had SHA-256 digests.
pub const VERSION: &str = "3";

/// What every certificate begins with, before its version.
const HEADER: &str = "regraft certificate ";

/// What the last line begins with.
const SEAL: &str = "seal ";

/// True if these are the first bytes of a certificate, intact or not.
pub fn is_certificate(bytes: &[u8]) -> bool {
    bytes.starts_with(HEADER.as_bytes())
}

impl Certificate {
    /// The certificate as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}{VERSION}\ntool {}\n", line(&self.tool));
        for (word, digest) in [("input", &self.input), ("output", &self.output)] {
            for file in &digest.0 {
                let place = if file.place.is_empty() { String::new() } else { format!(" {}", file.place) };
                let _ = writeln!(text, "{word} {} {}{place}", file.hash, file.bytes);
            }
        }
        for input in &self.fixed.0 {
            let _ = writeln!(text, "freeze {}", line(&input.to_string()));
        }
        if let Some(version) = self.opset {
            let _ = writeln!(text, "opset {version}");
        }
        for trail in &self.trails {
            let _ = writeln!(text, "graph {} {:032x} {}", trail.place, trail.start, line(&trail.label));
            trail.steps.iter().for_each(|step| write_step(step, &mut text));
        }
        let seal = Hash::of(text.as_bytes());
        let _ = writeln!(text, "{SEAL}{seal}");
        text
    }

    /// Parses a certificate; the inner error reports that the text is not as it was written.
    pub fn parse(bytes: &[u8]) -> Result<Result<Certificate, Broken>, CertifyError> {
        let whole = unseal(bytes);
        if let Ok(text) = &whole
            && let Some(other) = text.lines().next().and_then(|l| l.strip_prefix(HEADER)).filter(|v| *v != VERSION)
        {
            return Err(CertifyError::Version { found: other.into() });
        }
        Ok(whole.and_then(|text| Reader { lines: text.lines().enumerate().peekable() }.certificate()))
    }
}

/// The text without its last line, if that line is the digest of all bytes before it.
fn unseal(bytes: &[u8]) -> Result<&str, Broken> {
    let broken = |why: &str| Broken { line: bytes.split(|b| *b == b'\n').count().saturating_sub(1).max(1), why: why.into() };
    let text = std::str::from_utf8(bytes).map_err(|_| broken("it is no text"))?;
    let end = text.strip_suffix('\n').ok_or_else(|| broken("its last line is not complete"))?;
    let start = end.rfind('\n').map_or(0, |at| at + 1);
    let seal = end[start..].strip_prefix(SEAL).and_then(Hash::parse).ok_or_else(|| broken("its last line is no seal"))?;
    if Hash::of(&text.as_bytes()[..start]) != seal {
        return Err(broken("its text is not the one that was sealed"));
    }
    Ok(&text[..start])
}

/// A text squeezed onto one line.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn write_step(step: &Step, text: &mut String) {
    let _ = writeln!(text, "step {}", line(&step.rule));
    let nodes: Vec<String> = step.replaces.iter().map(|id| format!("n{}", id.0)).collect();
    let _ = writeln!(text, "replaces {}", nodes.join(" "));
    for binding in &step.bindings {
        let _ = writeln!(text, "where {}", line(binding));
    }
    for guard in &step.guards {
        let _ = writeln!(text, "guard {}", line(guard));
    }
    for (old, new) in &step.redirects {
        let _ = writeln!(text, "let {} = {}", step::show(*old), step::show(*new));
    }
    text.push_str(&step.fragment);
}

struct Reader<'a> {
    lines: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
}

impl<'a> Reader<'a> {
    /// The rest of the next line and its number, if the line begins with `word`.
    fn take(&mut self, word: &str) -> Option<(usize, &'a str)> {
        let (at, rest) = self.lines.peek().and_then(|(at, line)| Some((at + 1, line.strip_prefix(word)?.strip_prefix(' ')?)))?;
        self.lines.next();
        Some((at, rest))
    }

    fn need(&mut self, word: &str) -> Result<(usize, &'a str), Broken> {
        let line = self.lines.peek().map_or(0, |(at, _)| at + 1);
        self.take(word).ok_or_else(|| Broken { line, why: format!("`{word}` is expected") })
    }

    fn certificate(mut self) -> Result<Certificate, Broken> {
        self.lines.next();
        let (_, tool) = self.need("tool")?;
        let (input, output) = (self.digest("input")?, self.digest("output")?);
        let mut fixed = FixedSizes::default();
        while let Some((at, input)) = self.take("freeze") {
            fixed.0.push(known(at, FixedInput::parse(input), "an input with sizes")?);
        }
        let opset = match self.take("opset") {
            None => None,
            Some((at, version)) => Some(known(at, version.parse().ok(), "a version")?),
        };
        let mut trails: Vec<Trail> = Vec::new();
        while let Some((at, head)) = self.take("graph") {
            let mut words = head.splitn(3, ' ');
            let place = known(at, words.next().and_then(place), "a place")?;
            let start = known(at, words.next().filter(|w| w.len() == 32).and_then(|w| u128::from_str_radix(w, 16).ok()), "a key")?;
            let label = words.next().unwrap_or_default().to_string();
            if trails.iter().any(|t| t.place == place) {
                return Err(Broken { line: at, why: format!("the graph {place} was before") });
            }
            let mut steps = Vec::new();
            while let Some(step) = self.step()? {
                steps.push(step);
            }
            trails.push(Trail { place, label, start, steps });
        }
        match self.lines.next() {
            Some((at, _)) => Err(Broken { line: at + 1, why: "this has no meaning here".into() }),
            None => Ok(Certificate { tool: tool.into(), input, output, fixed, opset, trails }),
        }
    }

    fn digest(&mut self, word: &str) -> Result<ModelDigest, Broken> {
        let mut files = Vec::new();
        while let Some((at, rest)) = self.take(word) {
            let mut words = rest.splitn(3, ' ');
            let hash = known(at, words.next().and_then(Hash::parse), "a digest")?;
            let bytes = known(at, words.next().and_then(|n| n.parse().ok()), "a length")?;
            files.push(FileDigest { place: words.next().unwrap_or_default().into(), bytes, hash });
        }
        Ok(ModelDigest(files))
    }

    fn step(&mut self) -> Result<Option<Step>, Broken> {
        let Some((_, rule)) = self.take("step") else { return Ok(None) };
        let mut step = Step { rule: rule.into(), ..Step::default() };
        let (at, nodes) = self.need("replaces")?;
        for node in nodes.split_whitespace() {
            step.replaces.push(NodeId(known(at, node.strip_prefix('n').and_then(step::number), "a node")?));
        }
        while let Some((_, binding)) = self.take("where") {
            step.bindings.push(binding.into());
        }
        while let Some((_, guard)) = self.take("guard") {
            step.guards.push(guard.into());
        }
        while let Some((at, pair)) = self.take("let") {
            let values = pair.split_once(" = ").and_then(|(old, new)| Some((step::read(old)?, step::read(new)?)));
            step.redirects.push(known(at, values, "two values")?);
        }
        if self.lines.peek().is_some_and(|(_, line)| line.starts_with("graph (")) {
            for (_, line) in self.lines.by_ref() {
                step.fragment.push_str(line);
                step.fragment.push('\n');
                if line == "}" {
                    break;
                }
            }
        }
        Ok(Some(step))
    }
}

fn known<T>(line: usize, value: Option<T>, what: &str) -> Result<T, Broken> {
    value.ok_or_else(|| Broken { line, why: format!("{what} is expected") })
}

fn place(text: &str) -> Option<GraphPath> {
    if text == "main" {
        return Some(GraphPath::default());
    }
    let pair = |part: &str| part.split_once('.').and_then(|(node, at)| Some((step::number(node)? as usize, step::number(at)? as usize)));
    text.split('/').map(pair).collect::<Option<Vec<_>>>().map(GraphPath)
}
