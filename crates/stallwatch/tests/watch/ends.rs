//! What comes to an end: threads that are watched, and the watch. (With its runtime: `ended.rs`.)

#![cfg(target_os = "linux")]

use std::collections::HashSet;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::gate::gate;
use crate::setting::{runtime, this_thread, watched, with_open_files};
use crate::wait::{has_thread, wait_until};
use stallwatch::{Watch, Watcher, watch};

#[test]
fn the_files_of_threads_that_have_ended_are_closed() {
    let watched = watched(Some(1));
    let ended: HashSet<String> = (0..20)
        .map(|_| {
            let io = watched.io.handle().clone();
            let poll = move || {
                io.block_on(watch(async {
                    // Until the watch knows this thread.
                    wait_until(|| with_open_files().contains(&this_thread()));
                    this_thread()
                }))
            };
            thread::spawn(poll).join().unwrap()
        })
        .collect();
    wait_until(|| with_open_files().is_disjoint(&ended));
    // And the watch goes on.
    watched.stall_as("after them");
    watched.stall_of("after them");
}

#[test]
fn the_watch_s_thread_ends_when_it_is_stopped() {
    let io = runtime(Some(1));
    let watch = Watch::new().thread_name("stopped");
    let watcher = watch.start(io.handle()).unwrap();
    wait_until(|| has_thread("stopped"));
    watcher.stop();
    watcher.stop();
    wait_until(|| !has_thread("stopped"));
}

/// The runtime polls the last probe only then.
#[test]
fn no_probe_is_told_of_after_the_watch_has_ended() {
    let io = runtime(None);
    let (send, probes) = mpsc::channel();
    let watch = Watch::new().on_probe(move |waited| send.send(waited).unwrap());
    let watch = watch.thread_name("no probe");
    let watcher = watch.start(io.handle()).unwrap();
    wait_until(|| io.metrics().num_alive_tasks() > 0);
    watcher.stop();
    wait_until(|| !has_thread("no probe"));
    io.block_on(async {
        while io.metrics().num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    });
    assert!(
        probes.recv().is_err(),
        "the hook is gone, and was not called"
    );
}

/// It waits for nothing.
#[test]
fn a_hook_may_stop_its_watch() {
    let io = runtime(Some(1));
    let slot = Arc::new(Mutex::new(None::<Watcher>));
    let (stopped, stops) = mpsc::channel();
    let own = slot.clone();
    let watch_it = Watch::new().on_stall(move |_| {
        drop(own.lock().unwrap().take().unwrap());
        stopped.send(()).unwrap();
    });
    *slot.lock().unwrap() = Some(watch_it.start(io.handle()).unwrap());
    let (gate, stay) = gate();
    let task = io.spawn(watch(async move { stay() }));
    stops.recv().unwrap();
    // The watch's thread ends, and with it the hook.
    assert!(stops.recv().is_err());
    drop(gate);
    io.block_on(task).unwrap();
}
