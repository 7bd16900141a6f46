//! Three more ways in which a CPU job that keeps its thread hurts a request: another's (by a
//! half-done HTTP/2 connect, by bodies it leaves unread) and its own (by its timeout).
//!
//! In each, one CPU job starts its request, polls it once and keeps its thread busy before it polls
//! on, as a job does that has other work between its awaits.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use crate::connector::BoxError;
use crate::contender::{Contender, Protocol};
use crate::gate::Busy;
use crate::round::{GIVE_UP, STALL_MS, ms};
use crate::server::{Server, THINKS};
use crate::world::World;

/// In the order in which each try runs them.
pub const CONTENDERS: [Contender; 3] =
    [Contender::Shared, Contender::SafetyNet, Contender::Twolane];

const TIMEOUT: Duration = Duration::from_millis(150);
const BUSY_CONNECT: Duration = Duration::from_millis(300);
const BUSY_UNREAD: Duration = Duration::from_millis(900);
const BUSY_TIMEOUT: Duration = Duration::from_millis(300);
/// Six bodies of 1 MiB: more than the connection's window of 4 MiB, none more than its own.
const BODIES: usize = 6;
const BODY: usize = 1 << 20;
const SMALL_BODY: usize = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Connect,
    Unread,
    Timeout,
}

/// What one try showed.
pub struct Try {
    /// It went wrong: the io side's request took over 100 ms, or the job's own ended in a timeout
    /// though the server had answered it in time.
    pub bad: bool,
    pub took_ms: f64,
}

impl Case {
    pub const ALL: [Self; 3] = [Self::Connect, Self::Unread, Self::Timeout];

    pub fn key(self) -> &'static str {
        match self {
            Self::Connect => "h2_connect",
            Self::Unread => "h2_unread_bodies",
            Self::Timeout => "timeout",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Connect => "HTTP/2: a busy job holds a half-done connect; another's request",
            Self::Unread => "HTTP/2: a busy job leaves 6 MiB unread; another's GET of 256 KiB",
            Self::Timeout => "a job's own 150 ms timeout, the server answers in 50 ms",
        }
    }

    /// What is counted.
    pub fn counts(self) -> &'static str {
        match self {
            Self::Connect | Self::Unread => "over 100 ms",
            Self::Timeout => "timed out though answered",
        }
    }

    /// Runs one try; `nth` varies the pause before the other's request.
    pub fn run(self, contender: Contender, nth: usize, server: &Server) -> Result<Try, BoxError> {
        let protocol = match self {
            Self::Connect | Self::Unread => Protocol::Http2,
            Self::Timeout => Protocol::Http1,
        };
        let world = World::new(contender, protocol, Busy::Burn)?;
        let pause = Duration::from_millis(10 + 5 * (nth as u64 % 3));
        let sample = match self {
            Self::Connect => connect(&world, contender, pause, server),
            Self::Unread => unread(&world, contender, pause, server),
            Self::Timeout => timeout(&world, contender, server),
        };
        world.end();
        sample
    }
}

fn connect(
    world: &World,
    contender: Contender,
    pause: Duration,
    server: &Server,
) -> Result<Try, BoxError> {
    let request = world.cpu_client.get(server.url(server.next_id()));
    let gate = Arc::clone(&world.gate);
    let (started, starts) = mpsc::channel();
    world.cpu().ok_or("no cpu side")?.spawn(async move {
        let mut sending = pin!(contender.send_from_cpu(request));
        let first = poll_once(sending.as_mut()).await;
        let _ = started.send(());
        gate.keep_busy(BUSY_CONNECT);
        if first.is_none() {
            let _ = sending.await;
        }
    });
    starts.recv_timeout(GIVE_UP)?;
    thread::sleep(pause);
    io_request(world, server.url(server.next_id()))
}

fn unread(
    world: &World,
    contender: Contender,
    pause: Duration,
    server: &Server,
) -> Result<Try, BoxError> {
    // The connection is the io side's, so that the window is all that can be in the way.
    io_request(world, server.url_bytes(server.next_id(), 1))?;
    let requests: Vec<_> = (0..BODIES)
        .map(|_| {
            world
                .cpu_client
                .get(server.url_bytes(server.next_id(), BODY))
        })
        .collect();
    let gate = Arc::clone(&world.gate);
    let (started, starts) = mpsc::channel();
    world.cpu().ok_or("no cpu side")?.spawn(async move {
        let heads = requests.into_iter().map(|r| contender.send_from_cpu(r));
        let heads = futures::future::join_all(heads).await;
        let _ = started.send(heads.iter().all(Result::is_ok));
        gate.keep_busy(BUSY_UNREAD);
        // All at once: one after the other could wait for ever, with the window held by the rest.
        let bodies = heads.into_iter().flatten().map(reqwest::Response::bytes);
        futures::future::join_all(bodies).await;
    });
    if !starts.recv_timeout(GIVE_UP)? {
        return Err("a request of the cpu job failed".into());
    }
    thread::sleep(pause);
    io_request(world, server.url_bytes(server.next_id(), SMALL_BODY))
}

fn timeout(world: &World, contender: Contender, server: &Server) -> Result<Try, BoxError> {
    // Leaves an idle connection of the io side in the pool, so that one poll sends the request.
    io_request(world, server.url_bytes(server.next_id(), 1))?;
    let id = server.next_id();
    let request = world.cpu_client.get(server.url(id)).timeout(TIMEOUT);
    let gate = Arc::clone(&world.gate);
    let (ended, ends) = mpsc::channel();
    world.cpu().ok_or("no cpu side")?.spawn(async move {
        let start = Instant::now();
        let mut sending = pin!(contender.send_from_cpu(request));
        let first = poll_once(sending.as_mut()).await;
        gate.keep_busy(BUSY_TIMEOUT);
        let result = match first {
            Some(result) => result,
            None => sending.await,
        };
        let _ = ended.send((start, Instant::now(), result.map(drop)));
    });
    let (start, end, result) = ends.recv_timeout(GIVE_UP)?;
    let answered = server.served(id).and_then(|served| served.answered);
    let in_time = answered.is_some_and(|at| at < start + TIMEOUT);
    match result {
        Err(error) if !is_timeout(&*error) => Err(error),
        result => Ok(Try {
            bad: result.is_err() && in_time,
            took_ms: ms(start, end),
        }),
    }
}

/// A request of the io side, body and all.
fn io_request(world: &World, url: String) -> Result<Try, BoxError> {
    let request = world.io_client.get(url);
    let start = Instant::now();
    let task = world.io.spawn(async move {
        let response = request.send().await?.error_for_status()?;
        response.bytes().await?;
        Ok::<_, reqwest::Error>(Instant::now())
    });
    let end = world
        .io
        .block_on(async { tokio::time::timeout(GIVE_UP, task).await })???;
    let took_ms = ms(start, end);
    Ok(Try {
        bad: took_ms > STALL_MS,
        took_ms,
    })
}

/// Polls a future once; its output, if that was enough.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// Whether there is a timeout of reqwest's among the causes.
fn is_timeout(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source())
        .any(|error| error.downcast_ref().is_some_and(reqwest::Error::is_timeout))
}

// The case makes sense only if the server is well within the timeout.
const _: () = assert!(THINKS.as_millis() * 2 < TIMEOUT.as_millis());
