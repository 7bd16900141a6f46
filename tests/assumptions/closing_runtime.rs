//! What does a runtime do first when it shuts down?
//!
//! Relied on in `src/io/closing.rs`: one of several threads refuses new tasks before it drops
//! the first one, and says so before `spawn` returns; one of one thread polls no task after it
//! has dropped the first one. So a task that sees a broken connection can ask whether its
//! runtime has broken it. Without this a response or a body of unknown length that is cut short
//! by the end of the I/O runtime reports an error of its peer, or seems whole.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::support::turns::current_thread;
use crate::support::{Dropped, lasts, time_limit};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{coop, yield_now};

fn of_two_workers() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap()
}

/// As the library asks.
fn refuses_tasks(runtime: &Handle) -> bool {
    let mut probe = coop::unconstrained(runtime.spawn(async {}));
    let mut cx = Context::from_waker(Waker::noop());
    matches!(Pin::new(&mut probe).poll(&mut cx), Poll::Ready(Err(_)))
}

/// Asks when it is dropped.
struct Asks(Handle, Sender<bool>);

impl Drop for Asks {
    fn drop(&mut self) {
        self.1.send(refuses_tasks(&self.0)).unwrap();
    }
}

#[test]
fn one_of_several_threads_refuses_tasks_before_it_drops_one() {
    const TASKS: usize = 16;
    let _limit = time_limit();
    for _ in 0..50 {
        let io = of_two_workers();
        let (tell, told) = mpsc::channel();
        for _ in 0..TASKS {
            let (lasts, is_polled) = lasts(Asks(io.handle().clone(), tell.clone()));
            io.spawn(lasts);
            is_polled.recv().unwrap();
        }
        assert!(!refuses_tasks(io.handle()));
        drop((io, tell));
        assert_eq!(told.iter().collect::<Vec<_>>(), [true; TASKS]);
    }
}

/// The task that asks, on one worker, may be polled while the other one drops tasks.
#[test]
fn a_task_that_is_polled_meanwhile_sees_it() {
    let _limit = time_limit();
    let io = of_two_workers();
    let (dropped, is_dropped) = mpsc::channel();
    let (lasts, is_polled) = lasts(Dropped(dropped));
    io.spawn(lasts);
    is_polled.recv().unwrap();
    let (started, starts) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    io.spawn(async move {
        let before = refuses_tasks(&Handle::current());
        started.send(()).unwrap();
        is_dropped.recv().unwrap();
        tell.send((before, refuses_tasks(&Handle::current())))
            .unwrap();
    });
    starts.recv().unwrap();
    io.shutdown_background();
    assert_eq!(told.recv().unwrap(), (false, true));
}

#[derive(Default)]
struct Seen {
    /// Of the tasks.
    wakers: Mutex<Vec<Waker>>,
    a_drop: AtomicBool,
    a_poll_after_it: AtomicBool,
}

/// Wakes all tasks when it is dropped.
struct Wakes(Arc<Seen>);

impl Drop for Wakes {
    fn drop(&mut self) {
        self.0.a_drop.store(true, SeqCst);
        // Outside the lock: with its waker a task may be dropped.
        let wakers = mem::take(&mut *self.0.wakers.lock().unwrap());
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[test]
fn one_of_one_thread_polls_no_task_after_it_has_dropped_one() {
    const TASKS: usize = 16;
    let _limit = time_limit();
    let io = current_thread();
    let seen = Arc::new(Seen::default());
    for _ in 0..TASKS {
        let wakes = Wakes(seen.clone());
        io.spawn(poll_fn(move |cx| {
            let seen = &wakes.0;
            if seen.a_drop.load(SeqCst) {
                seen.a_poll_after_it.store(true, SeqCst);
            }
            seen.wakers.lock().unwrap().push(cx.waker().clone());
            Poll::<()>::Pending
        }));
    }
    while seen.wakers.lock().unwrap().len() < TASKS {
        io.block_on(yield_now());
    }
    drop(io);
    assert!(seen.a_drop.load(SeqCst));
    assert!(!seen.a_poll_after_it.load(SeqCst));
}
