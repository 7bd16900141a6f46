//! Tower clients under `IoLayer`: hyper-util's client and a tonic channel.
//!
//! CPU jobs and the I/O side share one client. A job starts its request and is
//! then busy for 300 ms before it looks for the answer. How many requests of
//! the I/O side, which has nothing else to do, take over 150 ms, where the
//! server answers after 5? Without the layer, the jobs on a second Tokio
//! runtime, and with it, on twolane's CPU lane:
//!
//! - hyper's connections belong to the runtime of the task that opened them, and the
//!   client gives them to any request.
//! - A channel's one connection belongs to where the channel was made: by a job
//!   that was the first to need it, say.
//! - If it was made on the I/O side, the jobs' unread answers use its HTTP/2
//!   window up, and no other answer comes through. (The window is made
//!   small, so that small answers will do.)
//!
//! The jobs sleep on their threads: what is late is not so for want of a core.
//!
//! ```text
//! cargo run --release -p twolane-grpc --example tower_clients #  10 seconds; -- --quick: 5
//! ```

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use axum::serve::ListenerExt;
use bytes::Bytes;
use clap::Parser;
use futures::future::join_all;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tower::{BoxError, Layer, ServiceExt};
use twolane::CpuRuntime;
use twolane::io::IoLayer;
use twolane_grpc as grpc;

const SERVER_THINKS: Duration = Duration::from_millis(5);
const BUSY: Duration = Duration::from_millis(300);
const LATE: Duration = Duration::from_millis(150);
/// As many come at once as there are threads for them.
const JOBS: usize = 4;
const REQUESTS_PER_BURST: usize = 40;
const BETWEEN_REQUESTS: Duration = Duration::from_millis(10);
const WINDOW: u32 = 512 << 10;
/// A job's answer: all of them together are more than the window.
const BIG: usize = 200 << 10;

#[derive(Parser)]
#[command(about = "Tower clients with and without twolane's IoLayer")]
struct Args {
    /// Two bursts of jobs for each contender instead of four
    #[arg(long)]
    quick: bool,
}

fn main() -> Result<(), BoxError> {
    let requests = REQUESTS_PER_BURST * if Args::parse().quick { 2 } else { 4 };
    let server = runtime("server", 2)?;
    let url = server.block_on(serve())?;
    println!("{requests} requests of the I/O side while jobs keep the CPU side's threads\n");
    println!("{:<48} {:>10} {:>10}", "contender", "over 150ms", "max");
    let mut cured = true;
    for (made, name) in [
        (Made::Hyper, "hyper-util's client"),
        (Made::ChannelByAJob, "tonic's channel, made by a job"),
        (Made::ChannelByIo, "tonic's channel, made by the I/O side"),
    ] {
        let late = [false, true].map(|layered| {
            let took = run(made, layered, &url, requests)?;
            let late = took.iter().filter(|took| **took > LATE).count();
            let name = format!("{name}{}", if layered { ", IoLayer" } else { "" });
            let max = took.iter().max().map_or(0, Duration::as_millis);
            println!("{name:<48} {late:>10} {max:>7} ms");
            Ok::<_, BoxError>(late)
        });
        let [without, with] = late;
        cured &= with? < without?;
    }
    println!("\nLook at the pairs of rows: with the layer what a job starts belongs to the I/O");
    println!("lane, and its answer is read ahead there. No other request waits for a busy job.");
    // No failure: a busy machine makes requests late, too. The tests assert the cure without a
    // clock.
    if !cured {
        println!("\nNOT SO HERE: the layer did not help, or there was nothing to cure.");
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Made {
    Hyper,
    ChannelByAJob,
    ChannelByIo,
}

/// How long each request of the I/O side took.
fn run(made: Made, layered: bool, url: &str, requests: usize) -> Result<Vec<Duration>, BoxError> {
    let io = runtime("io", 2)?;
    let side = if layered {
        let cpu = CpuRuntime::builder().worker_threads(JOBS);
        Side::Twolane(cpu.io_handle(io.handle().clone()).build()?)
    } else {
        Side::Tokio(runtime("cpu", JOBS)?)
    };
    let endpoint = Endpoint::from_shared(url.to_owned())?.initial_connection_window_size(WINDOW);
    let channel = async move { endpoint.connect_lazy() };
    let client = match made {
        Made::Hyper => Shared::Http(Box::new(hyper_client()), url.to_owned()),
        Made::ChannelByAJob => Shared::Rpc(side.make(channel)?),
        Made::ChannelByIo => Shared::Rpc(io.block_on(channel)),
    };
    let layer = match &side {
        Side::Tokio(_) => None,
        Side::Twolane(cpu) => Some(IoLayer::new(cpu.handle())),
    };
    let ask = |path| client.clone().ask(layer.clone(), path);

    let answers = io.block_on(async {
        let mut clock = tokio::time::interval(BETWEEN_REQUESTS);
        let mut asking = Vec::new();
        for n in 0..requests {
            clock.tick().await;
            if n % REQUESTS_PER_BURST == 0 {
                (0..JOBS).for_each(|_| side.spawn(job(ask("/big"))));
                // In which one of them is the first to connect.
                clock.tick().await;
            }
            let (asked, answer) = (Instant::now(), ask("/small"));
            let answered = async move { answer.await.map(|_| asked.elapsed()) };
            asking.push(tokio::spawn(answered));
        }
        join_all(asking).await
    });
    answers.into_iter().map(|took| took?).collect()
}

/// Starts its request, does something else, and reads what came.
async fn job(answer: impl Future<Output = Result<usize, BoxError>>) {
    let mut answer = Box::pin(answer);
    let begun = poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await;
    std::thread::sleep(BUSY);
    if begun.is_pending() {
        assert_eq!(answer.await.expect("the server is there"), BIG);
    }
}

/// Where the jobs run.
enum Side {
    Tokio(Runtime),
    Twolane(CpuRuntime),
}

impl Side {
    /// In a job; one of twolane's is in the context of the I/O lane.
    fn make<F>(&self, make: F) -> Result<F::Output, BoxError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        Ok(match self {
            Self::Tokio(cpu) => cpu.block_on(cpu.spawn(make))?,
            Self::Twolane(cpu) => cpu.spawn(make).wait()?,
        })
    }

    fn spawn(&self, job: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Tokio(cpu) => drop(cpu.spawn(job)),
            Self::Twolane(cpu) => cpu.spawn(job).detach(),
        }
    }
}

