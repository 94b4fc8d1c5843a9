//! The findings of one shard as a text file, to be merged with others.

use std::fmt::Write;

use crate::enumerate::Enumerated;
use crate::pairing::Tally;
use crate::set::TermSet;
use crate::state::{Identity, Shard};
use crate::walk::Size;

/// The first line of a file.
const HEADER: &str = "regraft-discover part 1";

/// The findings of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The enumeration it belongs to.
    pub identity: Identity,
    /// What was found.
    pub found: Enumerated,
}

/// Why parts cannot be read or merged: they are damaged, or do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PartError(String);

impl Part {
    /// The part as text.
    pub fn text(&self) -> String {
        let Enumerated { terms, size, records, spilled, tally, pairs } = &self.found;
        let list = |ids: &[u32]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let mut text = format!("{HEADER}\n{}\nterms", self.identity.line());
        terms.iter().for_each(|n| text.push_str(&format!(" {n}")));
        let _ = writeln!(text, "\ngraphs {} {}\nrecords {records} {spilled}", size.graphs, size.orders);
        let _ = writeln!(text, "tally {}", tally.steps().map(|(_, n)| n.to_string()).join(" "));
        for [l, r] in pairs {
            let _ = writeln!(text, "pair {} {}", list(l.as_slice()), list(r.as_slice()));
        }
        text.push_str("end\n");
        text
    }

    /// Reads a part.
    pub fn parse(text: &str) -> Result<Part, PartError> {
        let damaged = || PartError("this is no part, or it is damaged".into());
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return Err(damaged());
        }
        let identity = lines.next().and_then(Identity::parse).ok_or_else(damaged)?;
        let mut numbers = |word: &str| -> Result<Vec<u64>, PartError> {
            let line = lines.next().and_then(|line| line.strip_prefix(word)).ok_or_else(damaged)?;
            line.split_whitespace().map(|n| n.parse().map_err(|_| damaged())).collect()
        };
        let terms = numbers("terms")?;
        let [graphs, orders] = numbers("graphs")?[..] else { return Err(damaged()) };
        let [records, spilled] = numbers("records")?[..] else { return Err(damaged()) };
        let tally = Tally::of(&numbers("tally")?).ok_or_else(damaged)?;
        let mut pairs = Vec::new();
        for line in lines {
            if line == "end" {
                let found = Enumerated { terms, size: Size { graphs, orders }, records, spilled, tally, pairs };
                return Ok(Part { identity, found });
            }
            let known: u64 = terms.iter().sum();
            let side = |text: &str| {
                let ids: Option<Vec<u32>> = text.split(',').map(|id| id.parse().ok().filter(|id| u64::from(*id) < known)).collect();
                TermSet::of(&ids?)
            };
            let sides = line.strip_prefix("pair ").and_then(|sides| sides.split_once(' '));
            pairs.push(sides.and_then(|(l, r)| Some([side(l)?, side(r)?])).ok_or_else(damaged)?);
        }
        Err(damaged())
    }

    /// Merges all parts of one enumeration.
    ///
    /// Fails if one is missing, duplicated, or belongs to another enumeration.
    pub fn merge(parts: Vec<Part>) -> Result<Part, PartError> {
        let mut parts = parts.into_iter();
        let Some(mut whole) = parts.next() else { return Err(PartError("there are no parts to merge".into())) };
        let count = whole.identity.shard.count;
        let mut seen = vec![whole.identity.shard.index];
        whole.identity.shard = Shard::WHOLE;
        for part in parts {
            let shard = part.identity.shard;
            if (Identity { shard: Shard::WHOLE, ..part.identity }) != whole.identity
                || shard.count != count
                || part.found.terms != whole.found.terms
            {
                return Err(PartError("the parts belong to different enumerations".into()));
            }
            if seen.contains(&shard.index) {
                return Err(PartError(format!("part {} of {count} is there twice", shard.index + 1)));
            }
            seen.push(shard.index);
            whole.found.records += part.found.records;
            whole.found.spilled += part.found.spilled;
            whole.found.tally += part.found.tally;
            whole.found.pairs.extend(part.found.pairs);
        }
        match (0..count).find(|index| !seen.contains(index)) {
            Some(index) => Err(PartError(format!("part {} of {count} is missing", index + 1))),
            None => Ok(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(index: u32) -> Part {
        let pair = [[1, 2], [3, 4 + index]].map(|ids| TermSet::of(&ids).unwrap());
        let tally = Tally { pairs: 9, generic: 8, single: 7, unlike_ends: 6, irreducible: 5, first_names: 4, unlike_starts: 1 };
        let found =
            Enumerated { terms: vec![20, 30], size: Size { graphs: 5, orders: 6 }, records: 4, spilled: 0, tally, pairs: vec![pair] };
        Part { identity: Identity { spec: 77, size: 1, seed: 3, shard: Shard { index, count: 2 } }, found }
    }

    #[test]
    fn parts_are_read_back_and_merged() {
        let parts: Vec<Part> = [1, 0].iter().map(|at| Part::parse(&part(*at).text()).unwrap()).collect();
        assert_eq!(parts, [part(1), part(0)]);
        let whole = Part::merge(parts).unwrap();
        assert_eq!((whole.found.pairs.len(), whole.found.tally.pairs, whole.found.records), (2, 18, 8));
        assert_eq!(whole.found.size, Size { graphs: 5, orders: 6 });
        assert_eq!(whole.identity.shard, Shard::WHOLE);
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let other = Part { identity: Identity { seed: 4, ..part(1).identity }, ..part(1) };
        for (parts, why) in [
            (vec![part(0)], "part 2 of 2 is missing"),
            (vec![part(0), part(0)], "part 1 of 2 is there twice"),
            (vec![part(0), other], "different enumerations"),
            (vec![], "no parts"),
        ] {
            let error = Part::merge(parts).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let text = part(0).text();
        for bad in ["", &text[..text.len() - 4], &text.replace("3,4", "3,400"), &text.replace("tally 9", "tally")] {
            assert!(Part::parse(bad).is_err(), "{bad}");
        }
    }
}
