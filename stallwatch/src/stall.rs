//! [`Stall`]: what the watch reports of a thread that is stuck.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, Instant};

use crate::name::escaped;

/// What a thread does that is stuck.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// It has a core, and computes.
    Computes,
    /// It waits in this system call; or in none (a page of a file that is read from disk), or in one
    /// whose name is not known.
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

const HAVE_ITS_NAME: &str = "To have its name: `WatchLayer` around the service, \
    `watch(..)` around a future, or the layer `SpanWatch`";

/// A poll that keeps a thread from its other tasks for longer than the threshold.
///
/// It is reported while it lasts. Its [`Display`](fmt::Display) is one line with all of it
/// (control characters in names are escaped), and the stack below that, if there is one.
#[derive(Clone, Debug)]
pub struct Stall {
    pub(crate) culprit: Option<String>,
    pub(crate) span: Option<String>,
    pub(crate) thread: String,
    pub(crate) is_of_pool: bool,
    /// What to do if it computes, as its pool says.
    pub(crate) if_it_computes: Option<&'static str>,
    /// Whether it is a poll.
    pub(crate) can_await: bool,
    pub(crate) cause: Cause,
    pub(crate) since: Instant,
    pub(crate) lasted: Duration,
    pub(crate) stack: Option<String>,
    pub(crate) is_certain: bool,
}

impl Stall {
    /// Returns the name or the place (`src/main.rs:41`) of the code that is stuck. `None`
    /// if that is no code that the watch knows of.
    pub fn culprit(&self) -> Option<&str> {
        self.culprit.as_deref()
    }

    /// Returns the innermost span that the thread is in, or the innermost future that is
    /// watched, if that is not the culprit itself.
    pub fn span(&self) -> Option<&str> {
        self.span.as_deref()
    }

    /// Returns whether it is work of a [pool](crate::Pool). If not, it holds up tasks of the
    /// runtime.
    pub fn is_of_pool(&self) -> bool {
        self.is_of_pool
    }

    /// Returns the thread's name.
    pub fn thread(&self) -> &str {
        &self.thread
    }

    /// Returns whether the thread computes or blocks.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// Returns when the watch saw it first: as a rule at most 20 ms after it began, and 50 ms if it
    /// has no name. Of work without a limit: after its deadline.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Returns how long it has lasted so far, without the time for which the thread was
    /// ready and had no core.
    pub fn lasted(&self) -> Duration {
        self.lasted
    }

    /// Returns the functions that the thread was in, innermost first, a line each.
    ///
    /// `None` without the feature `stacks`, where the kernel forbids it, for a thread
    /// that blocks, for a stall that is not logged because there were too many, and if the names
    /// took longer than two seconds.
    pub fn stack(&self) -> Option<&str> {
        self.stack.as_deref()
    }

    /// Returns whether the watch has seen the poll, or the call that blocks. If not, it is a
    /// suspicion: a probe waits, and all that is known of the thread is that it has computed
    /// since then.
    ///
    /// Then [`culprit`](Self::culprit) is `None`. It may be one long poll of code that is not
    /// watched, or many short ones, more than the thread can do.
    pub fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// Returns what to do about it.
    pub fn remedy(&self) -> Cow<'static, str> {
        let call = match &self.cause {
            Cause::Blocks(Some(call)) => *call,
            _ => "",
        };
        if !self.is_certain {
            return HAVE_ITS_NAME.into();
        }
        let if_it_computes = self.if_it_computes.unwrap_or(OFFLOAD);
        let remedy = match (&self.cause, call) {
            (Cause::Computes, _) => if_it_computes,
            (Cause::Unknown, _) => {
                return format!("If it computes: {if_it_computes}. If it blocks: {CALL_ELSEWHERE}")
                    .into();
            }
            (Cause::Blocks(_), "nanosleep" | "clock_nanosleep") if self.can_await => {
                "Await `tokio::time::sleep` instead"
            }
            (Cause::Blocks(_), "futex") => {
                "It waits for a lock (or another thread). Don't hold that lock while computing, or \
                 lock it in `tokio::task::spawn_blocking(move || ..).await?`"
            }
            (Cause::Blocks(_), "wait4" | "waitid") => {
                "Use `tokio::process`, or call it in \
                 `tokio::task::spawn_blocking(move || ..).await?`"
            }
            (
                Cause::Blocks(_),
                "connect" | "accept4" | "recvfrom" | "recvmsg" | "sendto" | "sendmsg" | "poll"
                | "ppoll",
            ) => {
                "Use `tokio::net`, or call it in \
                 `tokio::task::spawn_blocking(move || ..).await?`"
            }
            (Cause::Blocks(_), _) => CALL_ELSEWHERE,
        };
        remedy.into()
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let culprit = self
            .culprit
            .as_deref()
            .unwrap_or("code that is not watched");
        f.write_str(&escaped(culprit))?;
        if let Some(span) = &self.span {
            write!(f, ", in {},", escaped(span))?;
        }
        let what = match self.is_of_pool {
            _ if !self.is_certain && matches!(self.cause, Cause::Blocks(_)) => {
                "the runtime has polled nothing new since then. It is one long poll, or the \
                 runtime is a `current_thread` one that is not in `block_on` now"
            }
            _ if !self.is_certain => {
                "the runtime has polled nothing new since then. It may be one long poll, or \
                 many short ones"
            }
            false => "other tasks of that thread wait",
            true => "other jobs of that thread wait",
        };
        write!(
            f,
            " {} for {} ms now on thread {}: {what}. {}",
            self.cause,
            self.lasted.as_millis(),
            escaped(&self.thread),
            self.remedy()
        )?;
        if self.culprit.is_none() && self.is_certain {
            write!(f, ". {HAVE_ITS_NAME}")?;
        }
        match &self.stack {
            Some(stack) => write!(f, "\n{stack}"),
            None => Ok(()),
        }
    }
}
