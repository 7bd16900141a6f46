//! Three more ways in which a CPU job that keeps its thread hurts a request: another's (by a
//! half-done HTTP/2 connect, by bodies it leaves unread) and its own (by its timeout).
//!
//! In each, one CPU job starts its requests and keeps its thread busy before it polls on, as a job
//! does that has other work between its awaits.

use std::error::Error;
use std::iter::{repeat_with, successors};
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures::future::{join_all, maybe_done};
use futures::poll;
use twolane_benches::{BoxError, Sample};

use crate::contender::{Contender, Protocol};
use crate::round::{STALL_MS, ms};
use crate::server::{Server, THINKS};
use crate::world::{Busy, GIVE_UP, World};

/// In the order in which each try runs them.
pub const CONTENDERS: [Contender; 3] =
    [Contender::Shared, Contender::SafetyNet, Contender::Twolane];

/// Well above what the server takes.
const TIMEOUT: Duration = THINKS.saturating_mul(3);
/// Six bodies of 1 MiB: more than the connection's window of 4 MiB, none more than its own.
const BODIES: usize = 6;
const BODY: usize = 1 << 20;
const SMALL_BODY: usize = 256 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Connect,
    Unread,
    Timeout,
}

impl Case {
    pub const ALL: [Self; 3] = [Self::Connect, Self::Unread, Self::Timeout];

    /// Its name in the JSON file, its title, and what is counted.
    pub fn texts(self) -> [&'static str; 3] {
        const OTHER: &str = "over 100 ms";
        let connect = "HTTP/2: a busy job holds a half-done connect; another's request";
        let unread = "HTTP/2: a busy job leaves 6 MiB unread; another's GET of 256 KiB";
        let timeout = "a job's own 150 ms timeout, the server answers in 50 ms";
        match self {
            Self::Connect => ["h2_connect", connect, OTHER],
            Self::Unread => ["h2_unread_bodies", unread, OTHER],
            Self::Timeout => ["timeout", timeout, "timed out though answered"],
        }
    }

    /// Runs one try; `nth` varies the pause before the other's request. Says how long the request
    /// took, and whether it went wrong: the io side's took over 100 ms, or the job's own ended in a
    /// timeout though the server had answered it in time.
    pub fn run(self, side: Contender, nth: u32, server: &Server) -> Result<Sample, BoxError> {
        let protocol = match self {
            Self::Connect | Self::Unread => Protocol::Http2,
            Self::Timeout => Protocol::Http1,
        };
        let world = World::new(side, protocol, Busy::Burn)?;
        let (took_ms, is_bad) = self.run_in(&world, side, nth, server)?;
        let mut sample = Sample::of("bad", "tries", f64::from(u8::from(is_bad)));
        sample.put("tries", "tries", 1.0);
        sample.put("took", "ms", took_ms);
        Ok(sample)
    }

    fn run_in(
        self,
        world: &World,
        side: Contender,
        nth: u32,
        server: &Server,
    ) -> Result<(f64, bool), BoxError> {
        if self != Self::Connect {
            // The connection is the io side's and idle: one poll sends a request over it, and the
            // window is all that can be in the way.
            let (_, url) = server.request_of_bytes(1);
            world.end_of(world.get(url))?;
        }
        let (id, url) = server.request();
        let get = |url| world.cpu_client.get(url);
        let (busy_ms, requests) = match self {
            Self::Connect => (300, vec![get(url)]),
            Self::Unread => {
                let bodies = repeat_with(|| get(server.request_of_bytes(BODY).1));
                (900, bodies.take(BODIES).collect())
            }
            Self::Timeout => (300, vec![get(url).timeout(TIMEOUT)]),
        };
        let work = Arc::clone(&world.work);
        let ((started, starts), (ended, ends)) = (mpsc::channel(), mpsc::channel());
        world.cpu.spawn(async move {
            let start = Instant::now();
            let heads = requests.into_iter().map(|one| side.send(one));
            let mut heads = pin!(maybe_done(join_all(heads)));
            match self {
                Self::Unread => heads.as_mut().await,
                _ => drop(poll!(heads.as_mut())),
            }
            let so_far = heads.as_mut().output_mut();
            let _ = started.send(so_far.is_none_or(|heads| heads.iter().all(Result::is_ok)));
            work.keep_busy(Duration::from_millis(busy_ms));
            heads.as_mut().await;
            // All at once: one after the other could wait for ever, with the window held by the rest.
            let heads = heads.take_output().unwrap_or_default().into_iter();
            let bodies = join_all(heads.map(async |head| Ok(head?.bytes().await?))).await;
            let bodies: Result<Vec<_>, BoxError> = bodies.into_iter().collect();
            let _ = ended.send((start, Instant::now(), bodies.map(drop)));
        });
        if !starts.recv_timeout(GIVE_UP)? {
            return Err("a request of the cpu job failed".into());
        }
        let (_, url) = match self {
            Self::Connect => server.request(),
            Self::Unread => server.request_of_bytes(SMALL_BODY),
            Self::Timeout => {
                let (start, end, result) = ends.recv_timeout(GIVE_UP)?;
                let served = server.served(id);
                let in_time = served.is_some_and(|served| served.answered < start + TIMEOUT);
                return match result {
                    Err(error) if !is_timeout(&*error) => Err(error),
                    result => Ok((ms(start, end), result.is_err() && in_time)),
                };
            }
        };
        thread::sleep(Duration::from_millis(10) + Duration::from_millis(5) * (nth % 3));
        let (submitted, end) = world.end_of(world.get(url))?;
        let took_ms = ms(submitted, end);
        Ok((took_ms, took_ms > STALL_MS))
    }
}

/// Whether there is a timeout of reqwest's among the causes.
fn is_timeout(error: &(dyn Error + 'static)) -> bool {
    successors(Some(error), |&error| error.source())
        .any(|error| error.downcast_ref().is_some_and(reqwest::Error::is_timeout))
}
