//! A lane that is watched, and what its watch says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver};

use crate::support::limit_this_thread;
use tokio::runtime::{Builder, Runtime};
use twolane::CpuRuntime;
use twolane::watch::{Stall, Watch};

pub(crate) struct Watched {
    pub(crate) cpu: CpuRuntime,
    pub(crate) io: Arc<Runtime>,
    pub(crate) stalls: Receiver<Stall>,
    /// Set by the first stall.
    told: Arc<AtomicBool>,
}

pub(crate) fn watched(workers: usize) -> Watched {
    watched_on(&Arc::new(runtime(workers)))
}

pub(crate) fn watched_on(io: &Arc<Runtime>) -> Watched {
    let (send, stalls) = mpsc::channel();
    let told = Arc::new(AtomicBool::new(false));
    let tells = told.clone();
    let watch = Watch::new().on_stall(move |stall| {
        tells.store(true, SeqCst);
        let _ = send.send(stall.clone());
    });
    Watched {
        cpu: lane(io, watch),
        io: io.clone(),
        stalls,
        told,
    }
}

/// The test has its time limit by that.
pub(crate) fn runtime(workers: usize) -> Runtime {
    limit_this_thread();
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(workers)
        .enable_all()
        .build()
        .unwrap()
}

pub(crate) fn lane(io: &Runtime, watch: Watch) -> CpuRuntime {
    let lane = CpuRuntime::builder().worker_threads(2);
    let lane = lane.io_handle(io.handle().clone()).watch_io(watch);
    lane.build().unwrap()
}

impl Watched {
    /// It computes until a stall is told.
    pub(crate) fn compute(&self) -> impl Fn() + Send + Clone + 'static {
        let told = self.told.clone();
        move || while !told.load(SeqCst) {}
    }

    /// The next stall that is told, with its culprit and a word of its remedy.
    pub(crate) fn is_told(&self, culprit: &str, remedy: &str) -> Stall {
        let stall = self.stalls.recv().unwrap();
        assert_eq!(stall.culprit(), Some(culprit));
        assert!(stall.remedy().contains(remedy), "{stall}");
        stall
    }
}
