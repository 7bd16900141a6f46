//! In which order do the destructors of a thread's thread-locals run?
//!
//! Relied on in `crates/core/src/lane/thread.rs` (`begin`): in the reverse order of their first use, so
//! that of the first one that a thread of the lane uses runs last. It counts the thread out.
//! Without this `shutdown` resolves, and the program may end, in the middle of a destructor of
//! the user's. (`tests/shutdown/thread_locals.rs` has that case.)

use std::cell::{Cell, OnceCell};
use std::sync::mpsc::{self, Sender};
use std::thread;

use crate::support::time_limit;

struct Tells(&'static str, Sender<&'static str>);

impl Drop for Tells {
    fn drop(&mut self) {
        self.1.send(self.0).unwrap();
    }
}

thread_local! {
    static A: OnceCell<Tells> = const { OnceCell::new() };
    static B: OnceCell<Tells> = const { OnceCell::new() };
    /// Made at its first use.
    static LAZY: OnceCell<Tells> = OnceCell::from(Tells("lazy", LAZY_TELLS.take().unwrap()));
    static LAZY_TELLS: Cell<Option<Sender<&'static str>>> = const { Cell::new(None) };
}

#[test]
fn in_the_reverse_order_of_their_first_use() {
    let _limit = time_limit();
    for a_is_first in [true, false] {
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let set = |cell: &OnceCell<_>, name| {
                assert!(cell.set(Tells(name, tell.clone())).is_ok());
            };
            let a = || A.with(|cell| set(cell, "a"));
            let b = || B.with(|cell| set(cell, "b"));
            if a_is_first {
                a();
                b();
            } else {
                b();
                a();
            }
            // Neither a later use nor the end of the thread's function changes it.
            A.with(|_| ());
            LAZY_TELLS.set(Some(tell.clone()));
            LAZY.with(|_| ());
        });
        thread.join().unwrap();
        let order: Vec<_> = told.iter().collect();
        let reversed = if a_is_first { ["b", "a"] } else { ["a", "b"] };
        assert_eq!(order[0], "lazy");
        assert_eq!(order[1..], reversed);
    }
}
