//! A value that any thread may be the last to hold, and that is dropped on the lane.

use std::mem;

use crate::lane::Level;
use crate::panics;
use crate::task::{Schedule, closure};

/// Never refuses: what a closed lane is given, its reaper drops. After the lane's end it is the
/// calling thread.
#[track_caller]
pub(crate) fn drop_on_lane<T: Send + 'static>(level: &Level, value: T) {
    if !mem::needs_drop::<T>() || level.is_own_worker() {
        return panics::drop_quietly("a destructor on the CPU lane", value);
    }
    submit(level, Box::new(value));
}

/// Its box hides the value's type: all such values share the code of their job.
#[track_caller]
fn submit(level: &Level, value: Box<dyn Send>) {
    super::take_on(level, None, None, closure(move || drop(value))).detach_quietly();
}
