//! What the watch of a forked child says of the thread that called `fork`.

use std::sync::mpsc;

use crate::child;
use crate::setting::{runtime, two_probes, watched};
use fork::{Fork, fork};
use stallwatch::{Watch, watch};

/// Once, the child's watch looked for that thread under the number that it has in the parent,
/// and said that it "computes or blocks". In a process of its own, which forks.
#[test]
fn a_forked_child_s_watch_sees_its_own_thread() {
    if !child::is_child() {
        let test = "forked::a_forked_child_s_watch_sees_its_own_thread";
        assert_eq!(child::run(test, |_| (), |_| ()), "computes");
        return;
    }
    // The thread has a record from here on, and the watch has found it: the lock of the list of
    // records is free at the fork. The child would find it taken for ever.
    let parent = watched(None);
    parent.io.block_on(watch(async {}));
    parent.io.block_on(two_probes(&parent.probes));
    if let Fork::Parent(id) = fork().unwrap() {
        fork::waitpid(id).unwrap();
        return;
    }
    let io = runtime(None);
    let (send, stalls) = mpsc::channel();
    let watched = Watch::new().on_stall(move |stall| send.send(stall.cause().clone()).unwrap());
    let watcher = watched.start(io.handle()).unwrap();
    io.block_on(watch(async { while watcher.stalls() == 0 {} }));
    child::found(stalls.recv().unwrap());
    std::process::exit(0);
}
