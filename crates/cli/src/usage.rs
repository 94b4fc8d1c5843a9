//! Mistakes in the arguments, reported on one line like all other errors.

use std::ffi::OsString;

use clap::error::ErrorKind;

use crate::console;
use crate::exit::Exit;
use regraft::error::Failure;

/// Prints help if requested, and one line for a mistake in `args` (the program's name first).
pub fn report(error: &clap::Error, grammar: &clap::Command, args: &[OsString]) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            Exit::Done
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Exit::Failed
        }
        _ => {
            console::error(&mistake(error, grammar, args));
            Exit::Failed
        }
    }
}

/// What is wrong with `args` (the program's name first).
pub fn mistake(error: &clap::Error, grammar: &clap::Command, args: &[OsString]) -> Failure {
    failure(&error.to_string(), &command(grammar, args))
}

/// The command named by the first words: `regraft zoo emit`.
fn command(grammar: &clap::Command, args: &[OsString]) -> String {
    let mut named = vec![grammar.get_name().to_string()];
    let mut at = grammar;
    for word in args.iter().skip(1) {
        let Some(next) = word.to_str().and_then(|w| at.find_subcommand(w)) else { break };
        named.push(next.get_name().to_string());
        at = next;
    }
    named.join(" ")
}

/// The paragraphs of the parser's message, folded: its cause, with its tips as the hint.
fn failure(message: &str, command: &str) -> Failure {
    let (mut cause, mut tips): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut usage = false;
    for line in message.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if let Some(tip) = line.strip_prefix("tip: ") {
            tips.push(tip);
        } else if line.starts_with("Usage: ") {
            usage = true;
        } else if !line.starts_with("For more information") && !usage {
            cause.push(line);
        }
    }
    let cause = cause.join(" ");
    let failure = Failure::new(cause.strip_prefix("error: ").unwrap_or(&cause));
    let help = format!("`{command} --help` explains");
    failure.hint(if tips.is_empty() { help } else { format!("{}; {help}", tips.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_become_one_line() {
        let message = "error: unexpected argument '--sead' found\n\n  tip: a similar argument exists: '--seed'\n\n\
                       Usage: regraft zoo emit [OPTIONS] <NAME>\n\nFor more information, try '--help'.\n";
        let want = "unexpected argument '--sead' found (hint: a similar argument exists: '--seed'; `regraft zoo emit --help` explains)";
        assert_eq!(failure(message, "regraft zoo emit").to_string(), want);
        let message = "error: the following required arguments were not provided:\n  <NAME>\n\nUsage: regraft zoo emit <NAME>\n";
        let want = "the following required arguments were not provided: <NAME> (hint: `regraft zoo emit --help` explains)";
        assert_eq!(failure(message, "regraft zoo emit").to_string(), want);
    }
}
