//! How stalls are told: by a hook, and by events, of which there are few.

use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use crate::child;
use crate::setting::{blocks, hooked, runtime, watched};
use stallwatch::{Stall, Watch, Watcher, watch};
use tokio::runtime::Runtime;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber, subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::prelude::*;

/// The text of each event.
struct Events(Mutex<Sender<String>>);

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{}={value:?} ", field.name());
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        let _ = self.0.lock().unwrap().send(text.0);
    }
}

/// A watch, what its hook gets, and what it logs.
fn logged(io: &Runtime) -> (Watcher, Receiver<Stall>, Receiver<String>) {
    let (send, events) = mpsc::channel();
    let log = tracing_subscriber::registry().with(Events(Mutex::new(send)));
    let (watched, stalls) = hooked();
    // The events go to the subscriber of the thread that starts the watch.
    let watcher = subscriber::with_default(log, || watched.start(io.handle()).unwrap());
    (watcher, stalls, events)
}

/// The stall of a poll that blocks until it is told.
fn told(io: &Runtime, stalls: &Receiver<Stall>, name: &str) -> Stall {
    let (read, let_go) = blocks();
    let task = io.spawn(watch(async { read() }).named(name));
    let stall = stalls.iter().find(|stall| stall.culprit() == Some(name));
    drop(let_go);
    io.block_on(task).unwrap();
    stall.unwrap()
}

/// The hook is called for each stall, but of all culprits five a minute are logged. (The limiter's
/// own test has a clock of its own.)
#[test]
fn five_events_are_logged_in_a_minute() {
    let io = runtime(Some(1));
    let (watcher, stalls, events) = logged(&io);
    let begin = Instant::now();
    for n in 0..9 {
        told(&io, &stalls, &format!("culprit {n}"));
    }
    // The hook's call comes before the event, so those of the first eight are through.
    let logged: Vec<String> = events.try_iter().collect();
    if begin.elapsed() < Duration::from_secs(60) {
        for n in 0..9 {
            let is_of = |event: &&String| event.contains(&format!("culprit {n}"));
            let events = logged.iter().filter(is_of).count();
            assert_eq!(events, usize::from(n < 5), "{logged:?}");
        }
    } else {
        eprintln!("NOT TESTED: it took more than a minute");
    }
    assert!(watcher.stalls() >= 9);
    assert!(watcher.stalls_by_culprit().len() >= 9);
}

/// Once, a newline in a name forged a line of the log.
#[test]
fn a_name_forges_no_line_of_the_log() {
    const FORGED: &str = "GET /\nERROR all is lost\u{1b}[2J";
    let io = runtime(Some(1));
    let (_watcher, stalls, events) = logged(&io);
    let stall = told(&io, &stalls, FORGED);
    assert_eq!(stall.culprit(), Some(FORGED), "the name is what was given");
    for text in [stall.to_string(), events.recv().unwrap()] {
        assert!(text.contains(r"GET /\nERROR"), "{text}");
        assert!(!text.contains(char::is_control), "{text}");
    }
}

#[test]
fn a_hook_that_panics_is_called_again() {
    let io = runtime(Some(1));
    let (send, stalls) = mpsc::channel();
    let watched = Watch::new().on_stall(move |stall| {
        let _ = send.send(stall.clone());
        panic!("the hook panics");
    });
    let _watcher = watched.start(io.handle()).unwrap();
    for name in ["one", "two", "three"] {
        told(&io, &stalls, name);
    }
}

/// It logs to the subscriber that the process gets later, and calls all of its hooks. In a process
/// of its own, which has no subscriber before.
#[test]
fn a_watch_may_begin_before_the_log() {
    if !child::is_child() {
        let test = "reports::a_watch_may_begin_before_the_log";
        assert_eq!(child::run(test, |_| (), |_| ()), "2 hooks and a line");
        return;
    }
    let io = runtime(Some(1));
    let (send, stalls) = mpsc::channel();
    let other = send.clone();
    let watched = Watch::new().on_stall(move |_| send.send(()).unwrap());
    let watched = watched.on_stall(move |_| other.send(()).unwrap());
    let _watcher = watched.start(io.handle()).unwrap();
    let (send, events) = mpsc::channel();
    tracing_subscriber::registry()
        .with(Events(Mutex::new(send)))
        .init();
    let (read, let_go) = blocks();
    let task = io.spawn(watch(async { read() }).named("late"));
    let line = events.iter().find(|line| line.contains("late blocks"));
    drop(let_go);
    io.block_on(task).unwrap();
    assert!(line.is_some());
    child::found(format!("{} hooks and a line", stalls.try_iter().count()));
}

/// Each tells.
#[test]
fn two_watches_of_one_runtime() {
    let first = watched(Some(2));
    let (second, stalls) = hooked();
    let _second = second.start(first.io.handle()).unwrap();
    let (read, let_go) = blocks();
    let task = first.io.spawn(watch(async { read() }).named("both see it"));
    first.stall_of("both see it");
    let mut stalls = stalls.iter();
    assert!(stalls.any(|stall| stall.culprit() == Some("both see it")));
    drop(let_go);
    first.io.block_on(task).unwrap();
}
