//! What does cancelling a job stop, and when does its task say so?

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};

use crate::support::{BOTH, Dropped, Stuck, lanes, time_limit};
use twolane::Backend;

/// Tokio's `spawn_blocking` and rayon run it all the same.
#[test]
fn a_dropped_task_of_a_queued_job_never_runs() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let (stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let (by_closure, by_future) = (ran.clone(), ran.clone());
            drop(lanes.cpu.spawn_cpu(move || by_closure.fetch_add(1, SeqCst)));
            drop(
                lanes
                    .cpu
                    .spawn(async move { by_future.fetch_add(1, SeqCst) }),
            );
        }
        let last = lanes.cpu.spawn_cpu(|| ());
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        last.wait().unwrap();
        assert_eq!(ran.load(SeqCst), 0);
    }
}

/// With async-task the awaiter of a cancelled job hangs behind the queue: here
/// the only thread is stuck, and the awaiter is told nevertheless.
#[test]
fn a_cancelled_queued_job_resolves_at_once() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let (stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        let (dropped, drops) = mpsc::channel();
        let captured = Dropped(dropped);
        let queued = lanes.cpu.spawn_cpu(move || drop(captured));
        assert!(!queued.is_finished());
        queued.abort();
        assert!(queued.is_finished());
        assert!(queued.wait().unwrap_err().is_cancelled());
        // What it had captured is dropped by the lane, in its turn.
        assert!(drops.try_recv().is_err());
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        assert!(drops.recv().unwrap().starts_with("cpu-"));
    }
}

/// The task says so at once; the future goes where it was polled.
#[test]
fn a_cancelled_suspended_future_is_dropped_on_its_lane() {
    let _limit = time_limit();
    for backend in BOTH {
        for by_drop in [false, true] {
            let lanes = lanes(backend, 1);
            let (dropped, drops) = mpsc::channel();
            let (started, running) = mpsc::channel();
            let task = lanes.cpu.spawn(async move {
                let _dropped = Dropped(dropped);
                started.send(()).unwrap();
                std::future::pending::<()>().await;
            });
            running.recv().unwrap();
            if by_drop {
                drop(task);
            } else {
                task.abort();
                assert!(task.wait().unwrap_err().is_cancelled());
            }
            assert!(drops.recv().unwrap().starts_with("cpu-"));
        }
    }
}

/// A future that runs when it is cancelled is dropped at its next `.await`
/// that waits, and not polled again.
#[test]
fn a_running_future_ends_at_its_next_await() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let both = Arc::new(Barrier::new(2));
        let went_on = Arc::new(AtomicBool::new(false));
        let task = {
            let (both, went_on) = (both.clone(), went_on.clone());
            lanes.cpu.spawn(async move {
                both.wait();
                both.wait();
                tokio::task::yield_now().await;
                went_on.store(true, SeqCst);
            })
        };
        both.wait();
        task.abort();
        both.wait();
        assert!(task.wait().unwrap_err().is_cancelled());
        assert!(!went_on.load(SeqCst));
    }
}

/// A closure can't be stopped; it can ask. What it returns is not lost.
#[test]
fn a_running_closure_sees_its_cancel() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 2);
        for by_drop in [false, true] {
            let (started, running) = mpsc::channel();
            let (ended, end) = mpsc::channel();
            let task = lanes.cpu.handle().spawn_cpu_with(move |job| {
                assert!(job.checkpoint().is_ok());
                started.send(()).unwrap();
                while job.checkpoint().is_ok() {
                    std::thread::yield_now();
                }
                ended.send(()).unwrap();
                Ok("stopped early")
            });
            running.recv().unwrap();
            if by_drop {
                drop(task);
                end.recv().unwrap();
            } else {
                task.abort();
                task.abort();
                assert_eq!(task.wait().unwrap(), "stopped early");
            }
        }
    }
}

/// The children of a cancelled job, on whatever worker, see it through what
/// they captured.
#[test]
fn rayon_children_see_the_cancel_through_their_context() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Rayon, 2);
    let (started, running) = mpsc::channel();
    let task = lanes.cpu.handle().spawn_cpu_with(move |job| {
        let spin = || {
            while job.checkpoint().is_ok() {
                std::thread::yield_now();
            }
        };
        started.send(()).unwrap();
        rayon::join(spin, spin);
        Ok(())
    });
    running.recv().unwrap();
    task.abort();
    task.wait().unwrap();
}

