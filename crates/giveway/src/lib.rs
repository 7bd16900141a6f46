//! Background threads that give way: they compute, and the threads that serve sockets answer as if
//! they did not.
//!
//! A thread that computes takes a core from a thread that answers. The kernel can tell the two
//! apart, if it is told: no privilege and no `unsafe` code is needed.
//!
//! | what | for |
//! |---|---|
//! | [`start`] | the threads of which the process has one: the first call of a program |
//! | [`Weight`] | the nice value, the slices, the idle class of the calling thread |
//! | [`spawn`] | a thread that does not inherit the weight of the one that starts it |
//! | [`Throttle`] | threads that pause before the process has used up its CPU quota |
//! | [`worker_threads`], [`Quota`] | how many threads a container pays for |
//! | [`Cores`] | threads of one kind that keep to different cores |
//! | [`tick_each`] | how often the kernel looks who should have a core, while threads that compute come and go |
//!
//! ```
//! use std::time::Duration;
//! use giveway::Weight;
//!
//! # fn main() -> std::io::Result<()> {
//! giveway::start()?; // first in `main`
//! std::thread::spawn(|| {
//!     Weight::raised_by(16).with_slice(Duration::from_millis(1)).apply()?;
//!     // .. compute
//! #   std::io::Result::Ok(())
//! });
//! # Ok(()) }
//! ```
//!
//! Linux first. On Windows a [`Weight`] is a priority, and on macOS there is [`cpu_time`]. All else
//! does nothing on other platforms, or returns an error that says so.
//!
//! The CPU lane of the crate `twolane` rests on this one, and knows more: queues, priorities,
//! cancellation, and how work comes back to a Tokio runtime.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod log;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(target_os = "macos", path = "macos.rs")]
#[cfg_attr(windows, path = "windows.rs")]
#[cfg_attr(
    not(any(target_os = "linux", target_os = "macos", windows)),
    path = "elsewhere.rs"
)]
mod platform;
mod process;
mod quota;
mod spread;
mod starter;
mod surroundings;
mod throttle;
mod ticker;
mod weight;

use std::time::Duration;

pub use process::start;
pub use quota::{Quota, worker_threads};
pub use spread::{Cores, Place};
pub use starter::spawn;
pub use surroundings::surroundings;
pub use throttle::{Claim, Meter, Throttle};
pub use ticker::tick_each;
pub use weight::Weight;

/// Tells that a thread wakes up for work: the process [ticks](tick_each) while threads come and go.
///
/// It costs a look at one byte.
///
/// # Examples
///
/// ```
/// let (work, queue) = std::sync::mpsc::channel::<fn()>();
/// # drop(work);
/// while let Ok(job) = queue.recv() {
///     giveway::note_activity();
///     job();
/// }
/// ```
#[inline]
pub fn note_activity() {
    ticker::note();
}

/// Returns the CPU time of the calling thread, where the platform tells it: on Linux and macOS.
///
/// # Examples
///
/// ```
/// let before = giveway::cpu_time();
/// let computed = giveway::cpu_time().zip(before).map(|(now, before)| now - before);
/// ```
pub fn cpu_time() -> Option<Duration> {
    platform::cpu_of_thread()
}

/// The README's code, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
