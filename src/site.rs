//! [`Site`]: the place in the source from which work was submitted, or the name that the
//! user gave it. Reports and tables name work by it.
//!
//! A site is an index into one table of the process. So a job or a thread's record holds
//! four bytes, and a table of counters can be a vector. The table never shrinks. It has
//! room for [`MOST`] sites of at most [`LONGEST`] bytes; what comes later is [`Site::OTHER`].
//!
//! **No thread waits for another one.** An I/O thread looks a name up while a niced thread
//! that has no core is in the middle of an insertion. So an insertion takes an index, puts a
//! copy of the name there, and only then publishes the index by a compare-and-swap in a slot
//! of a hash table with open addressing. Up to that no other thread knows the index. If two
//! threads insert one name at the same moment, one of them finds the slot taken, and its own
//! index stays unused.
//!
//! Each thread remembers the indices of the places that it has looked up lately, so a
//! submission seldom computes a hash.

use std::cell::Cell;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::Location;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use Ordering::{Acquire, Relaxed, Release};

/// Names by mistake, one for each request say, must not fill the memory.
pub(crate) const MOST: usize = 4_096;

/// In bytes. A longer name is cut.
const LONGEST: usize = 256;
const CUT: &str = "…";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site(u32);

#[derive(Clone, Copy)]
enum Name<'a> {
    Place(&'static Location<'static>),
    Given(&'a str),
}

/// By index. A name is set by the thread that has taken the index, so no `set` ever waits.
static NAMES: [OnceLock<Name<'static>>; MOST] = [const { OnceLock::new() }; MOST];

/// How many indices are taken. The first one is that of [`Site::OTHER`].
static TAKEN: AtomicUsize = AtomicUsize::new(1);

/// The index of a name, or 0: the first of these from the name's hash on.
static SLOTS: [AtomicU32; 2 * MOST] = [const { AtomicU32::new(0) }; 2 * MOST];

impl Name<'_> {
    /// By file and line, as they are shown: two calls on one line are one site.
    fn key(&self) -> (&str, u32) {
        match self {
            Self::Place(place) => (place.file(), place.line()),
            Self::Given(name) => (name, 0),
        }
    }

    fn first_slot(&self) -> usize {
        let mut hasher = DefaultHasher::new();
        // Addresses differ from process to process. So no client makes up names that share a
        // slot.
        ptr::from_ref(&SLOTS).hash(&mut hasher);
        self.key().hash(&mut hasher);
        hasher.finish() as usize % SLOTS.len()
    }

    /// Copies the name. `None` if the table is full.
    fn take_index(self) -> Option<u32> {
        // Relaxed: the numbers order nothing. The first look keeps them from wrapping around.
        if TAKEN.load(Relaxed) >= MOST {
            return None;
        }
        let index = TAKEN.fetch_add(1, Relaxed);
        let kept = match self {
            Self::Place(place) => Name::Place(place),
            Self::Given(name) => Name::Given(Box::leak(name.into())),
        };
        NAMES.get(index)?.set(kept).ok()?;
        Some(index as u32)
    }

    fn site(self) -> Site {
        let mut slot = self.first_slot();
        let mut own = None;
        // Ends: half of the slots are free, at least.
        loop {
            // Acquire, with Release below: the name is there with its index.
            let index = match SLOTS[slot].load(Acquire) {
                0 => {
                    own = own.or_else(|| self.take_index());
                    let Some(index) = own else {
                        return Site::OTHER;
                    };
                    let slot = &SLOTS[slot];
                    match slot.compare_exchange(0, index, Release, Acquire) {
                        Ok(_) => return Site(index),
                        Err(other) => other,
                    }
                }
                index => index,
            };
            let known = NAMES[index as usize].get();
            if known.is_some_and(|known| known.key() == self.key()) {
                return Site(index);
            }
            slot = (slot + 1) % SLOTS.len();
        }
    }
}

/// How many places a thread remembers: a power of two.
const REMEMBERED: usize = 64;

