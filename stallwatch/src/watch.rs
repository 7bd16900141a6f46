//! [`Watch`]: how a runtime is watched.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::detect::CLOSE_PACE;
use crate::log;
use crate::pool::Pool;
use crate::run::{Run, Settings};
use crate::stall::Stall;
use crate::watcher::Watcher;

/// Why a watch did not [start](Watch::start).
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The threshold is too low.
    Threshold {
        /// What [`Watch::threshold`] was given.
        asked: Duration,
        /// The lowest that is possible.
        min: Duration,
    },
    /// The name of the thread has a NUL.
    ThreadName {
        /// What [`Watch::thread_name`] was given.
        asked: String,
    },
    /// The thread could not be spawned.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threshold { asked, min } => write!(
                f,
                "Watch::threshold({asked:?}): the watch looks at a thread every {min:?} at best, and \
                 cannot tell less"
            ),
            Self::ThreadName { asked } => {
                write!(
                    f,
                    "Watch::thread_name({asked:?}): a thread's name has no NUL"
                )
            }
            Self::Thread(error) => write!(f, "the watch's thread could not be spawned: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Thread(error) => Some(error),
            _ => None,
        }
    }
}

/// How a runtime is watched.
///
/// What the watch can report depends on what it sees:
///
/// | around the code | computes | blocks |
/// |---|---|---|
/// | [`watch`](crate::watch), [`enter`](crate::enter), `WatchLayer` | named | named, with the call |
/// | a span, and `SpanWatch` | named | named, with the call |
/// | nothing | suspected, if all workers are stuck | reported without a name; waiting for a lock is suspected, if the runtime has a single worker and a probe waits |
///
/// A suspicion ([`Stall::is_certain`] is `false`) never has a name. It means that a probe of
/// the watch has waited for longer than the threshold, and that the worker has computed for
/// all that time. It may be one long poll or many short ones. A runtime with several workers
/// polls the probe on another one, so there a single worker that computes in such code is
/// not reported.
///
/// Spans and code without a name are only seen on threads that the watch knows to be workers,
/// since a probe ran there. This takes some seconds: a probe a second, and twenty a second while no
/// worker parks.
/// Only Linux tells whether a thread computes or blocks; elsewhere the last row is empty.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use std::time::Duration;
/// use stallwatch::Watch;
///
/// let watcher = Watch::new()
///     .threshold(Duration::from_millis(50))
///     .on_stall(|stall| eprintln!("{stall}"))
///     .start(&tokio::runtime::Handle::current())
///     .unwrap();
/// # let _ = watcher;
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a watch does nothing until it is started"]
pub struct Watch(Settings);

impl Watch {
    /// Returns a watch for which a poll may take 25 ms.
    ///
    /// It logs stalls as events of `tracing`, at the level `WARN`: each culprit once in ten
    /// seconds, and five a minute in all. The next line has the number of those that were left
    /// out, `suppressed`. They go to the subscriber of the thread that starts the watch, or else
    /// to that of the process.
    pub fn new() -> Self {
        Self(Settings {
            threshold: Duration::from_millis(25),
            on_stall: Vec::new(),
            on_probe: Vec::new(),
            pools: Vec::new(),
            name: "stallwatch".to_owned(),
        })
    }

    /// Sets how long a poll may take. Default: 25 ms.
    ///
    /// The watch looks every 20 ms, and every 10 ms at a poll that it has seen twice. So a poll
    /// that has a name is reported at most 30 ms after it has lasted that long, unless the
    /// machine is full or a hook is running. One that ends before may be missed. Calls in code
    /// without a name are looked for every 50 ms.
    ///
    /// At least 10 ms: with less, [`start`](Self::start) fails.
    pub fn threshold(mut self, threshold: Duration) -> Self {
        self.0.threshold = threshold;
        self
    }

    /// Adds a hook that the watch's thread calls once for each stall, while it lasts.
    ///
    /// It is called for those, too, that are not logged because there were too many. While it
    /// runs, the watch does not look: send what takes long to another thread. A panic of the
    /// hook is logged.
    ///
    /// With the feature `stacks`, it is called later for a stall that has a
    /// [stack](Stall::stack): by up to a second, or by two on a full machine.
    pub fn on_stall(mut self, hook: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.0.on_stall.push(Arc::new(hook));
        self
    }

    /// Adds a hook that is called with the delay of each probe: the time from its spawn to its
    /// poll, which is how long any task of the runtime waits now. Once a second, and up to twenty
    /// times a second while no worker parks.
    ///
    /// A worker of the runtime calls it: it must not block. It is not called once the watch is
    /// [stopped](Watcher::stop).
    pub fn on_probe(mut self, hook: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.0.on_probe.push(Arc::new(hook));
        self
    }

    /// Watches the work of this pool, too, beside that of others.
    pub fn pool(mut self, pool: &Pool) -> Self {
        self.0.pools.push(*pool);
        self
    }

    /// Sets the name of the watch's thread. Default: `stallwatch`. The thread that looks up the
    /// names of a stack adds `-stack`.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.0.name = name.into();
        self
    }

    /// Returns the error of [`start`](Self::start), if a setting is one.
    pub fn check(&self) -> Result<(), StartError> {
        let (asked, min) = (self.0.threshold, CLOSE_PACE);
        if asked < min {
            return Err(StartError::Threshold { asked, min });
        }
        if self.0.name.contains('\0') {
            let asked = self.0.name.clone();
            return Err(StartError::ThreadName { asked });
        }
        Ok(())
    }

    /// Starts a thread that watches this runtime, until the [`Watcher`] is dropped or the runtime
    /// ends.
    ///
    /// # Errors
    ///
    /// If the [threshold](Self::threshold) is too low, or no thread can be spawned.
    pub fn start(self, runtime: &Handle) -> Result<Watcher, StartError> {
        self.start_on(runtime, |name, main| {
            thread::Builder::new().name(name).spawn(main).map(drop)
        })
    }

    /// The same on a thread that `spawn` spawns: it is given a name, and what the thread has to
    /// run.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), with the error of `spawn`.
    ///
    /// It is the way to own the thread, and so to wait for the end of the last hook.
    pub fn start_on(
        self,
        runtime: &Handle,
        spawn: impl FnOnce(String, Box<dyn FnOnce() + Send>) -> io::Result<()>,
    ) -> Result<Watcher, StartError> {
        self.check()?;
        let name = self.0.name.clone();
        let run = Run::new(self.0, runtime);
        let watcher = run.watcher();
        let shared = watcher.shared.clone();
        let main = move || {
            // Its own panics are faults of this crate. It must not take a thread pool with it.
            log::call("the watch", || run.run());
            shared.end();
        };
        spawn(name, Box::new(main)).map_err(StartError::Thread)?;
        Ok(watcher)
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("threshold", &self.0.threshold)
            .field("on_stall", &self.0.on_stall.len())
            .field("on_probe", &self.0.on_probe.len())
            .field("pools", &self.0.pools)
            .finish()
    }
}
