//! The thread that serves as a level's scout (`lane/scout.rs`).
//!
//! On the rayon backend it is the one worker of a rayon pool: what a job splits, by `join` or
//! `scope`, it computes itself. (A long job runs there once, and on the level's pool from then on.)
//! It stays in one rayon job, and gives rayon's own work a turn after each job of the lane.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;

use rayon_core::ThreadPoolBuilder;

use super::drain::run_rayons_work;
use crate::backend::Backend;
use crate::lane::{Level, ScoutThread, scout, thread as lane_thread};
use crate::panics;
use crate::sync::{Ordering::SeqCst, fence};
use crate::task::{Schedule, StepEnd, budget};

/// Starts it, and waits until it is there.
pub(crate) fn start(level: &Level) -> io::Result<Arc<ScoutThread>> {
    let (tell, started) = mpsc::channel();
    match level.lane().settings.backend {
        Backend::Rayon => start_rayon(level, tell)?,
        Backend::Runtime => {
            let own = level.clone();
            builder(level).spawn(move || {
                main(&own, &tell, || serve(&own, || false));
            })?;
        }
    }
    started.recv().map_err(io::Error::other)
}

fn builder(level: &Level) -> thread::Builder {
    let settings = &level.lane().settings;
    let prefix = settings.thread_prefix(level.priority());
    let builder = thread::Builder::new().name(format!("{prefix}-scout"));
    match settings.stack_size {
        Some(size) => builder.stack_size(size),
        None => builder,
    }
}

fn start_rayon(level: &Level, tell: Sender<Arc<ScoutThread>>) -> io::Result<()> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .panic_handler(|payload| {
            panics::report_payload("a closure given to rayon::spawn", payload);
        })
        .spawn_handler(|worker| {
            let (own, tell) = (level.clone(), tell.clone());
            builder(level).spawn(move || main(&own, &tell, || worker.run()))?;
            Ok(())
        })
        .build()
        .map_err(io::Error::other)?;
    let (pool, level) = (Arc::new(pool), level.clone());
    let own = pool.clone();
    pool.spawn(move || {
        serve(&level, run_rayons_work);
        // The worker ends when it has returned to rayon.
        drop(own);
    });
    Ok(())
}

fn main(level: &Level, tell: &Sender<Arc<ScoutThread>>, run: impl FnOnce()) {
    let lane = level.lane();
    lane_thread::begin(lane);
    lane.set_thread_niceness(scout::WEIGHT);
    let io = lane.io.handle().clone();
    let _io = io.enter();
    budget::enable(&io);
    lane_thread::join_level(level.clone(), None);
    let own = ScoutThread::of_this_thread();
    THIS.with(|this| this.replace(Some(own.clone())));
    let _ = tell.send(own);
    lane.settings.hooks.started();
    run();
    lane.settings.hooks.stopping();
    drop(lane_thread::leave_level());
}

thread_local! {
    static THIS: RefCell<Option<Arc<ScoutThread>>> =
        const { RefCell::new(None) };
}

fn serve(level: &Level, run_other_work: impl Fn() -> bool) {
    let this = THIS.with(RefCell::take);
    let (Some(scout), Some(this)) = (level.scout(), this) else {
        return;
    };
    let _ = budget::without(|| {
        budget::refill();
        let mut worker = level.worker(None);
        loop {
            let Some(job) = level.pop_for_scout(scout) else {
                match scout.park(level) {
                    true => continue,
                    false => return,
                }
            };
            let site = job.site();
            this.begin_step(site);
            let end = job.run(&mut worker);
            let mut is_lowered = this.end_step();
            match end {
                // It has had its time here: the workers go on with it.
                StepEnd::Requeue { job, yielded: true } => {
                    level.put_back(job, true);
                    fence(SeqCst);
                    if let Some(workers) = level.workers() {
                        workers.notify(level);
                    }
                }
                // As if it were woken a moment later.
                StepEnd::Requeue { job, .. } => level.enqueue(job),
                _ => {}
            }
            // What the job has left behind counts as its own.
            while !is_lowered {
                this.begin_step(site);
                let found = run_other_work();
                is_lowered = this.end_step();
                if !found {
                    break;
                }
            }
            if is_lowered {
                return scout.lowered_has_ended();
            }
        }
    });
}
