//! What a process has one of.

use std::io;

use crate::preemption;
use crate::starter;
use crate::surroundings;

/// Starts what the process has one of, if it has none yet, and returns
/// [the process's own](crate::base_nice) nice value.
///
/// The first call starts the thread `giveway-starter`, which [`spawn`](crate::spawn) uses. On Linux
/// 6.13 and later it starts `giveway-preempt` (see [`preemption`](crate::preemption())), and it
/// looks at the [`surroundings`](crate::surroundings()). Call it on a thread that is not niced,
/// before others: [`Weight::apply`](crate::Weight::apply) calls it, too.
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
    let base_nice = starter::base_nice()?;
    preemption::start()?;
    surroundings::detect(base_nice);
    Ok(base_nice)
}
