//! What becomes of each job in each form of shutdown? (The table at
//! `CpuRuntime`.)

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::support::{self, Dropped, Stuck, lanes, on_both, with_both};
use twolane::{JoinError, Task};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Shutdown,
    Timeout,
    Background,
    Drop,
}

const FORMS: [Form; 4] = [Form::Shutdown, Form::Timeout, Form::Background, Form::Drop];

fn is_shutdown<T>(joined: Result<T, JoinError>) -> bool {
    joined.err().is_some_and(|error| error.is_shutdown())
}

/// One job of each kind, attached and detached; shut down; look.
#[test]
fn every_cell_of_the_table() {
    for form in FORMS {
        on_both(2, |lanes| {
            let (io, cpu) = (lanes.io, lanes.cpu);
            let handle = cpu.handle();
            let (dropped, drops) = mpsc::channel();
            let token = || Dropped(dropped.clone());

            // Suspended: an attached and a detached future.
            let suspend = |token: Dropped| {
                let (started, running) = mpsc::channel();
                let task = handle.spawn(async move {
                    let _token = token;
                    started.send(()).unwrap();
                    std::future::pending::<()>().await;
                });
                running.recv().unwrap();
                // It has been polled; a job behind it on each thread says that
                // the poll is over.
                task
            };
            let suspended = suspend(token());
            suspend(token()).detach();
            // Running: a closure, and a future that will have to wait. They
            // take both threads.
            let (closure, end_closure) = Stuck::start(&handle).split();
            let (polled, is_polled) = mpsc::channel();
            let (end_poll, wait) = mpsc::channel::<()>();
            let future = {
                let token = token();
                handle.spawn(async move {
                    let _token = token;
                    polled.send(()).unwrap();
                    wait.recv().unwrap();
                    std::future::pending::<()>().await;
                })
            };
            is_polled.recv().unwrap();
            // Queued: closures and futures, attached and detached.
            let ran = Arc::new(AtomicUsize::new(0));
            let queue = |token: Dropped| -> Task<()> {
                let ran = ran.clone();
                handle.spawn_cpu(move || {
                    let _token = token;
                    ran.fetch_add(1, SeqCst);
                })
            };
            let queued = queue(token());
            queue(token()).detach();
            let queued_future = {
                let (ran, token) = (ran.clone(), token());
                handle.spawn(async move {
                    let _token = token;
                    ran.fetch_add(1, SeqCst);
                })
            };

            let limit = Duration::from_millis(20);
            let waits = match form {
                Form::Shutdown => Some(cpu.shutdown()),
                Form::Timeout => {
                    assert_eq!(cpu.shutdown_timeout(limit).wait().jobs, 2, "left running");
                    None
                }
                Form::Background => {
                    cpu.shutdown_background();
                    None
                }
                Form::Drop => None,
            };
            let cpu = (form != Form::Drop).then_some(cpu);
            // Admission is over.
            assert!(is_shutdown(handle.spawn_cpu(|| ()).wait()));
            assert!(is_shutdown(handle.spawn(async {}).wait()));
            assert!(is_shutdown(handle.spawn_io(async {}).wait()));
            // These say so while both threads are stuck.
            assert!(is_shutdown(suspended.wait()));
            assert!(is_shutdown(queued.wait()));
            assert!(is_shutdown(queued_future.wait()));
            // So their captures go, two suspended and three queued ones, and are
            // dropped on threads of the lane. So are those of the future that runs,
            // when it ends.
            for _ in 0..5 {
                let by = drops.recv().unwrap();
                assert!(by.starts_with("cpu-"), "{by}");
            }
            // What runs ends as it would.
            end_closure.send("output").unwrap();
            assert_eq!(closure.wait().unwrap(), "output");
            assert!(drops.try_recv().is_err());
            end_poll.send(()).unwrap();
            assert!(is_shutdown(future.wait()));
            assert!(drops.recv().unwrap().starts_with("cpu-"));
            if let Some(waits) = waits {
                assert!(waits.wait().is_empty());
            }
            if let Some(cpu) = cpu {
                // Again, in every form: nothing is left, nothing hangs.
                assert!(cpu.shutdown_timeout(Duration::MAX).wait().is_empty());
                assert!(io.block_on(cpu.shutdown()).is_empty());
                cpu.shutdown_background();
            }
            assert_eq!(ran.load(SeqCst), 0);
            drop(handle);
        });
    }
}

/// The table's first lines, once more with awaiters that sleep already. The captures go
/// while all threads are stuck.
#[test]
fn sleeping_awaiters_are_woken() {
    on_both(1, |lanes| {
        let (dropped, suspended_drops) = mpsc::channel();
        let captured = Dropped(dropped);
        let (started, is_suspended) = mpsc::channel();
        let suspended = lanes.cpu.spawn(async move {
            let _captured = captured;
            started.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        is_suspended.recv().unwrap();
        // After the step of that one.
        let (stuck, let_go) = Stuck::<()>::start(&lanes.cpu.handle()).split();
        let (dropped, drops) = mpsc::channel();
        let captured = Dropped(dropped);
        let queued = lanes.cpu.spawn_cpu(move || drop(captured));
        let (sleeps, is_asleep) = mpsc::channel();
        let awaiters = [suspended, queued].map(|mut task| {
            let sleeps = sleeps.clone();
            lanes.io.spawn(async move {
                tokio::select! {
                    biased;
                    _ = &mut task => unreachable!(),
                    () = async { sleeps.send(()).unwrap() } => {}
                }
                task.await
            })
        });
        assert_eq!(is_asleep.iter().take(2).count(), 2);
        lanes.cpu.shutdown_background();
        for awaiter in awaiters {
            assert!(is_shutdown(lanes.io.block_on(awaiter).unwrap()));
        }
        for drops in [drops, suspended_drops] {
            assert!(drops.recv().unwrap().starts_with("cpu-"));
        }
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
    });
}

/// A second runtime's `Drop` waits 300 s, or for ever, here.
#[test]
fn a_stuck_job_is_counted_and_left() {
    on_both(2, |lanes| {
        let (first, end_first) = Stuck::<()>::start(&lanes.cpu.handle()).split();
        let (second, end_second) = Stuck::<()>::start(&lanes.cpu.handle()).split();
        let limit = Duration::from_millis(5);
        assert_eq!(lanes.cpu.shutdown_timeout(limit).wait().jobs, 2);
        end_first.send(()).unwrap();
        first.wait().unwrap();
        let left = lanes.io.block_on(lanes.cpu.shutdown_timeout(limit));
        assert_eq!(left.jobs, 1);
        end_second.send(()).unwrap();
        second.wait().unwrap();
        assert!(lanes.cpu.shutdown().wait().is_empty());
    });
}

/// A job that waits for the shutdown of its own lane would wait for itself.
#[test]
fn a_job_that_awaits_its_own_shutdown() {
    with_both(|backend| {
        let lanes = lanes(backend, 1);
        let cpu = Arc::new(lanes.cpu);
        // A future is dropped at that very await, like the others.
        let own = cpu.clone();
        let task = cpu.spawn(async move { own.shutdown().await });
        assert!(is_shutdown(task.wait()));
        assert!(cpu.shutdown().wait().is_empty());

        // A closure is told.
        let lanes = support::lanes(backend, 1);
        let cpu = Arc::new(lanes.cpu);
        let own = cpu.clone();
        let task = cpu.spawn_cpu(move || own.shutdown().wait());
        let error = task.wait().map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("shutdown_background"), "{error}");
    });
}
