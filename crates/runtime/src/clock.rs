//! Clocks for timing runs.

use std::sync::OnceLock;
use std::time::Instant;

/// A monotonic clock, read in nanoseconds since an arbitrary origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Time that the calling thread spent on a processor: preemption by other processes does not
    /// count. Right only for single-threaded work. Systems without such a clock read the wall clock
    /// instead; see [`Clock::for_threads`].
    ThreadCpu,
    /// Elapsed time.
    Wall,
    /// Elapsed time until a device has done all that it was given.
    Device,
}

impl Clock {
    /// The clock for runs with `threads` threads: CPU time of the thread for one (where the system
    /// has it), otherwise wall time.
    pub fn for_threads(threads: usize) -> Self {
        if threads <= 1 && thread_cpu_ns().is_some() { Self::ThreadCpu } else { Self::Wall }
    }

    /// Nanoseconds since an arbitrary origin. Readings of [`Clock::ThreadCpu`] compare only within
    /// one thread.
    pub fn now_ns(self) -> u64 {
        match self {
            Self::ThreadCpu => thread_cpu_ns().unwrap_or_else(wall_ns),
            Self::Wall | Self::Device => wall_ns(),
        }
    }

    /// Name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::ThreadCpu => "thread CPU time",
            Self::Wall => "wall time",
            Self::Device => "time of the device",
        }
    }
}

fn wall_ns() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(ORIGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "macos", target_os = "freebsd"))]
fn thread_cpu_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write to.
    if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0 {
        return None;
    }
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos", target_os = "freebsd")))]
fn thread_cpu_ns() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_does_not_count_sleep() {
        if Clock::for_threads(1) != Clock::ThreadCpu {
            return;
        }
        let (cpu, wall) = (Clock::ThreadCpu.now_ns(), Clock::Wall.now_ns());
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert!(Clock::Wall.now_ns() - wall >= 30_000_000);
        assert!(Clock::ThreadCpu.now_ns() - cpu < 15_000_000);
        assert_eq!(Clock::for_threads(2), Clock::Wall);
    }
}
