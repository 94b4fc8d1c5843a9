//! Files of the user's: written whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Failure;

/// Writes a file under a temporary name beside it and renames it: nobody ever sees half of it. The folder must exist.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::new(format!("cannot write {}: {e}", path.display())).hint("check the path");
    let mut file = tempfile::Builder::new().prefix(".regraft-").tempfile_in(folder_of(path)).map_err(|e| failed(&plain(&e)))?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(|e| failed(&e))?;
    permit(file.as_file()).map_err(|e| failed(&e))?;
    file.persist(path).map(|_| ()).map_err(|e| failed(&e.error))
}

/// Fails if a file could not be written at `path` later: before a long run, not after it.
pub fn check_writable(path: &Path, flag: &str) -> Result<(), Failure> {
    let refuse = |why: &str| Failure::new(format!("cannot write {}: {why}", path.display()));
    if path.file_name().is_none() || path.is_dir() {
        return Err(refuse("this is a folder").hint(format!("name a file with {flag}")));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(refuse(&format!("there is no folder {}", folder.display())).hint("create it first"));
    }
    match tempfile::Builder::new().prefix(".regraft-").tempfile_in(&folder) {
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

fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|p| !p.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The cause alone: errors on temporary files name these, and users know nothing of them.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((cause, _)) => cause.to_string(),
        None => text,
    }
}

/// Temporary files are private; reports and models are not.
#[cfg(unix)]
fn permit(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn permit(_: &std::fs::File) -> std::io::Result<()> {
    Ok(())
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
