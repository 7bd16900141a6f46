//! The starter thread, which spawns threads for one that is niced.
//!
//! A thread inherits from the one that spawns it: its nice value, its CPU mask, its signal mask,
//! its scheduling policy. Without a privilege it can only raise the nice value. But a pool may be
//! built on a thread that gives way, or on one of real time. So `start` starts one thread per
//! process, which keeps what the calling thread had. A thread of another nice value,
//! or of an unusual policy, or one that may have a slice of its own, has the starter spawn. What is
//! born there takes the CPU mask of its requester; its signal mask and its policy are the starter's.
//! All others spawn their threads themselves.
//!
//! A thread that has inherited a slice knows nothing of it, and the kernel tells it in a file that
//! many lack. So from the first slice on that leaves a nice value as it is, the starter spawns all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::{io, process};

use crate::platform;

type Request = Box<dyn FnOnce() + Send>;

#[derive(Clone)]
struct Starter {
    /// A forked child has no starter thread and must start its own.
    process: u32,
    requests: Sender<Request>,
    nice: i32,
}

static STARTER: Mutex<Option<Starter>> = Mutex::new(None);

/// A thread of the process's own nice value has got a slice: any other one may have inherited it.
/// Relaxed: what a thread has inherited happened before it began.
pub(crate) static MAY_HAVE_SLICE: AtomicBool = AtomicBool::new(false);

/// Spawns a thread that does not inherit the weight of the calling one.
///
/// Use it for a pool, or a thread that serves sockets, that may be started on a thread which gives
/// way: a thread inherits the nice value of the thread that spawns it, and cannot lower it again.
/// The new one has the [process's own](crate::start) nice value, and the CPU mask of the calling
/// thread. If the calling thread has that nice value and the usual scheduling policy, it spawns the
/// new one itself, which then has its signal mask, too: until a
/// [slice](crate::Weight::with_slice) has been set at that nice value, on any thread, since its
/// children inherit it and cannot tell. From then on, as on any other thread, the signal mask is
/// that of the thread which called [`start`](crate::start).
///
/// # Errors
///
/// [`start`](crate::start) was not called before, or the operating system gives no thread.
///
/// # Panics
///
/// If the name contains a NUL byte, as [`std::thread::Builder::name`].
///
/// # Examples
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// giveway::start()?;
/// std::thread::spawn(|| {
///     giveway::Weight::raised_by(16).apply()?;
///     // At the process's own nice value, though it is born here.
///     giveway::spawn("acceptor", || { /* serve */ })
/// })
/// .join()
/// .unwrap()?;
/// # Ok(()) }
/// ```
pub fn spawn(name: impl Into<String>, main: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    let name = name.into();
    // Here, and not on the starter.
    assert!(!name.contains('\0'), "a thread's name has no NUL: {name:?}");
    let thread = thread::Builder::new().name(name);
    let starter = starter()?;
    let is_usual = !MAY_HAVE_SLICE.load(Relaxed) && platform::odd_policy().is_none();
    if is_usual && platform::nice() == starter.nice {
        return Ok(thread.spawn(main)?.thread().clone());
    }
    let (reply, born) = mpsc::channel();
    let main = platform::hand_down_cores(main);
    let request = Box::new(move || {
        // An error means that the requester no longer waits for the reply.
        let _ = reply.send(thread.spawn(main).map(|born| born.thread().clone()));
    });
    // An error: `recv` returns one as well.
    let _ = starter.requests.send(request);
    let born = born.recv();
    born.unwrap_or_else(|_| Err(io::Error::other("the starter of threads is gone")))
}

/// The process's own nice value.
pub(crate) fn base_nice() -> io::Result<i32> {
    Ok(starter()?.nice)
}

/// Has the starter do it, if there is one. What takes long delays the births of threads.
pub(crate) fn run(request: impl FnOnce() + Send + 'static) {
    if let Ok(starter) = starter() {
        let _ = starter.requests.send(Box::new(request));
    }
}

fn starter() -> io::Result<Starter> {
    const NONE: &str = "giveway::start was not called in this process: call it first, on a thread that is not niced";
    let own = lock().clone().filter(|it| it.process == process::id());
    own.ok_or_else(|| io::Error::other(NONE))
}

fn lock() -> MutexGuard<'static, Option<Starter>> {
    STARTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the starter, if this process has none.
pub(crate) fn start() -> io::Result<()> {
    let mut starter = lock();
    let process = process::id();
    if starter.as_ref().is_none_or(|it| it.process != process) {
        let (requests, receiver) = mpsc::channel::<Request>();
        let thread = thread::Builder::new().name("giveway-starter".to_owned());
        let serve = |request: Request| _ = catch_unwind(AssertUnwindSafe(request));
        thread.spawn(move || receiver.into_iter().for_each(serve))?;
        *starter = Some(Starter {
            process,
            requests,
            nice: platform::nice(),
        });
    }
    Ok(())
}
