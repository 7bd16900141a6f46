//! Pushes, the ticker and a worker that parks without a look at the queue: the code of
//! `pool/tokio/stranded.rs`. Tokio is the model's own: it wakes a worker for a push if it counts
//! all of them as parked, and for the ticker's empty task.

use std::sync::Arc;

use shuttle::sync::atomic::Ordering::SeqCst;
use shuttle::sync::atomic::fence;
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

use crate::check;
use crate::stranded::Stranded;
use crate::sync::Queue;

/// Keeps one token, as a thread's `unpark`.
#[derive(Default)]
struct Parker(Mutex<bool>, Condvar);

impl Parker {
    fn notify(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }

    fn wait(&self) {
        let mut has_token = self.0.lock().unwrap();
        while !*has_token {
            has_token = self.1.wait(has_token).unwrap();
        }
        *has_token = false;
    }
}

struct Lane {
    queue: Queue<usize>,
    stranded: Stranded,
    /// Unparks the worker.
    unpark: Parker,
}

impl Lane {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::default(),
            stranded: Stranded::new(1),
            unpark: Parker::default(),
        })
    }

    /// As `notify` of the backend. A look that ends begins again with the next push.
    fn push(self: &Arc<Self>, job: usize) -> Option<thread::JoinHandle<()>> {
        self.queue.push(job);
        fence(SeqCst);
        let ticker = self.stranded.must_look().then(|| {
            let lane = self.clone();
            thread::spawn(move || lane.tick())
        });
        if self.stranded.parked.load(SeqCst) == 1 {
            self.unpark.notify();
        }
        ticker
    }

    fn tick(&self) {
        let has_queued = || !self.queue.is_empty();
        while self.stranded.tick(has_queued, || self.unpark.notify()) {
            thread::yield_now();
        }
    }

    /// Parks before each job, without a look.
    fn serve(&self, jobs: usize) {
        let mut popped = 0;
        while popped < jobs {
            self.stranded.parked.fetch_add(1, SeqCst);
            self.unpark.wait();
            self.stranded.parked.fetch_sub(1, SeqCst);
            while self.queue.pop().is_some() {
                popped += 1;
            }
        }
    }
}

/// A job that nobody looks for would leave the worker parked for good, which shuttle reports.
#[test]
fn a_job_beside_a_worker_that_parks_without_a_look_is_found() {
    check(|| {
        let lane = Lane::new();
        let worker = {
            let lane = lane.clone();
            thread::spawn(move || lane.serve(1))
        };
        let ticker = lane.push(1);
        worker.join().unwrap();
        if let Some(ticker) = ticker {
            ticker.join().unwrap();
        }
    });
}

#[test]
fn a_push_beside_the_end_of_the_looks_begins_them_anew() {
    check(|| {
        let lane = Lane::new();
        let worker = {
            let lane = lane.clone();
            thread::spawn(move || lane.serve(2))
        };
        let tickers = [lane.push(1), lane.push(2)];
        worker.join().unwrap();
        for ticker in tickers.into_iter().flatten() {
            ticker.join().unwrap();
        }
    });
}
