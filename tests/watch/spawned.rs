//! What a job gives to `tokio::spawn` computes on the I/O lane, and has no name there. (That many
//! short polls add up: `tests/watch` of `stallwatch`.)

use tokio::runtime::Runtime;

use crate::gate::{Gate, gate};
use crate::setting::watched;
use crate::support::time_limit;
use twolane::watch::Cause;

/// With two workers the other one is free.
#[test]
fn what_a_job_spawns_by_tokio_is_told() {
    let _limit = time_limit();
    for workers in [1, 2] {
        let watched = watched(workers);
        let handle = watched.cpu.handle().clone();
        let other = (workers > 1).then(|| hold(&watched.io));
        let compute = watched.compute();
        let job = watched.cpu.spawn(async move {
            let computes = tokio::spawn(async move {
                // The watch knows a worker once that has run a probe: of two the latter begins here.
                let before = handle.io_lag().count();
                while handle.io_lag().count() < before + 2 {
                    tokio::task::yield_now().await;
                }
                drop(other);
                compute();
            });
            computes.await
        });
        job.wait().unwrap().unwrap();
        let stall = watched.stalls.recv().unwrap();
        assert_eq!((stall.culprit(), stall.cause()), (None, &Cause::Computes));
        assert!(stall.thread().starts_with("tokio-rt-worker"), "{stall}");
        let text = stall.to_string();
        for word in [
            "`tokio::spawn`",
            "spawn_cpu",
            "`Handle::spawn`",
            "`in_cpu_context`",
        ] {
            assert!(text.contains(word), "{text}");
        }
        assert!(watched.cpu.handle().watcher().unwrap().stalls() > 0);
    }
}

/// A worker waits until the gate opens.
fn hold(io: &Runtime) -> Gate {
    let (gate, stay) = gate();
    io.spawn(async move { stay() });
    gate.is_reached();
    gate
}
