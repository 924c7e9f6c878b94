//! The allocator of a block. The first 32 KiB of an instance come from a region of the block's own data.
//!
//! By default each call runs in a new instance, whose memory is dropped at the end of the call. The allocator of the standard
//! library begins with no memory, or with the rest of the last page (wasm32-wasip2). So the first allocations of each call would
//! grow the memory: the server changes the protection of the new pages, and changes it back before the next call. The region is
//! there from the beginning. It has only zeros, so the file does not contain it.
//!
//! Allocations take the region from its beginning to its end. Only the last one can be freed or can grow in place. If another one
//! is freed, its bytes are not used again. What does not fit comes from the allocator of the standard library, which uses freed
//! bytes again. So an instance that serves many calls soon gets all its memory there.
//!
//! Without the feature `allocator`, this module is left out, and a block can have another `#[global_allocator]`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};

/// The size of the region. It fits into the last page of WebAssembly of a small block's data, so the memory is no larger with it.
#[cfg(not(test))]
const REGION_BYTES: usize = 32 * 1024;
/// Each allocation begins at a multiple of this size and takes a multiple of it. No primitive type has a larger alignment.
const UNIT_BYTES: usize = 16;

#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: Arena<REGION_BYTES> = Arena::new();

// SAFETY: `Sync` promises that threads can share the arena. There is one thread only: this module is compiled for wasm32
// without the feature `atomics`, and WebAssembly has no threads without it. There are no signals either. The system's
// allocator does not call the arena, so no method of the arena begins while another one is between two steps.
#[cfg(not(test))]
unsafe impl Sync for Arena<REGION_BYTES> {}

/// A region of bytes, and the part of it that is taken.
///
/// The count comes first, so that it is in the same page as the first allocations.
#[repr(C)]
struct Arena<const BYTES: usize> {
    taken: Taken<BYTES>,
    region: UnsafeCell<Region<BYTES>>,
}

/// The alignment is `UNIT_BYTES`.
#[repr(C, align(16))]
struct Region<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Arena<BYTES> {
    /// All bytes are zeros, the count too. Otherwise the file would contain the region.
    const fn new() -> Self {
        Self { taken: Taken::new(), region: UnsafeCell::new(Region([0; BYTES])) }
    }

    fn region_start(&self) -> *mut u8 {
        // SAFETY: `get` returns a pointer to the region, which lives as long as `self`. The expression only computes the
        // address of its bytes. It makes no reference and reads nothing.
        unsafe { (&raw mut (*self.region.get()).0).cast() }
    }

    /// The offset of an allocation in the region. `None` if the allocation is from the system.
    fn offset_of(&self, allocation: *mut u8) -> Option<usize> {
        // An address before the region wraps to a large offset.
        let offset = allocation.addr().wrapping_sub(self.region_start().addr());
        (offset < BYTES).then_some(offset)
    }
}

// SAFETY: `GlobalAlloc` promises that allocations have the requested size and alignment, that they do not overlap, and that
// they stay where they are until they are freed. The system keeps this for its own. For those of the region:
// - `Taken` gives away only bytes of the region that are not taken, and takes back only what was given away last.
// - The region begins at a multiple of `UNIT_BYTES`, and so does each offset. Larger alignments are left to the system.
// - No method panics: `Taken` checks each sum.
unsafe impl<const BYTES: usize> GlobalAlloc for Arena<BYTES> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= UNIT_BYTES
            && let Some(offset) = self.taken.take(layout.size())
        {
            // SAFETY: `take` has found that the offset and the size do not exceed the region, so the pointer stays in it.
            return unsafe { self.region_start().add(offset) };
        }
        // SAFETY: The caller promises that the size is not zero. That is all that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, allocation: *mut u8, layout: Layout) {
        match self.offset_of(allocation) {
            Some(offset) => self.taken.give_back(offset, layout.size()),
            // SAFETY: The caller promises that the allocation is of this allocator and has this layout. It is not from the
            // region, so it is from the system, with the same layout. With wasm32-wasip2, it can also be an argument of the
            // call. There, `cabi_realloc` of the C library allocates the arguments, and the system's allocator is the C
            // library's too.
            None => unsafe { System.dealloc(allocation, layout) },
        }
    }

    unsafe fn realloc(&self, allocation: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(offset) = self.offset_of(allocation) else {
            // SAFETY: As in `dealloc`, the allocation is from the system. The caller promises that the new size is not zero and
            // does not exceed `isize::MAX` when it is rounded up to the alignment.
            return unsafe { System.realloc(allocation, layout, new_size) };
        };
        if self.taken.resize(offset, layout.size(), new_size) {
            return allocation;
        }
        // SAFETY: The alignment is from a layout, so it is a power of two. The caller promises the rest about the new size.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: The caller promises that the new size is not zero.
        let moved = unsafe { self.alloc(new_layout) };
        if !moved.is_null() {
            // SAFETY: The old allocation has at least as many bytes as are read, and the new one as many as are written. They
            // do not overlap, because the old one is still taken.
            unsafe { allocation.copy_to_nonoverlapping(moved, layout.size().min(new_size)) };
            self.taken.give_back(offset, layout.size());
        }
        moved
    }

    // `alloc_zeroed` is that of the trait: it calls `alloc` and writes zeros, because freed bytes of the region are not zeros.
    // The system would also write the zeros of its own allocations.
}

