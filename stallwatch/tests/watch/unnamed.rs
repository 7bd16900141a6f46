//! Nothing of it is watched, but its thread is a worker of the runtime.

use std::io::{Read, Write};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;
use std::thread;

use crate::limit::time_limit;
use crate::setting::{two_probes, watched};
use stallwatch::{Cause, Name, enter, watch};

#[test]
fn a_call_that_blocks_is_told_without_a_name() {
    let _limit = time_limit();
    for workers in [2, 1] {
        let mut watched = watched(Some(workers));
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let stalls = std::mem::replace(&mut watched.stalls, mpsc::channel().1);
        let release = thread::spawn(move || {
            let stall = stalls.recv().unwrap();
            writer.write_all(&[1]).unwrap();
            stall
        });
        watched.run_where_a_probe_ran(move || reader.read_exact(&mut [0]).unwrap());
        let stall = release.join().unwrap();
        assert_eq!(stall.culprit(), None);
        assert_eq!(*stall.cause(), Cause::Blocks(Some("read")));
        assert!(stall.remedy().contains("spawn_blocking"), "{stall}");
        assert!(stall.to_string().contains("WatchLayer"), "{stall}");
        assert_eq!(watched.watcher.stalls_by_culprit(), [(None, 1)]);
    }
}

/// It may be one long poll, or many short ones. It goes on until a poll with a name is told, which
/// the other worker runs.
#[test]
fn what_computes_without_a_name_is_not_told() {
    let _limit = time_limit();
    let watched = watched(Some(2));
    let compute = watched.compute();
    let (began, has_begun) = mpsc::channel();
    let io = watched.io.handle().clone();
    let told = watched.told.clone();
    let probes = watched.probes.clone();
    let computes = watched.io.spawn(async move {
        two_probes(&probes).await;
        began.send(()).unwrap();
        while !told.load(SeqCst) {}
    });
    has_begun.recv().unwrap();
    let named = watch(async move { compute() }).named("named");
    io.block_on(io.spawn(named)).unwrap();
    io.block_on(computes).unwrap();
    let names: Vec<_> = watched.stalls.try_iter().collect();
    let names: Vec<_> = names.iter().map(|stall| stall.culprit()).collect();
    assert_eq!(names, [Some("named")]);
}

/// Its thread has left `block_on`, and holds up no task.
#[test]
fn a_call_outside_of_a_current_thread_runtime_is_not_told() {
    let _limit = time_limit();
    let watched = watched(None);
    watched.io.block_on(two_probes(&watched.probes));
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let told = watched.told.clone();
    // Another thread has two stalls told meanwhile, so the watch has looked for long enough.
    let io = watched.io.handle().clone();
    let beside = thread::spawn(move || {
        for _ in 0..2 {
            told.store(false, SeqCst);
            let _entered = io.enter();
            let _in = enter(Name::named("beside"));
            while !told.load(SeqCst) {}
        }
        writer.write_all(&[1]).unwrap();
    });
    reader.read_exact(&mut [0]).unwrap();
    beside.join().unwrap();
    let stalls: Vec<_> = watched.stalls.try_iter().collect();
    let names: Vec<_> = stalls.iter().map(|stall| stall.culprit()).collect();
    assert_eq!(names, [Some("beside"), Some("beside")]);
}
