//! What a thread does when it ends: a destructor of a thread-local.

use std::cell::RefCell;

struct AtEnd(Vec<Box<dyn FnOnce()>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|call| call());
    }
}

thread_local! {
    static AT_END: RefCell<AtEnd> = const { RefCell::new(AtEnd(Vec::new())) };
}

/// Has this thread call it at its end.
pub fn at_thread_end(call: impl FnOnce() + 'static) {
    AT_END.with_borrow_mut(|at_end| at_end.0.push(Box::new(call)));
}
