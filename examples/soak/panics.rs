//! Planned panics, which are not printed, and all others, each of which is a failure:
//! also one that the lane catches and only logs.

use std::any::Any;
use std::panic;
use std::sync::{Arc, Mutex};

use super::kinds::Payload;

/// A payload that is not text.
struct Planned(u32);

/// One whose destructor panics.
struct Explosive;

impl Drop for Explosive {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("soak: the destructor of a payload");
        }
    }
}

pub fn panic_with(payload: Payload, id: u32) -> ! {
    match payload {
        Payload::Str => panic!("soak: planned"),
        Payload::String => panic!("soak: job {id}"),
        Payload::Value => panic::panic_any(Planned(id)),
        Payload::Explosive => panic::panic_any(Explosive),
    }
}

/// What Tokio says to a job that comes to a timer while its runtime goes.
fn is_of_a_dying_runtime(text: &str) -> bool {
    text.contains("is being shutdown")
}

fn text_of(payload: &dyn Any) -> Option<&str> {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// Whether job `id` may have panicked with that.
pub fn is_planned_for(payload: &dyn Any, id: u32) -> bool {
    match text_of(payload) {
        Some(text) => {
            let names_one = text.strip_prefix("soak: job ");
            (text.starts_with("soak: ") || is_of_a_dying_runtime(text))
                && names_one.is_none_or(|named| named == id.to_string())
        }
        None => payload.downcast_ref::<Planned>().is_some_and(|p| p.0 == id),
    }
}

fn is_planned(payload: &dyn Any) -> bool {
    match text_of(payload) {
        Some(text) => text.starts_with("soak: ") || is_of_a_dying_runtime(text),
        None => payload.is::<Planned>() || payload.is::<Explosive>(),
    }
}

/// Panics that were not planned.
pub struct Unplanned(Arc<Mutex<Vec<String>>>);

impl Unplanned {
    pub fn install_hook() -> Self {
        let unplanned = Arc::new(Mutex::new(Vec::new()));
        let found = unplanned.clone();
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if is_planned(panic.payload()) {
                return;
            }
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("?");
            let mut found = found.lock().expect("nothing panics in there");
            found.push(format!("an unplanned panic on thread {name}: {panic}"));
            before(panic);
        }));
        Self(unplanned)
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("nothing panics in there"))
    }
}
