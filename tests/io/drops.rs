//! What a job drops may spawn: a pooled connection returns to its pool in a task. That
//! task does I/O, so it must be the I/O lane's, in whatever way the job ends.

use std::future::pending;
use std::sync::mpsc;

use crate::support::{BOTH, Lanes, Stuck, lanes, thread_name, time_limit};
use twolane::{Handle, Task, in_cpu_context};

/// Its drop spawns a task. Sends the threads of the drop and of the task.
struct SpawnsOnDrop(mpsc::Sender<[String; 2]>);

impl Drop for SpawnsOnDrop {
    fn drop(&mut self) {
        let (threads, dropped_on) = (self.0.clone(), thread_name());
        tokio::spawn(async move {
            let _ = threads.send([dropped_on, thread_name()]);
        });
    }
}

/// `drops` has a job of a lane of one thread drop the value. What it returns lives until
/// the task has run.
#[track_caller]
fn spawns_on_io<R>(drops: impl Fn(&Lanes, SpawnsOnDrop) -> R) {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let (threads, seen) = mpsc::channel();
        let _alive = drops(&lanes, SpawnsOnDrop(threads));
        let [dropped_on, spawned_on] = seen.recv().expect("its drop spawns a task");
        assert!(dropped_on.starts_with("cpu-"), "{backend:?}: {dropped_on}");
        assert_eq!(spawned_on, "io", "{backend:?}");
    }
}

/// Suspends for ever, with the value.
fn suspended(cpu: &Handle, value: SpawnsOnDrop) -> Task<()> {
    let (polled, is_polled) = mpsc::channel();
    let task = cpu.spawn(async move {
        let _value = value;
        polled.send(()).unwrap();
        pending().await
    });
    is_polled.recv().unwrap();
    // After its step, on the only thread.
    cpu.spawn_cpu(|| ()).wait().unwrap();
    task
}

/// Computes, with the value, until it is let go, and then suspends for ever.
fn running(cpu: &Handle, value: SpawnsOnDrop) -> (Task<()>, mpsc::Sender<()>) {
    let (polled, is_polled) = mpsc::channel();
    let (let_go, wait) = mpsc::channel::<()>();
    let task = cpu.spawn(async move {
        let _value = value;
        polled.send(()).unwrap();
        wait.recv().unwrap();
        pending::<()>().await;
    });
    is_polled.recv().unwrap();
    (task, let_go)
}

#[test]
fn a_closure_that_ran() {
    spawns_on_io(|lanes, value| lanes.cpu.spawn_cpu(move || drop(value)).wait());
}

#[test]
fn a_future_that_ran() {
    spawns_on_io(|lanes, value| {
        let future = async move {
            let _value = value;
            twolane::spawn_io(async {}).await.unwrap();
        };
        lanes.cpu.spawn(future).wait()
    });
}

#[test]
fn a_closure_that_panicked() {
    spawns_on_io(|lanes, value| {
        let panics = move || {
            let _value = value;
            panic!("planned");
        };
        lanes.cpu.spawn_cpu(panics).wait()
    });
}

#[test]
fn a_future_that_panicked() {
    spawns_on_io(|lanes, value| {
        let panics = async move {
            let _value = value;
            twolane::spawn_io(async {}).await.unwrap();
            panic!("planned");
        };
        lanes.cpu.spawn(panics).wait()
    });
}

#[test]
fn a_closure_that_was_cancelled_in_the_queue() {
    spawns_on_io(|lanes, value| {
        let (stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        drop(lanes.cpu.spawn_cpu(move || drop(value)));
        let_go.send(()).unwrap();
        stuck
    });
}

#[test]
fn a_future_that_was_cancelled_in_the_queue() {
    spawns_on_io(|lanes, value| {
        let (stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        drop(lanes.cpu.spawn(async move { drop(value) }));
        let_go.send(()).unwrap();
        stuck
    });
}

#[test]
fn a_future_that_was_cancelled_while_it_was_suspended() {
    spawns_on_io(|lanes, value| drop(suspended(&lanes.cpu.handle(), value)));
}

#[test]
fn a_future_that_was_cancelled_while_it_ran() {
    spawns_on_io(|lanes, value| {
        let (task, let_go) = running(&lanes.cpu.handle(), value);
        drop(task);
        let_go.send(()).unwrap();
    });
}

/// The wrapper is for its polls, not for its end.
#[test]
fn what_was_in_the_cpu_context() {
    let _limit = time_limit();
    let lanes = lanes(twolane::Backend::Runtime, 1);
    let (threads, seen) = mpsc::channel();
    let value = SpawnsOnDrop(threads);
    let (polled, is_polled) = mpsc::channel();
    let task = lanes.cpu.spawn(in_cpu_context(async move {
        let _value = value;
        polled.send(()).unwrap();
        pending::<()>().await;
    }));
    is_polled.recv().unwrap();
    drop(task);
    assert_eq!(seen.recv().unwrap()[1], "io");
}

#[test]
fn a_closure_that_was_queued_at_a_shutdown() {
    spawns_on_io(|lanes, value| {
        let stuck = Stuck::<()>::start(&lanes.cpu.handle());
        lanes.cpu.spawn_cpu(move || drop(value)).detach();
        lanes.cpu.shutdown_background();
        stuck
    });
}

#[test]
fn a_future_that_was_suspended_at_a_shutdown() {
    spawns_on_io(|lanes, value| {
        suspended(&lanes.cpu.handle(), value).detach();
        let stuck = Stuck::<()>::start(&lanes.cpu.handle());
        lanes.cpu.shutdown_background();
        stuck
    });
}

#[test]
fn a_future_that_ran_at_a_shutdown() {
    spawns_on_io(|lanes, value| {
        let (task, let_go) = running(&lanes.cpu.handle(), value);
        lanes.cpu.shutdown_background();
        let_go.send(()).unwrap();
        task
    });
}

/// Detached while it is queued: an output that is there already is dropped by the thread
/// that detaches.
fn detached<T: Send + 'static>(lanes: &Lanes, submit: impl FnOnce(&Handle) -> Task<T>) {
    let cpu = lanes.cpu.handle();
    let (stuck, let_go) = Stuck::start(&cpu).split();
    submit(&cpu).detach();
    let_go.send(()).unwrap();
    stuck.wait().unwrap();
}

#[test]
fn the_output_of_a_detached_closure() {
    spawns_on_io(|lanes, value| detached(lanes, |cpu| cpu.spawn_cpu(move || value)));
}

#[test]
fn the_output_of_a_detached_future() {
    spawns_on_io(|lanes, value| detached(lanes, |cpu| cpu.spawn(async move { value })));
}

#[test]
fn the_output_of_a_closure_whose_task_was_dropped_while_it_ran() {
    spawns_on_io(|lanes, value| {
        let (task, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        drop(task);
        let_go.send(value).unwrap();
    });
}

#[test]
fn the_payload_of_a_panic_without_an_awaiter() {
    spawns_on_io(|lanes, value| {
        let panics = move || std::panic::resume_unwind(Box::new(value));
        detached::<()>(lanes, |cpu| cpu.spawn_cpu(panics));
    });
}
