//! How stalls are told: by a hook, and by events, of which there are few.

use std::io::{Read, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use crate::child;
use crate::limit::time_limit;
use crate::setting::{runtime, watched};
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
    let (send, stalls) = mpsc::channel();
    let watched = Watch::new().on_stall(move |stall| drop(send.send(stall.clone())));
    // The events go to the subscriber of the thread that starts the watch.
    let watcher = subscriber::with_default(log, || watched.start(io.handle()).unwrap());
    (watcher, stalls, events)
}

/// The hook is called for each stall, but of all culprits five a minute are logged. (And a
/// test has a minute.)
#[test]
fn five_events_are_logged_in_a_minute() {
    let _limit = time_limit();
    let io = runtime(Some(1));
    let (watcher, stalls, events) = logged(&io);
    for n in 0..9 {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let reads = async move { reader.read_exact(&mut [0]).unwrap() };
        let task = io.spawn(watch(reads).named(&format!("culprit {n}")));
        let stall = stalls.recv().unwrap();
        writer.write_all(&[1]).unwrap();
        io.block_on(task).unwrap();
        assert_eq!(stall.culprit(), Some(&*format!("culprit {n}")));
    }
    // The hook's call comes before the event, so those of the first eight are through.
    let logged: Vec<String> = events.try_iter().collect();
    let of = |n: usize| {
        logged
            .iter()
            .filter(move |event| event.contains(&format!("culprit {n}")))
    };
    for n in 0..9 {
        assert_eq!(of(n).count(), usize::from(n < 5), "{logged:?}");
    }
    assert_eq!(watcher.stalls(), 9);
    assert_eq!(watcher.stalls_by_culprit().len(), 9);
}

/// Once, a newline in a name forged a line of the log.
#[test]
fn a_name_forges_no_line_of_the_log() {
    const FORGED: &str = "GET /\nERROR all is lost\u{1b}[2J";
    let _limit = time_limit();
    let io = runtime(Some(1));
    let (_watcher, stalls, events) = logged(&io);
    // It blocks, so there is no stack.
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let reads = async move { reader.read_exact(&mut [0]).unwrap() };
    let task = io.spawn(watch(reads).named(FORGED));
    let stall = stalls.recv().unwrap();
    writer.write_all(&[1]).unwrap();
    io.block_on(task).unwrap();
    assert_eq!(stall.culprit(), Some(FORGED), "the name is what was given");
    for text in [stall.to_string(), events.recv().unwrap()] {
        assert!(text.contains(r"GET /\nERROR"), "{text}");
        assert!(!text.contains(char::is_control), "{text}");
    }
}

#[test]
fn a_hook_that_panics_is_called_again() {
    let _limit = time_limit();
    let io = runtime(Some(1));
    let (send, stalls) = mpsc::channel();
    let watched = Watch::new().on_stall(move |stall| {
        let _ = send.send(stall.clone());
        panic!("the hook panics");
    });
    let _watcher = watched.start(io.handle()).unwrap();
    // What computes is told by another thread, if there are stacks.
    for name in ["one", "two", "three"] {
        let over = Arc::new(());
        let is_over = Arc::downgrade(&over);
        let computes = async move { while is_over.strong_count() > 0 {} };
        let task = io.spawn(watch(computes).named(name));
        let stall = stalls.recv().unwrap();
        drop(over);
        io.block_on(task).unwrap();
        assert_eq!(stall.culprit(), Some(name));
    }
}

/// It logs to the subscriber that the process gets later, and calls all of its hooks. In a process
/// of its own, which has no subscriber before.
#[test]
fn a_watch_may_begin_before_the_log() {
    let _limit = time_limit();
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
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let reads = async move { reader.read_exact(&mut [0]).unwrap() };
    let task = io.spawn(watch(reads).named("late"));
    let line = events.iter().find(|line| line.contains("late blocks"));
    writer.write_all(&[1]).unwrap();
    io.block_on(task).unwrap();
    assert!(line.is_some());
    child::found(format!("{} hooks and a line", stalls.try_iter().count()));
}

/// Each tells.
#[test]
fn two_watches_of_one_runtime() {
    let _limit = time_limit();
    let first = watched(Some(2));
    let (send, stalls) = mpsc::channel();
    let second = Watch::new().on_stall(move |stall| drop(send.send(stall.clone())));
    let _second = second.start(first.io.handle()).unwrap();
    let over = Arc::new(());
    let is_over = Arc::downgrade(&over);
    let computes = async move { while is_over.strong_count() > 0 {} };
    let task = first.io.spawn(watch(computes).named("both see it"));
    let told = [first.stalls.recv().unwrap(), stalls.recv().unwrap()];
    drop(over);
    first.io.block_on(task).unwrap();
    assert_eq!(
        told.each_ref().map(|stall| stall.culprit()),
        [Some("both see it"); 2]
    );
}
