//! Counts the program's allocations, so that a campaign detects an allocation that no input of its
//! size can need.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counting per thread.
pub struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches thread-local cells
// only, which do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }
}

fn count(more: usize, less: usize) {
    // A terminating thread allocates after its cells are gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + more as isize - less as isize);
        PEAK.try_with(|peak| peak.set(peak.get().max(held.get())))
    });
}

/// Runs `work`; also returns the most bytes it held at any time.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before).max(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_what_is_allocated() {
        let (_, peak) = measured(|| std::hint::black_box(vec![0u8; 1 << 20]).len());
        assert!((1 << 20..1 << 21).contains(&peak), "{peak}");
        let (_, peak) = measured(|| std::hint::black_box(3));
        assert!(peak < 1 << 10, "{peak}");
    }
}
