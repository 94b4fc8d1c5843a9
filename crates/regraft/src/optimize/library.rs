//! The rules of a run: the shipped ones and the user's, minus denied ones.

use std::collections::BTreeSet;
use std::path::PathBuf;

use regraft_audit::judge;
use regraft_ir::Trust;
use regraft_rules::{Library, Numeric, Proofs};

use crate::error::Failure;
use crate::optimize::request::denied;
use crate::optimize::subnormal;

/// Instances per kind of sizes on which a file's rule is proved.
const INSTANCES: usize = 2;

/// Which rules a run may apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Files with more rules, in addition to the shipped ones.
    pub files: Vec<PathBuf>,
    /// Names of rules and numeric classes to leave out.
    pub deny: Vec<String>,
    /// Accepted trust levels besides [`Trust::Bounded`].
    pub allow: Vec<Trust>,
    /// The least trust accepted, whatever is allowed.
    pub require: Option<Trust>,
}

/// Rules that may be applied.
#[derive(Clone)]
pub struct Usable {
    /// These rules.
    pub library: Library,
    /// Rules of files that are not trusted enough, with their trust.
    pub left_out: Vec<(String, Trust)>,
    /// Rules of files, proved on their instances. Each of their rewrites must be proved where it
    /// applies.
    pub own: BTreeSet<String>,
}

/// The shipped rules and those of files. Rules of files are proved here; any the prover cannot show
/// are `tested`.
pub fn read_library(files: &[PathBuf]) -> Result<Library, Failure> {
    read(files).map(|(library, _)| library)
}

/// The same, and the number of shipped rules: they come first.
fn read(files: &[PathBuf]) -> Result<(Library, usize), Failure> {
    let mut library = Library::shipped()?;
    let shipped = library.rules().len();
    for path in files {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::new(format!("cannot read the rule file {}: {e}", path.display())).hint("check the path"))?;
        library = library.with_file(path, &text)?;
    }
    let proofs = Proofs::new(library.rules()[shipped..].iter().map(|rule| judge(rule, INSTANCES, 0).proof(rule)).collect());
    Ok((library.trusting(|rule| proofs.of(rule).map_or(rule.trust, |proof| proof.trust)), shipped))
}

/// The shipped rules and those of files, without denied rules, rules for other runtimes, and rules
/// that are not trusted enough. All execution providers of a runtime have its operators.
pub fn load_library(choice: &Choice, runtime: &str) -> Result<Usable, Failure> {
    let (library, shipped) = read(&choice.files)?;
    let own = library.rules()[shipped..].iter().filter(|r| r.trust > Trust::Tested).map(|r| r.name.to_string()).collect();
    for word in &choice.deny {
        let known = library.get(word).is_some() || word == subnormal::NAME || Numeric::NAMES.iter().any(|(name, _)| name == word);
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
    let least = least(choice);
    let runtime = runtime.split(':').next().unwrap_or(runtime);
    let library = library.filter(|r| !denied(&choice.deny, &r.name, r.numeric) && r.runtime.as_deref().is_none_or(|t| t == runtime));
    let left_out = library.rules().iter().filter(|r| r.trust < least).map(|r| (r.name.to_string(), r.trust)).collect();
    Ok(Usable { library: library.filter(|r| r.trust >= least), left_out, own })
}

/// The least trust required of a rule.
fn least(choice: &Choice) -> Trust {
    let allowed = choice.allow.iter().copied().fold(Trust::Bounded, Trust::min);
    choice.require.map_or(allowed, |required| required.max(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A law outside the prover's knowledge: f(x) = x is false for a softplus f, but any unproved
    /// rule will do here.
    const UNPROVED: &str = ";; a\n(rule odd (softplus (relu ?x)) => (relu (softplus ?x)) (numeric exact) (doc \"d\") (instance (?x 2 3)))";
    const PROVED: &str = ";; a\n(rule even (relu (relu ?x)) => (relu ?x) (numeric exact) (doc \"d\") (instance (n 2 3) (?x n 3)))";

    #[test]
    fn rules_of_files_are_proved_or_have_to_be_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.rules");
        std::fs::write(&file, format!("{UNPROVED}\n\n{PROVED}\n")).unwrap();
        let has = |choice: &Choice| {
            let Usable { library, left_out, .. } = load_library(choice, "onnxruntime").unwrap();
            assert_eq!(left_out.iter().any(|(name, _)| name == "odd"), library.get("odd").is_none());
            ["odd", "even", "relu-clip"].map(|name| library.get(name).is_some())
        };
        let files = Choice { files: vec![file], ..Choice::default() };
        assert_eq!(has(&files), [false, true, true]);
        assert_eq!(has(&Choice { allow: vec![Trust::Tested], ..files.clone() }), [true, true, true]);
        assert_eq!(has(&Choice { allow: vec![Trust::Tested], require: Some(Trust::Proved), ..files.clone() }), [false, true, true]);
    }

    #[test]
    fn words_of_an_earlier_release_are_read_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let read = |clause: &str| {
            let file = folder.path().join("my.rules");
            std::fs::write(&file, PROVED.replace("(numeric", &format!("{clause}\n(numeric"))).unwrap();
            let library = read_library(&[file]).unwrap();
            let rule = library.get("even").unwrap();
            let hints: Vec<String> = rule.hints.iter().map(|h| h.rsplit('/').next().unwrap_or_default().to_owned()).collect();
            (rule.profitable.len(), hints)
        };
        assert_eq!(read("(profitable (= (rank ?x) 2))"), (1, vec![]));
        let hint = "my.rules:2:42: `(worth ..)` is spelled `(profitable ..)` now".to_owned();
        assert_eq!(read("(worth (= (rank ?x) 2))"), (1, vec![hint]));
    }
}
