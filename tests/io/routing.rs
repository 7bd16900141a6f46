//! Where does it run? What is given to the I/O lane runs there, from whatever thread
//! it comes; what a job starts carelessly runs where the table at `Backend` says.

use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::server::Server;
use crate::support::{self, BOTH, Dropped, Lanes, lanes, thread_name};
use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use twolane::{Backend, RequestBuilderExt};

/// The threads of its first poll, and of one after a wait.
async fn polled_on() -> [String; 2] {
    let first = thread_name();
    tokio::task::yield_now().await;
    [first, thread_name()]
}

/// A request that is polled by the thread that asked for it stalls whenever
/// that thread computes: `spawn_io` must move it, from any caller.
#[test]
fn spawn_io_moves_its_future_from_wherever_it_is_called() {
    let _limit = support::time_limit();
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 2);
        let on_io = ["io", "io"];

        let future = cpu.spawn(async { twolane::spawn_io(polled_on()).await.unwrap() });
        assert_eq!(future.wait().unwrap(), on_io, "{backend:?}: a future");

        let nested = cpu.spawn(async {
            let nested = || twolane::spawn_io(async { twolane::spawn_io(polled_on()).await });
            twolane::Handle::current().spawn(nested()).await.unwrap()
        });
        let nested = nested.wait().unwrap().unwrap().unwrap();
        assert_eq!(nested, on_io, "{backend:?}: I/O of I/O of a nested job");

        let closure = cpu.spawn_cpu(|| twolane::spawn_io(polled_on()).wait().unwrap());
        assert_eq!(closure.wait().unwrap(), on_io, "{backend:?}: a closure");

        let handle = cpu.handle();
        let children = cpu.spawn_cpu(move || {
            let child = || handle.spawn_io(polled_on()).wait().unwrap();
            rayon::join(child, child)
        });
        let (left, right) = children.wait().unwrap();
        assert_eq!([left, right], [on_io, on_io], "{backend:?}: rayon children");

        let handle = cpu.handle();
        let plain = std::thread::spawn(move || handle.spawn_io(polled_on()).wait().unwrap());
        assert_eq!(plain.join().unwrap(), on_io, "{backend:?}: a plain thread");
    }
}

/// What holds a socket must be let go where the socket lives, and soon: not
/// when a busy lane comes round to it.
#[test]
fn dropping_the_task_aborts_its_future_on_the_io_lane() {
    let _limit = support::time_limit();
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let (started, running) = mpsc::channel();
        let (dropped, dropped_on) = mpsc::channel();
        let handle = cpu.handle();
        let job = cpu.spawn_cpu(move || {
            let guard = Dropped(dropped);
            let task = handle.spawn_io(async move {
                let _guard = guard;
                started.send(()).unwrap();
                pending::<()>().await
            });
            running.recv().unwrap();
            drop(task);
            // The job's thread is taken until then.
            dropped_on.recv().unwrap()
        });
        assert_eq!(job.wait().unwrap(), "io", "{backend:?}");
    }
}

/// Notes the threads that resolve and connect.
#[derive(Clone)]
struct Noting<S> {
    inner: S,
    seen: mpsc::Sender<(&'static str, String)>,
}

impl<S: Clone> tower::Layer<S> for Noting<()> {
    type Service = Noting<S>;
    fn layer(&self, inner: S) -> Noting<S> {
        let seen = self.seen.clone();
        Noting { inner, seen }
    }
}

impl<S, R> tower::Service<R> for Noting<S>
where
    S: tower::Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let connecting = self.inner.call(request);
        let seen = self.seen.clone();
        Box::pin(async move {
            let connected = connecting.await;
            seen.send(("connect", thread_name())).unwrap();
            connected
        })
    }
}

