//! How the process manages freed memory.

/// Keeps freed memory for later use instead of returning it to the system.
///
/// Opening a session copies all weights several times. Where a process opens many, fetching zeroed
/// pages from the system each time can take longer than everything else. Does nothing where the C
/// library has no such setting.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallopt` only changes settings of the allocator; a value that it refuses changes
        // nothing.
        unsafe {
            libc::mallopt(libc::M_MMAP_MAX, 0);
            // The end of the heap is never cut off.
            libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
        }
    }
}

/// Undoes [`keep_freed_memory`]: for runs that must stay small, however long they take.
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: as above; these are the allocator's own defaults.
        unsafe {
            libc::mallopt(libc::M_MMAP_MAX, MAPPINGS);
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE);
        }
    }
}

/// Number of blocks that the allocator may map one by one, and the size from which it does so,
/// which is also how much it keeps free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPINGS: libc::c_int = 65536;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 128 << 10;