/// Cancelling from elsewhere while the owner awaits.
#[test]
fn an_abort_handle_cancels() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let task = lanes.cpu.spawn(std::future::pending::<()>());
        let abort = task.abort_handle();
        let other = std::thread::spawn(move || {
            abort.abort();
            abort.abort();
            abort
        });
        let mut task = task;
        let error = lanes.io.block_on(&mut task).unwrap_err();
        assert!(error.is_cancelled());
        assert!(task.is_finished() && other.join().unwrap().is_finished());

        // On the I/O lane it ends when the runtime has dropped the future.
        let mut io = lanes.cpu.handle().spawn_io(std::future::pending::<()>());
        let abort = io.abort_handle();
        abort.abort();
        assert!(lanes.io.block_on(&mut io).unwrap_err().is_cancelled());
        assert!(io.is_finished() && abort.is_finished());
    }
}

/// Whichever comes first, there is one outcome: the output, or the cancellation, and
/// the job's side agrees with the task's.
#[test]
fn cancel_against_completion() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 2);
        let handle = lanes.cpu.handle();
        let mut outcomes = [0, 0];
        for round in 0..2000 {
            let ran = Arc::new(AtomicBool::new(false));
            let both = Arc::new(Barrier::new(2));
            let task = {
                let ran = ran.clone();
                match round % 3 {
                    0 => handle.spawn_cpu(move || ran.store(true, SeqCst)),
                    1 => handle.spawn(async move {
                        tokio::task::yield_now().await;
                        ran.store(true, SeqCst);
                    }),
                    _ => handle.spawn_io(async move { ran.store(true, SeqCst) }),
                }
            };
            let abort = task.abort_handle();
            let canceller = {
                let both = both.clone();
                std::thread::spawn(move || {
                    both.wait();
                    abort.abort();
                })
            };
            both.wait();
            match task.wait() {
                Ok(()) => {
                    assert!(ran.load(SeqCst), "an output of a job that did not run");
                    outcomes[0] += 1;
                }
                Err(error) => {
                    assert!(error.is_cancelled(), "{error}");
                    outcomes[1] += 1;
                }
            }
            canceller.join().unwrap();
        }
        assert_eq!(outcomes[0] + outcomes[1], 2000);
    }
}

/// Detached, it ends; its output is dropped.
#[test]
fn detach_completes() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let (stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        let (done, is_done) = mpsc::channel();
        let (output, drops) = mpsc::channel();
        let (io_done, closure_done, future_done) = (done.clone(), done.clone(), done);
        let unread = Dropped(output);
        lanes
            .cpu
            .spawn_cpu(move || {
                closure_done.send("closure").unwrap();
                unread
            })
            .detach();
        lanes
            .cpu
            .spawn(async move {
                tokio::task::yield_now().await;
                future_done.send("future").unwrap();
            })
            .detach();
        lanes
            .cpu
            .handle()
            .spawn_io(async move { io_done.send("io").unwrap() })
            .detach();
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        let mut done: Vec<_> = is_done.iter().take(3).collect();
        done.sort_unstable();
        assert_eq!(done, ["closure", "future", "io"]);
        assert!(drops.recv().unwrap().starts_with("cpu-"));
    }
}

/// `timeout(.., task)` stops the work, since it drops the task.
#[test]
fn a_timeout_stops_the_work() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let (ended, end) = mpsc::channel();
        let (started, running) = mpsc::channel();
        let task = lanes.cpu.handle().spawn_cpu_with(move |job| {
            started.send(()).unwrap();
            while job.checkpoint().is_ok() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
            Ok(())
        });
        // Else the limit may come first, and it never starts.
        running.recv().unwrap();
        lanes.io.block_on(async {
            let limit = std::time::Duration::from_millis(1);
            assert!(tokio::time::timeout(limit, task).await.is_err());
        });
        end.recv().unwrap();
    }
}

/// An output that was not awaited to its end is still there.
#[test]
fn awaiting_a_reference_is_cancel_safe() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let (mut stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        lanes.io.block_on(async {
            tokio::select! {
                biased;
                _ = &mut stuck => panic!("it is stuck"),
                () = std::future::ready(()) => {}
            }
            let_go.send(9).unwrap();
            assert_eq!((&mut stuck).await.unwrap(), 9);
        });
    }
}
