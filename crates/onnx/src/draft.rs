//! Files that appear whole or not at all.
//!
//! Symbolic links are followed to the file that is written. Devices and pipes cannot be replaced:
//! they are written through, once the content is complete.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that is written before it gets its name.
///
/// It stays anonymous until [`put`](Self::put): where the system supports unnamed files, a killed
/// process leaves nothing behind.
#[derive(Debug)]
pub struct Draft {
    file: File,
    target: PathBuf,
    /// The target is a device or a pipe.
    through: bool,
}

impl Draft {
    /// An empty file that can become `target`, or what `target` links to, on the same file system.
    pub fn of(target: &Path) -> io::Result<Draft> {
        let target = destination(target)?;
        let through = is_stream(&target)?;
        let file = if through { tempfile::tempfile()? } else { tempfile::tempfile_in(folder_of(&target))? };
        Ok(Draft { file, target, through })
    }

    /// The file, to be written.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Waits until the content is on disk. After that, `put` takes no time.
    pub fn settle(&mut self) -> io::Result<()> {
        permit(&self.file)?;
        self.file.sync_all()
    }

    /// Gives the file its name, replacing any existing file.
    pub fn put(mut self) -> io::Result<()> {
        if self.through {
            io::Seek::rewind(&mut self.file)?;
            let mut stream = File::options().write(true).open(&self.target)?;
            io::copy(&mut self.file, &mut stream)?;
            return io::Write::flush(&mut stream);
        }
        self.settle()?;
        if !link(&self.file, &self.target)? {
            // On a system that cannot name a file later, the content is copied once more.
            let mut named = tempfile::Builder::new().prefix(PREFIX).tempfile_in(folder_of(&self.target))?;
            io::Seek::rewind(&mut self.file)?;
            io::copy(&mut self.file, named.as_file_mut())?;
            permit(named.as_file())?;
            named.as_file().sync_all()?;
            persist(named, &self.target)?;
        }
        if let Ok(folder) = File::open(folder_of(&self.target)) {
            // Not every file system can sync a folder; the name itself is in place.
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

/// Prefix of short-lived temporary names.
const PREFIX: &str = ".regraft-";

/// The folder that contains a file.
pub fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|p| !p.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The file that a path leads to, which need not exist; symbolic links are followed.
///
/// # Errors
///
/// Links that form a cycle.
pub fn destination(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        match std::fs::read_link(&path) {
            Ok(to) => path = folder_of(&path).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Longest chain of links to one file.
const LINKS: usize = 40;

/// Whether the target of a path can only be written through: a pipe, or a device such as
/// `/dev/null`.
///
/// # Errors
///
/// Disks and sockets: these are never written to.
pub fn is_stream(path: &Path) -> io::Result<bool> {
    let Ok(found) = std::fs::metadata(path) else { return Ok(false) };
    let kind = found.file_type();
    if kind.is_file() || kind.is_dir() {
        return Ok(false);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_block_device() || kind.is_socket() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no file, pipe or character device"));
        }
    }
    Ok(true)
}

fn persist(file: NamedTempFile, target: &Path) -> io::Result<()> {
    file.persist(target).map(|_| ()).map_err(|e| e.error)
}

/// Gives an open file a name; false if the system cannot.
#[cfg(target_os = "linux")]
fn link(file: &File, target: &Path) -> io::Result<bool> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd;
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    let named = |name: &Path| linkat(CWD, &open, CWD, name, AtFlags::SYMLINK_FOLLOW);
    match named(target) {
        Ok(()) => return Ok(true),
        Err(rustix::io::Errno::EXIST) => {}
        Err(_) => return Ok(false),
    }
    // Only a named file can replace another: this name exists for the length of one call.
    let folder = folder_of(target);
    for attempt in 0..ATTEMPTS {
        let name = folder.join(format!("{PREFIX}{}-{attempt}", std::process::id()));
        match named(&name) {
            Ok(()) => {
                return match std::fs::rename(&name, target) {
                    Ok(()) => Ok(true),
                    Err(e) => {
                        let _ = std::fs::remove_file(&name);
                        Err(e)
                    }
                };
            }
            Err(rustix::io::Errno::EXIST) => {}
            Err(_) => return Ok(false),
        }
    }
    Ok(false)
}

/// Names tried if others exist: left by processes with the same number, or on another machine.
#[cfg(target_os = "linux")]
const ATTEMPTS: usize = 100;

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Temporary files are private; models and reports are not.
#[cfg(unix)]
fn permit(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn permit(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_draft_has_no_name_before_it_is_put() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target = folder.path().join("a");
        for content in ["one", "two"] {
            let mut draft = Draft::of(&target).expect("the folder can be written");
            draft.file().write_all(content.as_bytes()).expect("writable");
            draft.settle().expect("writable");
            assert!(names(folder.path()).len() < 2);
            assert_ne!(std::fs::read_to_string(&target).ok().as_deref(), Some(content));
            draft.put().expect("the folder can be written");
            assert_eq!(std::fs::read_to_string(&target).ok().as_deref(), Some(content));
        }
        drop(Draft::of(&target).expect("the folder can be written"));
        assert_eq!(names(folder.path()), ["a"]);
    }

    fn put(target: &Path, content: &str) -> io::Result<()> {
        let mut draft = Draft::of(target)?;
        draft.file().write_all(content.as_bytes())?;
        draft.put()
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_stay() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (link, file) = (folder.path().join("link"), folder.path().join("there/file"));
        std::fs::create_dir(folder.path().join("there")).expect("a folder");
        std::os::unix::fs::symlink("there/file", &link).expect("a link");
        for content in ["one", "two"] {
            put(&link, content).expect("writable");
            assert!(link.is_symlink());
            assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), Some(content));
        }
        std::os::unix::fs::symlink("circle", folder.path().join("circle")).expect("a link");
        assert!(put(&folder.path().join("circle"), "three").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_written_through() {
        use std::os::unix::fs::FileTypeExt;
        assert!(put(Path::new("/dev/null"), "one").is_ok());
        assert!(std::fs::metadata("/dev/null").expect("there").file_type().is_char_device());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read_to_string(pipe)
        });
        put(&pipe, "two").expect("writable");
        assert_eq!(reader.join().expect("no panic").ok().as_deref(), Some("two"));
        assert!(std::fs::metadata(&pipe).expect("there").file_type().is_fifo());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        assert_eq!(put(Path::new("/dev/full"), "one").map_err(|e| e.kind()), Err(io::ErrorKind::StorageFull));
    }

    #[test]
    fn a_folder_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target = folder.path().join("a");
        std::fs::create_dir(&target).expect("a folder");
        assert!(Draft::of(&target).expect("the folder can be written").put().is_err());
        assert_eq!(names(folder.path()), ["a"]);
    }
}
