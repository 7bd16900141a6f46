//! Each blocker goes on until the watch has told of it.

use std::io::{Read, Write};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::limit::time_limit;
use crate::setting::{FLAVORS, watched};
use stallwatch::{Cause, Name, Stall, watch};

#[test]
fn a_future_that_computes_is_named() {
    let _limit = time_limit();
    for workers in FLAVORS {
        let watched = watched(workers);
        let compute = watched.compute();
        watched.spawn_and_wait(watch(async move { compute() }).named("POST /parse"));
        let stall = watched.stalls.recv().unwrap();
        assert_eq!(stall.culprit(), Some("POST /parse"));
        assert_eq!(*stall.cause(), Cause::Computes);
        assert!(!stall.is_of_pool());
        assert!(stall.remedy().contains("spawn_blocking"), "{stall}");
        if workers.is_some() {
            assert_eq!(stall.thread(), "io");
        }
        let named = watched.watcher.stalls_by_culprit();
        assert_eq!(named, [(Some(Name::named("POST /parse")), 1)]);
    }
}

fn assert_is_at(stall: &Stall, line: u32) {
    let place = format!("named.rs:{line}");
    assert!(stall.culprit().unwrap().ends_with(&place), "{stall}");
}

/// `watch` without a name, and a scope.
#[test]
fn a_place_in_the_source_is_a_name() {
    let _limit = time_limit();
    let watched = watched(Some(2));
    let compute = watched.compute();
    let line = line!() + 2;
    watched.spawn_and_wait(async move {
        let _in = stallwatch::enter(Name::caller());
        compute();
    });
    let stall = watched.stalls.recv().unwrap();
    assert_is_at(&stall, line);
    watched.told.store(false, SeqCst);
    let compute = watched.compute();
    let line = line!() + 1;
    watched.spawn_and_wait(watch(async move { compute() }));
    let stall = watched.stalls.recv().unwrap();
    assert_is_at(&stall, line);
}

#[cfg(target_os = "linux")]
#[test]
fn what_blocks_is_named_with_its_call() {
    let _limit = time_limit();
    for workers in FLAVORS {
        let watched = watched(workers);
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let read = async move { reader.read_exact(&mut [0]).unwrap() };
        let release = thread::spawn(move || {
            let stall = watched.stalls.recv().unwrap();
            writer.write_all(&[1]).unwrap();
            stall
        });
        let task = watched.io.spawn(watch(read).named("a file"));
        watched.io.block_on(task).unwrap();
        let stall = release.join().unwrap();
        assert_eq!(*stall.cause(), Cause::Blocks(Some("read")));
        assert!(stall.remedy().contains("spawn_blocking"), "{stall}");

        let watched = crate::setting::watched(workers);
        let lock = Arc::new(Mutex::new(()));
        let (held, is_held) = mpsc::channel();
        let holds = lock.clone();
        let holder = thread::spawn(move || {
            let _held = holds.lock().unwrap();
            held.send(()).unwrap();
            watched.stalls.recv().unwrap()
        });
        is_held.recv().unwrap();
        let task = watched
            .io
            .spawn(watch(async move { drop(lock.lock().unwrap()) }).named("a lock"));
        watched.io.block_on(task).unwrap();
        let stall = holder.join().unwrap();
        assert_eq!(*stall.cause(), Cause::Blocks(Some("futex")));
        assert!(stall.remedy().contains("lock"), "{stall}");
    }
}
