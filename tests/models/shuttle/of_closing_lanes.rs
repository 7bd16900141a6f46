//! A lane that closes against those who submit, wake and cancel its jobs: the code of `src/lane`,
//! `src/task` and `src/admission`, with the control thread and the reaper. The workers are the
//! model's own.
//!
//! What must hold ([`Level`](crate::lane::Level) and `lane/mod.rs` have it in prose): each task ends,
//! as its closure ended or with the reason of the close; no job runs twice; a shutdown resolves, and
//! then all threads have ended and nothing holds the lane. A hang is a deadlock, which shuttle
//! reports.

use std::cell::Cell;
use std::sync::{Arc, LazyLock, OnceLock, Weak};

use shuttle::future::block_on;
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::thread::{self, JoinHandle};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::admission::{Permit, Reserve};
use crate::error::{CloseReason, JoinError};
use crate::lane::control::{self, Due, Message};
use crate::lane::{
    Lane, Level, Levels, Start, Submitter, ThreadSettings, Threads, Workers, thread as lane_thread,
};
use crate::limits::Limit;
use crate::priority::Priority;
use crate::remaining::Remaining;
use crate::sync::mpsc;
use crate::task::{FutureWork, StepEnd, Submit, Task};

/// Nothing runs there.
static IO: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().build().unwrap());

/// One worker, which a message wakes for each job.
struct OneWorker(Mutex<Option<Sender<()>>>);

impl OneWorker {
    fn start(own: &Submitter) -> Arc<dyn Workers> {
        let (wake, woken) = channel();
        let (begun, has_begun) = channel();
        let own = own.clone();
        thread::spawn(move || {
            lane_thread::join_lane(&own.levels.lane, None);
            let level = own.level().clone();
            lane_thread::join_level(own, Some(0));
            begun.send(()).unwrap();
            serve(&level, &woken);
            lane_thread::leave_level();
        });
        has_begun.recv().unwrap();
        Arc::new(Self(Mutex::new(Some(wake))))
    }
}

fn serve(level: &Arc<Level>, woken: &Receiver<()>) {
    let mut worker = level.worker(Some(0));
    while woken.recv().is_ok() {
        while let Some(job) = level.queue.pop(&mut worker.popped) {
            if let StepEnd::Requeue { job, yielded } = job.run(&mut worker) {
                level.queue.put_back(job, yielded);
            }
        }
    }
}

impl Workers for OneWorker {
    fn install(&self, _: &mut (dyn FnMut() + Send)) {
        unreachable!("no model installs");
    }

    fn lend(&self) -> Option<Arc<rayon_core::ThreadPool>> {
        None
    }

    fn notify(&self, _: &Arc<Level>) {
        if let Some(wake) = &*self.0.lock().unwrap() {
            wake.send(()).unwrap();
        }
    }

    fn shutdown(&self) {
        drop(self.0.lock().unwrap().take());
    }
}

struct Model {
    levels: Arc<Levels>,
    lane: Weak<Lane>,
}

impl Model {
    /// A lane whose threads start when [`start`](Self::start) is called, or a job asks for them.
    fn new(limit: Option<usize>) -> Self {
        Self::with(limit, |own| Ok(OneWorker::start(own)))
    }

    fn started(limit: Option<usize>) -> Self {
        let model = Self::new(limit);
        model.start();
        model
    }

    fn with(limit: Option<usize>, start: Start) -> Self {
        let (messages, receiver) = mpsc::channel();
        let settings = ThreadSettings {
            threads: [1; 3],
            ..ThreadSettings::default()
        };
        let lane = Lane::new(settings, None, Some(IO.handle().clone()), messages);
        let weak = Arc::downgrade(&lane);
        let limit = Limit {
            jobs: limit,
            wait: None,
        };
        let levels = Levels::new(lane, [limit; 3]);
        control::start(levels.clone(), receiver, start).unwrap();
        Self { levels, lane: weak }
    }

    /// As `build` does it.
    fn start(&self) {
        // An error: the lane was closed before.
        let _ = self.submitter().level().start_and_wait(Threads::Workers);
        self.levels.lane.thread_ended();
    }

    fn submitter(&self) -> Submitter {
        Submitter::new(self.levels.clone(), Priority::Normal)
    }

