//! The handles where tonic and tower let a program say what spawns their tasks.

use std::future::ready;

use axum::Router;
use bytes::Bytes;
use tonic::transport::Endpoint;
use tower::buffer::Buffer;
use tower::{Service, ServiceExt, service_fn};
use twolane::{Priority, in_cpu_context};
use twolane_grpc as grpc;

use crate::server::Server;
use crate::support::{lanes, lanes_with, thread_name};

/// tonic makes its connections, and serves them, in tasks of its own.
#[test]
fn a_channel_that_is_made_on_the_lane_has_its_connection_on_the_io_lane() {
    let echo = grpc::unary(|message| async { Ok(message) });
    let server = Server::start(Router::new().route("/test/echo", echo));
    let lanes = lanes(1);
    let endpoint = Endpoint::from_shared(server.url("")).unwrap();
    let endpoint = endpoint.executor(lanes.cpu.handle().io());
    // A bare `tokio::spawn` here is a task of the lane's own runtime, which has no sockets.
    let call = async move {
        let channel = endpoint.connect_lazy();
        grpc::call(channel, "/test/echo", Bytes::from("echoed")).await
    };
    let echoed = lanes.cpu.spawn(in_cpu_context(call)).wait().unwrap();
    assert_eq!(echoed.unwrap(), "echoed");
}

/// A buffer's worker, which calls the service, computes on the lane. It is one job for all calls,
/// so it needs no permit.
#[test]
fn a_buffered_service_is_called_on_the_lane() {
    let lanes = lanes_with(1, |lane| lane.queue_limit(Priority::Normal, 1));
    let computes = service_fn(|n: u64| {
        let product = (1..=n).product::<u64>();
        ready(Ok::<_, tower::BoxError>((product, thread_name())))
    });
    let (mut buffer, worker) = Buffer::pair(computes, 8);
    lanes.cpu.handle().without_limit().spawn(worker).detach();
    let answer = lanes
        .io
        .block_on(async { buffer.ready().await.unwrap().call(10).await });
    assert_eq!(answer.unwrap(), (3_628_800, "cpu-0".to_owned()));
}
