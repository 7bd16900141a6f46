//! Nothing of it is watched, but its thread is a worker of the runtime.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::limit::time_limit;
use crate::setting::{FLAVORS, watched};
use stallwatch::Cause;

#[test]
fn a_call_that_blocks_is_told_without_a_name() {
    let _limit = time_limit();
    for workers in FLAVORS {
        let mut watched = watched(workers);
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let stalls = std::mem::replace(&mut watched.stalls, mpsc::channel().1);
        let release = thread::spawn(move || {
            let blocks = |stall: &stallwatch::Stall| *stall.cause() != Cause::Computes;
            // On a machine that is full, what comes before it may be suspected.
            let stall = stalls.iter().find(blocks).unwrap();
            writer.write_all(&[1]).unwrap();
            stall
        });
        watched.run_where_a_probe_ran(move || reader.read_exact(&mut [0]).unwrap());
        let stall = release.join().unwrap();
        assert_eq!(stall.culprit(), None);
        assert_eq!(*stall.cause(), Cause::Blocks(Some("read")));
        // A `current_thread` runtime may have been left by its thread.
        assert_eq!(stall.is_certain(), workers.is_some());
        if workers.is_some() {
            assert!(stall.remedy().contains("spawn_blocking"), "{stall}");
            assert!(stall.to_string().contains("WatchLayer"), "{stall}");
            assert_eq!(watched.watcher.stalls_by_culprit()[0].0, None);
        }
    }
}

/// A probe waits meanwhile.
#[test]
fn what_computes_on_the_only_worker_is_suspected() {
    let _limit = time_limit();
    for workers in [Some(1), None] {
        let watched = watched(workers);
        watched.run_where_a_probe_ran(watched.compute());
        let stall = watched.stalls.recv().unwrap();
        assert_eq!(stall.culprit(), None);
        assert_eq!(*stall.cause(), Cause::Computes);
        assert!(!stall.is_certain());
        assert!(stall.remedy().contains("WatchLayer"), "{stall}");
        assert_eq!(watched.watcher.stalls(), 0);
    }
}

#[test]
fn what_computes_on_all_workers_is_suspected() {
    let _limit = time_limit();
    let watched = watched(Some(2));
    watched.run_beside(watched.compute(), watched.compute());
    let stall = watched.stalls.recv().unwrap();
    assert_eq!(stall.culprit(), None);
    assert!(!stall.is_certain());
}

/// It looks like a worker that is parked, but that would poll the probe.
#[test]
fn a_lock_that_the_only_worker_waits_for_is_suspected() {
    let _limit = time_limit();
    let mut watched = watched(Some(1));
    let lock = Arc::new(Mutex::new(()));
    let (held, is_held) = mpsc::channel();
    let (holds, stalls) = (
        lock.clone(),
        std::mem::replace(&mut watched.stalls, mpsc::channel().1),
    );
    let holder = thread::spawn(move || {
        let _held = holds.lock().unwrap();
        held.send(()).unwrap();
        let blocks = |stall: &stallwatch::Stall| *stall.cause() != Cause::Computes;
        stalls.iter().find(blocks).unwrap()
    });
    is_held.recv().unwrap();
    watched.run_where_a_probe_ran(move || drop(lock.lock().unwrap()));
    let stall = holder.join().unwrap();
    assert_eq!(*stall.cause(), Cause::Blocks(Some("futex")));
    assert!(!stall.is_certain());
}