struct NotingResolver(SocketAddr, mpsc::Sender<(&'static str, String)>);

impl reqwest::dns::Resolve for NotingResolver {
    fn resolve(&self, _name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let (address, seen) = (self.0, self.1.clone());
        Box::pin(async move {
            seen.send(("resolve", thread_name())).unwrap();
            Ok(Box::new(std::iter::once(address)) as reqwest::dns::Addrs)
        })
    }
}

/// A connection that is resolved, opened or driven by a job's thread waits for
/// that thread's next idle moment, and dies with the CPU lane.
#[test]
fn the_connection_of_a_job_s_request_belongs_to_the_io_lane() {
    let _limit = support::time_limit();
    let port = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.port().to_string() };
    let server = Server::start(Router::new().route("/port", get(port)));
    for backend in BOTH {
        let Lanes { cpu, io } = lanes(backend, 1);
        let (seen, threads) = mpsc::channel();
        let client = reqwest::Client::builder()
            .no_proxy()
            .http2_prior_knowledge()
            .dns_resolver(NotingResolver(server.address, seen.clone()))
            .connector_layer(Noting { inner: (), seen })
            .build()
            .unwrap();
        let url = format!("http://somewhere.test:{}/port", server.address.port());
        let request = client.get(&url);
        let job = cpu.spawn(async { request.send_io().await.unwrap().text().await.unwrap() });
        let port = job.wait().unwrap();
        let note = |what| (what, "io".to_owned());
        let noted: Vec<_> = threads.try_iter().collect();
        assert_eq!(noted, [note("resolve"), note("connect")], "{backend:?}");

        // Its driver is a task of the I/O lane: it works on without the other.
        cpu.shutdown().wait();
        let again = io.block_on(async { client.get(&url).send().await.unwrap().text().await });
        assert_eq!(again.unwrap(), port, "{backend:?}: the same connection");
    }
}

/// The safety net of `Backend::Rayon`: whatever looks for "the" Tokio runtime
/// inside a job finds the I/O lane, in rayon's children too.
#[test]
fn a_rayon_worker_lives_in_the_io_runtime_s_context() {
    let _limit = support::time_limit();
    let Lanes { cpu, io } = lanes(Backend::Rayon, 2);
    let here = || tokio::runtime::Handle::try_current().map(|found| found.id());
    let job = cpu.spawn_cpu(move || {
        let both_have_begun = std::sync::Barrier::new(2);
        let child = || {
            // So that one of the two is on the other worker.
            both_have_begun.wait();
            (thread_name(), here().unwrap())
        };
        (here().unwrap(), rayon::join(child, child))
    });
    let (in_job, (left, right)) = job.wait().unwrap();
    assert_ne!(left.0, right.0);
    assert_eq!([in_job, left.1, right.1], [io.handle().id(); 3]);
}

/// Sends back what it is sent.
fn echo() -> Server {
    Server::raw(|mut stream| async move {
        let (mut read, mut write) = stream.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
    })
}

async fn ping(mut stream: TcpStream) -> (TcpStream, [u8; 4]) {
    let mut answer = [0; 4];
    stream.write_all(b"ping").await.unwrap();
    stream.read_exact(&mut answer).await.unwrap();
    (stream, answer)
}

/// A socket that a job opens without any thought must not be registered with
/// a runtime that no thread drives, or that ends with the CPU lane.
#[test]
fn a_careless_socket_on_rayon_belongs_to_the_io_lane() {
    let _limit = support::time_limit();
    let server = echo();
    let address = server.address;
    let Lanes { cpu, io } = lanes(Backend::Rayon, 1);
    let job = cpu.spawn(async move { ping(TcpStream::connect(address).await.unwrap()).await });
    let (stream, answer) = job.wait().unwrap();
    assert_eq!(&answer, b"ping");
    cpu.shutdown().wait();
    assert_eq!(&io.block_on(ping(stream)).1, b"ping");
}

/// `Backend::Runtime` has no I/O driver, and says so with a message that the
/// docs of `Backend` quote beside the remedy. If Tokio changes its words, the
/// docs must follow.
#[test]
fn a_careless_socket_on_the_runtime_backend_fails_loudly() {
    let _limit = support::time_limit();
    let server = echo();
    let address = server.address;
    let Lanes { cpu, io: _io } = lanes(Backend::Runtime, 1);
    let careless = cpu.spawn(async move { TcpStream::connect(address).await });
    let error = careless.wait().unwrap_err();
    assert!(error.is_panic());
    let text = error.to_string();
    let quoted = "A Tokio 1.x context was found, but IO is disabled";
    assert!(text.contains(quoted), "{text}");

    // The remedies.
    let in_place = cpu.spawn(async move {
        let stream = twolane::in_io_context(|| TcpStream::connect(address)).await;
        (thread_name(), ping(stream.unwrap()).await.1)
    });
    let (thread, answer) = in_place.wait().unwrap();
    assert!(thread.starts_with("cpu-"), "{thread}");
    assert_eq!(&answer, b"ping");
    let listener = cpu.spawn_cpu(|| twolane::spawn_io(TcpListener::bind("127.0.0.1:0")).wait());
    assert!(listener.wait().unwrap().unwrap().is_ok());
}

/// Tells in which runtime's context it was made, polled and dropped.
struct Noted(mpsc::Sender<(&'static str, Option<tokio::runtime::Id>)>);

impl Noted {
    fn new(seen: mpsc::Sender<(&'static str, Option<tokio::runtime::Id>)>) -> Self {
        let noted = Self(seen);
        noted.note("made");
        noted
    }

    fn note(&self, what: &'static str) {
        let here = tokio::runtime::Handle::try_current().ok();
        self.0.send((what, here.map(|here| here.id()))).unwrap();
    }
}

impl Future for Noted {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        self.note("polled");
        Poll::Ready(())
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.note("dropped");
    }
}

/// `reqwest` starts a timer where `send` is called; others look for their
/// runtime when they are dropped. Entering it for the polls is not enough.
#[test]
fn in_io_context_is_made_polled_and_dropped_inside() {
    let _limit = support::time_limit();
    for backend in BOTH {
        let Lanes { cpu, io } = lanes(backend, 1);
        let there = Some(io.handle().id());
        let (seen, notes) = mpsc::channel();
        let outside = seen.clone();
        let job = cpu.spawn(async move {
            twolane::in_io_context(|| Noted::new(seen.clone())).await;
            drop(twolane::in_io_context(|| Noted::new(seen)));
        });
        job.wait().unwrap();
        // A plain thread has no runtime at all.
        drop(cpu.handle().in_io_context(|| Noted::new(outside)));
        let all: Vec<_> = notes.try_iter().collect();
        let whole = [("made", there), ("polled", there), ("dropped", there)];
        let unpolled = [("made", there), ("dropped", there)];
        let expected = [&whole[..], &unpolled, &unpolled].concat();
        assert_eq!(all, expected, "{backend:?}");
    }
}

/// Timers are common in code that does no I/O (a retry's back-off): they work
/// on both. Without `enable_time` a single 503 of an object store panics.
#[test]
fn timers_work_in_jobs() {
    let _limit = support::time_limit();
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let job = cpu.spawn(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let nothing = tokio::time::timeout(Duration::from_millis(1), pending::<()>()).await;
            (nothing.is_err(), thread_name())
        });
        let (timed_out, thread) = job.wait().unwrap();
        assert!(timed_out && thread.starts_with("cpu-"), "{backend:?}");
    }
}

/// A difference with a cost, for a user that doesn't know it: a heavy `tokio::spawn`
/// inside a job is on the I/O lane with one backend, on the CPU lane with the
/// other.
#[test]
fn a_nested_tokio_spawn_lands_where_the_table_says() {
    let _limit = support::time_limit();
    for (backend, lane) in [(Backend::Rayon, "io"), (Backend::Runtime, "cpu-")] {
        let Lanes { cpu, io: _io } = lanes(backend, 2);
        let job = cpu.spawn(async { tokio::spawn(async { thread_name() }).await.unwrap() });
        let thread = job.wait().unwrap();
        assert!(thread.starts_with(lane), "{backend:?}: {thread}");
    }
}
