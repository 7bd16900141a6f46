//! What the adapters of `twolane`, and the packages for engines, need of a lane in addition.
//!
//! No part of the interface: a release may change it without a word.

use std::panic::Location;
use std::time::Instant;

use stallwatch::Name;

use crate::admission::{self, Permit};
use crate::error::JoinError;
pub use crate::error::late_reader;
use crate::handle::Handle;
use crate::lane::control::{Due, Message};
use crate::panics;
pub use crate::panics::{drop_quietly, run_hook};
use crate::task::Task;
pub use crate::task::ticker::{at_each_tick, has_passed, ticks as now};
pub use crate::task::worker::cancel_job;

/// A handle whose jobs go by that place in `call_sites`, unless this one has a name: for a library,
/// whose own line submits the jobs of all its callers.
pub fn at(handle: &Handle, caller: &'static Location<'static>) -> Handle {
    match handle.submitter.site {
        Name::OTHER => handle.with(|submitter| submitter.site = Name::of(caller)),
        _ => handle.clone(),
    }
}

/// The handle by which the permit submits.
pub fn handle_of(permit: &Permit) -> Handle {
    Handle::new(permit.submitter.clone())
}

/// A handle whose jobs have no deadline: others wait for them, whatever the time of the request
/// that began them.
pub fn without_deadline(handle: &Handle) -> Handle {
    Handle::new(handle.submitter.clone().without_deadline())
}

/// The error by which a submission is refused for good, if the lane is closed or its I/O runtime
/// gone.
pub fn close_error(handle: &Handle) -> Option<JoinError> {
    handle.submitter.check_open().err().map(JoinError::from)
}

/// Whether the lane was shut down, or is about to be.
pub fn is_closed(handle: &Handle) -> bool {
    handle.submitter.levels.lane.is_closed()
}

/// Calls `f`, and makes its panic an error.
pub fn catch<R>(f: impl FnOnce() -> R) -> Result<R, JoinError> {
    panics::catch(f).map_err(JoinError::of_unwinding)
}

/// Lets the job run on, as [`Task::detach`], and without a warning if it does not run. A panic goes
/// to the log all the same.
pub fn detach_quietly<T>(task: Task<T>) {
    task.detach_quietly();
}

/// Drops a value on the lane: there and then on a thread of its priority, else by a job of its own,
/// which needs no permit. After a shutdown the shutdown drops it, on a thread of its own; and the
/// calling thread, once the lane has ended. A panic of the destructor goes to the log.
#[track_caller]
pub fn drop_on_lane<T: Send + 'static>(handle: &Handle, value: T) {
    admission::drop_on_lane(&handle.submitter, value);
}

/// Has the lane's control thread call it then, unless the lane has ended.
pub fn call_at(handle: &Handle, at: Instant, call: impl FnOnce() + Send + 'static) {
    let call = Message::At(at, Due::Call(Box::new(call)));
    let _ = handle.submitter.levels.lane.send_control(call);
}
