//! Each blocker goes on until the watch has told of it.

use std::sync::{Arc, Mutex};
use std::thread;

use crate::gate::gate;
use crate::setting::{blocks, each_flavor, watched};
use stallwatch::{Cause, Name, watch};
use tokio::runtime::RuntimeFlavor;

#[test]
fn a_future_that_computes_is_named() {
    each_flavor(|watched| {
        watched.stall_as("POST /parse");
        let stall = watched.stall_of("POST /parse");
        assert_eq!(*stall.cause(), Cause::Computes);
        assert!(!stall.is_of_pool());
        assert!(stall.remedy().contains("spawn_blocking"), "{stall}");
        if watched.io.handle().runtime_flavor() == RuntimeFlavor::MultiThread {
            assert_eq!(stall.thread(), "io");
        }
        let named = watched.watcher.stalls_by_culprit();
        assert!(named.contains(&(Some(Name::named("POST /parse")), 1)));
    });
}

/// `watch` without a name, and a scope.
#[test]
fn a_place_in_the_source_is_a_name() {
    let watched = watched(Some(2));
    let place = format!("{}:{}", file!(), line!() + 3);
    let compute = watched.compute(&place);
    watched.spawn_and_wait(async move {
        let _in = stallwatch::enter(Name::caller());
        compute();
    });
    watched.stall_of(&place);
    let place = format!("{}:{}", file!(), line!() + 2);
    let compute = watched.compute(&place);
    watched.spawn_and_wait(watch(async move { compute() }));
    watched.stall_of(&place);
}

#[cfg(target_os = "linux")]
#[test]
fn what_blocks_is_named_with_its_call() {
    each_flavor(|mut watched| {
        let (read, let_go) = blocks();
        let stall = watched.until_told(
            |stall| stall.culprit() == Some("a file"),
            let_go,
            |watched| {
                watched.spawn_and_wait(watch(async { read() }).named("a file"));
            },
        );
        assert_eq!(*stall.cause(), Cause::Blocks(Some("read")));
        assert!(stall.remedy().contains("spawn_blocking"), "{stall}");

        let lock = Arc::new(Mutex::new(()));
        let holds = lock.clone();
        let (let_go, stay) = gate();
        thread::spawn(move || {
            let _held = holds.lock().unwrap();
            stay();
        });
        let_go.is_reached();
        let stall = watched.until_told(
            |stall| stall.culprit() == Some("a lock"),
            let_go,
            |watched| {
                let locks = async move { drop(lock.lock().unwrap()) };
                watched.spawn_and_wait(watch(locks).named("a lock"));
            },
        );
        assert_eq!(*stall.cause(), Cause::Blocks(Some("futex")));
        assert!(stall.remedy().contains("lock"), "{stall}");
    });
}
