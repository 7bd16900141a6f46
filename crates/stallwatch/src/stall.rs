//! [`Stall`]: what the watch reports of a thread that is stuck.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, Instant};

use crate::name::{Name, escaped};
use crate::pool::Pool;

/// What a thread does that is stuck.
///
/// # Examples
///
/// ```
/// use stallwatch::{Cause, Watch};
///
/// let watch = Watch::new().on_stall(|stall| match stall.cause() {
///     Cause::Computes => println!("offload {:?}", stall.culprit()),
///     Cause::Blocks(Some(call)) => println!("make {call} async"),
///     cause => println!("it {cause}"),
/// });
/// assert_eq!(Cause::Blocks(Some("read")).to_string(), "blocks in read");
/// # let _ = watch;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// It has a core, and computes.
    Computes,
    /// It waits in this system call; or in none (a page of a file that is read from disk), or in
    /// one whose name is not known.
    Blocks(Option<&'static str>),
    /// The platform does not tell.
    Unknown,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Computes => f.write_str("computes"),
            Self::Blocks(Some(call)) => write!(f, "blocks in {call}"),
            Self::Blocks(None) => f.write_str("blocks"),
            Self::Unknown => f.write_str("computes or blocks"),
        }
    }
}

const OFFLOAD: &str = "Compute in `tokio::task::spawn_blocking(move || ..).await?`, or on a pool";

const CALL_ELSEWHERE: &str = "Call it in `tokio::task::spawn_blocking(move || ..).await?`";

const HAVE_ITS_NAME: &str = ". To have its name: `WatchLayer` around the service, \
    `watch(..)` around a future, or the layer `SpanWatch`";

/// A poll that keeps a thread from its other tasks for longer than the threshold.
///
/// It is reported while it lasts, or if it [is over](Self::is_over) before the watch has seen it
/// twice, soon after. Its [`Display`](fmt::Display) is one line with all of it
/// (control characters in names are escaped).
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use std::time::Duration;
/// use stallwatch::{Watch, watch};
///
/// let log = Watch::new().on_stall(|stall| {
///     println!("{:?} {} for {:?}", stall.culprit(), stall.cause(), stall.lasted());
///     println!("{}", stall.remedy());
/// });
/// let watcher = log.start(&tokio::runtime::Handle::current()).unwrap();
/// let nap = async { std::thread::sleep(Duration::from_millis(300)) };
/// // Prints `Some("nap") blocks in clock_nanosleep for 40ms`, say, and the remedy.
/// watch(nap).named("nap").await;
/// # drop(watcher);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Stall {
    pub(crate) name: Option<Name>,
    pub(crate) culprit: Option<String>,
    pub(crate) span: Option<String>,
    pub(crate) thread: String,
    /// Whose work it is. `None`: a poll of the runtime.
    pub(crate) pool: Option<Pool>,
    /// What to do about a poll that computes, and if a job has spawned it: if there is a pool that says so.
    pub(crate) offload: Option<(&'static str, &'static str)>,
    pub(crate) cause: Cause,
    pub(crate) since: Instant,
    pub(crate) lasted: Duration,
    pub(crate) is_over: bool,
}

impl Stall {
    /// Returns the name or the place (`src/main.rs:41`) of the code that is stuck. `None`
    /// if that is no code that the watch knows of.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Watch;
    ///
    /// let watch = Watch::new().on_stall(|stall| {
    ///     println!("{} stalls", stall.culprit().unwrap_or("code without a name"));
    /// });
    /// # let _ = watch;
    /// ```
    pub fn culprit(&self) -> Option<&str> {
        self.culprit.as_deref()
    }

    /// Returns the innermost span that the thread is in, or the innermost future that is
    /// watched, if that is not the culprit itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Watch;
    ///
    /// let watch = Watch::new().on_stall(|stall| {
    ///     if let (Some(culprit), Some(span)) = (stall.culprit(), stall.span()) {
    ///         println!("{culprit} stalls in {span}");
    ///     }
    /// });
    /// # let _ = watch;
    /// ```
    pub fn span(&self) -> Option<&str> {
        self.span.as_deref()
    }

    /// Returns whether it is work of a [pool](crate::Pool). If not, it holds up tasks of the
    /// runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Watch;
    ///
    /// let watch = Watch::new().on_stall(|stall| {
    ///     let waiting = if stall.is_of_pool() { "jobs" } else { "requests" };
    ///     println!("{waiting} wait: {stall}");
    /// });
    /// # let _ = watch;
    /// ```
    pub fn is_of_pool(&self) -> bool {
        self.pool.is_some()
    }

    /// Returns the thread's name.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Watch;
    ///
    /// let watch = Watch::new().on_stall(|stall| {
    ///     println!("tasks wait for the thread {}", stall.thread());
    /// });
    /// # let _ = watch;
    /// ```
    pub fn thread(&self) -> &str {
        &self.thread
    }

