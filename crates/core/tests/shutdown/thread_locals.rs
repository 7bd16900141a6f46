//! When has a thread of the lane ended? Once the destructors of its thread-locals have
//! run.
//!
//! A thread was counted out at the end of its main function, before them: `shutdown`
//! resolved, and the program ended with them in the middle of what they do (a buffer of
//! a log is written there, a file is closed).
//!
//! Windows runs such destructors under a lock that each thread takes to begin and to end. So one that
//! waits for another thread to end waits for ever there, and the tests in which one does are left out.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use twolane_core::in_cpu_context;

use crate::support::wait::wait_until;
use crate::support::{Lanes, lanes, lanes_with, nothing, suspended};
use twolane_core::JoinErrorKind;

/// Its destructor takes its time.
struct Slow {
    begun: Sender<()>,
    let_go: Receiver<()>,
    has_ended: Arc<AtomicBool>,
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.begun.send(()).unwrap();
        let _ = self.let_go.recv();
        self.has_ended.store(true, SeqCst);
    }
}

thread_local! {
    static OF_A_JOB: OnceCell<Slow> = const { OnceCell::new() };
    static OF_A_HOOK: OnceCell<Slow> = const { OnceCell::new() };
    static OF_A_DESTRUCTOR: OnceCell<Slow> = const { OnceCell::new() };
}

struct Watched {
    begins: Receiver<()>,
    let_go: Sender<()>,
    has_ended: Arc<AtomicBool>,
}

fn slow() -> (Slow, Watched) {
    let (begun, begins) = mpsc::channel();
    let (let_go, wait) = mpsc::channel();
    let has_ended = Arc::default();
    let slow = Slow {
        begun,
        let_go: wait,
        has_ended: Arc::clone(&has_ended),
    };
    let watched = Watched {
        begins,
        let_go,
        has_ended,
    };
    (slow, watched)
}

fn set(local: &'static std::thread::LocalKey<OnceCell<Slow>>, slow: Slow) {
    local.with(|cell| assert!(cell.set(slow).is_ok()));
}

/// One thread of the lane runs such a destructor, and the others are gone.
fn is_counted(lanes: &Lanes, watched: &Watched) {
    lanes.cpu.shutdown_background();
    watched.begins.recv().unwrap();
    let left = || lanes.cpu.shutdown_timeout(Duration::ZERO).wait();
    wait_until(|| left().threads <= 1);
    let left = lanes.cpu.shutdown_timeout(Duration::from_millis(5)).wait();
    assert_eq!((left.jobs, left.threads), (0, 1));
    let over = lanes.cpu.shutdown();
    watched.let_go.send(()).unwrap();
    assert!(over.wait().is_empty());
    assert!(watched.has_ended.load(SeqCst));
}

/// Of a worker, and of a thread of the lane's own runtime that serves no queue.
#[test]
#[cfg_attr(windows, ignore = "no other thread can end meanwhile")]
fn of_a_job_and_of_a_blocking_task() {
    for is_blocking in [false, true] {
        let lanes = lanes(2);
        let (slow, watched) = slow();
        let sets = move || set(&OF_A_JOB, slow);
        let job = match is_blocking {
            false => lanes.cpu.spawn_cpu(sets),
            true => lanes.cpu.spawn(in_cpu_context(async {
                tokio::task::spawn_blocking(sets).await.unwrap();
            })),
        };
        job.wait().unwrap();
        is_counted(&lanes, &watched);
    }
}

/// It is older than what jobs set, and goes after it.
#[test]
#[cfg_attr(windows, ignore = "no other thread can end meanwhile")]
fn of_a_start_hook() {
    let (slow, watched) = slow();
    let slow = Mutex::new(Some(slow));
    let lanes = lanes_with(2, |builder| {
        builder.on_thread_start(move || {
            let slow = slow.lock().unwrap().take();
            slow.into_iter().for_each(|slow| set(&OF_A_HOOK, slow));
        })
    });
    is_counted(&lanes, &watched);
}

/// The thread that drops what a shutdown finds in the queue.
#[test]
fn of_a_destructor() {
    struct Sets(Option<Slow>);
    impl Drop for Sets {
        fn drop(&mut self) {
            set(&OF_A_DESTRUCTOR, self.0.take().unwrap());
        }
    }
    let lanes = lanes(1);
    let (slow, watched) = slow();
    let job = suspended(lanes.cpu.handle(), Sets(Some(slow)));
    // After the step of that one.
    lanes.cpu.spawn_cpu(nothing).wait().unwrap();
    lanes.cpu.shutdown_background();
    assert_eq!(job.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
    is_counted(&lanes, &watched);
}
