//! [`BridgeError`]: why a bridge ended before its stream.

use std::any::Any;
use std::error::Error;
use std::sync::Arc;
use std::{fmt, io};

use crate::error::{JoinError, JoinErrorKind};
use crate::panics::PanicPayload;

/// The error of a bridge whose pump stopped before the stream ended.
///
/// The items that came before it are not all items of the stream.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use futures::StreamExt;
/// let io = tokio::runtime::Runtime::new().unwrap();
/// let cpu = twolane::CpuRuntime::builder().io_handle(io.handle().clone()).build().unwrap();
/// let endless = futures::stream::pending::<u8>();
/// let mut bridged = cpu.handle().stream_from_io(endless, 1024, |_| 1);
/// io.shutdown_background();
/// let err = bridged.next().await.unwrap().unwrap_err();
/// assert!(err.to_string().contains("its runtime was shut down"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BridgeError {
    pub(super) cause: LostReason,
    pub(super) lane: &'static str,
    /// The caller's `size` defines it.
    pub(super) unit: &'static str,
    pub(super) sent: usize,
}

/// The name of the CPU lane in the texts.
pub(super) const CPU: &str = "CPU";

#[derive(Clone, Debug)]
pub(crate) enum LostReason {
    Refused(Arc<JoinError>),
    Stopped,
    /// The text of the error of a job that the stream awaited.
    Unwound(Arc<str>),
    /// The text, and the payload, which the first caller takes.
    Panicked(Arc<str>, Arc<PanicPayload>),
}

impl LostReason {
    /// Why a stream ended that unwound with this payload.
    pub(crate) fn of_unwinding(payload: PanicPayload) -> Self {
        match JoinError::of_unwinding(payload).try_into_payload() {
            Ok(payload) => Self::Panicked(payload.text().into(), Arc::new(payload)),
            // `JoinError::resume_unwind` in the stream.
            Err(error) => Self::Unwound(error.to_string().into()),
        }
    }
}

impl BridgeError {
    /// Returns whether the stream panicked.
    ///
    /// Otherwise its lane dropped it, or did not take it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::StreamExt;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// use std::task::Poll;
    /// let broken = futures::stream::poll_fn(|_| -> Poll<Option<u8>> { panic!("parser") });
    /// let mut bridged = cpu.handle().stream_from_io(broken, 1024, |_| 1);
    /// assert!(bridged.next().await.unwrap().unwrap_err().is_panic());
    /// # }
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self.cause, LostReason::Panicked(..))
    }

    /// Returns the payload of the panic, for [`std::panic::resume_unwind`].
    ///
    /// # Errors
    ///
    /// The error itself if the stream did not panic, or if a clone of this error has
    /// given the payload away.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::StreamExt;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// use std::task::Poll;
    /// let broken = futures::stream::poll_fn(|_| -> Poll<Option<u8>> { panic!("parser") });
    /// let mut bridged = cpu.handle().stream_from_cpu(broken, 1024, |_| 1);
    /// let payload = bridged.next().await.unwrap().unwrap_err().try_into_panic().unwrap();
    /// assert_eq!(payload.downcast_ref(), Some(&"parser"));
    /// # }
    /// ```
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, Self> {
        match &self.cause {
            LostReason::Panicked(_, payload) => payload.take().ok_or(self),
            _ => Err(self),
        }
    }

    /// Returns whether the stream was never begun, since the CPU lane's queue was full.
    ///
    /// As [`JoinErrorKind::QueueFull`](crate::JoinErrorKind::QueueFull). Only
    /// [`stream_from_cpu`](crate::Handle::stream_from_cpu)
    /// needs a place in a queue.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::{StreamExt, stream};
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 1).build().unwrap();
    /// let permit = cpu.handle().try_reserve().unwrap();
    /// let mut numbers = cpu.handle().stream_from_cpu(stream::iter(0..3), 1024, |_| 1);
    /// assert!(numbers.next().await.unwrap().unwrap_err().is_queue_full());
    /// # }
    /// ```
    pub fn is_queue_full(&self) -> bool {
        self.is_refused(JoinErrorKind::QueueFull)
    }

    /// Returns true if the stream was refused since its key has too many jobs
    /// ([`KeyFull`](JoinErrorKind::KeyFull)): a service answers 429.
    ///
    /// # Examples
    ///
    /// ```
    /// # use twolane_core::io::BridgeError;
    /// fn status(error: &BridgeError) -> u16 {
    ///     if error.is_key_full() { 429 } else { 503 }
    /// }
    /// ```
    pub fn is_key_full(&self) -> bool {
        self.is_refused(JoinErrorKind::KeyFull)
    }

    fn is_refused(&self, kind: JoinErrorKind) -> bool {
        matches!(&self.cause, LostReason::Refused(reason) if reason.kind() == kind)
    }

    /// Returns whether the CPU lane's queue was full, or the lane was shut down: a service answers
    /// 503, if it has not sent anything.
    ///
    /// As [`JoinError::is_unavailable`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::{StreamExt, stream};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let mut refused = {
    ///     let handle = cpu.handle();
    ///     let mut running = handle.stream_from_cpu(stream::pending::<u8>(), 1024, |_| 1);
    ///     cpu.shutdown().await;
    ///     assert!(running.next().await.unwrap().unwrap_err().is_unavailable());
    ///     handle.stream_from_cpu(stream::iter(0..3), 1024, |_| 1)
    /// };
    /// assert!(refused.next().await.unwrap().unwrap_err().is_unavailable());
    /// # }
    /// ```
    pub fn is_unavailable(&self) -> bool {
        match &self.cause {
            LostReason::Refused(reason) => reason.is_unavailable(),
            LostReason::Stopped => self.lane == CPU,
            LostReason::Unwound(_) | LostReason::Panicked(..) => false,
        }
    }

    /// Returns how much was sent before, in the unit of the bridge (bytes for a body).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::StreamExt;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// use std::task::Poll;
    /// let broken = futures::stream::poll_fn(|_| -> Poll<Option<u8>> { panic!("parser") });
    /// let mut bridged = cpu.handle().stream_from_io(broken, 1024, |_| 1);
    /// assert_eq!(bridged.next().await.unwrap().unwrap_err().sent(), 0);
    /// # }
    /// ```
    pub fn sent(&self) -> usize {
        self.sent
    }
}

impl fmt::Display for BridgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lane, unit, sent) = (self.lane, self.unit, self.sent);
        write!(f, "the stream is cut short after {sent} {unit}: ")?;
        match &self.cause {
            LostReason::Refused(reason) => write!(f, "it was never begun, since {reason}"),
            LostReason::Stopped => write!(f, "the {lane} lane stopped, its runtime was shut down"),
            LostReason::Unwound(error) => f.write_str(error),
            LostReason::Panicked(text, _) => write!(f, "it panicked on the {lane} lane: {text}"),
        }
    }
}

impl Error for BridgeError {}

/// For an `AsyncRead` over a bridged stream. The `BridgeError` is the inner error.
impl From<BridgeError> for io::Error {
    fn from(error: BridgeError) -> Self {
        Self::other(error)
    }
}
