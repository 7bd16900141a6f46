//! Bodies whose clients read nothing, or slowly, on real connections, with a shorter time than that
//! of `body_from_cpu`.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use twolane_core::{CpuRuntime, Handle, Priority};

use super::stream::body;
use super::{JobError, Reserved};

const CHUNK: usize = 64 << 10;
/// So that a test that fails ends.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone)]
struct App {
    cpu: Handle,
    timeout: Duration,
    /// How many chunks a body has.
    chunks: usize,
    dropped: UnboundedSender<()>,
}

impl axum::extract::FromRef<App> for Handle {
    fn from_ref(app: &App) -> Self {
        app.cpu.clone()
    }
}

struct OnDrop(UnboundedSender<()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

async fn download(State(app): State<App>, Reserved(permit): Reserved) -> Body {
    let guard = OnDrop(app.dropped);
    let chunk = Bytes::from(vec![b'x'; CHUNK]);
    let chunks = stream::repeat_with(move || {
        let _ = &guard;
        io::Result::Ok(chunk.clone())
    });
    body(permit, chunks.take(app.chunks), app.timeout)
}

async fn quick(State(cpu): State<Handle>) -> Result<&'static str, JobError> {
    Ok(cpu.spawn_cpu(|| "computed").await?)
}

/// That of the guide.
async fn in_time(request: Request, next: Next) -> Response {
    match timeout(Duration::from_secs(5), next.run(request)).await {
        Ok(response) => response,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// With small buffers: a slow client takes something often.
async fn serve(app: App) -> SocketAddr {
    let router = Router::new()
        .route("/download", get(download))
        .route("/quick", get(quick))
        .layer(from_fn(in_time))
        .with_state(app);
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(CHUNK as u32).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(64).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, router).await });
    address
}

async fn ask(server: SocketAddr, path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(CHUNK as u32).unwrap();
    let mut socket = socket.connect(server).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

async fn rest(mut socket: TcpStream) -> String {
    let mut answer = Vec::new();
    // An error: the server has closed the connection in the middle of a body.
    let _ = socket.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

fn lane() -> CpuRuntime {
    let cpu = CpuRuntime::builder().worker_threads(1);
    cpu.queue_limit(Priority::Normal, 8).build().unwrap()
}

async fn until_permits_are_back(cpu: &Handle) {
    while cpu.metrics().permits_in_use > 0 {
        tokio::task::yield_now().await;
    }
}

/// Eight of them held all permits for as long as they liked: each other route answered 503.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_read_nothing_give_their_permits_back() {
    let cpu = lane();
    let (dropped, mut drops) = unbounded_channel();
    let app = App {
        cpu: cpu.handle().clone(),
        timeout: Duration::from_millis(100),
        chunks: usize::MAX,
        dropped,
    };
    let test = async {
        let server = serve(app).await;
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(ask(server, "/download").await);
        }
        for _ in 0..8 {
            drops.recv().await.unwrap();
        }
        until_permits_are_back(cpu.handle()).await;
        let answer = rest(ask(server, "/quick").await).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let metrics = cpu.handle().metrics();
        assert_eq!((metrics.cancelled, metrics.completed), (8, 1));
        // Should it read on, it sees that there is no end.
        let answer = rest(clients.pop().unwrap()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(!answer.ends_with("0\r\n\r\n"), "a whole body");
    };
    timeout(LIMIT, test).await.unwrap();
}

/// What is computed needs no permit, though the client has not read it.
#[tokio::test]
async fn a_body_that_fits_needs_no_reader() {
    let cpu = lane();
    let permit = cpu.handle().try_reserve().unwrap();
    let chunks = stream::iter([Ok(Bytes::from("half")), Ok(Bytes::from("half"))]);
    let body = body(permit, chunks, Duration::MAX);
    timeout(LIMIT, until_permits_are_back(cpu.handle()))
        .await
        .unwrap();
    assert_eq!(
        axum::body::to_bytes(body, usize::MAX).await.unwrap(),
        "halfhalf"
    );
    assert_eq!(cpu.handle().metrics().completed, 1);
}

#[tokio::test]
async fn the_error_says_the_time_and_a_way_out() {
    let cpu = lane();
    let permit = cpu.handle().try_reserve().unwrap();
    let chunks = stream::repeat_with(|| Ok(Bytes::from(vec![0; CHUNK])));
    let body = body(permit, chunks, Duration::from_millis(20));
    timeout(LIMIT, until_permits_are_back(cpu.handle()))
        .await
        .unwrap();
    let mut chunks = body.into_data_stream();
    let error = chunks.next().await.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("20ms") && error.contains("stream_from_cpu"),
        "{error}"
    );
    assert!(chunks.next().await.is_none());
}

/// A guard by the time of the last chunk alone took it for one that has stalled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_client_that_goes_on_gets_the_whole_body() {
    const TIME: Duration = Duration::from_secs(1);
    const CHUNKS: usize = 64;
    let cpu = lane();
    let app = App {
        cpu: cpu.handle().clone(),
        timeout: TIME,
        chunks: CHUNKS,
        dropped: unbounded_channel().0,
    };
    let server = serve(app).await;
    let body = CHUNKS * CHUNK;
    let read = async || {
        let mut socket = ask(server, "/download").await;
        let (mut answer, mut part) = (0, vec![0; CHUNK]);
        let (began, mut longest) = (Instant::now(), Duration::ZERO);
        loop {
            let slept = Instant::now();
            tokio::time::sleep(TIME / 32).await;
            match socket.read(&mut part).await {
                Ok(0) => break,
                Ok(read) => answer += read,
                Err(_) => break,
            }
            longest = longest.max(slept.elapsed());
        }
        // With its head, and the heads of the chunks.
        (answer > body, began.elapsed(), longest)
    };
    // If this task did not get to read for so long, it was no such client.
    loop {
        let (is_whole, took, longest) = timeout(LIMIT, read()).await.unwrap();
        if longest < TIME / 2 {
            assert!(is_whole && took > TIME, "{took:?}");
            break;
        }
    }
}