/// Which bytes of a region of `BYTES` bytes are taken: those before `end`. It only computes offsets.
struct Taken<const BYTES: usize> {
    end: Cell<usize>,
}

impl<const BYTES: usize> Taken<BYTES> {
    const fn new() -> Self {
        Self { end: Cell::new(0) }
    }

    /// Takes the bytes of an allocation and returns its offset. `None` if too few bytes are left; then nothing is taken.
    fn take(&self, size: usize) -> Option<usize> {
        let offset = self.end.get();
        self.end.set(Self::end_of(offset, size)?);
        Some(offset)
    }

    /// Takes the bytes of an allocation back if it is the last one. The bytes of others are lost.
    fn give_back(&self, offset: usize, size: usize) {
        if self.is_last(offset, size) {
            self.end.set(offset);
        }
    }

    /// Changes the size of an allocation that stays where it is. Every allocation can shrink. Only the last one can grow, if
    /// enough bytes are left. If it returns `false`, nothing has changed.
    fn resize(&self, offset: usize, size: usize, new_size: usize) -> bool {
        if !self.is_last(offset, size) {
            return new_size <= size;
        }
        let end = Self::end_of(offset, new_size);
        if let Some(end) = end {
            self.end.set(end);
        }
        end.is_some()
    }

    /// Whether no allocation comes after this one. Each has at least one byte, so only the last one ends where the taken bytes
    /// end.
    fn is_last(&self, offset: usize, size: usize) -> bool {
        Self::end_of(offset, size) == Some(self.end.get())
    }

    /// The offset after an allocation, in whole units. `None` if it is not in the region.
    fn end_of(offset: usize, size: usize) -> Option<usize> {
        let end = offset.checked_add(size)?.checked_next_multiple_of(UNIT_BYTES)?;
        (end <= BYTES).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_follow_each_other_in_whole_units() {
        let taken = Taken::<96>::new();
        assert_eq!([1, 16, 17, 5].map(|size| taken.take(size)), [0, 16, 32, 64].map(Some));
    }

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let taken = Taken::<64>::new();
        assert_eq!([65, usize::MAX, usize::MAX - 15].map(|size| taken.take(size)), [None; 3]);
        assert_eq!(taken.take(40), Some(0));
        assert_eq!([17, usize::MAX, usize::MAX - 48].map(|size| taken.take(size)), [None; 3]);
        assert_eq!(taken.take(16), Some(48));
        assert_eq!(taken.take(1), None);
    }

    #[test]
    fn the_end_of_a_region_that_is_no_whole_unit_is_left() {
        let taken = Taken::<24>::new();
        assert_eq!([17, 16, 1].map(|size| taken.take(size)), [None, Some(0), None]);
    }

    #[test]
    fn only_the_last_allocation_comes_back() {
        let taken = Taken::<64>::new();
        assert_eq!([10, 20, 1].map(|size| taken.take(size)), [Some(0), Some(16), Some(48)]);
        taken.give_back(16, 20);
        assert_eq!(taken.take(1), None);
        taken.give_back(48, 1);
        assert_eq!(taken.take(1), Some(48));
        // In the reverse order, all of it comes back.
        for (offset, size) in [(48, 1), (16, 20), (0, 10)] {
            taken.give_back(offset, size);
        }
        assert_eq!(taken.take(64), Some(0));
    }

    #[test]
    fn only_the_last_allocation_grows_where_it_is() {
        let taken = Taken::<64>::new();
        assert_eq!([16, 16].map(|size| taken.take(size)), [Some(0), Some(16)]);
        assert!(!taken.resize(0, 16, 17));
        assert!(taken.resize(16, 16, 40) && taken.resize(16, 40, 48));
        assert!(!taken.resize(16, 48, 49) && !taken.resize(16, 48, usize::MAX));
        assert_eq!(taken.take(1), None);
    }

    #[test]
    fn every_allocation_shrinks_where_it_is() {
        let taken = Taken::<64>::new();
        assert_eq!([32, 32].map(|size| taken.take(size)), [Some(0), Some(32)]);
        assert!(taken.resize(0, 32, 1));
        assert_eq!(taken.take(1), None);
        assert!(taken.resize(32, 32, 3));
        assert_eq!(taken.take(16), Some(48));
        // The end of the first one is lost, but nothing after it comes back with it.
        taken.give_back(0, 1);
        assert_eq!(taken.take(1), None);
    }