thread_local! {
    /// By address. The compiler may keep a place at several addresses; the table compares
    /// the places themselves.
    static LATELY: [Cell<(usize, u32)>; REMEMBERED] =
        const { [const { Cell::new((0, 0)) }; REMEMBERED] };
}

impl Site {
    /// All sites for which the table has no room.
    pub(crate) const OTHER: Self = Self(0);

    /// The caller of the function that calls this, if that is `#[track_caller]`.
    #[track_caller]
    pub(crate) fn caller() -> Self {
        Self::of(Location::caller())
    }

    pub(crate) fn of(place: &'static Location<'static>) -> Self {
        let address = ptr::from_ref(place) as usize;
        // A `Location` takes some 24 bytes.
        let slot = (address / 8) % REMEMBERED;
        let lookup = |lately: &[Cell<(usize, u32)>; REMEMBERED]| {
            let (of, index) = lately[slot].get();
            if of == address {
                return Self(index);
            }
            let site = Name::Place(place).site();
            lately[slot].set((address, site.0));
            site
        };
        LATELY.with(lookup)
    }

    pub(crate) fn named(name: &str) -> Self {
        if name.len() <= LONGEST {
            return Name::Given(name).site();
        }
        let mut ends = (0..=LONGEST - CUT.len()).rev();
        let end = ends.find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        Name::Given(&format!("{}{CUT}", &name[..end])).site()
    }

    pub(crate) fn index(self) -> u32 {
        self.0
    }

    /// Of an index that [`index`](Self::index) has returned.
    pub(crate) fn from_index(index: u32) -> Self {
        Self(index)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES[self.0 as usize].get() {
            None => f.write_str("other"),
            Some(Name::Place(place)) => write!(f, "{}:{}", place.file(), place.line()),
            Some(Name::Given(name)) => f.write_str(name),
        }
    }
}

/// A name as it is printed: without what would end a line, or move a terminal's cursor.
pub(crate) fn printed(name: &str) -> String {
    let mut printed = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            printed.extend(c.escape_default());
        } else {
            printed.push(c);
        }
    }
    printed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_told_apart() {
        let one = || Site::caller();
        assert_eq!(one(), one());
        let one = one();
        let three = Site::caller();
        assert_ne!(one, three);
        let pair = [Site::caller(), Site::caller()];
        assert_eq!(pair[0], pair[1], "they are shown as one");
        assert!(three.to_string().contains("site.rs:"), "{three}");
        assert_eq!(Site::named("decode"), Site::named("decode"));
        assert_ne!(Site::named("decode"), Site::named("encode"));
        assert_eq!(Site::named("decode").to_string(), "decode");
        assert_eq!(Site::OTHER.to_string(), "other");
        assert_eq!(Site::from_index(three.index()), three);
    }

    /// No other thread sees how far a thread has got that stops in the middle of an insertion,
    /// for want of a core, say. (Once, it held the table's lock.)
    #[test]
    fn an_insertion_that_stops_holds_up_no_other_one() {
        let stopped = || Name::Given("stopped").take_index().unwrap();
        let (one, two) = (stopped(), stopped());
        let site = Site::named("stopped");
        assert_eq!(Site::named("stopped"), site);
        assert!(site.0 != one && site.0 != two);
        assert_eq!(site.to_string(), "stopped");
        assert_ne!(Site::named("another"), site);
    }

    #[test]
    fn insertions_at_the_same_moment_agree() {
        const THREADS: usize = 4;
        const NAMES: usize = 100;
        let barrier = std::sync::Barrier::new(THREADS);
        let insert = || {
            let name = |n| {
                barrier.wait();
                let name = format!("at the same moment, {n}");
                let site = Site::named(&name);
                assert_eq!(site.to_string(), name);
                site
            };
            (0..NAMES).map(name).collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let threads = [(); THREADS].map(|()| scope.spawn(insert));
            let [first, rest @ ..] = threads.map(|thread| thread.join().unwrap());
            assert!(rest.iter().all(|sites| *sites == first));
        });
    }
}
