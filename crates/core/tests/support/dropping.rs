//! Ways in which a job ends, with a value that it owns: where is that dropped?

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::cell::OnceCell;
use std::sync::mpsc;

use crate::support::{self, Lanes, Stuck, lanes, nothing, stuck_in_a_poll, thread_name};
use twolane_core::{Handle, JoinErrorKind, Task};

/// Where a value was dropped, and where the task ran that its destructor spawned.
#[derive(Debug)]
pub struct End {
    pub dropped_on: String,
    pub in_a_task: bool,
    pub spawned_on: String,
}

/// Spawns in its destructor.
pub struct Probe(mpsc::Sender<End>);

impl Drop for Probe {
    fn drop(&mut self) {
        let ends = self.0.clone();
        let dropped_on = thread_name();
        let in_a_task = tokio::task::try_id().is_some();
        tokio::spawn(async move {
            let end = End {
                dropped_on,
                in_a_task,
                spawned_on: thread_name(),
            };
            ends.send(end).unwrap();
        });
    }
}

/// `end` has a lane of one thread drop the probe, once. It can wait for that by the last of its
/// arguments.
pub fn end_of(end: impl FnOnce(&Lanes, Probe, &dyn Fn())) -> End {
    let lanes = lanes(1);
    let (ends, ended) = mpsc::channel();
    let first = OnceCell::new();
    let is_dropped = || {
        first.get_or_init(|| ended.recv().expect("its drop spawns a task"));
    };
    end(&lanes, Probe(ends), &is_dropped);
    is_dropped();
    assert!(ended.recv().is_err(), "dropped twice");
    first.into_inner().unwrap()
}

/// A probe, or a probe that lives on the I/O lane.
pub type Value = Box<dyn Send>;

/// Suspends for ever, with the value.
fn suspended(cpu: &Handle, value: Value) -> Task<()> {
    let task = support::suspended(cpu, value);
    // After its step, on the only thread.
    cpu.spawn_cpu(nothing).wait().unwrap();
    task
}

/// `submit` finds the lane's only thread taken, and what it returns is dropped before that ends.
fn while_queued<T>(lanes: &Lanes, submit: impl FnOnce(&Handle) -> T) {
    let stuck = Stuck::start(lanes.cpu.handle());
    drop(submit(lanes.cpu.handle()));
    stuck.end();
}

pub type Way = (&'static str, fn(&Lanes, Value, &dyn Fn()));

/// Each ends the owner of a value in its own way.
pub const WAYS: [Way; 18] = [
    ("a closure that ran", |lanes, value, _| {
        lanes.cpu.spawn_cpu(move || drop(value)).wait().unwrap();
    }),
    ("a future that ran", |lanes, value, _| {
        let future = async move {
            let _value = value;
            twolane_core::spawn_io(async {}).await.unwrap();
        };
        lanes.cpu.spawn(future).wait().unwrap();
    }),
    ("a closure that panicked", |lanes, value, _| {
        let panics = move || {
            let _value = value;
            panic!("planned");
        };
        let end = lanes.cpu.spawn_cpu(panics).wait();
        assert!(end.unwrap_err().is_panic());
    }),
    ("a future that panicked", |lanes, value, _| {
        let panics = async move {
            let _value = value;
            twolane_core::spawn_io(async {}).await.unwrap();
            panic!("planned");
        };
        let end = lanes.cpu.spawn(panics).wait();
        assert!(end.unwrap_err().is_panic());
    }),
    ("a closure, cancelled in the queue", |lanes, value, _| {
        while_queued(lanes, |cpu| cpu.spawn_cpu(move || drop(value)));
    }),
    ("a future, cancelled in the queue", |lanes, value, _| {
        while_queued(lanes, |cpu| cpu.spawn(async move { drop(value) }));
    }),
    ("cancelled while suspended", |lanes, value, _| {
        drop(suspended(lanes.cpu.handle(), value));
    }),
    ("aborted while suspended", |lanes, value, _| {
        let task = suspended(lanes.cpu.handle(), value);
        task.abort();
        assert!(task.wait().unwrap_err().is_cancelled());
    }),
    ("a closure, cancelled while it ran", |lanes, value, _| {
        let (begun, begins) = mpsc::channel();
        let (let_go, wait) = mpsc::channel::<()>();
        let job = lanes.cpu.spawn_cpu(move || {
            let _value = value;
            begun.send(()).unwrap();
            wait.recv().unwrap();
        });
        begins.recv().unwrap();
        drop(job);
        let_go.send(()).unwrap();
    }),
    ("a future, cancelled while it ran", |lanes, value, _| {
        let (task, let_go) = stuck_in_a_poll(lanes.cpu.handle(), value);
        drop(task);
        let_go.send(()).unwrap();
    }),
    ("queued at a shutdown", |lanes, value, is_dropped| {
        let _stuck = Stuck::<()>::start(lanes.cpu.handle());
        lanes.cpu.spawn_cpu(move || drop(value)).detach();
        lanes.cpu.shutdown_background();
        is_dropped();
    }),
    ("suspended at a shutdown", |lanes, value, is_dropped| {
        suspended(lanes.cpu.handle(), value).detach();
        let _stuck = Stuck::<()>::start(lanes.cpu.handle());
        lanes.cpu.shutdown_background();
        is_dropped();
    }),
    ("running at a shutdown", |lanes, value, is_dropped| {
        let (_task, let_go) = stuck_in_a_poll(lanes.cpu.handle(), value);
        lanes.cpu.shutdown_background();
        let_go.send(()).unwrap();
        is_dropped();
    }),
    ("ended by a shutdown that is awaited", |lanes, value, _| {
        let job = suspended(lanes.cpu.handle(), value);
        assert!(lanes.cpu.shutdown().wait().is_empty());
        assert_eq!(job.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
    }),
    // Detached while it is queued: an output that is there already is dropped by the thread
    // that detaches.
    ("the output of a detached closure", |lanes, value, _| {
        while_queued(lanes, |cpu| cpu.spawn_cpu(move || value).detach());
    }),
    ("the output of a detached future", |lanes, value, _| {
        while_queued(lanes, |cpu| cpu.spawn(async move { value }).detach());
    }),
    (
        "the output of a closure whose task is gone",
        |lanes, value, _| {
            let (task, let_go) = Stuck::start(lanes.cpu.handle()).split();
            drop(task);
            let_go.send(value).unwrap();
        },
    ),
    (
        "the payload of a panic without an awaiter",
        |lanes, value, _| {
            let panics = move || -> () { std::panic::resume_unwind(Box::new(value)) };
            while_queued(lanes, |cpu| cpu.spawn_cpu(panics).detach());
        },
    ),
];
