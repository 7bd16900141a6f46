//! Small requests to the executors' Flight services: a plain thread for each asks every 10 ms.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arrow_flight::Empty;
use arrow_flight::flight_service_client::FlightServiceClient;
use futures::TryStreamExt;
use hdrhistogram::Histogram;
use tonic::transport::{Channel, Endpoint};
use twolane_benches::findings::empty_histogram;

const EVERY: Duration = Duration::from_millis(10);
const ANSWER: Duration = Duration::from_secs(60);

/// Clients that ask until they are stopped.
pub struct Clients {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<Histogram<u64>, String>>>,
}

impl Clients {
    pub fn start(ports: &[u16]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |port: &u16| {
            let (port, stopped) = (*port, stop.clone());
            thread::spawn(move || ask(port, &stopped))
        };
        let threads = ports.iter().map(start).collect();
        Self { stop, threads }
    }

    /// The nanoseconds from when each request was due to the end of its answer.
    pub fn stop(self) -> Result<Histogram<u64>, String> {
        self.stop.store(true, SeqCst);
        let mut all = empty_histogram();
        for thread in self.threads {
            let latencies = thread.join().expect("the client does not panic")?;
            all.add(latencies).expect("of the same bounds");
        }
        Ok(all)
    }
}

fn ask(port: u16, stopped: &AtomicBool) -> Result<Histogram<u64>, String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let of = |error: &dyn std::error::Error| format!("Flight at {port}: {error}");
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
    let endpoint = endpoint.map_err(|error| of(&error))?.timeout(ANSWER);
    let channel = runtime.block_on(endpoint.connect());
    let mut client = FlightServiceClient::new(channel.map_err(|error| of(&error))?);
    let (mut latencies, start) = (empty_histogram(), Instant::now());
    for k in 0.. {
        // While an answer is late, the next requests are late too: they count from when they
        // were due.
        let due = start + EVERY * k;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if stopped.load(SeqCst) {
            break;
        }
        let answer = runtime.block_on(list_actions(&mut client));
        answer.map_err(|error| of(&error))?;
        latencies.saturating_record(due.elapsed().as_nanos() as u64);
    }
    Ok(latencies)
}

async fn list_actions(client: &mut FlightServiceClient<Channel>) -> Result<(), tonic::Status> {
    let actions = client.list_actions(Empty {}).await?.into_inner();
    let actions: Vec<_> = actions.try_collect().await?;
    match actions.is_empty() {
        true => Err(tonic::Status::internal("no actions")),
        false => Ok(()),
    }
}
