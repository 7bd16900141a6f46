//! [`Site`]: the place in the source from which work was submitted, or the name that the
//! user gave it. Reports and tables name work by it.
//!
//! A site is an index into one table of the process. So a job or a thread's record holds
//! four bytes, and a table of counters can be a vector. The table never shrinks. It has
//! room for [`MOST`] sites; what comes later is [`Site::OTHER`].
//!
//! Each thread remembers the indices of the places that it has looked up lately, so a
//! submission seldom takes the table's lock.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard};

/// Names by mistake, one for each request say, must not fill the memory.
pub(crate) const MOST: usize = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site(u32);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Name {
    Other,
    Place(&'static Location<'static>),
    Given(Arc<str>),
}

struct Table {
    names: Vec<Name>,
    /// By file and line, as they are shown: two calls on one line are one site.
    places: HashMap<(&'static str, u32), u32>,
    given: HashMap<Arc<str>, u32>,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    RwLock::new(Table {
        names: vec![Name::Other],
        places: HashMap::new(),
        given: HashMap::new(),
    })
});

fn table() -> RwLockReadGuard<'static, Table> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    fn insert(&mut self, name: Name) -> u32 {
        if self.names.len() == MOST {
            return Site::OTHER.0;
        }
        let index = self.names.len() as u32;
        match &name {
            Name::Place(place) => self.places.insert((place.file(), place.line()), index),
            Name::Given(given) => self.given.insert(given.clone(), index),
            Name::Other => None,
        };
        self.names.push(name);
        index
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
            let site = Self::look_up(place);
            lately[slot].set((address, site.0));
            site
        };
        LATELY.with(lookup)
    }

    #[cold]
    fn look_up(place: &'static Location<'static>) -> Self {
        let line = (place.file(), place.line());
        if let Some(&index) = table().places.get(&line) {
            return Self(index);
        }
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        match table.places.get(&line) {
            Some(&index) => Self(index),
            None => Self(table.insert(Name::Place(place))),
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        {
            let table = table();
            if let Some(&index) = table.given.get(name) {
                return Self(index);
            }
            // Names by mistake go on: they must not all wait for one another.
            if table.names.len() == MOST {
                return Self::OTHER;
            }
        }
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        match table.given.get(name) {
            Some(&index) => Self(index),
            None => Self(table.insert(Name::Given(name.into()))),
        }
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
        let name = table().names[self.0 as usize].clone();
        match name {
            Name::Other => f.write_str("other"),
            Name::Place(place) => write!(f, "{}:{}", place.file(), place.line()),
            Name::Given(name) => f.write_str(&name),
        }
    }
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

    #[test]
    fn other_threads_see_the_same_site() {
        let here = || Site::of(Location::caller());
        assert_eq!(here(), std::thread::spawn(here).join().unwrap());
    }
}
