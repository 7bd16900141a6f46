//! What the public types can be used for: auto-traits, which change without
//! notice, and `Debug`, which must help and never panic.

use std::error::Error;
use std::fmt::Debug;
use std::future::{Pending, pending};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

use crate::shows::shows;
use crate::support::{Lanes, gives, lanes};
use futures::stream::{self, Stream, StreamExt};
use static_assertions::{assert_impl_all, assert_not_impl_any};
use twolane_core::future::{InCpuContext, Reserve, Shutdown, Yield};
use twolane_core::io::{BridgeError, Bridged};
use twolane_core::metrics::{CallSite, CallSites, DurationHistogram, Metrics};
use twolane_core::*;

// A service keeps a handle in its state and wraps its requests in a `catch_unwind`: that compiles
// with Tokio's types, and no panic can leave ours half-way either.
assert_impl_all!(tokio::task::JoinHandle<()>: UnwindSafe, RefUnwindSafe);

// Shared by every thread of a program.
assert_impl_all!(Handle: Clone, Debug, Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(CpuRuntime: Debug, Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Builder: Debug, Send, Sync, Unpin);
assert_impl_all!(Shutdown: Debug, Send, Sync, Unpin, Future);

// A task holds an output, or will: it is as Tokio's `JoinHandle`, and may be
// shared even if the output may not.
assert_impl_all!(Task<()>: Debug, Send, Sync, Unpin, Future, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Task<std::cell::Cell<u8>>: Send, Sync, Unpin);
assert_impl_all!(Task<std::marker::PhantomPinned>: Unpin);
assert_impl_all!(AbortHandle: Clone, Debug, Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(JobContext: Clone, Debug, Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);

// A place in a queue may wait and go anywhere.
assert_impl_all!(Reserve: Future, Debug, Send, Sync, Unpin);
assert_impl_all!(Permit: Debug, Send, Sync, Unpin);
assert_impl_all!(Metrics: Clone, Debug, Send, Sync, Unpin);
assert_impl_all!(DurationHistogram: Clone, Debug, Send, Sync, Unpin);
assert_impl_all!(CallSites: Clone, Debug, std::fmt::Display, Send, Sync, Unpin);
assert_impl_all!(CallSite: Clone, Debug, Send, Sync, Unpin);

// What it undoes is its thread's.
assert_impl_all!(EnterGuard<'static>: Debug);
assert_not_impl_any!(EnterGuard<'static>: Send, Sync, Clone);

assert_impl_all!(JoinError: Error, Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(NoCurrentHandle: Error, Clone, Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Cancelled: Error, Clone, Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(BridgeError: Error, Clone, Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(BuildError: Error, Send, Sync, Unpin);

// Futures and streams are what they carry.
assert_impl_all!(Bridged<u8>: Stream, Debug, Send, Sync, Unpin);
assert_impl_all!(Bridged<std::cell::Cell<u8>>: Send, Sync);
assert_not_impl_any!(Bridged<Rc<u8>>: Send, Sync);
assert_impl_all!(InCpuContext<Pending<()>>: Future, Debug, Send, Sync, Unpin);
assert_impl_all!(InCpuContext<stream::Pending<()>>: Stream, Debug, Send, Sync, Unpin);
assert_not_impl_any!(InCpuContext<Rc<u8>>: Send, Sync);
assert_not_impl_any!(InCpuContext<std::marker::PhantomPinned>: Unpin);
assert_impl_all!(Yield: Future, Debug, Send, Sync, Unpin);

/// One looks at `Debug` when something hangs: it tells the state, and works on
/// what has ended.
#[test]
fn debug_tells_the_state() {
    let Lanes { cpu, io } = lanes(2);
    let handle = cpu.handle().clone();
    cpu.handle().spawn_io(async {}).wait().unwrap();
    shows(&handle, &["Handle", "threads: 2", "closed: false"]);
    shows(&handle, &["io_lane_gone: Some("]);
    shows(&cpu, &["CpuRuntime", "closed: false"]);
    shows(&handle.enter(), &["EnterGuard"]);
    let mut task = cpu.spawn(pending::<()>());
    let abort = task.abort_handle();
    shows(&task, &["Task", "finished: false"]);
    shows(&abort, &["AbortHandle", "finished: false"]);
    task.abort();
    // It may be in its first poll just now, and ends with it.
    assert!(io.block_on(&mut task).unwrap_err().is_cancelled());
    shows(&task, &["finished: true"]);
    shows(&abort, &["finished: true"]);
    let inside = |job: &JobContext| shows(job, &["JobContext", "cancelled: false"]);
    let shown = handle.spawn_cpu_with(move |job| {
        inside(job);
        Ok(())
    });
    shown.wait().unwrap();
    let bridged = handle.stream_from_io(stream::pending::<u8>(), 77, |_| 1);
    shows(&bridged, &["Bridged", "buffered: 0", "limit: 77"]);

    let shutdown = cpu.shutdown();
    shows(&shutdown, &["Shutdown"]);
    shutdown.wait();
    shows(&handle, &["closed: true", "running: 0"]);
    drop(io);
    assert!(format!("{handle:?}").contains("io_lane_gone: Some(true)"));

    let settings = CpuRuntime::builder().worker_threads(3).thread_name("query");
    shows(&settings, &["Builder", "3", "query"]);
    shows(&in_cpu_context(pending::<()>()), &["InCpuContext"]);
    shows(&yield_if_due(), &["Yield"]);
    shows(&yield_now(), &["Yield"]);
}

/// `unwrap` prints `Debug`: it must tell what happened.
#[test]
fn debug_of_errors_tells_what_happened() {
    let Lanes { cpu, io } = lanes(1);
    let handle = cpu.handle().clone();
    let panicked = cpu.spawn_cpu(|| panic!("no such row")).wait();
    let panicked = panicked.unwrap_err();
    shows(&panicked, &["JoinError", "Panic", "no such row"]);
    let odd = cpu.spawn_cpu(|| std::panic::panic_any(7)).wait();
    shows(&odd.unwrap_err(), &["JoinError", "Panic", "not text"]);
    let task = cpu.spawn(pending::<()>());
    task.abort();
    shows(&task.wait().unwrap_err(), &["JoinError", "Cancelled"]);
    shows(&Handle::try_current().unwrap_err(), &["NoCurrentHandle"]);
    let parser = stream::poll_fn(|_| -> std::task::Poll<Option<u8>> { panic!("parser") });
    let mut bridged = handle.stream_from_io(parser, 1, |_| 1);
    let lost = io.block_on(bridged.next()).unwrap().unwrap_err();
    shows(&lost, &["BridgeError", "parser", "I/O"]);

    let nowhere = CpuRuntime::new().unwrap_err();
    shows(&nowhere, &["no Tokio runtime", "Builder::io_handle"]);
    let none = CpuRuntime::builder().worker_threads(0).build().unwrap_err();
    shows(&none, &["Builder::worker_threads(0)"]);
    let name = CpuRuntime::builder().thread_name("a\0b").build();
    shows(&name.unwrap_err(), &["Builder::thread_name", "a\\0b"]);

    cpu.shutdown().wait();
    shows(&cpu.spawn_cpu(gives(1)).wait().unwrap_err(), &["ShutDown"]);
    let Lanes { cpu, io } = lanes(1);
    drop(io);
    let refused = cpu.spawn_cpu(gives(1)).wait().unwrap_err();
    shows(&refused, &["IoRuntimeGone"]);
}
