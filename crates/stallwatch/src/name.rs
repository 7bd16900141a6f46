//! [`Name`]: a place in the source, or a text, as an index into one table of the process.
//!
//! So a thread's record holds four bytes for it, and a table of counters can be a vector. The
//! table never shrinks. It has room for [`Name::MOST`] names of at most [`LONGEST`] bytes; what
//! comes later is [`Name::OTHER`].
//!
//! **No thread waits for another one.** An I/O thread looks a name up while a niced thread
//! that has no core is in the middle of an insertion. So an insertion takes an index, puts a
//! copy of the name there, and only then publishes the index by a compare-and-swap in a slot
//! of a hash table with open addressing. Up to that no other thread knows the index. If two
//! threads insert one name at the same moment, one of them finds the slot taken, and its own
//! index stays unused.
//!
//! Each thread remembers the names of the places and spans that it has looked up lately, so it
//! seldom computes a hash.

use std::cell::Cell;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::Location;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use Ordering::{Acquire, Relaxed, Release};

/// In bytes. A longer name is cut.
const LONGEST: usize = 256;
const CUT: &str = "…";

/// A place in the source, or a text, by which reports name code.
///
/// It is an index into a table of the process, which has room for [`Name::MOST`] of them and
/// never shrinks: use a limited number of names, routes and not paths. Later ones are
/// [`Name::OTHER`].
///
/// # Examples
///
/// ```
/// use stallwatch::Name;
///
/// assert_eq!(Name::named("GET /users"), Name::named("GET /users"));
/// assert!(Name::caller().to_string().contains(".rs:"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(pub(crate) u32);

#[derive(Clone, Copy)]
enum Text<'a> {
    Place(&'static Location<'static>),
    Given(&'a str),
}

/// By index. A name is set by the thread that has taken the index, so no `set` ever waits.
static NAMES: [OnceLock<Text<'static>>; Name::MOST] = [const { OnceLock::new() }; Name::MOST];

/// How many indices are taken. The first one is that of [`Name::OTHER`].
static TAKEN: AtomicUsize = AtomicUsize::new(1);

/// The index of a name, or 0: the first of these from the name's hash on.
static SLOTS: [AtomicU32; 2 * Name::MOST] = [const { AtomicU32::new(0) }; 2 * Name::MOST];

impl Text<'_> {
    /// By file and line, as they are shown: two calls on one line are one name.
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
        (TAKEN.load(Relaxed) < Name::MOST).then_some(())?;
        let index = TAKEN.fetch_add(1, Relaxed);
        let kept = match self {
            Self::Place(place) => Text::Place(place),
            Self::Given(name) => Text::Given(Box::leak(name.into())),
        };
        NAMES.get(index)?.set(kept).ok()?;
        Some(index as u32)
    }

    fn name(self) -> Name {
        self.find(Self::take_index).unwrap_or(Name::OTHER)
    }

    /// Looks the name up. One that is not in the table goes there, by that index if there is one.
    fn find(self, new_index: impl Fn(Self) -> Option<u32>) -> Option<Name> {
        let mut slot = self.first_slot();
        let mut own = None;
        // Ends: half of the slots are free, at least.
        loop {
            // Acquire, with Release below: the name is there with its index.
            let index = match SLOTS[slot].load(Acquire) {
                0 => {
                    own = own.or_else(|| new_index(self));
                    match SLOTS[slot].compare_exchange(0, own?, Release, Acquire) {
                        Ok(_) => return own.map(Name),
                        Err(other) => other,
                    }
                }
                index => index,
            };
            let known = NAMES[index as usize].get();
            if known.is_some_and(|known| known.key() == self.key()) {
                return Some(Name(index));
            }
            slot = (slot + 1) % SLOTS.len();
        }
    }
}

/// How many names a thread remembers: a power of two.
const REMEMBERED: usize = 64;

thread_local! {
    /// By address. The compiler may keep a place at several addresses; the table compares
    /// the places themselves.
    static LATELY: [Cell<(usize, Name)>; REMEMBERED] =
        const { [const { Cell::new((0, Name::OTHER)) }; REMEMBERED] };
}

impl Name {
    /// The number of names that the table of the process has room for.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Name;
    ///
    /// let counts = vec![0_u64; Name::MOST];
    /// assert_eq!(counts[Name::named("resize").index() as usize], 0);
    /// ```
    pub const MOST: usize = 4_096;

    /// All names for which the table has no room. It is shown as `other`.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Name;
    ///
    /// assert_eq!(Name::OTHER.to_string(), "other");
    /// assert_ne!(Name::named("resize"), Name::OTHER);
    /// ```
    pub const OTHER: Self = Self(0);

    /// Returns the place that calls this, or the caller of a function that is
    /// `#[track_caller]`. It is shown as `src/main.rs:41`.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Name;
    ///
    /// #[track_caller]
    /// fn submit() -> Name {
    ///     Name::caller()
    /// }
    /// // The two calls are on one line.
    /// assert_eq!(submit(), Name::caller());
    /// ```
    #[track_caller]
    pub fn caller() -> Self {
        Self::of(Location::caller())
    }

