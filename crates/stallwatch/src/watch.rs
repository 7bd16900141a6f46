//! [`Watch`]: how a runtime is watched.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::detect::CLOSE_PACE;
use crate::log::with_this_subscriber;
use crate::pool::Pool;
use crate::run::{Run, Settings};
use crate::stall::Stall;
use crate::watcher::Watcher;

/// How a runtime is watched.
///
/// What the watch can report depends on what it sees:
///
/// | around the code | computes | blocks |
/// |---|---|---|
/// | [`watch`](crate::watch), [`enter`](crate::enter), `WatchLayer` | named | named, with the call |
/// | a span, and `SpanWatch` | named | named, with the call |
/// | nothing | | reported without a name, with the call; not if it waits for a lock, and not on a `current_thread` runtime |
///
/// Spans and code without a name are only seen on threads that the watch knows to be workers,
/// since a probe ran there. This takes some seconds: a probe a second, and twenty a second while no
/// worker parks.
/// Only Linux tells whether a thread computes or blocks, and on x86-64 and ARM64 in which call;
/// elsewhere the last row is empty.
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
    /// machine is full or a hook is running. One that ends before may be missed. A call in code
    /// without a name has twice the time.
    ///
    /// At least 10 ms: with less, [`start`](Self::start) fails.
    pub fn threshold(mut self, threshold: Duration) -> Self {
        self.0.threshold = threshold;
        self
    }

    /// Adds a hook that the watch's thread calls once for each stall, while it lasts.
    ///
    /// It is called for those, too, that are not logged because there were too many. While it
    /// runs, the watch does not look: send what takes long to another thread. A panic of
    /// the hook ends that call alone.
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
    /// The watch's thread calls it, as it does the hooks of [`on_stall`](Self::on_stall).
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
    /// names of a stack adds `-stack`. With a NUL in it, [`start`](Self::start) panics, as
    /// [`thread::Builder::spawn`] does.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.0.name = name.into();
        self
    }

    /// Starts a thread that watches this runtime, until the [`Watcher`] is dropped or the runtime
    /// ends.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the [threshold](Self::threshold) is too
    /// low; and if no thread can be spawned.
    pub fn start(self, runtime: &Handle) -> io::Result<Watcher> {
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
    ) -> io::Result<Watcher> {
        let asked = self.0.threshold;
        if asked < CLOSE_PACE {
            let error = format!(
                "Watch::threshold({asked:?}): the watch looks at a thread every {CLOSE_PACE:?} at \
                 best, and sees nothing shorter"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let name = self.0.name.clone();
        let run = Run::new(self.0, runtime);
        let watcher = run.watcher();
        let main = with_this_subscriber(|| run.run());
        spawn(name, Box::new(main))?;
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
            .finish_non_exhaustive()
    }
}
