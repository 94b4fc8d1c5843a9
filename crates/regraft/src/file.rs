//! The user's files: written whole or not at all.

use std::io::Write;
use std::path::Path;

use regraft_onnx::{Draft, folder_of};

use crate::error::Failure;

/// Writes a file that gets its name only once it is complete: a partial file is never visible. The
/// folder must exist.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_atomic_with(path, |file| file.write_all(bytes))
}

/// The same for what is written piece by piece.
pub fn write_atomic_with(path: &Path, write: impl FnOnce(&mut std::fs::File) -> std::io::Result<()>) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::new(format!("cannot write {}: {}", path.display(), plain(&e))).hint("check the path");
    let mut draft = Draft::of(path).map_err(failed)?;
    write(draft.file()).map_err(failed)?;
    draft.put().map_err(failed)
}

/// Copies a file in the same way, block by block.
pub fn copy_atomic(from: &Path, to: &Path) -> Result<(), Failure> {
    let mut source = std::fs::File::open(from).map_err(|e| Failure::new(format!("cannot read {}: {e}", from.display())))?;
    write_atomic_with(to, |file| std::io::copy(&mut source, file).map(|_| ()))
}

/// Fails if a file could not be written to `path` later: before a long run, not after it.
pub fn check_writable(path: &Path, flag: &str) -> Result<(), Failure> {
    let refuse = |why: &str| Failure::new(format!("cannot write {}: {why}", path.display()));
    if path.file_name().is_none() || path.is_dir() {
        return Err(refuse("this is a folder").hint(format!("name a file with {flag}")));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(refuse(&format!("there is no folder {}", folder.display())).hint("create it first"));
    }
    match Draft::of(path) {
        Ok(_) => Ok(()),
        Err(e) => Err(refuse(&plain(&e)).hint(format!("name a place that can be written with {flag}"))),
    }
}

/// True if both paths lead to one file; the second need not exist yet.
pub fn is_same(existing: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        std::fs::canonicalize(path).ok().or_else(|| Some(std::fs::canonicalize(folder_of(path)).ok()?.join(path.file_name()?)))
    };
    place(existing).is_some_and(|a| place(other).is_some_and(|b| a == b))
}

/// Fails if a file to be written, given with its option, is also read or written in another role.
/// The role comes first: "the report", "the input".
pub fn check_apart(written: (&str, &Path, &str), others: &[(&str, &Path)]) -> Result<(), Failure> {
    let (what, path, flag) = written;
    match others.iter().find(|(_, other)| is_same(other, path) || *other == path) {
        Some((other, _)) => {
            Err(Failure::new(format!("{what} would overwrite {other}, {}", path.display())).hint(format!("name another file with {flag}")))
        }
        None => Ok(()),
    }
}

/// The cause alone: the error names temporary files, which mean nothing to a user.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((cause, _)) => cause.to_string(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_whole_files_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.json");
        write_atomic(&path, b"one").expect("writable");
        write_atomic(&path, b"two").expect("writable");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"two");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn refuses_before_a_run_what_would_fail_after_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(check_writable(&folder.path().join("a.onnx"), "-o").is_ok());
        let missing = check_writable(&folder.path().join("no/a.onnx"), "-o").expect_err("no such folder");
        assert!(missing.cause.contains("there is no folder"), "{missing}");
        assert!(check_writable(folder.path(), "-o").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn knows_one_file_under_two_names() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.onnx");
        std::fs::write(&path, b"x").expect("writable");
        assert!(is_same(&path, &folder.path().join("../").join(folder.path().file_name().expect("a name")).join("a.onnx")));
        assert!(!is_same(&path, &folder.path().join("b.onnx")));
    }
}
