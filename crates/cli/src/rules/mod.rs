//! `regraft rules`.

mod axioms;
mod derive;
mod example;
mod exercise;
mod explain;
mod generate;
mod import;
mod list;
mod parallel;
mod prune;
mod verify;

use std::path::{Path, PathBuf};

use regraft_discover::DiscoverError;
use regraft_rules::{Library, Rule};

use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::rules::parallel::each;
use regraft::error::Failure;
use regraft::optimize::read_library;

/// The rewrite rules: list them, explain one, put them to the test, prove them, find new ones,
/// judge those of others
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    List(list::Args),
    Explain(explain::Args),
    Exercise(exercise::Args),
    Verify(verify::Args),
    Axioms(axioms::Args),
    Import(import::Args),
    Generate(generate::Args),
    Prune(prune::Args),
}

/// Advice for a failed search for rules.
fn failure(error: DiscoverError) -> Failure {
    let failure = Failure::new(&error);
    match error {
        DiscoverError::Spec(error) => error.into(),
        DiscoverError::NoValue { .. } => failure.hint("the specification must keep operators from operands that they have no value for"),
        DiscoverError::Io { .. } => failure.hint("is the disk full? --work or --journal names another place"),
        _ => failure,
    }
}

/// Rule files of the user's.
#[derive(Debug, clap::Args)]
pub struct Files {
    /// Your own rules, beside the shipped ones
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(command: &Command, console: &Console) -> Result<Exit, Failure> {
    match command {
        Command::List(args) => list::run(args, console),
        Command::Explain(args) => explain::run(args, console),
        Command::Exercise(args) => exercise::run(args, console),
        Command::Verify(args) => verify::run(args, console),
        Command::Axioms(args) => axioms::run(args, console),
        Command::Import(args) => import::run(args, console),
        Command::Generate(args) => generate::run(args, console),
        Command::Prune(args) => prune::run(args, console),
    }
}

/// The text of a rule file.
pub fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|e| Failure::new(format!("cannot read the rule file {}: {e}", path.display())).hint("check the path"))
}

/// The shipped rules and the user's, each with its trust.
fn library(files: &Files) -> Result<Library, Failure> {
    read_library(&files.rules)
}

/// The results of `row` for the rules of these names, or for all rules if none are given: in
/// library order, whatever the number of threads, for as many as are reached before Ctrl-C.
///
/// `verb` names the work in the progress line, and `after` what is done after Ctrl-C.
fn rows<R: Send>(
    (names, files): (&[String], &Files),
    console: &Console,
    (verb, after): (&str, &'static str),
    row: impl Fn(&Rule) -> R + Sync,
) -> Result<Vec<R>, Failure> {
    let library = library(files)?;
    let rules: Vec<&Rule> = match names {
        [] => library.rules().iter().collect(),
        names => names.iter().map(|name| find(&library, name)).collect::<Result<_, _>>()?,
    };
    interrupt::catch(after);
    let threads = regraft_ir::parallel::cores();
    Ok(each(&rules, threads, console, verb, row))
}

/// The exit of a command over rules: a rule that does not hold takes precedence over Ctrl-C.
fn ended(unmet: bool) -> Exit {
    match (unmet, interrupt::requested()) {
        (true, _) => Exit::Unmet,
        (false, true) => Exit::Interrupted,
        (false, false) => Exit::Done,
    }
}

/// The rule of this name; otherwise a failure that names the most similar ones.
fn find<'a>(library: &'a Library, name: &str) -> Result<&'a Rule, Failure> {
    library.get(name).ok_or_else(|| {
        let failure = Failure::new(format!("there is no rule `{name}`"));
        match nearest(library, name).as_slice() {
            [] => failure.hint("`regraft rules list` names all rules"),
            names => failure.hint(format!("did you mean {}?", names.join(", "))),
        }
    })
}

/// Up to three names that share the most adjacent letter pairs with `name`.
fn nearest(library: &Library, name: &str) -> Vec<String> {
    let pairs = |word: &str| word.as_bytes().windows(2).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let asked = pairs(name);
    let mut scored: Vec<(usize, &str)> = library
        .rules()
        .iter()
        .map(|r| {
            let own = pairs(&r.name);
            let shared = asked.iter().filter(|p| own.contains(p)).count();
            (2000 * shared / (own.len() + asked.len()).max(1), r.name.as_ref())
        })
        .filter(|(score, _)| *score > 600)
        .collect();
    scored.sort_by_key(|(score, name)| (std::cmp::Reverse(*score), *name));
    scored.into_iter().take(3).map(|(_, name)| format!("`{name}`")).collect()
}

/// Where a rule is defined: for shipped files, the path in the repository.
fn place(rule: &Rule) -> String {
    let shipped = regraft_rules::library::SHIPPED.iter().any(|(file, _)| *file == rule.file.as_ref());
    format!("{}{}:{}", if shipped { "rules/" } else { "" }, rule.file, rule.line)
}
