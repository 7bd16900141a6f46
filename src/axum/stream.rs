//! [`body_from_cpu`]: an answer whose body the lane computes.
//!
//! The bridge between the lanes bounds what waits for the client. hyper does not poll the body of a
//! client that reads nothing, and the lane does not poll a stream that has no room. So both sides
//! count in a [`Guard`], and the lane's control thread looks at it when the client's time may be
//! over. It drops the reading end then, which ends the stream and its job. (The bridge's own count
//! would not do: a chunk is in it only after the look that comes with it.)

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum_core::body::Body;
use bytes::Bytes;
use futures_core::Stream;
use twolane_core::io::Bridged;
use twolane_core::{Handle, Permit, adapters};

use crate::stream::late_reader::LateReader;

/// How many bytes of a body may wait for its reader.
const WINDOW: usize = 256 << 10;

/// For how long a client may take nothing; nginx's `send_timeout` is as long. Not shorter: a socket
/// takes more only when a third of its buffer is free, which Linux lets grow to 4 MB. So by what the
/// body sees, a steady client of 50 kB/s took something every 25 to 44 s (over loopback, Linux 6.18).
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes the body of an answer of a stream that computes its chunks.
///
/// The CPU lane polls the stream, as by [`Permit::stream_from_cpu`] with a window of 256 KiB. The
/// permit comes before the answer begins, so a lane that is full is a 503, and not a 200 that is
/// cut short. If the stream or the lane fails later, the body ends with the error, and the client
/// sees that it is not complete. (Not over HTTP/1.0, where the end of the connection is that of the
/// body.) If the client goes, the stream is dropped, and its job counts as cancelled.
///
/// The permit goes back when the stream has ended, though the client may still read. A client that
/// takes nothing for 60 s, while 256 KiB wait for it, is given up: the stream is dropped, the permit
/// goes back, and if the client reads on, the body ends with an error. The time in which the stream
/// waits for the lane or computes does not count. A socket's buffer of megabytes hides what a client
/// takes: below some 40 kB/s a steady one may be given up, too. For clients that may pause for
/// longer, make the body of [`Permit::stream_from_cpu`], which never gives up.
///
/// Chunks of 64 KiB are a good size: each is handed from one lane to the other.
///
/// # Examples
///
/// ```
/// use axum::body::{Body, Bytes};
/// use twolane::axum::{Reserved, body_from_cpu};
///
/// async fn rows(Reserved(permit): Reserved) -> Body {
///     let rows = (0..1_000_u32).map(|n| Ok(Bytes::from(format!("{n},{}\n", n * n))));
///     body_from_cpu(permit, futures::stream::iter(rows))
/// }
/// ```
#[track_caller]
pub fn body_from_cpu<S>(permit: Permit, stream: S) -> Body
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    body(permit, stream, CLIENT_TIMEOUT)
}

#[track_caller]
pub(super) fn body<S>(permit: Permit, stream: S, timeout: Duration) -> Body
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    let guard = Arc::new(Guard {
        handle: adapters::handle_of(&permit),
        timeout,
        client: Mutex::default(),
    });
    let of_lane = Arc::downgrade(&guard);
    let counted = move |chunk: &_| {
        let size = size(chunk);
        let guard: Option<Arc<Guard>> = of_lane.upgrade();
        guard.into_iter().for_each(|guard| guard.look(size));
        size
    };
    // Locked before the lane begins: its first look finds the reading end.
    let mut client = guard.lock();
    client.bridged = Some(permit.stream_from_cpu(stream, WINDOW, counted));
    drop(client);
    Body::from_stream(Chunks(guard))
}

fn size(chunk: &io::Result<Bytes>) -> usize {
    // As the bridge counts.
    chunk.as_ref().map_or(1, |chunk| chunk.len().max(1))
}

/// What both ends of a body know of its client.
struct Guard {
    handle: Handle,
    timeout: Duration,
    client: Mutex<Client>,
}

#[derive(Default)]
struct Client {
    /// `None` once its time is over; then the error is what it gets.
    bridged: Option<Bridged<io::Result<Bytes>>>,
    error: Option<io::Error>,
    /// How many bytes wait for it.
    ahead: usize,
    /// How many chunks it has taken.
    taken: usize,
    late: LateReader,
}

impl Guard {
    fn lock(&self) -> MutexGuard<'_, Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many bytes more are there. Ends the stream if they wait for a client that is late.
    fn look(self: &Arc<Self>, more: usize) {
        let mut client = self.lock();
        client.ahead += more;
        if client.ahead < WINDOW {
            return;
        }
        let guard = Arc::downgrade(self);
        let look = move || guard.upgrade().into_iter().for_each(|it| it.look(0));
        let taken = Some(client.taken);
        if client.late.is_late(&self.handle, self.timeout, taken, look) {
            let text = format!(
                "the client took nothing of the answer for {:?}: its stream was ended. A body of \
                 `Permit::stream_from_cpu` waits for longer",
                self.timeout
            );
            client.error = Some(io::Error::new(io::ErrorKind::TimedOut, text));
            let stream = client.bridged.take();
            drop(client);
            drop(stream);
        }
    }
}

/// The client's end, with one error for all kinds.
struct Chunks(Arc<Guard>);

impl Stream for Chunks {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let client = &mut *self.0.lock();
        let Some(bridged) = &mut client.bridged else {
            return Poll::Ready(client.error.take().map(Err));
        };
        let chunk = ready!(Pin::new(bridged).poll_next(cx));
        let chunk = chunk.map(|chunk| chunk.unwrap_or_else(|lost| Err(io::Error::other(lost))));
        // The bridge's own error was not counted.
        client.ahead = client.ahead.saturating_sub(chunk.as_ref().map_or(0, size));
        client.taken += 1;
        Poll::Ready(chunk)
    }
}
