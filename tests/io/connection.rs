//! Where does the connection of an HTTP client live?

use std::net::SocketAddr;
use std::sync::mpsc;

use crate::server::Server;
use crate::support::{Lanes, lanes, thread_name, time_limit};
use crate::watched::{Threads, Watched};
use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use twolane::RequestBuilderExt;

struct Resolver(SocketAddr, mpsc::Sender<String>);

impl reqwest::dns::Resolve for Resolver {
    fn resolve(&self, _name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let (address, seen) = (self.0, self.1.clone());
        Box::pin(async move {
            seen.send(thread_name()).unwrap();
            Ok(Box::new(std::iter::once(address)) as reqwest::dns::Addrs)
        })
    }
}

/// A connection that is resolved, opened or driven by a job's thread waits for
/// that thread's next idle moment, and dies with the CPU lane.
#[test]
fn the_connection_of_a_job_s_request_belongs_to_the_io_lane() {
    let port = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.port().to_string() };
    let server = Server::start(Router::new().route("/port", get(port)));
    let _limit = time_limit();
    let Lanes { cpu, io } = lanes(1);
    let (resolves, resolved_on) = mpsc::channel();
    let threads = Threads::default();
    let watched = threads.clone();
    let client = reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .dns_resolver(Resolver(server.address, resolves))
        .connector_layer(tower::layer::layer_fn(move |inner| {
            Watched::new(inner, &watched)
        }))
        .build()
        .unwrap();
    let url = format!("http://somewhere.test:{}/port", server.address.port());
    let request = client.get(&url);
    let job = cpu.spawn(async { request.send_io().await.unwrap().text().await.unwrap() });
    let port = job.wait().unwrap();
    assert_eq!(resolved_on.try_iter().collect::<Vec<_>>(), ["io"]);
    let steps = ["poll_ready", "call", "response"].map(|step| (step, "io".to_owned()));
    assert_eq!(threads.seen(), steps.into());

    // Its driver is a task of the I/O lane: it works on without the other.
    cpu.shutdown().wait();
    let again = io.block_on(async { client.get(&url).send().await.unwrap().text().await });
    assert_eq!(again.unwrap(), port, "the same connection");
}