    /// A thread submits a closure. It runs once, or its task ends by one of these causes. Returns how
    /// often it ran.
    fn submits(&self, causes: &'static [CloseReason]) -> JoinHandle<usize> {
        let submitter = self.submitter();
        thread::spawn(move || {
            let runs = Runs::default();
            let task = (&submitter).closure(runs.closure());
            drop(submitter);
            runs.check(task, causes)
        })
    }

    /// A thread submits a future, and hands the end of its task to `check`.
    fn submits_future<F: Future<Output: Send> + Send + 'static>(
        &self,
        future: F,
        check: impl FnOnce(Result<F::Output, JoinError>) + Send + 'static,
    ) -> JoinHandle<()> {
        let task = (&self.submitter()).submit(FutureWork::new(future));
        thread::spawn(move || check(block_on(task)))
    }

    /// Closes the lane and waits until it has ended.
    fn shut_down(self, close: impl FnOnce(&Lane)) {
        close(&self.levels.lane);
        let (reply, left) = oneshot::channel();
        // Without a limit: it is the end that answers.
        let far = std::time::Instant::now() + std::time::Duration::from_secs(1 << 30);
        let _ = self
            .levels
            .lane
            .send_control(Message::At(far, Due::Reply(reply)));
        let left = block_on(left).unwrap_or_default();
        assert!(left.is_empty(), "{left:?}");
        let lane = self.lane.clone();
        drop(self);
        // The control thread, which has answered, is about to end.
        while lane.strong_count() > 0 {
            thread::yield_now();
        }
    }
}

/// How often a closure ran, and how its task ended.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn closure(&self) -> impl FnOnce() -> usize + Send + use<> {
        let runs = self.clone();
        move || runs.0.fetch_add(1, SeqCst) + 1
    }

    fn check(&self, task: Task<usize>, causes: &[CloseReason]) -> usize {
        let runs = || self.0.load(SeqCst);
        match block_on(task) {
            Ok(nth) => assert_eq!((nth, runs()), (1, 1)),
            Err(error) => {
                assert_eq!(runs(), 0, "{error}");
                let cause = error.close_reason().unwrap();
                assert!(causes.contains(&cause), "{cause:?}");
            }
        }
        runs()
    }
}

fn each_job_ends_once_beside_a_shutdown(has_threads: bool) {
    crate::check(move || {
        let model = Model::new(None);
        if has_threads {
            model.start();
        }
        let submitters = [(); 2].map(|()| model.submits(&[CloseReason::ShutDown]));
        if !has_threads {
            model.levels.lane.thread_ended();
        }
        model.shut_down(Lane::close);
        submitters.into_iter().for_each(|it| _ = it.join().unwrap());
    });
}

#[test]
fn each_job_that_is_submitted_beside_a_shutdown_ends_once() {
    each_job_ends_once_beside_a_shutdown(true);
}

/// The threads start with the first job, and another one comes beside it, and the end of the lane.
#[test]
fn jobs_that_ask_for_threads_beside_a_shutdown_run_or_end_with_it() {
    each_job_ends_once_beside_a_shutdown(false);
}

#[test]
fn a_lane_that_closes_while_its_threads_start_ends_what_was_queued() {
    crate::check(|| {
        let model = Model::new(None);
        let submits = model.submits(&[CloseReason::IoRuntimeGone]);
        let levels = model.levels.clone();
        let ends = thread::spawn(move || levels.lane.close_because(CloseReason::IoRuntimeGone));
        model.start();
        ends.join().unwrap();
        model.shut_down(|_| ());
        submits.join().unwrap();
    });
}

#[test]
fn a_suspended_future_that_is_woken_beside_a_shutdown_ends_once() {
    crate::check(|| {
        let model = Model::started(None);
        let (send, receive) = oneshot::channel();
        let waits = async move { receive.await.unwrap() };
        let awaits = model.submits_future(waits, |ended| match ended {
            Ok(value) => assert_eq!(value, 7),
            Err(error) => assert_eq!(error.close_reason(), Some(CloseReason::ShutDown)),
        });
        // An error: its receiver is dropped, with the future.
        let wakes = thread::spawn(move || _ = send.send(7));
        model.shut_down(Lane::close);
        awaits.join().unwrap();
        wakes.join().unwrap();
    });
}

