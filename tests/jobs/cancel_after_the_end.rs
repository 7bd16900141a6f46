//! Does a job that has ended stay as it ended, for what it has left behind?
//!
//! Its context may be held for longer than the job runs: by a thread of the user's,
//! by what was given to `rayon::spawn`. What that asks of the context (`checkpoint`)
//! is about the job: one that has ended can't be cancelled any more, so the answer
//! that it gives then is its last. Once, a cancel looked whether the job had ended
//! and asked for its end in a second step, and the job could end in between: what
//! went on behind it was told first that all was well, and then to stop, for a job
//! that had completed. A flag that is set without a look at the phase, in the same
//! step, brings that back.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};

use crate::support::{BOTH, cpu_lane, lanes, time_limit};
use futures::FutureExt;
use twolane::{Handle, JobContext, Task};

/// Starts a closure that gets its own job's context.
fn spawn_with<T: Send + 'static>(
    cpu: &Handle,
    f: impl FnOnce(&JobContext) -> T + Send + 'static,
) -> Task<T> {
    cpu.spawn_cpu_with(|job| Ok(f(job)))
}

/// The cancel comes after the end, and after the output was taken or not.
#[test]
fn what_a_finished_job_left_behind_is_not_cancelled() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 2);
        for takes_output in [false, true] {
            let (left, asked) = mpsc::channel();
            let (let_go, wait) = mpsc::channel::<()>();
            let mut task = spawn_with(&lanes.cpu.handle(), move |job| {
                let job = job.clone();
                std::thread::spawn(move || {
                    left.send(job.checkpoint()).unwrap();
                    wait.recv().unwrap();
                    left.send(job.checkpoint()).unwrap();
                });
            });
            assert_eq!(asked.recv().unwrap(), Ok(()));
            while !task.is_finished() {
                std::thread::yield_now();
            }
            let abort = task.abort_handle();
            if takes_output {
                lanes.io.block_on(&mut task).unwrap();
            }
            abort.abort();
            task.abort();
            drop(task);
            let_go.send(()).unwrap();
            assert_eq!(asked.recv().unwrap(), Ok(()), "{backend:?}, {takes_output}");
        }
    }
}

/// Looks at the context as soon as the job has ended: on the thread that ended it.
struct LooksAtTheEnd {
    job: JobContext,
    saw: mpsc::Sender<bool>,
}

impl Wake for LooksAtTheEnd {
    fn wake(self: Arc<Self>) {
        let _ = self.saw.send(self.job.checkpoint().is_ok());
    }
}

fn spin(times: usize) {
    for _ in 0..times {
        std::hint::spin_loop();
    }
}

/// A cancel and the end meet. The cancel may be first, and the job may have seen it;
/// but what is true just after the end, by the awaiter's waker, stays true.
///
/// A cancel that came too early is tried later in the next round, and the other way
/// round, so that nearly all of them come as the job ends.
#[test]
fn a_cancel_that_meets_the_end_changes_nothing_after_it() {
    const ROUNDS: usize = 25_000;
    let _limit = time_limit();
    let io = tokio::runtime::Runtime::new().unwrap();
    let changed = BOTH.map(|backend| {
        let cpu = cpu_lane(backend, 1, io.handle());
        let (give, take) = mpsc::channel::<(twolane::AbortHandle, usize)>();
        let (aborted, is_aborted) = mpsc::channel();
        // The job and the cancel start at once.
        let meet = Arc::new(AtomicUsize::new(0));
        let aborter = {
            let meet = meet.clone();
            std::thread::spawn(move || {
                for (abort, delay) in take {
                    meet_another(&meet);
                    spin(delay);
                    abort.abort();
                    aborted.send(()).unwrap();
                }
            })
        };
        let (mut delay, mut changed) = (0_usize, 0);
        for _ in 0..ROUNDS {
            let (tell, told) = mpsc::channel();
            let (let_go, wait) = mpsc::channel::<()>();
            let meets = meet.clone();
            let mut task = spawn_with(&cpu.handle(), move |job| {
                tell.send(job.clone()).unwrap();
                wait.recv().unwrap();
                meet_another(&meets);
            });
            let job = told.recv().unwrap();
            let (saw, seen) = mpsc::channel();
            let looks = Waker::from(Arc::new(LooksAtTheEnd {
                job: job.clone(),
                saw,
            }));
            let polled = task.poll_unpin(&mut Context::from_waker(&looks));
            assert!(polled.is_pending());
            let_go.send(()).unwrap();
            give.send((task.abort_handle(), delay)).unwrap();
            let well_at_the_end = seen.recv().unwrap();
            is_aborted.recv().unwrap();
            if job.checkpoint().is_ok() != well_at_the_end {
                changed += 1;
            }
            delay = match well_at_the_end {
                true => delay.saturating_sub(1),
                false => delay + 1,
            };
            // A closure that runs is not stopped: its output is there.
            task.wait().unwrap();
        }
        drop(give);
        aborter.join().unwrap();
        changed
    });
    assert_eq!(changed, [0; 2], "of {ROUNDS} ends, by backend");
}

/// Two threads go on from here at the same time, each time.
fn meet_another(count: &AtomicUsize) {
    let together = (count.fetch_add(1, SeqCst) / 2 + 1) * 2;
    for looks in 1.. {
        if count.load(SeqCst) >= together {
            return;
        }
        match looks % 1_000 {
            // The other one may want this core.
            0 => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}
