//! What becomes of each job in each form of shutdown? (The table at
//! `CpuRuntime`.)

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::support::{self, Dropped, Stuck, lanes, nothing, stuck_in_a_poll, suspended};
use twolane_core::{JoinError, JoinErrorKind, Task};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Shutdown,
    Timeout,
    Background,
    Drop,
}

const FORMS: [Form; 4] = [Form::Shutdown, Form::Timeout, Form::Background, Form::Drop];

fn is_shutdown<T>(joined: Result<T, JoinError>) -> bool {
    joined
        .err()
        .is_some_and(|error| error.kind() == JoinErrorKind::Shutdown)
}

/// One job of each kind, attached and detached; shut down; look.
#[test]
fn every_cell_of_the_table() {
    for form in FORMS {
        let lanes = lanes(2);
        let (io, cpu) = (lanes.io, lanes.cpu);
        let handle = cpu.handle().clone();
        let (dropped, drops) = mpsc::channel();
        let token = || Dropped(dropped.clone());

        // Suspended: an attached and a detached future.
        let attached = suspended(&handle, token());
        suspended(&handle, token()).detach();
        // Running: a closure, and a future that will have to wait. They
        // take both threads.
        let (closure, end_closure) = Stuck::start(&handle).split();
        let (future, end_poll) = stuck_in_a_poll(&handle, token());
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
        let (ran_future, of_future) = (ran.clone(), token());
        let queued_future = handle.spawn(async move {
            let _token = of_future;
            ran_future.fetch_add(1, SeqCst);
        });

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
        assert!(is_shutdown(handle.spawn_cpu(nothing).wait()));
        assert!(is_shutdown(handle.spawn(async {}).wait()));
        assert!(is_shutdown(handle.spawn_io(async {}).wait()));
        // These say so while both threads are stuck.
        assert!(is_shutdown(attached.wait()));
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
    }
}

/// A job that waits for the shutdown of its own lane would wait for itself.
#[test]
fn a_job_that_awaits_its_own_shutdown() {
    let lanes = lanes(1);
    let cpu = Arc::new(lanes.cpu);
    // A future is dropped at that very await, like the others.
    let own = cpu.clone();
    let task = cpu.spawn(async move { own.shutdown().await });
    assert!(is_shutdown(task.wait()));
    assert!(cpu.shutdown().wait().is_empty());

    // A closure is told.
    let lanes = support::lanes(1);
    let cpu = Arc::new(lanes.cpu);
    let own = cpu.clone();
    let task = cpu.spawn_cpu(move || own.shutdown().wait());
    let error = task.wait().map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("shutdown_background"), "{error}");
}