/// The client that both sides use.
#[derive(Clone)]
enum Shared {
    Http(Box<Client<HttpConnector, Full<Bytes>>>, String),
    Rpc(Channel),
}

impl Shared {
    /// Asks for an answer, reads all of it and says how long it is.
    async fn ask(self, layer: Option<IoLayer>, path: &'static str) -> Result<usize, BoxError> {
        let empty = Bytes::new();
        let answer = match (self, layer) {
            (Self::Http(client, url), layer) => {
                let request = Request::get(format!("{url}/http{path}")).body(Full::default())?;
                match layer {
                    Some(layer) => read(layer.layer(*client).oneshot(request).await?).await?,
                    None => read(client.request(request).await?).await?,
                }
            }
            (Self::Rpc(channel), Some(layer)) => {
                grpc::call(layer.layer(channel), path, empty).await?
            }
            (Self::Rpc(channel), None) => grpc::call(channel, path, empty).await?,
        };
        Ok(answer.len())
    }
}

async fn read<B: Body<Error: Into<BoxError>>>(response: Response<B>) -> Result<Bytes, BoxError> {
    let body = response.into_body().collect().await.map_err(Into::into)?;
    Ok(body.to_bytes())
}

/// With HTTP/2, so that both sides share one connection.
fn hyper_client() -> Client<HttpConnector, Full<Bytes>> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let mut client = Client::builder(TokioExecutor::new());
    client.http2_only(true);
    client.http2_initial_connection_window_size(WINDOW);
    client.build(connector)
}

fn runtime(name: &str, threads: usize) -> std::io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name(name);
    builder.enable_all().build()
}

/// The same two answers by HTTP and by gRPC.
async fn serve() -> std::io::Result<String> {
    async fn answer(length: usize) -> Bytes {
        tokio::time::sleep(SERVER_THINKS).await;
        Bytes::from(vec![7; length])
    }
    let router = Router::new()
        .route("/http/small", get(|| answer(1)))
        .route("/http/big", get(|| answer(BIG)))
        .route("/small", grpc::unary(|_| async { Ok(answer(1).await) }))
        .route("/big", grpc::unary(|_| async { Ok(answer(BIG).await) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    // Else the kernel holds small answers back for 40 ms.
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}
