//! The page as text.

use std::fmt::Write;

use crate::page::changes::Changed;
use crate::page::html::Page;
use crate::page::times::Row;
use crate::render::{count, details, gain, lines, measured, plain_table, table, verdict};

/// Changes that are listed.
const CHANGES: usize = 20;

impl Page {
    /// The whole, for a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n{}", table(&self.report), details(&self.report));
        match &self.times {
            Ok(times) => {
                let _ = write!(text, "\n{}", rows("operator", &times.operators));
                if !times.blocks.is_empty() {
                    let _ = write!(text, "\n{}", rows("block", &times.blocks));
                }
            }
            Err(why) => text.push_str(&format!("\nwhere the time goes is not known: {why}\n")),
        }
        match &self.changed {
            Ok(Changed { changes, certificate, file, .. }) => {
                let mut list = plain_table(&["change", "times", "gain", "at"], &[1, 2]);
                for change in changes.iter().take(CHANGES) {
                    let rules = change.rules.iter().map(|(rule, _)| rule.as_str()).collect::<Vec<_>>().join(", ");
                    list.add_row([
                        rules,
                        change.count.to_string(),
                        gain(&self.report, change.gain_ns),
                        change.places.first().cloned().unwrap_or_default(),
                    ]);
                }
                if !changes.is_empty() {
                    let _ = write!(text, "\n{}", lines(&list));
                }
                if changes.len() > CHANGES {
                    text.push_str(&format!("and {} more changes\n", changes.len() - CHANGES));
                }
                let _ = writeln!(text, "\ncertificate of {}: {}", count(certificate.steps(), "rewrite"), file.display());
            }
            Err(why) => text.push_str(&format!("\nthe changes are not known: {why}\n")),
        }
        let _ = write!(text, "\n{}\n", verdict(&self.report, &[]));
        text
    }
}

fn rows(what: &str, rows: &[Row]) -> String {
    let mut table = plain_table(&[what, "kernels", "after", "time", "after"], &[1, 2, 3, 4]);
    for Row { name, before, after } in rows {
        table.add_row([name.clone(), before.1.to_string(), after.1.to_string(), measured(before.0), measured(after.0)]);
    }
    lines(&table)
}
