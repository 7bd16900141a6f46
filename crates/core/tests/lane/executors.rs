//! The handles as what libraries take to spawn futures.

use futures::task::{Spawn, SpawnExt};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use std::sync::mpsc;

use crate::support::{Stuck, lanes_with, on_both, thread_name, time_limit};
use twolane_core::{Backend, Priority};

/// The thread on which a future runs that this spawns.
fn thread_of(executor: &impl Spawn) -> String {
    let (tell, told) = mpsc::channel();
    executor
        .spawn(async move { tell.send(thread_name()).unwrap() })
        .unwrap();
    told.recv().unwrap()
}

#[test]
fn futures_spawn_on_either_lane() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle();
        assert_eq!(thread_of(&cpu), "cpu-0");
        assert_eq!(thread_of(&cpu.io()), "io");
        drop(lanes.cpu);
        cpu.spawn(async {}).wait().unwrap_err();
        cpu.status().unwrap_err();
        SpawnExt::spawn(&cpu, async {}).unwrap_err();
        assert_eq!(thread_of(&cpu.io()), "io");
        drop(lanes.io);
        cpu.io().status().unwrap_err();
        SpawnExt::spawn(&cpu.io(), async {}).unwrap_err();
    });
}

#[test]
fn a_full_queue_is_an_error() {
    let _limit = time_limit();
    let limited = |builder: twolane_core::Builder| builder.queue_limit(Priority::Normal, 1);
    let lanes = lanes_with(Backend::Rayon, 1, limited);
    let cpu = lanes.cpu.handle();
    let stuck = Stuck::<()>::start(&cpu);
    SpawnExt::spawn(&cpu, async {}).unwrap_err();
    let (job, end) = stuck.split();
    end.send(()).unwrap();
    job.wait().unwrap();
    assert_eq!(thread_of(&cpu), "cpu-0");
}

/// A pooled client that a job calls: its connections are tasks of the I/O lane.
#[test]
fn hypers_client_has_its_connections_on_the_io_lane() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle();
        let app = axum::Router::new().route("/", axum::routing::get(|| async { "answer" }));
        let listener = lanes
            .io
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        lanes
            .io
            .spawn(async move { axum::serve(listener, app).await });
        let client: Client<HttpConnector, Empty<Bytes>> = Client::builder(cpu.io()).build_http();
        let stuck = Stuck::<()>::start(&cpu);
        // The lane's only thread is busy, and the client gets its answer.
        let body = lanes.io.block_on(async {
            let answer = client.get(url.parse().unwrap()).await.unwrap();
            answer.into_body().collect().await.unwrap().to_bytes()
        });
        assert_eq!(body, "answer");
        stuck.split().1.send(()).unwrap();
    });
}

/// The futures of hyper's interface compute on the CPU lane by its handle.
#[test]
fn a_cpu_handle_is_an_executor_of_hyper() {
    use hyper::rt::Executor;
    on_both(1, |lanes| {
        let (tell, told) = mpsc::channel();
        let again = tell.clone();
        let cpu = lanes.cpu.handle();
        cpu.execute(async move { tell.send(thread_name()).unwrap() });
        assert_eq!(told.recv().unwrap(), "cpu-0");
        let io = cpu.io();
        io.execute(async move { again.send(thread_name()).unwrap() });
        assert_eq!(told.recv().unwrap(), "io");
    });
}
