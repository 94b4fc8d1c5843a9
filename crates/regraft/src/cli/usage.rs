//! Mistakes in the arguments, in one line like all other errors.

use clap::error::ErrorKind;

use crate::cli::console;
use crate::cli::exit::Exit;
use crate::error::Failure;

/// Prints help where it was asked for, and one line for a mistake.
pub fn report(error: &clap::Error) -> Exit {
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
            console::error(&failure(&error.to_string()));
            Exit::Failed
        }
    }
}

/// The paragraphs of the parser's message, folded: its cause, and its tips as the hint.
fn failure(message: &str) -> Failure {
    let (mut cause, mut tips): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut usage = None;
    for line in message.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if let Some(tip) = line.strip_prefix("tip: ") {
            tips.push(tip);
        } else if let Some(text) = line.strip_prefix("Usage: ") {
            usage = Some(text);
        } else if !line.starts_with("For more information") && usage.is_none() {
            cause.push(line);
        }
    }
    let cause = cause.join(" ");
    let failure = Failure::new(cause.strip_prefix("error: ").unwrap_or(&cause));
    // `regraft zoo emit [OPTIONS] <NAME>` is helped by `regraft zoo emit --help`.
    let command: Vec<&str> = usage.unwrap_or("regraft").split(' ').take_while(|w| w.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    let help = format!("`{} --help` explains", command.join(" "));
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
        assert_eq!(failure(message).to_string(), want);
        let message = "error: the following required arguments were not provided:\n  <NAME>\n\nUsage: regraft zoo emit <NAME>\n";
        let want = "the following required arguments were not provided: <NAME> (hint: `regraft zoo emit --help` explains)";
        assert_eq!(failure(message).to_string(), want);
    }
}
