//! What runs against a shutdown, or a second one, ends in exactly one way.

use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::support::{Stuck, on_both};
use futures::FutureExt;
use twolane::Remaining;

/// From many threads at once, in all forms, while a job runs.
#[test]
fn shutdown_twice_and_concurrently() {
    on_both(1, |lanes| {
        let cpu = Arc::new(lanes.cpu);
        let stuck = Stuck::<()>::start(&cpu.handle());
        let together = Arc::new(Barrier::new(9));
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (cpu, together) = (cpu.clone(), together.clone());
                std::thread::spawn(move || {
                    together.wait();
                    match n % 3 {
                        0 => cpu.shutdown().wait(),
                        1 => cpu.shutdown_timeout(Duration::from_secs(3600)).wait(),
                        _ => {
                            cpu.shutdown_background();
                            Remaining::default()
                        }
                    }
                })
            })
            .collect();
        together.wait();
        stuck.end();
        for thread in threads {
            assert!(thread.join().unwrap().is_empty());
        }
    });
}

/// An awaiter that waits, when it is woken, for this to be sent.
struct WaitsFor(Mutex<mpsc::Receiver<()>>);

impl Wake for WaitsFor {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().recv().unwrap();
    }
}

/// With a million awaited jobs queued, a limit of 10 ms took 521 ms: the thread that closes them
/// woke all their awaiters before it looked at the time. Here one of many is woken after the limit
/// has passed, or never.
#[test]
fn a_limit_does_not_wait_for_the_queued_jobs() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle();
        let stuck = Stuck::<()>::start(&cpu);
        let mut tasks: Vec<_> = (0..1_000).map(|_| cpu.spawn_cpu(|| ())).collect();
        let (first, last) = (0, tasks.len() - 1);
        let [limited, over] = [first, last].map(|n| {
            let (tell, told) = mpsc::channel();
            let waker = Waker::from(Arc::new(WaitsFor(Mutex::new(told))));
            assert!(
                tasks[n]
                    .poll_unpin(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            tell
        });
        let shutdown = lanes.cpu.shutdown_timeout(Duration::ZERO);
        limited.send(()).unwrap();
        assert_eq!(shutdown.wait().jobs, 1);
        over.send(()).unwrap();
        for task in tasks {
            assert!(task.wait().unwrap_err().is_unavailable());
        }
        stuck.end();
        assert!(lanes.cpu.shutdown().wait().is_empty());
    });
}
