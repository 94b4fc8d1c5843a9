//! The rules of a run: shipped, the user's, less what is denied.

use std::path::PathBuf;

use regraft_rules::{Library, Numeric, Trust};

use crate::error::Failure;
use crate::optimize::request::denied;

/// The shipped rules and those of `files`, without denied ones and those of other runtimes.
pub fn load_library(files: &[PathBuf], deny: &[String], require: Option<&str>, runtime: &str) -> Result<Library, Failure> {
    let mut library = Library::shipped()?;
    for path in files {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::new(format!("cannot read the rule file {}: {e}", path.display())).hint("check the path"))?;
        library = library.with_file(path, &text)?;
    }
    for word in deny {
        let known = library.get(word).is_some() || Numeric::NAMES.iter().any(|(name, _)| name == word);
        if !known {
            let near = library
                .rules()
                .iter()
                .map(|r| r.name.as_ref())
                .filter(|n| n.contains(word.as_str()))
                .take(3)
                .collect::<Vec<_>>()
                .join(", ");
            let hint = if near.is_empty() { "`regraft rules list` names all rules".to_string() } else { format!("did you mean {near}?") };
            return Err(Failure::new(format!("--deny names `{word}`, which is neither a rule nor a numeric class")).hint(hint));
        }
    }
    let accepted: &[Trust] = match require {
        None | Some("tested" | "unproved") => &[Trust::Tested],
        Some("proved" | "proved-in-range" | "bounded") => &[],
        Some(other) => {
            return Err(Failure::new(format!("--require `{other}` is no word of trust")).hint("proved, proved-in-range, bounded, tested"));
        }
    };
    Ok(library
        .filter(|r| !denied(deny, &r.name, r.numeric) && r.runtime.as_deref().is_none_or(|t| t == runtime) && accepted.contains(&r.trust)))
}
