//! A lane in a forked child: it is built anew by the same call.

use fork::{Fork, fork};
use twolane_core::{CpuRuntime, in_cpu_context};

use crate::support::{child, gives, time_limit};

fn lane() -> CpuRuntime {
    CpuRuntime::builder()
        .without_io()
        .worker_threads(2)
        .build()
        .unwrap()
}

/// In a process of its own, whose lane has been in use. But it has no threads of Tokio: `parking_lot`, a
/// feature of Tokio, keeps a table of those that wait, in the child too, and loses wake-ups there.
#[test]
fn a_forked_child_builds_a_lane_anew() {
    let _limit = time_limit();
    if !child::is_child() {
        let test = "forked::a_forked_child_builds_a_lane_anew";
        assert_eq!(child::run(test, |_| (), |_| ()), "42");
        return;
    }
    let before = lane();
    assert_eq!(before.spawn_cpu(gives(1)).wait().unwrap(), 1);
    match fork().unwrap() {
        Fork::Child => {
            let anew = lane();
            let part = anew.spawn(in_cpu_context(async { tokio::spawn(async { 40 }).await }));
            let sum = part.wait().unwrap().unwrap() + anew.spawn_cpu(gives(2)).wait().unwrap();
            assert!(anew.shutdown().wait().is_empty());
            child::found(sum);
            // Without the destructors and the test harness of the parent.
            std::process::exit(0);
        }
        Fork::Parent(id) => {
            fork::waitpid(id).unwrap();
            assert_eq!(before.spawn_cpu(gives(2)).wait().unwrap(), 2);
        }
    }
}
