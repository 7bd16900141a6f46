//! One round of S1: both sides submit ten requests, and each request of the io side is followed
//! from its submission to its end.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use twolane_benches::BoxError;
use twolane_benches::tail::sleep_until;

use crate::contender::{Contender, Protocol};
use crate::server::Server;
use crate::world::{Busy, World};

/// On each side, one each [`PACE`].
const REQUESTS: u32 = 10;
const PACE: Duration = Duration::from_millis(10);
/// How long a CPU job keeps its thread after its response.
const BUSY: Duration = Duration::from_millis(200);
/// A request that takes longer has stalled: twice what the server takes.
pub const STALL_MS: f64 = 100.0;

/// One request of the io side, and where its time went, in ms.
#[derive(Clone, Copy)]
pub struct Request {
    pub contender: Contender,
    pub busy: Busy,
    pub to_write: f64,
    pub at_server: f64,
    /// Until the response had been read, and its task polled.
    pub to_read: f64,
}

impl Request {
    pub fn ms(&self) -> f64 {
        self.to_write + self.at_server + self.to_read
    }

    pub fn has_stalled(&self) -> bool {
        self.ms() > STALL_MS
    }
}

pub fn ms(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}

/// The requests of the io side.
pub fn run(contender: Contender, busy: Busy, server: &Server) -> Result<Vec<Request>, BoxError> {
    let world = World::new(contender, Protocol::Http1, busy)?;
    let start = Instant::now();
    let gets: Vec<_> = thread::scope(|scope| {
        if contender != Contender::Alone {
            scope.spawn(|| feed_cpu(&world, contender, start, server));
        }
        let requests = paced(start).map(|()| server.request());
        requests.map(|(id, url)| (id, world.get(url))).collect()
    });
    let followed = gets.into_iter().map(|(id, get)| {
        let (submitted, end) = world.end_of(get)?;
        let served = server.served(id).ok_or("not answered by the server")?;
        Ok(Request {
            contender,
            busy,
            to_write: ms(submitted, served.seen),
            at_server: ms(served.seen, served.answered),
            to_read: ms(served.answered, end),
        })
    });
    followed.collect()
}

fn feed_cpu(world: &World, contender: Contender, start: Instant, server: &Server) {
    for () in paced(start) {
        let (_, url) = server.request();
        let request = world.cpu_client.get(url);
        let work = Arc::clone(&world.work);
        world.cpu.spawn(async move {
            // At the end of a round requests of this side fail: their runtime is shut down.
            if let Ok(response) = contender.send(request).await {
                let _ = response.bytes().await;
                work.keep_busy(BUSY);
            }
        });
    }
}

/// So many items, one each [`PACE`] from the common start on.
fn paced(start: Instant) -> impl Iterator<Item = ()> {
    (1..=REQUESTS).map(move |n| sleep_until(start + PACE * n))
}
