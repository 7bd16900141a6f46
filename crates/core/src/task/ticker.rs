//! The ticker: the thread of the process that drives the [`Clock`] of the slices, calls what is
//! to be called at each tick, and wakes those whose [time is up](super::Task::within).
//!
//! A slice begins with a step of a job, or with the job's last yield. It is over at the second
//! tick, so it lasts one to two ticks.
//!
//! For the time that is up it drives a Tokio runtime that has timers and nothing else. These fire
//! whatever becomes of a lane and its I/O runtime. Such a timer leaves the runtime with its future,
//! and wakes the ticker only if it is the next one. So many that end early cost the ticker nothing.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use crossbeam_queue::SegQueue;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::ClockWord;
use super::clock::{Clock, NOT_ASKED};
use crate::panics;

const TICK: Duration = Duration::from_millis(5);
const TICKS_OF_A_SLICE: u32 = 2;
/// How many ticks pass without a call before the ticker parks.
const TICKS_UNASKED: u32 = 40;

static CLOCK: Clock = Clock(ClockWord::new(NOT_ASKED));

/// The tick count.
#[inline]
pub fn ticks() -> u32 {
    CLOCK.now()
}

/// Keeps the ticker awake for some ticks more.
#[inline]
fn ask_for_ticks() {
    if CLOCK.is_unasked() {
        ask();
    }
}

/// Whether a slice that began at the tick `began` is over.
#[inline]
pub(crate) fn is_slice_over(began: u32) -> bool {
    ask_for_ticks();
    has_passed(began)
}

/// The same, for the ticker itself: this asks for no ticks.
#[inline]
pub fn has_passed(began: u32) -> bool {
    CLOCK.have_passed(began, TICKS_OF_A_SLICE)
}

/// What the ticker calls.
static AT_TICKS: SegQueue<Box<dyn Fn() -> bool + Send>> = SegQueue::new();

/// Has the ticker call it at each tick until it returns false, and not park before.
pub fn at_each_tick(what: impl Fn() -> bool + Send + 'static) {
    AT_TICKS.push(Box::new(what));
    ask_for_ticks();
}

#[cold]
fn ask() {
    if CLOCK.ask() {
        notify();
    }
}

fn notify() {
    // If `start_ticker` holds the lock, it notifies the ticker itself after its release.
    if let Ok(ticker) = TICKER.try_read() {
        ticker.iter().for_each(|(_, asked, _)| asked.notify_one());
    }
}

/// The process that owns the ticker, what ends the ticker's sleep, and its timers. It starts with
/// the first lane.
static TICKER: RwLock<Option<(u32, Arc<Notify>, Handle)>> = RwLock::new(None);

/// Polls `future` until that time is over, then returns `None`. `timers`: of a runtime, or else those
/// of the caller's.
pub(crate) fn in_time<F: Future + Unpin>(
    timers: Option<Handle>,
    limit: Duration,
    mut future: F,
) -> impl Future<Output = Option<F::Output>> {
    let _entered = timers.as_ref().map(Handle::enter);
    let timer = sleep(limit);
    async move {
        let mut timer = pin!(timer);
        poll_fn(|cx| match Pin::new(&mut future).poll(cx) {
            Poll::Pending => {
                let waker = Waker::from(Arc::new(Quiet(cx.waker().clone())));
                let time = timer.as_mut().poll(&mut Context::from_waker(&waker));
                time.map(|()| None)
            }
            Poll::Ready(output) => Poll::Ready(Some(output)),
        })
        .await
    }
}

/// A waker whose panic does not end what wakes it: the timers are those of the whole process.
struct Quiet(Waker);

impl Wake for Quiet {
    fn wake(self: Arc<Self>) {
        panics::run_hook("the waker of a task's awaiter", || self.0.wake_by_ref());
    }
}

/// The runtime whose timers the ticker drives.
pub(crate) fn timers() -> Option<Handle> {
    let ticker = TICKER.read().unwrap_or_else(PoisonError::into_inner);
    ticker.as_ref().map(|(_, _, timers)| timers.clone())
}

/// Starts the ticker, if this process has none.
pub(crate) fn start_ticker() -> io::Result<()> {
    let mut ticker = TICKER.write().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if ticker.as_ref().is_none_or(|(owner, ..)| *owner != process) {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let (asked, timers) = (Arc::new(Notify::new()), runtime.handle().clone());
        let of_ticker = asked.clone();
        giveway::spawn("twolane-ticker", move || tick(&runtime, &of_ticker))?;
        *ticker = Some((process, asked, timers));
    }
    drop(ticker);
    // For a call of `ask` that found the lock held.
    notify();
    Ok(())
}

fn tick(runtime: &Runtime, asked: &Notify) {
    let mut unasked = 0;
    loop {
        let is_needed = CLOCK.take_demand() || !AT_TICKS.is_empty();
        unasked = if is_needed { 0 } else { unasked + 1 };
        if unasked > TICKS_UNASKED && CLOCK.try_park() {
            while CLOCK.is_parked() {
                runtime.block_on(asked.notified());
            }
            unasked = 0;
        }
        thread::sleep(TICK);
        CLOCK.tick();
        // The timers that are due fire meanwhile.
        runtime.block_on(tokio::task::yield_now());
        for call in (0..AT_TICKS.len()).map_while(|_| AT_TICKS.pop()) {
            // What it holds may be dropped here, and wake someone.
            panics::run_hook("what the ticker calls", move || {
                if call() {
                    AT_TICKS.push(call);
                }
            });
        }
    }
}
