//! `regraft completions` and `regraft manual`.

use clap_complete::Shell;
use regraft::error::Failure;

use crate::console::Console;
use crate::exit::Exit;

/// Print what completes this command's arguments in a shell
///
/// For bash: `regraft completions bash > ~/.local/share/bash-completion/completions/regraft`.
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Print the manual page of this command, or of one of its own
///
/// `regraft manual optimize | man -l -` shows it.
#[derive(Debug, clap::Args)]
pub struct Manual {
    /// The command: `optimize`, `rules list`, .. [default: all in short]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// Prints completions for a grammar.
pub fn completions(args: &Completions, mut grammar: clap::Command, console: &Console) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut grammar, "regraft", &mut text);
    console.print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}

/// Prints a manual page of a grammar.
pub fn manual(args: &Manual, mut grammar: clap::Command, console: &Console) -> Result<Exit, Failure> {
    grammar.build();
    let mut at = &grammar;
    for name in &args.command {
        at = at
            .find_subcommand(name)
            .ok_or_else(|| Failure::new(format!("there is no command `{}`", args.command.join(" "))).hint("`regraft --help` lists all"))?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(at.clone().version(env!("CARGO_PKG_VERSION"))).render(&mut text).map_err(Failure::new)?;
    console.print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}
