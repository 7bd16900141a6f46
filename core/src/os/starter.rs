//! The starter thread, from which all other threads of the crate descend.
//!
//! A thread inherits the nice value of the thread that spawns it, and without a
//! privilege it can only raise that value. But a lane may be built inside a job of
//! another lane. So one thread per process, started with the first lane, spawns the others. Whatever it spawns
//! starts with the nice value of the thread that built the first lane.
//!
//! A thread also inherits its CPU mask, and can change that at will. A thread that is
//! spawned here takes the mask of the thread that requested it, as if that one had spawned
//! it. So a lane runs on the cores of the thread that built it: that thread requests the
//! control thread, and the launcher, which spawns the workers.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};

use super::{cpu_mask, nice};

struct SpawnRequest {
    name: String,
    main: Box<dyn FnOnce() + Send>,
    reply: Sender<io::Result<()>>,
}

struct Starter {
    /// A forked child has no starter thread and must start its own.
    process: u32,
    requests: Sender<SpawnRequest>,
    nice: i32,
}

static STARTER: Mutex<Option<Starter>> = Mutex::new(None);

/// Spawns a thread from the starter thread. It has the CPU mask of the calling thread.
pub(crate) fn spawn(name: String, main: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (reply, outcome) = mpsc::channel();
    let request = SpawnRequest {
        name,
        main: Box::new(cpu_mask::hand_down(main)),
        reply,
    };
    with_starter(|starter| starter.requests.send(request).is_ok())?;
    outcome
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("the starter of threads is gone")))
}

/// The same for a thread that others unpark.
pub(crate) fn spawn_parker(name: &str, main: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    let (me, started) = mpsc::channel();
    spawn(name.to_owned(), move || {
        let _ = me.send(thread::current());
        main();
    })?;
    started.recv().map_err(io::Error::other)
}

/// The nice value that new threads start with.
pub(crate) fn base_nice() -> io::Result<i32> {
    with_starter(|starter| starter.nice)
}

fn with_starter<R>(f: impl FnOnce(&Starter) -> R) -> io::Result<R> {
    let mut starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if starter.as_ref().is_none_or(|s| s.process != process) {
        *starter = Some(Starter::start(process)?);
    }
    Ok(f(starter.as_ref().expect("it was started above")))
}

impl Starter {
    fn start(process: u32) -> io::Result<Self> {
        let (requests, receiver) = mpsc::channel::<SpawnRequest>();
        thread::Builder::new()
            .name("twolane-starter".to_owned())
            .spawn(move || {
                for SpawnRequest { name, main, reply } in receiver {
                    let born = thread::Builder::new().name(name).spawn(main);
                    // An error means that the requester no longer waits for the reply.
                    let _ = reply.send(born.map(drop));
                }
            })?;
        Ok(Self {
            process,
            requests,
            nice: nice::current_nice(),
        })
    }
}