    /// Returns whether the thread computes or blocks.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::{Cause, Watch};
    ///
    /// let watch = Watch::new().on_stall(|stall| {
    ///     if *stall.cause() == Cause::Blocks(Some("futex")) {
    ///         println!("{:?} waits for a lock", stall.culprit());
    ///     }
    /// });
    /// # let _ = watch;
    /// ```
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// Returns when the watch saw it first: as a rule at most 40 ms after it began, or 200 in an
    /// idle runtime. Of work without a limit: after its deadline. Of one that [is
    /// over](Self::is_over): when it began.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Watch;
    ///
    /// let watch = Watch::new().on_stall(|stall| {
    ///     println!("{:?}, first seen {:?} ago", stall.culprit(), stall.since().elapsed());
    /// });
    /// # let _ = watch;
    /// ```
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Returns how long it has lasted so far, without the time for which the thread was
    /// ready and had no core. A stall is reported once, so the length of a long one is not told,
    /// but of one that [is over](Self::is_over).
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Watch;
    ///
    /// let watch = Watch::new().on_stall(|stall| {
    ///     println!("{:?}: {} ms so far", stall.culprit(), stall.lasted().as_millis());
    /// });
    /// # let _ = watch;
    /// ```
    pub fn lasted(&self) -> Duration {
        self.lasted
    }

    /// Returns whether it has ended: the watch finds one that is shorter than the time from one
    /// look to the next only then. [`cause`](Self::cause) has its call only if a look has seen
    /// it.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Watch;
    ///
    /// let watch = Watch::new().on_stall(|stall| {
    ///     let state = if stall.is_over() { "is over" } else { "lasts" };
    ///     println!("{:?} {state}", stall.culprit());
    /// });
    /// # let _ = watch;
    /// ```
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns what to do about it.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::Watch;
    ///
    /// let watch = Watch::new().on_stall(|stall| {
    ///     println!("{:?}: {}", stall.culprit(), stall.remedy());
    /// });
    /// # let _ = watch;
    /// ```
    pub fn remedy(&self) -> Cow<'static, str> {
        let if_it_computes = match &self.pool {
            Some(pool) => pool.remedy,
            None => self.offload.map_or(OFFLOAD, |(remedy, _)| remedy),
        };
        let without_limit = self.pool.as_ref().filter(|pool| pool.limit.is_none());
        let waits = without_limit.and_then(|pool| pool.waits.as_ref());
        let can_await = self.pool.as_ref().is_none_or(|pool| pool.can_await);
        let remedy = match (&self.cause, waits) {
            (Cause::Computes, _) => if_it_computes,
            (Cause::Blocks(_), Some((remedy, _))) => remedy,
            (Cause::Unknown, _) => {
                return format!("If it computes: {if_it_computes}. If it blocks: {CALL_ELSEWHERE}")
                    .into();
            }
            (Cause::Blocks(call), None) => match call.unwrap_or_default() {
                "nanosleep" | "clock_nanosleep" if can_await => {
                    "Await `tokio::time::sleep` instead"
                }
                "futex" => {
                    "It waits for a lock (or another thread). Don't hold that lock while computing, \
                     or lock it in `tokio::task::spawn_blocking(move || ..).await?`"
                }
                "wait4" | "waitid" => {
                    "Use `tokio::process`, or call it in \
                     `tokio::task::spawn_blocking(move || ..).await?`"
                }
                "connect" | "accept" | "accept4" | "recvfrom" | "recvmsg" | "sendto"
                | "sendmsg" | "poll" | "ppoll" => {
                    "Use `tokio::net`, or call it in \
                     `tokio::task::spawn_blocking(move || ..).await?`"
                }
                _ => CALL_ELSEWHERE,
            },
        };
        remedy.into()
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let culprit = self.culprit().unwrap_or("code that is not watched");
        f.write_str(&escaped(culprit))?;
        if let Some(span) = &self.span {
            write!(f, ", in {},", escaped(span))?;
        }
        let others = if self.is_of_pool() { "jobs" } else { "tasks" };
        let ms = self.lasted.as_millis();
        let is_unnamed = self.culprit.is_none() && self.cause == Cause::Computes;
        let (until, wait) = match self.is_over {
            true => (", until it ended,", "waited"),
            false if is_unnamed => (" now, in one poll or in many,", "wait"),
            false => (" now", "wait"),
        };
        write!(
            f,
            " {} for {ms} ms{until} on thread {}: other {others} of that thread {wait}. {}",
            self.cause,
            escaped(&self.thread),
            self.remedy()
        )?;
        if let Some((_, if_spawned)) = self.offload.filter(|_| is_unnamed) {
            write!(f, ". {if_spawned}")?;
        }
        f.write_str(self.culprit.as_ref().map_or(HAVE_ITS_NAME, |_| ""))
    }
}