#[test]
fn a_job_that_is_cancelled_beside_a_shutdown_leaves_nothing() {
    crate::check(|| {
        let model = Model::started(None);
        let submitter = model.submitter();
        let runs = Runs::default();
        let task = (&submitter).closure(runs.closure());
        drop(submitter);
        let cancels = thread::spawn(move || drop(task));
        model.shut_down(Lane::close);
        cancels.join().unwrap();
        assert!(runs.0.load(SeqCst) <= 1);
        assert_eq!(Arc::strong_count(&runs.0), 1, "the closure is dropped");
    });
}

/// As long as a job runs, the lane has not ended.
#[test]
fn a_wait_for_a_permit_ends_when_the_lane_closes() {
    crate::check(|| {
        let model = Model::started(Some(1));
        let held = Permit::try_new(&model.submitter()).unwrap();
        let (open, gate) = channel::<()>();
        let runs = Arc::new(Mutex::new(Some(gate)));
        let job = held.spawn_cpu(move || {
            let gate = runs.lock().unwrap().take();
            let _ = gate.unwrap().recv();
        });
        let submitter = model.submitter();
        let waits = thread::spawn(move || {
            let refused = match block_on(Reserve::new(submitter)) {
                // Of the job, which was closed before it began.
                Ok(permit) => block_on(permit.spawn_cpu(|| ())).unwrap_err(),
                Err(refused) => refused,
            };
            assert_eq!(refused.close_reason(), Some(CloseReason::ShutDown));
        });
        model.levels.lane.close();
        waits.join().unwrap();
        drop(open);
        let ended = block_on(job).map_err(|error| error.close_reason());
        assert!(matches!(ended, Ok(()) | Err(Some(CloseReason::ShutDown))));
        model.shut_down(|_| ());
    });
}

#[test]
fn a_job_that_comes_before_the_threads_runs() {
    crate::check(|| {
        let model = Model::new(None);
        let submits = model.submits(&[]);
        model.start();
        submits.join().unwrap();
        model.shut_down(Lane::close);
    });
}

/// No wake-up ends it: its runner finds the lane closed, or the control thread finds it suspended.
#[test]
fn a_future_that_is_suspended_beside_a_shutdown_ends_with_it() {
    crate::check(|| {
        let model = Model::started(None);
        let awaits = model.submits_future(std::future::pending::<()>(), |ended| {
            let reason = ended.unwrap_err().close_reason();
            assert_eq!(reason, Some(CloseReason::ShutDown));
        });
        model.shut_down(Lane::close);
        awaits.join().unwrap();
    });
}

#[test]
fn jobs_that_ask_for_threads_all_run() {
    crate::check(|| {
        let model = Model::new(None);
        let submits = [(); 2].map(|()| model.submits(&[]));
        submits.into_iter().for_each(|it| _ = it.join().unwrap());
        model.levels.lane.thread_ended();
        model.shut_down(Lane::close);
    });
}

/// Each job ends, also one that comes while another's request is refused.
#[test]
fn jobs_for_which_the_system_has_no_threads_end() {
    crate::check(|| {
        let model = Model::with(None, |_| Err(std::io::ErrorKind::WouldBlock.into()));
        let submits = [(); 2].map(|()| model.submits(&[CloseReason::NoThreads]));
        let runs = submits.map(|it| it.join().unwrap());
        assert_eq!(runs, [0, 0]);
        model.levels.lane.thread_ended();
        model.shut_down(Lane::close);
    });
}

/// A call that waits for the threads comes beside a job, and the system has some at the second try.
#[test]
fn who_waits_for_threads_is_told_also_if_there_are_none() {
    thread_local! {
        static TRIES: Cell<usize> = const { Cell::new(0) };
    }
    crate::check(|| {
        // All threads of a model are one thread of the system.
        TRIES.set(0);
        let model = Model::with(None, |own| match TRIES.replace(TRIES.get() + 1) {
            0 => Err(std::io::ErrorKind::WouldBlock.into()),
            _ => Ok(OneWorker::start(own)),
        });
        let submits = model.submits(&[CloseReason::NoThreads]);
        // It has those of the second try, if the job has asked before.
        let _ = model.submitter().level().started();
        submits.join().unwrap();
        // No later than now.
        assert!(model.submitter().level().started().is_ok());
        model.levels.lane.thread_ended();
        model.shut_down(Lane::close);
    });
}