    /// Returns this name, for one that comes from outside: once a quarter of the table is in use,
    /// only if it is there.
    #[cfg(feature = "spans")]
    pub(crate) fn named_while_few(name: &str) -> Option<Self> {
        let text = Text::Given(name);
        match TAKEN.load(Relaxed) > Self::MOST / 4 {
            true => text.find(|_| None),
            false => Some(Self::named(name)),
        }
    }

    /// Returns the name of a place.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    /// use stallwatch::Name;
    ///
    /// let place = Location::caller();
    /// assert_eq!(Name::of(place).to_string(), format!("{}:{}", place.file(), place.line()));
    /// ```
    pub fn of(place: &'static Location<'static>) -> Self {
        Self::remembered(place, || Text::Place(place).name())
    }

    /// Returns what `find` gives for this, which this thread may have asked for lately.
    pub(crate) fn remembered<T>(of: &'static T, find: impl FnOnce() -> Self) -> Self {
        let address = ptr::from_ref(of) as usize;
        LATELY.with(|lately| {
            let slot = &lately[(address / 8) % REMEMBERED];
            let (known, name) = slot.get();
            if known == address {
                return name;
            }
            let name = find();
            slot.set((address, name));
            name
        })
    }

    /// Returns this name. One that is longer than 256 bytes is cut, and ends in `…`.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Name;
    ///
    /// assert_eq!(Name::named("GET /users").to_string(), "GET /users");
    /// assert!(Name::named(&"long".repeat(100)).to_string().ends_with('…'));
    /// ```
    pub fn named(name: &str) -> Self {
        if name.len() <= LONGEST {
            return Text::Given(name).name();
        }
        let mut ends = (0..=LONGEST - CUT.len()).rev();
        let end = ends.find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        Text::Given(&format!("{}{CUT}", &name[..end])).name()
    }

    /// Returns its index in the table, below [`MOST`](Self::MOST).
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Name;
    ///
    /// let index = Name::named("resize").index();
    /// assert!((index as usize) < Name::MOST);
    /// ```
    pub fn index(self) -> u32 {
        self.0
    }

    /// Returns the name at this index, if there is one.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Name;
    ///
    /// let name = Name::named("resize");
    /// assert_eq!(Name::at(name.index()), Some(name));
    /// assert_eq!(Name::at(u32::MAX), None);
    /// ```
    pub fn at(index: u32) -> Option<Self> {
        let taken = NAMES.get(index as usize)?.get().is_some();
        (taken || index == Self::OTHER.0).then_some(Self(index))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES[self.0 as usize].get() {
            None => f.write_str("other"),
            Some(Text::Place(place)) => write!(f, "{}:{}", place.file(), place.line()),
            Some(Text::Given(name)) => f.write_str(name),
        }
    }
}

/// Returns a name as it is printed: control characters, and what else would end a line, are
/// escaped. So a name forges no line of a log.
///
/// # Examples
///
/// ```
/// assert_eq!(stallwatch::escaped("GET /\n"), "GET /\\n");
/// ```
pub fn escaped(name: &str) -> String {
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
    fn names_are_told_apart() {
        let one = || Name::caller();
        assert_eq!(one(), one());
        let one = one();
        let three = Name::caller();
        assert_ne!(one, three);
        let pair = [Name::caller(), Name::caller()];
        assert_eq!(pair[0], pair[1], "they are shown as one");
        assert!(three.to_string().contains("name.rs:"), "{three}");
        assert_eq!(Name::named("decode"), Name::named("decode"));
        assert_ne!(Name::named("decode"), Name::named("encode"));
        assert_eq!(Name::named("decode").to_string(), "decode");
        assert_eq!(Name::OTHER.to_string(), "other");
        assert_eq!(Name(three.index()), three);
    }

    /// No other thread sees how far a thread has got that stops in the middle of an insertion,
    /// for want of a core, say. (Once, it held the table's lock.)
    #[test]
    fn an_insertion_that_stops_holds_up_no_other_one() {
        let stopped = || Text::Given("stopped").take_index().unwrap();
        let (one, two) = (stopped(), stopped());
        let name = Name::named("stopped");
        assert_eq!(Name::named("stopped"), name);
        assert!(name.0 != one && name.0 != two);
        assert_eq!(name.to_string(), "stopped");
        assert_ne!(Name::named("another"), name);
    }

    #[test]
    fn insertions_at_the_same_moment_agree() {
        const THREADS: usize = 4;
        const NAMES: usize = 100;
        let barrier = std::sync::Barrier::new(THREADS);
        let insert = || {
            let name = |n| {
                barrier.wait();
                let text = format!("at the same moment, {n}");
                let name = Name::named(&text);
                assert_eq!(name.to_string(), text);
                name
            };
            (0..NAMES).map(name).collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let threads = [(); THREADS].map(|()| scope.spawn(insert));
            let [first, rest @ ..] = threads.map(|thread| thread.join().unwrap());
            assert!(rest.iter().all(|names| *names == first));
        });
    }
}
