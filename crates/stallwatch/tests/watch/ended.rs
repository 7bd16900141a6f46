//! Polls that are over before a look has seen them twice, and how late the runtime is.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fs, future, panic, thread};

use stallwatch::{Cause, Lag, Name, Watch, enter, watch};
use tokio::runtime::Builder;
use tokio::task::{block_in_place, yield_now};
use tokio::time::sleep;

use crate::child;
use crate::computing::compute_for;
use crate::limit::time_limit;
use crate::setting::{hold, runtime, see_spans, this_thread, two_probes, watched, watched_as};
use crate::wait::{has_thread, wait_until};

const THRESHOLD: Duration = Duration::from_millis(2);

/// The looks are 10 ms apart at least.
#[test]
fn a_poll_that_no_look_sees_twice_is_told() {
    for workers in [Some(2), None] {
        let watched = watched_as(workers, |watch| watch.threshold(THRESHOLD));
        let over = loop {
            let computes = async { compute_for(Duration::from_millis(5)) };
            watched.spawn_and_wait(watch(computes).named("short"));
            watched.spawn_and_wait(watch(async {}).named("shorter"));
            watched.spawn_and_wait(yield_now());
            if let Some(stall) = watched.stalls.try_iter().find(|stall| stall.is_over()) {
                break stall;
            }
        };
        assert_eq!(over.culprit(), Some("short"));
        assert_eq!(*over.cause(), Cause::Computes);
        assert!(over.lasted() >= THRESHOLD);
        assert!(over.to_string().contains("until it ended"), "{over}");
        let counted = watched.watcher.stalls_by_culprit().into_iter();
        let mut names = counted.map(|(name, _)| name.unwrap().to_string());
        assert!(names.all(|name| name == "short"));
    }
}

/// What the kernel counts of this thread's calls of `read`, this one left out.
fn reads() -> u64 {
    let mut text = [0; 1024];
    let mut file = File::open(IO).unwrap();
    let length = file.read(&mut text).unwrap();
    let text = std::str::from_utf8(&text[..length]).unwrap();
    let rest = text.split_once("syscr: ").unwrap().1;
    rest.lines().next().unwrap().parse().unwrap()
}

/// Of a poll, between two calls of [`reads`].
fn reads_of_a_poll() -> u64 {
    let before = reads();
    let poll = enter(Name::named("poll"));
    compute_for(Duration::from_millis(2));
    drop(poll);
    reads() - before - 1
}

const IO: &str = "/proc/thread-self/io";

/// Each poll of a millisecond opened, read and closed a file for as long as the process lived. In a
/// process of its own, without the watches of other tests.
#[test]
fn a_watch_that_has_ended_leaves_nothing_to_be_noted() {
    if !Path::new(IO).exists() {
        return eprintln!("NOT TESTED: the kernel counts no calls");
    }
    if !child::is_child() {
        let test = "ended::a_watch_that_has_ended_leaves_nothing_to_be_noted";
        assert_eq!(child::run(test, |_| (), |_| ()), "1, then 0");
        return;
    }
    let io = runtime(Some(1));
    let longer = Watch::new().threshold(Duration::from_secs(3_600));
    let _longer = longer.start(io.handle()).unwrap();
    let mut its_thread = None;
    let spawn = |name, run| {
        its_thread = Some(thread::Builder::new().name(name).spawn(run)?);
        Ok(())
    };
    let brief = Watch::new().threshold(Duration::from_millis(1));
    let brief = brief.start_on(io.handle(), spawn).unwrap();
    let while_it_lasts = reads_of_a_poll();
    drop(brief);
    its_thread.unwrap().join().unwrap();
    child::found(format!("{while_it_lasts}, then {}", reads_of_a_poll()));
}

/// Each is told once: either while it lasts, or when it is over.
#[test]
fn no_poll_is_told_twice() {
    let watched = watched(Some(1));
    for _ in 0..3 {
        watched.stall_as("long");
    }
    watched.stall_as("the last");
    watched.stall_of("the last");
    let of_long = watched.watcher.stalls_by_culprit().into_iter();
    let of_long = of_long.filter(|(name, _)| name.unwrap().to_string() == "long");
    assert_eq!(of_long.map(|(_, count)| count).sum::<u64>(), 3);
}

/// A watch, and how late its probes are.
fn probed() -> (Watch, Receiver<Lag>) {
    let (send, lags) = mpsc::channel();
    let watch = Watch::new().on_probe(move |lag| _ = send.send(lag));
    (watch, lags)
}

fn is_of_a_socket(lag: &Lag) -> bool {
    matches!(lag, Lag::Socket(_))
}

/// On Linux, a runtime that waits for sockets has one more, and each probe may come through it. While
/// it is in use: of two workers with nothing to do, the one that waits for events may poll no probe.
#[test]
fn a_runtime_with_an_io_driver_is_probed_by_a_socket() {
    for workers in [Some(2), Some(1), None] {
        let io = runtime(workers);
        drop(io.spawn(async {
            loop {
                sleep(Duration::from_millis(1)).await;
            }
        }));
        let (watch, lags) = probed();
        let _watcher = watch.start(io.handle()).unwrap();
        let is_found = io.spawn_blocking(move || lags.iter().any(|lag| is_of_a_socket(&lag)));
        assert!(io.block_on(is_found).unwrap());
    }
}

