//! The source of small jobs: timer-driven, at times fixed beforehand, and
//! without waiting for the answer to one before it sends the next. A late
//! answer delays no later arrival, so none is left out of the count.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::contender::Ending;
use crate::outcome::Late;

/// When small jobs arrive.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub count: usize,
    pub every: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A plain thread that sleeps until each arrival.
    Thread,
    /// A task of the I/O runtime, on Tokio's timer.
    Tokio,
}

type Submit = Arc<dyn Fn() -> Ending + Send + Sync>;

/// A source that has sent one small job, has seen it answered, and waits for
/// its start.
pub struct Armed {
    begin: oneshot::Sender<Instant>,
    sent: JoinHandle<Vec<Sent>>,
}

/// A small job on its way.
struct Sent {
    intended: Instant,
    submitted: Instant,
    /// When it ended, and when its awaiting task had that.
    answered: JoinHandle<(Instant, Instant)>,
}

impl Schedule {
    pub fn new(count: usize, every: Duration) -> Self {
        Self { count, every }
    }

    pub fn span(self) -> Duration {
        self.every * u32::try_from(self.count).unwrap()
    }

    fn times(self, first: Instant) -> impl Iterator<Item = Instant> {
        (0_u32..)
            .take(self.count)
            .map(move |i| first + self.every * i)
    }
}

impl Source {
    /// Starts the source and sends one small job by it, so that every path has
    /// been gone once before the clock starts.
    pub fn arm(self, io: &Handle, submit: Submit, schedule: Schedule) -> Armed {
        let (begin, begun) = oneshot::channel();
        let (primed, is_primed) = std::sync::mpsc::channel();
        let sent = match self {
            Self::Thread => {
                let (done, sent) = oneshot::channel();
                let on = io.clone();
                let source = thread::spawn(move || {
                    let first = send(&on, &submit, Instant::now());
                    on.block_on(first.answered).unwrap();
                    primed.send(()).unwrap();
                    let times = schedule.times(begun.blocking_recv().unwrap());
                    let until = |time| thread::sleep(time - Instant::now().min(time));
                    let send = |time| {
                        until(time);
                        send(&on, &submit, time)
                    };
                    let _ = done.send(times.map(send).collect());
                });
                io.spawn(async move {
                    let sent = sent.await.unwrap();
                    source.join().unwrap();
                    sent
                })
            }
            Self::Tokio => {
                let on = io.clone();
                io.spawn(async move {
                    let first = send(&on, &submit, Instant::now());
                    first.answered.await.unwrap();
                    primed.send(()).unwrap();
                    let mut sent = Vec::with_capacity(schedule.count);
                    for time in schedule.times(begun.await.unwrap()) {
                        tokio::time::sleep_until(time.into()).await;
                        sent.push(send(&on, &submit, time));
                    }
                    sent
                })
            }
        };
        is_primed.recv().unwrap();
        Armed { begin, sent }
    }
}

/// Submits one, and has a task of the I/O runtime await it.
fn send(io: &Handle, submit: &Submit, intended: Instant) -> Sent {
    let submitted = Instant::now();
    let ending = submit();
    let answered = io.spawn(async move {
        let ended = ending.await;
        (ended, Instant::now())
    });
    Sent {
        intended,
        submitted,
        answered,
    }
}

impl Armed {
    /// The first small job arrives at `first`.
    pub fn begin(self, first: Instant) -> Begun {
        self.begin.send(first).unwrap();
        Begun { sent: self.sent }
    }
}

/// A source at work.
pub struct Begun {
    sent: JoinHandle<Vec<Sent>>,
}

impl Begun {
    /// All small jobs, once all were answered; their times count from `start`.
    pub async fn answers(self, start: Instant) -> Vec<Late> {
        let mut answers = Vec::new();
        for sent in self.sent.await.unwrap() {
            let (ended, awaited) = sent.answered.await.unwrap();
            answers.push(Late {
                intended: sent.intended - start,
                submitted: sent.submitted - start,
                ended: ended - start,
                awaited: Some(awaited - start),
            });
        }
        answers
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Thread => "thread",
            Self::Tokio => "tokio",
        })
    }
}
