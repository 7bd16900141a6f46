//! The thread from which all others are born.
//!
//! A thread inherits the weight of the one that makes it, and weights only go
//! down. A lane may be built inside a job of another, or a priority be used
//! first from a niced thread. So one thread of the process, made with the first
//! lane, makes the others: whatever it starts has the weight that the maker of
//! that lane had.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::nice;

struct SpawnRequest {
    name: String,
    main: Box<dyn FnOnce() + Send>,
    reply: Sender<io::Result<()>>,
}

struct Starter {
    /// A fork leaves the child without it.
    process: u32,
    requests: Sender<SpawnRequest>,
    nice: i32,
}

static STARTER: Mutex<Option<Starter>> = Mutex::new(None);

/// Starts a thread.
pub(crate) fn spawn(name: String, main: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (reply, outcome) = mpsc::channel();
    let request = SpawnRequest {
        name,
        main: Box::new(main),
        reply,
    };
    with_starter(|starter| starter.requests.send(request).is_ok())?;
    outcome
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("the starter of threads is gone")))
}

/// Runs `f` on a new thread, or, if there is none to be had, here, and says so
/// to it.
pub(crate) fn run(name: String, f: impl FnOnce(io::Result<()>) + Send + 'static) {
    let f = Arc::new(Mutex::new(Some(f)));
    let run = move |born| {
        let f = f.lock().unwrap_or_else(PoisonError::into_inner).take();
        f.expect("it is run once")(born);
    };
    let main = run.clone();
    if let Err(error) = spawn(name, move || main(Ok(()))) {
        run(Err(error));
    }
}

/// The nice value that threads are born with.
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
                    // Nobody waits for it any more: that is theirs to know.
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
