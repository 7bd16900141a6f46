//! The process that asks for `/health`.

use std::net::SocketAddr;

use hdrhistogram::Histogram;
use twolane_benches::child;
use twolane_benches::findings::empty_histogram;

use crate::Role;
use crate::children::{Process, text};
use crate::health::Client;

/// The process, as the bench sees it.
pub struct Probe(Process);

impl Probe {
    /// Returns when it is connected.
    pub fn start(address: SocketAddr) -> Result<Self, String> {
        let mut process = Process::start(&Role::Probe(address))?;
        process.line()?;
        Ok(Self(process))
    }

    /// The nanoseconds from when each request was due to its answer.
    pub fn stop(mut self) -> Result<Histogram<u64>, String> {
        self.0.go()?;
        let counts: Vec<(u64, u64)> = serde_json::from_str(&self.0.line()?).map_err(text)?;
        let mut latencies = empty_histogram();
        for (nanos, count) in counts {
            latencies.saturating_record_n(nanos, count);
        }
        Ok(latencies)
    }
}

/// The process itself.
pub fn run(address: SocketAddr) -> ! {
    let client = Client::start(address).expect("the service listens");
    println!();
    if std::io::stdin().lines().next().is_none() {
        std::process::exit(0);
    }
    let latencies = client.stop().expect("/health answers");
    let counts = latencies.iter_recorded();
    let counts = counts.map(|step| (step.value_iterated_to(), step.count_at_value()));
    child::answer(&counts.collect::<Vec<_>>())
}
