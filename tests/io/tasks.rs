//! How many Tokio tasks does a response cost, with its body? As documented at `HandleExt`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use twolane::HandleExt;
use twolane::io::DEFAULT_BODY_LIMIT;

use crate::support::turns::current_thread;
use crate::support::{child, cpu_lane};

/// A server without Tokio: it answers each request on its connection by the name of its path.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut request = Vec::new();
        let mut bytes = [0; 1024];
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            request.extend(&bytes[..read]);
            if !request.ends_with(b"\r\n\r\n") {
                continue;
            }
            let answer = match &request[..] {
                known if known.starts_with(b"GET /known") => "content-length: 5\r\n\r\nhello",
                none if none.starts_with(b"GET /none") => "content-length: 0\r\n\r\n",
                _ => "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            };
            let answer = format!("HTTP/1.1 200 OK\r\n{answer}");
            stream.write_all(answer.as_bytes()).unwrap();
            request.clear();
        }
    });
    address
}

/// The number of the next task of this process: Tokio counts them.
fn next_task(io: &Runtime) -> u64 {
    io.spawn(async {}).id().to_string().parse().unwrap()
}

/// The tasks of a response without a body, with one of known and one of unknown length, from the
/// request to the body's end.
fn tasks_of_responses(io: &Runtime) -> [u64; 3] {
    let cpu = cpu_lane(1, io.handle());
    let address = server();
    let mut sender = io.block_on(async {
        let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (sender, connection) = http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        sender
    });
    ["none", "known", "unknown"].map(|path| {
        let request = Request::get(format!("/{path}")).header("host", "here");
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        io.block_on(sender.ready()).unwrap();
        let before = next_task(io);
        let request = sender.send_request(request);
        let answer = cpu.handle().response_from_io(request, DEFAULT_BODY_LIMIT);
        let whole = io.block_on(async {
            let body = answer.await.unwrap().unwrap().into_body();
            body.collect().await.unwrap().to_bytes()
        });
        assert_eq!(whole, if path == "none" { "" } else { "hello" });
        next_task(io) - before - 1
    })
}

/// In a process of its own, whose tasks are these alone.
#[test]
fn a_response_is_a_task_its_body_one_and_an_end_that_is_in_doubt_one() {
    if !child::is_child() {
        let test = "tasks::a_response_is_a_task_its_body_one_and_an_end_that_is_in_doubt_one";
        let found = child::run(test, |_| (), |_| ());
        assert_eq!(found, "of several threads [1, 2, 3], of one [1, 2, 2]");
        return;
    }
    let of_several = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let several = tasks_of_responses(&of_several.unwrap());
    let one = tasks_of_responses(&current_thread());
    child::found(format!("of several threads {several:?}, of one {one:?}"));
}
