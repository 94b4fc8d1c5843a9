//! How the process holds its memory.

/// Keeps memory that was freed for later use instead of handing it back to the system, up to `bytes` at the end of the heap.
///
/// Opening a session copies all weights several times. Where a process opens many, fetching zeroed pages from the system each time can take
/// longer than everything else. Does nothing where the C library has no such setting.
pub fn keep_freed_memory(bytes: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        // SAFETY: `mallopt` only changes settings of the allocator; a value that it refuses changes nothing.
        unsafe {
            libc::mallopt(libc::M_MMAP_MAX, 0);
            libc::mallopt(libc::M_TRIM_THRESHOLD, bytes);
        }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = bytes;
}
