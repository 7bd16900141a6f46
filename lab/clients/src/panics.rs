//! Panics are a result here: they are kept, not printed.

use std::panic;
use std::sync::{Mutex, PoisonError};

static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// From now on the process keeps the first panic's message instead of printing each.
pub fn keep() {
    panic::set_hook(Box::new(|panicked| {
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("?").to_owned();
        let said = panicked.payload_as_str().unwrap_or("?").to_owned();
        let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(format!("{said} (on {thread})"));
    }));
}

/// What the first one said since the last [`forget`], and on which thread.
pub fn first() -> Option<String> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

pub fn forget() {
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = None;
}
