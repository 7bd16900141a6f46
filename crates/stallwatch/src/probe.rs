//! [`Probes`]: how late the runtime is, and which threads are its workers.
//!
//! Two kinds, one at a time. A **task** is spawned, and any worker may poll it. A **socket** of a
//! pair is written to, and its task is polled once a worker has asked the kernel for events. The two
//! differ: a worker that has taken an event runs the task that it wakes, and the others sleep on.
//! Nobody looks at the sockets meanwhile, and a spawned task would wake one of those that sleep.
//!
//! Tokio panics if a socket is registered with a runtime that has no I/O driver, and does not tell
//! whether it has one. So there is a socket only after a worker was seen to park in `epoll_wait`: on
//! Linux, where `/proc` tells the calls of threads. A thread may wait for the events of another
//! runtime, inside `block_in_place` for one. So it counts only if it then polls the next task, and
//! all workers were parked when it was seen, and each has gone on once at most since: it has come
//! from a worker's park, and waited there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::kernel::thread_id;
use crate::lag::Lag;
use crate::scope;

/// From one probe to the next. They are rare, since each wakes a worker.
const IDLE: Duration = Duration::from_secs(1);

/// The same, while the runtime is in use: so long on average, since what the service does may come
/// as regularly.
const BUSY: Duration = Duration::from_millis(50);

/// Most probes are sockets: a task wakes a worker that would have slept.
const TASKS: Duration = Duration::from_secs(2);

/// What was seen before a probe was sent: [`parks`], and then the threads that wait for events.
type Seen = (Vec<u64>, Vec<u32>);

#[derive(Default)]
pub(crate) struct Probes {
    /// The probe that is under way. An error: the runtime has dropped it.
    lag: Option<Receiver<Lag>>,
    nth: u32,
    /// When the last one was sent, and the last task.
    sent: Option<Instant>,
    task_sent: Option<Instant>,
    has_io_driver: Arc<AtomicBool>,
    socket: Option<Socket>,
    /// Of the last second: when each was sent, and how long it has waited.
    waits: Vec<(Instant, Duration)>,
}

impl Probes {
    /// Returns what the last probe has found. An error: the runtime is gone.
    pub(crate) fn take(&mut self) -> Result<Option<Lag>, ()> {
        match self.lag.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Disconnected)) => Err(()),
            Some(Ok(lag)) => {
                self.lag = None;
                self.waits
                    .extend(self.sent.map(|sent| (sent, lag.waited())));
                Ok(Some(lag))
            }
            _ if self.socket.as_ref().is_some_and(Socket::is_gone) => Err(()),
            Some(Err(TryRecvError::Empty)) | None => Ok(None),
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.lag.is_some()
    }

    /// Whether those of the last second have waited for twice the limit in all, without those that waited
    /// for less than a tenth of it, or a millisecond.
    pub(crate) fn are_late(&mut self, (now, limit): (Instant, Duration)) -> bool {
        self.waits.retain(|(sent, _)| now - *sent < IDLE);
        let waits = self.waits.iter().map(|(_, waited)| *waited);
        let under_way = self.sent.filter(|_| self.is_under_way());
        let all = waits.chain(under_way.map(|sent| now - sent));
        let least = (limit / 10).max(Duration::from_millis(1));
        all.filter(|waited| *waited >= least).sum::<Duration>() >= 2 * limit
    }

    /// Whether one more look may tell why the one under way waits: not if that has lasted for a second.
    pub(crate) fn is_late(&self, (now, limit): (Instant, Duration)) -> bool {
        let waits = |sent| (limit..IDLE).contains(&(now - sent));
        self.is_under_way() && self.sent.is_some_and(waits)
    }

    pub(crate) fn send(
        &mut self,
        runtime: &Handle,
        now: Instant,
        is_idle: bool,
        seen: impl FnOnce() -> Seen,
    ) {
        let is_due = |then: Option<Instant>, every| then.is_none_or(|then| now - then >= every);
        // Spread evenly from a half to one and a half.
        let part = self.nth.wrapping_mul(0x9E37_79B9) >> 16;
        let busy = BUSY / 2 + BUSY * part / (1 << 16);
        if self.lag.is_some() || !is_due(self.sent, if is_idle { IDLE } else { busy }) {
            return;
        }
        self.nth += 1;
        self.sent = Some(now);
        let (polled, lag) = mpsc::channel();
        self.lag = Some(lag);
        if self.socket.is_none() && self.has_io_driver.load(Relaxed) {
            self.socket = Socket::new(runtime);
        }
        match &self.socket {
            Some(socket) if !is_due(self.task_sent, TASKS) => socket.send(polled),
            _ => {
                self.task_sent = Some(now);
                spawn(runtime, polled, seen(), self.has_io_driver.clone());
            }
        }
    }
}

