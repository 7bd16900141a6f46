//! What a job gives to `tokio::spawn` computes on the I/O lane, and has no name there.

use crate::setting::watched;
use crate::support::time_limit;
use crate::support::wait::wait_until;
use twolane::watch::Cause;

#[test]
fn what_a_job_spawns_by_tokio_is_told() {
    let _limit = time_limit();
    let watched = watched(1);
    let handle = watched.cpu.handle().clone();
    // The watch knows a worker once that has run a probe.
    wait_until(|| handle.io_lag().count() > 1);
    let compute = watched.compute();
    let job = handle.spawn(async move { tokio::spawn(async move { compute() }).await });
    job.wait().unwrap().unwrap();
    let stall = watched.stalls.recv().unwrap();
    assert_eq!((stall.culprit(), stall.cause()), (None, &Cause::Computes));
    assert!(stall.thread().starts_with("tokio-rt-worker"), "{stall}");
    let text = stall.to_string();
    assert!(
        text.contains("`tokio::spawn`") && text.contains("spawn_cpu"),
        "{text}"
    );
    assert!(handle.watcher().unwrap().stalls() > 0);
}
