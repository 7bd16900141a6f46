//! The polls of a job's parts, and the end of the job: each poll is added to the count of an ended
//! job once and taken off once, or neither.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};

use loom::thread;

use crate::model;
use crate::polls::Polls;

#[derive(Default)]
struct Job {
    polls: Polls,
    /// Counted outside of the model, so that it orders nothing there.
    count: AtomicIsize,
}

impl Job {
    fn begin(&self) {
        self.count.fetch_add(self.polls.begin().into(), SeqCst);
    }

    fn end(&self) {
        self.count.fetch_sub(self.polls.end().into(), SeqCst);
    }

    fn end_job(&self) {
        let polls = self.polls.end_job().try_into().unwrap();
        self.count.fetch_add(polls, SeqCst);
    }
}

#[test]
fn no_poll_is_left_in_the_count() {
    model(|| {
        let job = Arc::new(Job::default());
        let polls = |job: Arc<Job>| {
            thread::spawn(move || {
                for _ in 0..2 {
                    job.begin();
                    job.end();
                }
            })
        };
        let threads = [polls(job.clone()), polls(job.clone())];
        job.end_job();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(job.count.load(SeqCst), 0);
    });
}

#[test]
fn a_poll_that_outlives_the_job_is_in_the_count() {
    model(|| {
        let job = Arc::new(Job::default());
        let polled = job.clone();
        let thread = thread::spawn(move || polled.begin());
        job.end_job();
        thread.join().unwrap();
        assert_eq!(job.count.load(SeqCst), 1);
        job.end();
        assert_eq!(job.count.load(SeqCst), 0);
    });
}
