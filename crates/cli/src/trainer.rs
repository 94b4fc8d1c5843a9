//! The program that trains: it is large, and apart from this one.

use std::path::PathBuf;

/// Its name, and the variable of the environment that may name another.
pub const NAME: &str = "regraft-train";
const NAMES_IT: &str = "REGRAFT_TRAINER";

/// The one that the environment names (none, if it names nothing), or else the one beside this
/// program, or in the path.
pub fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(NAMES_IT) {
        return Some(PathBuf::from(named)).filter(|path| !path.as_os_str().is_empty());
    }
    let name = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    let here = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(&name)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::split_paths(&path).map(|folder| folder.join(&name));
    here.into_iter().chain(paths).find(|path| path.is_file())
}
