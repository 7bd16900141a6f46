//! A tonic server that reports what it sees of its requests, and clients of it.

#![allow(unreachable_pub, reason = "shared by the files of one test binary")]

use std::error::Error;
use std::sync::mpsc;

use axum::Router;
use bytes::Bytes;
use futures::future::FutureExt;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use tokio::sync::oneshot;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use twolane::io::Bridged;
use twolane::{Builder, CpuRuntime};
use twolane_grpc::abort::{self, AbortableChannel};
use twolane_grpc::{self as grpc};

use crate::layer::channel;
use crate::server::Server;
use crate::support::{Lanes, lanes_with, limit_this_thread};

#[derive(Clone, Copy, Debug)]
pub enum Call {
    ClientStreaming,
    Bidirectional,
}

pub const CALLS: [Call; 2] = [Call::ClientStreaming, Call::Bidirectional];

/// Runs the test with each kind of call, on a lane that has one thread.
pub fn each_call(test: impl Fn(&Service, Lanes, Call)) {
    each_call_with(|lane| lane, test);
}

pub fn each_call_with(set: impl Fn(Builder) -> Builder, test: impl Fn(&Service, Lanes, Call)) {
    let service = Service::start();
    for call in CALLS {
        println!("{call:?}");
        test(&service, lanes_with(1, &set), call);
    }
}

/// What a method of the server has seen of its request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen {
    /// The messages up to this one.
    Message(usize),
    /// The end of the stream, after so many messages.
    Whole(usize),
    /// An error in place of the next message.
    Failed(usize, Code),
}

/// A server that reports what its methods see.
pub struct Service {
    server: Server,
    pub seen: mpsc::Receiver<Seen>,
}

impl Service {
    pub fn start() -> Self {
        limit_this_thread();
        let (tell, seen) = mpsc::channel();
        let report = tell.clone();
        let upload = grpc::client_streaming(move |messages| {
            read(messages, report.clone()).map(|()| Ok(Bytes::from("read")))
        });
        // The first answer comes before all messages, the last one after them. The messages
        // have a reader of their own: hyper drops the answers of a stream that is reset.
        let chat = grpc::bidirectional(move |messages| {
            let read = tokio::spawn(read(messages, tell.clone()));
            let last = stream::once(read).map(|_| Ok(Bytes::from("last")));
            let first = stream::iter([Ok(Bytes::from("first"))]);
            first.chain(last).boxed()
        });
        let echo = grpc::unary(|message| async { Ok(message) });
        let router = Router::new().route("/test/upload", upload);
        let router = router.route("/test/chat", chat).route("/test/echo", echo);
        let server = Server::start(router);
        Self { server, seen }
    }

    pub fn channel(&self, cpu: &CpuRuntime) -> Channel {
        channel(cpu, self.server.url(""))
    }

    pub fn client(&self, cpu: &CpuRuntime) -> AbortableChannel {
        abort::layered(self.channel(cpu), cpu.handle())
    }

    /// Waits until the server has read so many messages, and expects no end before.
    pub fn has_read(&self, messages: usize) {
        for message in 1..=messages {
            assert_eq!(self.seen.recv().unwrap(), Seen::Message(message));
        }
    }

    pub fn end(&self) -> Seen {
        let mut ends = self.seen.iter();
        ends.find(|seen| !matches!(seen, Seen::Message(_))).unwrap()
    }
}

async fn read(mut messages: Streaming<Bytes>, tell: mpsc::Sender<Seen>) {
    let mut count = 0;
    loop {
        let seen = match messages.message().await {
            Ok(Some(_)) => {
                count += 1;
                Seen::Message(count)
            }
            Ok(None) => Seen::Whole(count),
            Err(status) => Seen::Failed(count, status.code()),
        };
        // The test may have seen enough.
        let _ = tell.send(seen);
        if !matches!(seen, Seen::Message(_)) {
            return;
        }
    }
}

/// Makes a call and reads its answers to their end.
pub async fn send<S, M, E>(service: S, call: Call, messages: M) -> Result<(), Status>
where
    S: GrpcService<Body>,
    S::ResponseBody: Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<tower::BoxError>,
    M: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: Into<tower::BoxError>,
{
    let (request, failure) = abort::messages(messages);
    match call {
        Call::ClientStreaming => {
            let answer = grpc::upload(service, "/test/upload", request).await;
            assert_eq!(failure.check(answer)?, "read");
        }
        Call::Bidirectional => {
            let answers = grpc::converse(service, "/test/chat", request).await;
            let mut answers = failure.check(answers)?;
            for expected in ["first", "last"] {
                assert_eq!(failure.check(answers.message().await)?.unwrap(), expected);
            }
            assert!(failure.check(answers.message().await)?.is_none());
        }
    }
    Ok(())
}

pub fn numbers(count: usize) -> impl Stream<Item = Bytes> + Send + 'static {
    stream::iter(0..count).map(|n| Bytes::from(n.to_string()))
}

/// Three messages, and what comes when it is told to go on.
pub fn three_then<T: Send + 'static>(
    message: impl FnOnce(T) -> Bytes + Send + 'static,
) -> (oneshot::Sender<T>, BoxStream<'static, Bytes>) {
    let (go_on, next) = oneshot::channel();
    let next = next.map(|next| next.map(message));
    let next = stream::once(next).filter_map(|next| async { next.ok() });
    (go_on, numbers(3).chain(next).boxed())
}

/// Three messages, and no end.
pub fn three_and_no_end() -> BoxStream<'static, Bytes> {
    numbers(3).chain(stream::pending()).boxed()
}

/// Computes messages on the lane.
pub fn computed(
    cpu: &CpuRuntime,
    messages: impl Stream<Item = Bytes> + Send + 'static,
) -> Bridged<Bytes> {
    cpu.handle().stream_from_cpu(messages, 64, Bytes::len)
}

pub fn source<E: Error + 'static>(status: &Status) -> &E {
    let source = status.source().unwrap();
    source
        .downcast_ref()
        .unwrap_or_else(|| panic!("{source:?}"))
}
