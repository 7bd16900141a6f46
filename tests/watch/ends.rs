//! What comes to an end: threads that are watched, and the watch.

#![cfg(target_os = "linux")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::thread;

use crate::setting::{runtime, watched};
use crate::support::{BOTH, time_limit};
use twolane::{Backend, CpuRuntime, Watch, watch};

/// The threads whose files this process has open.
fn with_open_files() -> HashSet<String> {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    // An error: it was closed meanwhile.
    let paths = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let thread = |path: &Path| {
        let is_schedstat = path.file_name()? == "schedstat";
        let thread = path.parent()?.file_name()?.to_str()?.to_owned();
        is_schedstat.then_some(thread)
    };
    paths.filter_map(|path| thread(&path)).collect()
}

/// `/proc/thread-self` is a link to `PID/task/TID`.
fn this_thread() -> String {
    let link = fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn the_files_of_threads_that_have_ended_are_closed() {
    let _limit = time_limit();
    let watched = watched(Backend::Rayon, Some(1));
    let ended: HashSet<String> = (0..20)
        .map(|_| {
            let io = watched.io.handle().clone();
            let poll = move || {
                io.block_on(watch(async {
                    // Until the watch knows this thread.
                    while !with_open_files().contains(&this_thread()) {
                        thread::yield_now();
                    }
                    this_thread()
                }))
            };
            thread::spawn(poll).join().unwrap()
        })
        .collect();
    while !with_open_files().is_disjoint(&ended) {
        thread::yield_now();
    }
    // And the watch goes on.
    let told = |name: &str| {
        watched
            .stalls
            .iter()
            .any(|stall| stall.culprit() == Some(name))
    };
    watched.stall_as("after them");
    assert!(told("after them"));
}

fn has_thread(named: &str) -> bool {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    // An error: it has ended meanwhile.
    let mut names =
        tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.any(|name| name.trim_end() == named)
}

fn wait_until(is: impl Fn() -> bool) {
    while !is() {
        thread::yield_now();
    }
}

#[test]
fn the_watch_s_thread_ends_with_the_lane() {
    let _limit = time_limit();
    for backend in BOTH {
        for is_shut_down in [true, false] {
            let io = runtime(Some(1));
            let lane = CpuRuntime::builder().backend(backend).thread_name("brief");
            let lane = lane.io_handle(io.handle().clone()).watch_io(Watch::new());
            let cpu = lane.build().unwrap();
            wait_until(|| has_thread("brief-watch"));
            if is_shut_down {
                cpu.shutdown().wait();
            } else {
                drop(cpu);
            }
            wait_until(|| !has_thread("brief-watch"));
        }
    }
}

#[test]
fn the_watch_s_thread_ends_with_the_runtime() {
    let _limit = time_limit();
    let io = runtime(Some(1));
    let lane = CpuRuntime::builder().thread_name("orphan");
    let lane = lane.io_handle(io.handle().clone()).watch_io(Watch::new());
    let _cpu = lane.build().unwrap();
    wait_until(|| has_thread("orphan-watch"));
    drop(io);
    wait_until(|| !has_thread("orphan-watch"));
}
