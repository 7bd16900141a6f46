//! [`Watch`]: how a runtime is watched.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::lag::Lag;
use crate::log::with_this_subscriber;
use crate::pool::Pool;
use crate::run::{Run, Settings};
use crate::stall::Stall;
use crate::watcher::Watcher;

/// Less than that is what a kernel takes for its own.
const LEAST: Duration = Duration::from_millis(1);

/// How a runtime is watched.
///
/// What the watch can report depends on what it sees:
///
/// | around the code | computes | blocks |
/// |---|---|---|
/// | [`watch`](crate::watch), [`enter`](crate::enter), `WatchLayer` | named | named, with the call |
/// | a span, and `SpanWatch` | named | named, with the call |
/// | nothing | reported without a name if it [keeps the runtime from its sockets](Watch::threshold); not on a `current_thread` runtime | reported without a name, with the call; not if it waits for a lock, and not on a `current_thread` runtime |
///
/// Spans and code without a name are only seen on threads that the watch knows to be workers,
/// since a probe ran there. This takes some seconds.
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
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use stallwatch::Watch;
    ///
    /// let watcher = Watch::new().start(&tokio::runtime::Handle::current()).unwrap();
    /// # let _ = watcher;
    /// # }
    /// ```
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
    /// A poll that has a name is reported while it lasts, or soon after it has ended. The watch looks
    /// every 200 ms while the runtime is idle, every 40 ms while it is in use, and every 10 ms at a
    /// poll that it has seen twice, and for a second after one that took long. What ends from one
    /// look to the next is reported at the next one ([`Stall::is_over`]). Left
    /// out are polls that block in an idle runtime for less than 200 ms, if none did in the second
    /// before; those of which others may have had the core: on a full machine some are; and those
    /// that run or end while the process has no file descriptor left: what the kernel tells of a
    /// thread is in files.
    ///
    /// Code without a name is reported only while it lasts. A call has twice the time. What computes, in one
    /// poll or in many, is reported if its worker has not asked for the events of sockets and timers for the
    /// threshold, and probes are late: those of the last second have waited for twice the threshold in all.
    /// Or if it has not asked for a second, or for the threshold if that is longer.
    /// A worker may also not ask because its thread has no core. Where that may be so, what computes is reported
    /// only if no worker has asked for the threshold, or one has not asked for a second.
    ///
    /// At least 1 ms: with less, [`start`](Self::start) fails.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::{io, time::Duration};
    /// use stallwatch::Watch;
    ///
    /// let runtime = tokio::runtime::Handle::current();
    /// let watcher = Watch::new().threshold(Duration::from_millis(50)).start(&runtime);
    /// assert!(watcher.is_ok());
    /// let too_low = Watch::new().threshold(Duration::from_micros(50)).start(&runtime);
    /// assert_eq!(too_low.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    /// # }
    /// ```
    pub fn threshold(mut self, threshold: Duration) -> Self {
        self.0.threshold = threshold;
        self
    }

    /// Adds a hook that the watch's thread calls once for each stall: while it lasts, or soon after. Of code without a name that computes, once
    /// a second at most for each thread.
    ///
    /// It is called for those, too, that are not logged because there were too many. While it
    /// runs, the watch does not look: send what takes long to another thread. A panic of
    /// the hook ends that call alone.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{sync::mpsc, thread};
    /// use stallwatch::Watch;
    ///
    /// let (send, stalls) = mpsc::channel();
    /// let watch = Watch::new().on_stall(move |stall| drop(send.send(stall.clone())));
    /// thread::spawn(move || {
    ///     for stall in stalls {
    ///         println!("{stall}");
    ///     }
    /// });
    /// # let _ = watch;
    /// ```
    pub fn on_stall(mut self, hook: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.0.on_stall.push(Arc::new(hook));
        self
    }

    /// Adds a hook that is called with what each probe has waited: a socket's event, and now and
    /// then a task. Once a second while the runtime is idle, and some fifteen times while it is in
    /// use. On Linux there is a socket as soon as all workers have waited and the one that waited for
    /// events has run a probe: mostly in the first seconds of use. Its task stays in the runtime while the watch
    /// lasts. Elsewhere, and on a runtime without an I/O driver, there are tasks alone.
    ///
    /// The watch's thread calls it, as it does the hooks of [`on_stall`](Self::on_stall).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    /// use stallwatch::Watch;
    ///
    /// let gauge = Arc::new(AtomicU64::new(0));
    /// let set = gauge.clone();
    /// let watch = Watch::new().on_probe(move |lag| {
    ///     set.store(lag.waited().as_micros() as u64, Relaxed);
    /// });
    /// println!("lag_us {}", gauge.load(Relaxed));
    /// # let _ = watch;
    /// ```
    pub fn on_probe(mut self, hook: impl Fn(Lag) + Send + Sync + 'static) -> Self {
        self.0.on_probe.push(Arc::new(hook));
        self
    }

    /// Watches the work of this pool, too, beside that of others.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use stallwatch::{Pool, Watch};
    ///
    /// let resize = Pool::new("Resize in smaller steps").with_limit(Duration::from_secs(1));
    /// let watch = Watch::new().pool(&resize);
    /// # let _ = watch;
    /// ```
    pub fn pool(mut self, pool: &Pool) -> Self {
        self.0.pools.push(pool.clone());
        self
    }

    /// Sets the name of the watch's thread. Default: `stallwatch`. With a NUL in it,
    /// [`start`](Self::start) panics, as [`thread::Builder::spawn`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Watch;
    ///
    /// // Two runtimes have a watch each.
    /// let of_requests = Watch::new().thread_name("watch-requests");
    /// let of_reports = Watch::new().thread_name("watch-reports");
    /// # let _ = (of_requests, of_reports);
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use stallwatch::{Watch, is_watched};
    ///
    /// let runtime = tokio::runtime::Runtime::new()?;
    /// let watcher = Watch::new().start(runtime.handle())?;
    /// assert!(is_watched());
    /// # drop(watcher);
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(self, runtime: &Handle) -> io::Result<Watcher> {
        self.start_on(runtime, |name, main| {
            thread::Builder::new().name(name).spawn(main).map(drop)
        })
    }

    /// The same on a thread that `spawn` spawns: it is given a name, and what the thread has to
    /// run.
    ///
    /// It is the way to own the thread, and so to wait for the end of the last hook.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), with the error of `spawn`.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use std::thread;
    /// use stallwatch::Watch;
    ///
    /// let runtime = tokio::runtime::Runtime::new()?;
    /// let mut thread = None;
    /// let watcher = Watch::new().start_on(runtime.handle(), |name, run| {
    ///     thread = Some(thread::Builder::new().name(name).spawn(run)?);
    ///     Ok(())
    /// })?;
    /// drop(watcher);
    /// // Waits for the end of the last hook.
    /// thread.unwrap().join().unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub fn start_on(
        self,
        runtime: &Handle,
        spawn: impl FnOnce(String, Box<dyn FnOnce() + Send>) -> io::Result<()>,
    ) -> io::Result<Watcher> {
        let asked = self.0.threshold;
        if asked < LEAST {
            let error = format!("Watch::threshold({asked:?}): the least is {LEAST:?}");
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
