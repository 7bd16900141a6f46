//! One round of S1: both sides submit ten requests, and each request of the io side is followed
//! from its submission to its end.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use reqwest::{Client, Response};

use crate::connector::BoxError;
use crate::contender::{Contender, Protocol};
use crate::cpu_side::Spawner;
use crate::gate::{Busy, Span};
use crate::lane::Lane;
use crate::server::{PEER_PORT, Server};
use crate::wakes::{Trace, Traced};
use crate::world::World;

/// Requests on each side, one each [`PACE`].
pub const REQUESTS: usize = 10;
const PACE: Duration = Duration::from_millis(10);
/// How long a CPU job keeps its thread after its response.
const BUSY: Duration = Duration::from_millis(200);
/// A request that takes longer has stalled: twice what the server takes.
pub const STALL_MS: f64 = 100.0;
/// No request of any contender has any business being this late.
pub const GIVE_UP: Duration = Duration::from_secs(30);

/// One request of the io side, with everything that was observed about it.
pub struct Request {
    pub submitted: Instant,
    /// The server had it in hand.
    pub seen: Instant,
    pub answered: Instant,
    /// The connection's driver delivered the response.
    pub delivered: Instant,
    pub ready: Instant,
    /// The lane whose thread ended the connect.
    pub opened_by: Lane,
    /// The lane whose reactor had the socket.
    pub reactor_of: Lane,
    /// The lane whose thread delivered the response.
    pub driven_by: Lane,
    /// More than one lane could have.
    pub ambiguous: bool,
}

pub const SEGMENTS: [&str; 4] = [
    "waiting to be written",
    "at the server",
    "answered, not yet read by its driver",
    "delivered, not yet polled",
];

impl Request {
    pub fn latency_ms(&self) -> f64 {
        ms(self.submitted, self.ready)
    }

    pub fn stalled(&self) -> bool {
        self.latency_ms() > STALL_MS
    }

    /// Where the time went, as [`SEGMENTS`] names it.
    pub fn segments_ms(&self) -> [f64; 4] {
        [
            ms(self.submitted, self.seen),
            ms(self.seen, self.answered),
            ms(self.answered, self.delivered),
            ms(self.delivered, self.ready),
        ]
    }
}

pub fn ms(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}

pub struct Round {
    pub contender: Contender,
    pub busy: Busy,
    pub start: Instant,
    pub requests: Vec<Request>,
    /// The CPU side was not cut short when the io side was done.
    pub whole: bool,
    /// When the CPU threads were busy.
    pub spans: Vec<Span>,
}

impl Round {
    pub fn stalled(&self) -> usize {
        self.requests.iter().filter(|r| r.stalled()).count()
    }

    pub fn slowest_ms(&self) -> f64 {
        let latencies = self.requests.iter().map(Request::latency_ms);
        latencies.fold(0.0, f64::max)
    }
}

/// A request of the io side as its task saw it.
struct Seen {
    id: u64,
    submitted: Instant,
    peer_port: Result<u16, BoxError>,
    trace: Trace,
}

pub fn run(
    contender: Contender,
    busy: Busy,
    whole: bool,
    server: &Server,
) -> Result<Round, BoxError> {
    let world = World::new(contender, Protocol::Http1, busy)?;
    let cpu = world.cpu();
    let barrier = Barrier::new(2 + usize::from(cpu.is_some()));
    let (sender, results) = mpsc::channel();
    let mut seen = Vec::new();
    let mut start = Instant::now();
    thread::scope(|scope| -> Result<(), BoxError> {
        let (world, barrier) = (&world, &barrier);
        let feeder = thread::Builder::new().name("feeder-io".into());
        feeder.spawn_scoped(scope, move || feed_io(world, server, barrier, &sender))?;
        if let Some(cpu) = cpu {
            let feeder = thread::Builder::new().name("feeder-cpu".into());
            feeder.spawn_scoped(scope, move || {
                feed_cpu(world, contender, &cpu, server, barrier);
            })?;
        }
        barrier.wait();
        start = Instant::now();
        for _ in 0..REQUESTS {
            seen.push(results.recv_timeout(GIVE_UP)?);
        }
        // What is left of the CPU side can't change what the io side saw.
        if whole {
            world.gate.wait_for(REQUESTS, GIVE_UP);
        }
        world.gate.close();
        Ok(())
    })?;
    let connections = Arc::clone(&world.connections);
    let spans = world.end();
    let mut requests = Vec::new();
    for request in seen {
        let port = request.peer_port?;
        let served = server.served(request.id).ok_or("not seen by the server")?;
        let (delivered, driven_by) = request.trace.last_wake.ok_or("ready without a wake")?;
        let opened = connections.opened(port);
        requests.push(Request {
            submitted: request.submitted,
            seen: served.seen,
            answered: served.answered.ok_or("not answered by the server")?,
            delivered,
            ready: request.trace.ready,
            opened_by: opened.by,
            reactor_of: opened.reactor_of,
            driven_by,
            ambiguous: request.trace.ambiguous,
        });
    }
    requests.sort_by_key(|request| request.submitted);
    Ok(Round {
        contender,
        busy,
        start,
        requests,
        whole,
        spans,
    })
}

fn feed_io(world: &World, server: &Server, barrier: &Barrier, results: &Sender<Seen>) {
    for _ in paced(barrier) {
        let id = server.next_id();
        let fetch = fetch(world.io_client.clone(), server.url(id));
        let results = results.clone();
        let submitted = Instant::now();
        world.io.spawn(async move {
            let (peer_port, trace) = Traced::new(fetch).await;
            // An error: the round has given up.
            let _ = results.send(Seen {
                id,
                submitted,
                peer_port,
                trace,
            });
        });
    }
}

fn feed_cpu(
    world: &World,
    contender: Contender,
    cpu: &Spawner,
    server: &Server,
    barrier: &Barrier,
) {
    for _ in paced(barrier) {
        if world.gate.is_closed() {
            break;
        }
        let request = world.cpu_client.get(server.url(server.next_id()));
        let gate = Arc::clone(&world.gate);
        cpu.spawn(async move {
            // At the end of a round requests of this side fail: their runtime is shut down.
            if let Ok(response) = contender.send_from_cpu(request).await {
                let _ = response.bytes().await;
                gate.keep_busy(BUSY);
            }
        });
    }
}

/// Counts the requests, one each [`PACE`] from the common start on.
fn paced(barrier: &Barrier) -> impl Iterator<Item = usize> {
    barrier.wait();
    let start = Instant::now();
    (1..=REQUESTS).inspect(move |&n| {
        let due = start + PACE * u32::try_from(n).expect("ten");
        thread::sleep(due.saturating_duration_since(Instant::now()));
    })
}

/// One request, body and all, as the original does it; gives the port it came back to.
pub async fn fetch(client: Client, url: String) -> Result<u16, BoxError> {
    let response = client.get(url).send().await?.error_for_status()?;
    let port = peer_port(&response).ok_or("a response without its peer port")?;
    response.bytes().await?;
    Ok(port)
}

fn peer_port(response: &Response) -> Option<u16> {
    response
        .headers()
        .get(PEER_PORT)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}
