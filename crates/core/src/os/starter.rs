//! The starter thread, which spawns the crate's threads for one that is niced.
//!
//! A thread inherits from the one that spawns it: its nice value, its CPU mask, its signal mask,
//! its scheduling policy. Without a privilege it can only raise the nice value. But a lane may be
//! built inside a job of another lane, or on a thread of real time. So one thread per process is
//! started with the first lane, and keeps what the thread had that built it. A thread of another nice
//! value, or of an unusual policy, has the starter spawn. What is born there takes the CPU mask of its
//! requester; its signal mask and its policy are the starter's. All others spawn their threads
//! themselves.
//!
//! So a lane runs on the cores of the thread that built it, with the signals that this one has
//! blocked: it spawns the control thread, and the launcher, which spawns the workers.

use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::{io, process};

use super::platform;

type Request = Box<dyn FnOnce() + Send>;

#[derive(Clone)]
struct Starter {
    /// A forked child has no starter thread and must start its own.
    process: u32,
    requests: Sender<Request>,
    nice: i32,
}

static STARTER: Mutex<Option<Starter>> = Mutex::new(None);

/// Spawns a thread. It has the CPU mask of the calling thread, and the nice value of the starter.
pub(crate) fn spawn(
    name: impl Into<String>,
    main: impl FnOnce() + Send + 'static,
) -> io::Result<Thread> {
    let thread = thread::Builder::new().name(name.into());
    let starter = starter()?;
    if platform::nice() == starter.nice && platform::odd_policy().is_none() {
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

/// The nice value that new threads start with.
pub(crate) fn base_nice() -> io::Result<i32> {
    Ok(starter()?.nice)
}

fn starter() -> io::Result<Starter> {
    let mut starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
    let process = process::id();
    if let Some(own) = starter.as_ref().filter(|it| it.process == process) {
        return Ok(own.clone());
    }
    let (requests, receiver) = mpsc::channel::<Request>();
    let thread = thread::Builder::new().name("twolane-starter".to_owned());
    thread.spawn(|| receiver.into_iter().for_each(|request| request()))?;
    let started = Starter {
        process,
        requests,
        nice: platform::nice(),
    };
    Ok(starter.insert(started).clone())
}
