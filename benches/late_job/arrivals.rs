//! The source of small jobs: a thread that sleeps until each arrival, at times fixed
//! beforehand, and does not wait for the answer to one before it sends the next. A
//! late answer delays no later arrival, so none is left out of the count.

use std::future::Future;
use std::pin::Pin;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use twolane_benches::tail::sleep_until;

/// Ready when the awaiter of a job has its result: the time at which the job ended.
pub type Ending = Pin<Box<dyn Future<Output = Instant> + Send>>;

/// The times of a small job, since the start of the run.
#[derive(Deserialize)]
pub struct Late {
    pub intended_ns: u64,
    /// By its own clock, in its last line.
    pub ended_ns: u64,
}

/// A source that has sent one small job, has seen it answered, and waits for its start.
pub struct Arrivals {
    begin: oneshot::Sender<Instant>,
    sent: oneshot::Receiver<Vec<Sent>>,
}

/// A small job on its way.
struct Sent {
    intended: Instant,
    /// When it ended: a task of the I/O runtime awaits that.
    ended: JoinHandle<Instant>,
}

impl Arrivals {
    /// Starts the source and sends one small job by it, so that every path has been
    /// gone once before the clock starts.
    pub fn arm(
        io: &Handle,
        submit: Box<dyn Fn() -> Ending + Send>,
        count: usize,
        every: Duration,
    ) -> Self {
        let (begin, begun) = oneshot::channel();
        let (done, sent) = oneshot::channel();
        let (primed, is_primed) = std::sync::mpsc::channel();
        let io = io.clone();
        thread::spawn(move || {
            let send = |intended| {
                let ended = io.spawn(submit());
                Sent { intended, ended }
            };
            let first = send(Instant::now());
            io.block_on(first.ended).unwrap();
            primed.send(()).unwrap();
            let first: Instant = begun.blocking_recv().unwrap();
            let sent = (0..count as u32).map(|nth| {
                let due = first + every * nth;
                sleep_until(due);
                send(due)
            });
            let sent = sent.collect();
            // What it holds of the lane ends before the answer.
            drop(submit);
            let _ = done.send(sent);
        });
        is_primed.recv().unwrap();
        Self { begin, sent }
    }

    /// The first small job arrives at `first`. The result gives all small jobs once
    /// all are answered.
    pub fn begin(self, first: Instant) -> Begun {
        self.begin.send(first).unwrap();
        Begun(self.sent)
    }
}

pub struct Begun(oneshot::Receiver<Vec<Sent>>);

impl Begun {
    /// Their times count from `start`.
    pub async fn answers(self, start: Instant) -> Vec<Late> {
        let ns = |time: Instant| (time - start).as_nanos() as u64;
        let mut answers = Vec::new();
        for sent in self.0.await.unwrap() {
            answers.push(Late {
                intended_ns: ns(sent.intended),
                ended_ns: ns(sent.ended.await.unwrap()),
            });
        }
        answers
    }
}