/// Whether or not a probe is under way: its task is dropped with the runtime.
#[test]
fn the_watch_ends_with_a_runtime_that_has_its_socket() {
    let _limit = time_limit();
    let ends = |n| {
        let io = runtime(Some(1));
        let (watch, lags) = probed();
        let watch = watch.thread_name(format!("orphan {n}"));
        let _watcher = watch.start(io.handle()).unwrap();
        lags.iter().find(is_of_a_socket);
        // Its worker waits while one is sent, and the runtime ends without a poll of it.
        let held = hold(&io);
        io.shutdown_background();
        drop(held);
        wait_until(|| !has_thread(&format!("orphan {n}")));
    };
    // Each waits for two seconds or more.
    thread::scope(|scope| (0..5).for_each(|n| _ = scope.spawn(move || ends(n))));
}

/// And its task ends with the watch.
#[test]
fn the_socket_s_task_ends_with_the_watch() {
    let io = runtime(Some(1));
    let (watch, lags) = probed();
    let watcher = watch.start(io.handle()).unwrap();
    lags.iter().find(is_of_a_socket);
    assert!(io.metrics().num_alive_tasks() > 0);
    drop(watcher);
    wait_until(|| io.metrics().num_alive_tasks() == 0);
}

/// It would panic if one was registered.
#[test]
fn a_runtime_without_an_io_driver_is_probed_by_tasks() {
    let _limit = time_limit();
    let is_probed_by_tasks = |mut builder: Builder| {
        let io = builder.worker_threads(2).enable_time().build().unwrap();
        let (watch, lags) = probed();
        let _watcher = watch.start(io.handle()).unwrap();
        let probes = io.spawn_blocking(move || lags.iter().take(4).collect::<Vec<_>>());
        let probes = io.block_on(probes).unwrap();
        assert!(probes.iter().all(|lag| matches!(lag, Lag::Task(_))));
    };
    // Beside each other: the probes of each come a second apart.
    thread::scope(|scope| {
        scope.spawn(|| is_probed_by_tasks(Builder::new_multi_thread()));
        is_probed_by_tasks(Builder::new_current_thread());
    });
}

/// The watch took these for the runtime's own, registered its socket, and panicked: with
/// `panic = "abort"` that is the end of the service. In a process of its own, which tells the first
/// panic.
#[test]
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
fn a_worker_that_waits_for_the_events_of_another_runtime_is_no_io_driver() {
    if !child::is_child() {
        let test = "ended::a_worker_that_waits_for_the_events_of_another_runtime_is_no_io_driver";
        assert_eq!(child::run(test, |_| (), |_| ()), "no panic");
        return;
    }
    panic::set_hook(Box::new(|panic| child::found(panic)));
    let mut builder = Builder::new_multi_thread();
    let io = builder.worker_threads(1).enable_time().build().unwrap();
    let waits = Arc::new(OnceLock::<String>::new());
    let (probes, told) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let hook = {
        let (waits, probes, told) = (waits.clone(), probes.clone(), told.clone());
        let metrics = io.metrics();
        move |_| {
            probes.fetch_add(1, SeqCst);
            // The worker of this probe goes to wait elsewhere, and the runtime has another one.
            wait_until(|| waits.get().is_some_and(|thread| is_in_epoll(thread)));
            wait_until(|| metrics.worker_park_unpark_count(0) % 2 == 1);
            told.fetch_add(1, SeqCst);
        }
    };
    let watcher = Watch::new().on_probe(hook).start(io.handle()).unwrap();
    let other = runtime(None);
    drop(io.spawn(async move {
        while probes.load(SeqCst) == 0 {
            yield_now().await;
        }
        waits.set(this_thread()).unwrap();
        block_in_place(|| other.block_on(future::pending::<()>()));
    }));
    wait_until(|| told.load(SeqCst) > 3);
    drop(watcher);
    child::found("no panic");
    std::process::exit(0);
}

#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
fn is_in_epoll(thread: &str) -> bool {
    let call = fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).unwrap();
    let number = call.split_whitespace().next().unwrap().parse();
    let call = number.ok().and_then(syscalls::Sysno::new);
    call.is_some_and(|call| call.name().starts_with("epoll_"))
}

/// Its thread has parked, or polls others: nothing blocks.
#[test]
fn a_span_s_guard_that_is_held_over_an_await_is_not_told() {
    see_spans();
    let watched = watched(None);
    watched.io.block_on(two_probes(&watched.probes));
    let (probes, before) = (watched.probes.clone(), watched.probes.load(SeqCst));
    // Each is far longer than the threshold apart from the one before.
    let waits = move || wait_until(|| probes.load(SeqCst) >= before + 3);
    let waits = watched.io.spawn_blocking(waits);
    watched.io.block_on(async {
        let _guard = tracing::info_span!("guarded").entered();
        waits.await.unwrap();
    });
    watched.stall_as("after it");
    watched.stall_of("after it");
    watched.assert_none_was_told_of(&["guarded"]);
}
