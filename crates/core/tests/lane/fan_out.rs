//! What bounds the memory of the jobs that a job submits?
//!
//! Not the limit of the queue, though the docs said "whatever its callers do": they need no
//! permit, since a job that waits for another one would wait for itself otherwise. With a limit
//! of 1, a job that detached closures held 255 MiB. What does bound them, as
//! `docs/overload.md` says: a window of the job that awaits them, or permits of their own, which a
//! task on the I/O lane waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use futures::{StreamExt, stream};
use twolane_core::{Handle, Priority};

use crate::support::{Lanes, lanes_with};

const PARTS: usize = 500;

fn with_limit_of_one() -> Lanes {
    lanes_with(1, |builder| builder.queue_limit(Priority::Normal, 1))
}

/// Makes parts, and counts the most that there were at a time.
#[derive(Clone, Default)]
struct Parts {
    alive: Arc<()>,
    most: Arc<AtomicUsize>,
}

impl Parts {
    fn next(&self) -> Arc<()> {
        let part = self.alive.clone();
        // Without those of the `Parts`: the test's own, and that of the job.
        self.most.fetch_max(Arc::strong_count(&part) - 2, SeqCst);
        part
    }

    fn most(&self) -> usize {
        self.most.load(SeqCst)
    }
}

#[test]
fn a_window_does() {
    const WINDOW: usize = 4;
    let lanes = with_limit_of_one();
    let (cpu, parts) = (lanes.cpu.handle().clone(), Parts::default());
    let of_job = parts.clone();
    let job = lanes.cpu.spawn(async move {
        let tasks = stream::iter(0..PARTS).map(|_| {
            let part = of_job.next();
            cpu.spawn_cpu(move || drop(part))
        });
        tasks.buffer_unordered(WINDOW).count().await
    });
    assert_eq!(job.wait().unwrap(), PARTS);
    assert!(parts.most() <= WINDOW, "{}", parts.most());
}

/// The job has ended, and with it its permit, when the first part gets one.
#[test]
fn permits_of_their_own_do() {
    async fn submit_each(cpu: Handle, parts: Parts) -> usize {
        for _ in 0..PARTS {
            let permit = cpu.reserve().await.unwrap();
            let part = parts.next();
            permit.spawn_cpu(move || drop(part)).detach();
        }
        PARTS
    }
    let lanes = with_limit_of_one();
    let (cpu, parts) = (lanes.cpu.handle().clone(), Parts::default());
    let of_job = parts.clone();
    let job = move || tokio::spawn(submit_each(cpu, of_job));
    let submits = lanes.cpu.spawn_cpu(job);
    let submits = submits.wait().unwrap();
    assert_eq!(lanes.io.block_on(submits).unwrap(), PARTS);
    assert_eq!(parts.most(), 1);
}
