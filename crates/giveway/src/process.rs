//! What a process has one of.

use std::io;

use crate::starter;
use crate::surroundings;
use crate::ticker;

/// Starts the threads of which the process has one, if it has none yet, and returns the process's
/// own nice value: that of the thread which made the first call.
///
/// [`Weight::apply`](crate::Weight::apply) and [`spawn`](crate::spawn) need it: call it first in
/// `main`, on a thread that is not niced. A forked child calls it again.
///
/// The first call starts the thread `giveway-starter`, which [`spawn`](crate::spawn) uses, and looks
/// at the [`surroundings`](crate::surroundings()). On Linux 6.12 and later it starts
/// `giveway-ticker`, which sleeps while the process rests. At times that thread has one for each core,
/// `giveway-tick`, and for moments two called `giveway-probe` (see
/// [`tick_each`](crate::tick_each)). No other function of this crate starts a thread unasked.
///
/// # Errors
///
/// The operating system gives no thread.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     giveway::start()?;
///     // ..
///     Ok(())
/// }
/// ```
pub fn start() -> io::Result<i32> {
    starter::start()?;
    let base_nice = starter::base_nice()?;
    ticker::start()?;
    surroundings::detect(base_nice);
    Ok(base_nice)
}
