//! What a job gives to `tokio::spawn` computes on the I/O lane, and has no name there. (That many
//! short polls add up, and that it is told beside a worker that is free: `tests/watch` of `stallwatch`.)

use crate::setting::watched;
use twolane::watch::Cause;

#[test]
fn what_a_job_spawns_by_tokio_is_told() {
    let watched = watched(1);
    let handle = watched.cpu.handle().clone();
    let compute = watched.compute();
    let job = watched.cpu.spawn(async move {
        let computes = tokio::spawn(async move {
            // The watch knows a worker once that has run a probe.
            let before = handle.io_lag().count();
            while handle.io_lag().count() < before + 2 {
                tokio::task::yield_now().await;
            }
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
