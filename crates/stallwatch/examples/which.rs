//! Which code blocks the runtime?
//!
//! A service has three tasks: one sleeps in the way of a thread, one parses for too long, one is
//! innocent. The watch says which, while they do it. To see its lines:
//!
//! ```text
//! cargo run -p stallwatch --example which
//! ```
//!
//! It ends when both culprits are named.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use stallwatch::{Watch, watch};
use tokio::runtime::Handle;

async fn parse() {
    loop {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(80) {
            std::hint::spin_loop();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn poll_a_device() {
    loop {
        thread::sleep(Duration::from_millis(80));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn heartbeat() {
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn culprits_are_in(named: &BTreeSet<String>) -> bool {
    ["parse", "poll_a_device"]
        .iter()
        .all(|culprit| named.contains(*culprit))
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();

    let (culprits, named) = mpsc::channel();
    let watcher = Watch::new()
        .on_stall(move |stall| {
            // An error: the program ends.
            let _ = culprits.send(stall.culprit().map(str::to_owned));
        })
        .start(&Handle::current())?;

    tokio::spawn(watch(heartbeat()).named("heartbeat"));
    tokio::spawn(watch(parse()).named("parse"));
    tokio::spawn(watch(poll_a_device()).named("poll_a_device"));

    let all = tokio::task::spawn_blocking(move || {
        let mut all = BTreeSet::new();
        // A machine with other things to do may have the watch name a third, or a pause without
        // a name.
        while !culprits_are_in(&all) {
            all.extend(named.recv().ok()?);
        }
        Some(())
    });
    all.await?.expect("the watch goes on");
    for (name, stalls) in watcher.stalls_by_culprit() {
        let name = name.map_or("without a name".to_owned(), |name| name.to_string());
        println!("{name}: {stalls}");
    }
    std::process::exit(0)
}