/// Of each worker: how often it has parked and gone on. Odd while it is parked.
pub(crate) fn parks(runtime: &Handle) -> Vec<u64> {
    let metrics = runtime.metrics();
    let workers = 0..metrics.num_workers();
    workers
        .map(|worker| metrics.worker_park_unpark_count(worker))
        .collect()
}

fn spawn(runtime: &Handle, polled: Sender<Lag>, seen: Seen, has_io_driver: Arc<AtomicBool>) {
    let sent = Instant::now();
    runtime.spawn(async move {
        let lag = sent.elapsed();
        scope::probed();
        let was_in_epoll = thread_id().is_some_and(|id| seen.1.contains(&id));
        let mut workers = seen.0.into_iter().zip(parks(&Handle::current()));
        let was_worker = workers.all(|(before, now)| before % 2 == 1 && now <= before + 1);
        has_io_driver.fetch_or(was_in_epoll && was_worker, Relaxed);
        // An error: the watch has ended.
        let _ = polled.send(Lag::Task(lag));
    });
}

use socket::Socket;

#[cfg(target_os = "linux")]
mod socket {
    use std::io::ErrorKind;
    use std::os::unix::net::UnixDatagram;
    use std::sync::{Arc, Mutex};

    use super::*;

    type Waiting = Arc<Mutex<Option<(Instant, Sender<Lag>)>>>;

    const PROBE: &[u8] = &[1];
    const END: &[u8] = &[0];

    /// One of a pair: the other one has a task. Of datagrams, since to write to a stream whose other
    /// end is closed raises a signal, which kills the process where the host is no Rust program.
    pub(super) struct Socket {
        own: UnixDatagram,
        waiting: Waiting,
    }

    impl Socket {
        pub(super) fn new(runtime: &Handle) -> Option<Self> {
            let (own, other) = UnixDatagram::pair().ok()?;
            own.set_nonblocking(true).ok()?;
            other.set_nonblocking(true).ok()?;
            let other = {
                let _runtime = runtime.enter();
                tokio::net::UnixDatagram::from_std(other).ok()?
            };
            let waiting = Waiting::default();
            runtime.spawn(answer(other, waiting.clone()));
            Some(Self { own, waiting })
        }

        /// Whether the runtime has dropped the task.
        pub(super) fn is_gone(&self) -> bool {
            Arc::strong_count(&self.waiting) == 1
        }

        pub(super) fn send(&self, polled: Sender<Lag>) {
            *self.waiting.lock().unwrap() = Some((Instant::now(), polled));
            // An error: the task is gone.
            let _ = self.own.send(PROBE);
        }
    }

    impl Drop for Socket {
        fn drop(&mut self) {
            let _ = self.own.send(END);
        }
    }

    async fn answer(socket: tokio::net::UnixDatagram, waiting: Waiting) {
        let mut byte = [0];
        while socket.readable().await.is_ok() {
            match socket.try_recv(&mut byte) {
                Ok(_) if byte == PROBE => {
                    scope::probed();
                    if let Some((sent, polled)) = waiting.lock().unwrap().take() {
                        let _ = polled.send(Lag::Socket(sent.elapsed()));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The watch has ended.
                _ => return,
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod socket {
    use super::*;

    pub(super) enum Socket {}

    impl Socket {
        pub(super) fn new(_runtime: &Handle) -> Option<Self> {
            None
        }

        pub(super) fn is_gone(&self) -> bool {
            match *self {}
        }

        pub(super) fn send(&self, _polled: Sender<Lag>) {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(25);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// At a second: of probes that were sent each 50 ms and waited so long, and of one that is under way,
    /// when it was sent.
    fn are_late(waited: u64, under_way: Option<u64>) -> bool {
        let begin = Instant::now();
        let (_polled, lag) = mpsc::channel();
        let waits = (0..20).map(|nth| (begin + ms(50 * nth), ms(waited)));
        let mut probes = Probes {
            lag: under_way.map(|_| lag),
            sent: under_way.map(|sent| begin + ms(sent)),
            waits: waits.collect(),
            ..Probes::default()
        };
        probes.are_late((begin + ms(1_000), LIMIT))
    }

    #[test]
    fn waits_of_a_second_add_up() {
        assert!(are_late(3, None));
        // Those that waited for less than a tenth of the limit do not count.
        assert!(!are_late(2, None));
    }

    #[test]
    fn the_one_under_way_counts() {
        assert!(are_late(2, Some(950)));
        assert!(!are_late(2, Some(951)));
    }
}