    /// Bytes of an allocator, all of which have the same value.
    struct Filled {
        start: *mut u8,
        layout: Layout,
        value: u8,
    }

    impl Filled {
        fn new(arena: &impl GlobalAlloc, size: usize, align: usize, value: u8) -> Filled {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: The tests ask for no allocation without bytes.
            Filled { start: unsafe { arena.alloc(layout) }, layout, value }.filled()
        }

        fn filled(self) -> Filled {
            assert!(!self.start.is_null() && self.start.addr().is_multiple_of(self.layout.align()), "{:?}", self.layout);
            // SAFETY: The allocation has this size.
            unsafe { self.start.write_bytes(self.value, self.layout.size()) };
            self
        }

        /// Asserts that nothing else was written into the first bytes.
        fn expect(&self, size: usize) {
            // SAFETY: All bytes were written when the allocation was made, or before it was moved.
            let bytes = unsafe { std::slice::from_raw_parts(self.start, size) };
            assert!(bytes.iter().all(|byte| *byte == self.value), "{:?} of {} has {bytes:?}", self.layout, self.value);
        }

        fn resized(self, arena: &impl GlobalAlloc, new_size: usize) -> Filled {
            self.expect(self.layout.size());
            let layout = Layout::from_size_align(new_size, self.layout.align()).unwrap();
            // SAFETY: The allocation is of this arena and has this layout. The new size is not zero.
            let start = unsafe { arena.realloc(self.start, self.layout, new_size) };
            let moved = Filled { start, layout, value: self.value };
            moved.expect(new_size.min(self.layout.size()));
            moved.filled()
        }

        fn free(self, arena: &impl GlobalAlloc) {
            self.expect(self.layout.size());
            // SAFETY: The allocation is of this arena and has this layout.
            unsafe { arena.dealloc(self.start, self.layout) };
        }
    }

    #[test]
    fn what_does_not_fit_comes_from_the_system() {
        let arena = Arena::<64>::new();
        let is_in_region = |filled: &Filled| arena.offset_of(filled.start).is_some();
        let (first, large, aligned) =
            (Filled::new(&arena, 48, 1, 1), Filled::new(&arena, 17, 1, 2), Filled::new(&arena, 8, 32, 3));
        assert_eq!([&first, &large, &aligned].map(is_in_region), [true, false, false]);
        let last = Filled::new(&arena, 16, 16, 4);
        assert!(is_in_region(&last));
        // The last one outgrows the region and leaves its place to another.
        let outgrown = last.resized(&arena, 17);
        assert!(!is_in_region(&outgrown));
        let next = Filled::new(&arena, 1, 1, 5);
        assert!(is_in_region(&next));
        // One that does not fit any more does not come back when it becomes smaller.
        let small = large.resized(&arena, 1);
        assert!(!is_in_region(&small));
        for filled in [first, outgrown, next, small, aligned] {
            filled.free(&arena);
        }
    }

    #[test]
    fn zeroed_allocations_are_zeros_where_others_were() {
        let arena = Arena::<64>::new();
        let used = Filled::new(&arena, 64, 1, 255);
        let start = used.start;
        used.free(&arena);
        let layout = Layout::from_size_align(64, 1).unwrap();
        // SAFETY: The layout has 64 bytes.
        let zeroed = Filled { start: unsafe { arena.alloc_zeroed(layout) }, layout, value: 0 };
        assert_eq!(zeroed.start, start);
        zeroed.free(&arena);
    }

    /// Allocates, resizes and frees in an order that looks random.
    #[test]
    fn allocations_keep_their_bytes_whatever_happens_to_others() {
        let mut seed = 1_u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            usize::try_from(seed >> 8).unwrap() % below
        };
        // How many are from the system, and how many from the region.
        let mut counts = [0, 0];
        for _ in 0..40 {
            let arena = Arena::<4096>::new();
            let mut all: Vec<Filled> = Vec::new();
            for turn in 0..500 {
                if all.len() < 4 || random(2) == 0 {
                    let value = u8::try_from(turn % 251).unwrap();
                    let filled = Filled::new(&arena, 1 + random(100), 1 << random(7), value);
                    counts[usize::from(arena.offset_of(filled.start).is_some())] += 1;
                    all.push(filled);
                    continue;
                }
                let filled = all.swap_remove(random(all.len()));
                match random(2) {
                    0 => filled.free(&arena),
                    _ => all.push(filled.resized(&arena, 1 + random(200))),
                }
            }
            all.into_iter().for_each(|filled| filled.free(&arena));
        }
        assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
    }
}
