//! Where may the last owner of a CPU lane be dropped? Anywhere: it never
//! blocks, never panics, and never hangs.

use std::sync::Arc;

use crate::support::{Stuck, lanes, nothing, thread_name};
use twolane_core::JoinErrorKind;

/// The I/O worker goes on at once, though a CPU job runs and others wait.
#[test]
fn on_an_io_worker_while_cpu_work_runs() {
    let lanes = lanes(1);
    let (stuck, let_go) = Stuck::start(lanes.cpu.handle()).split();
    let queued = lanes.cpu.spawn_cpu(nothing);
    let cpu = lanes.cpu;
    let drops = lanes.io.spawn(async move {
        drop(cpu);
        // Were it blocked until the job ends, the job would never end.
        thread_name()
    });
    assert_eq!(lanes.io.block_on(drops).unwrap(), "io");
    assert_eq!(queued.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
    let_go.send(3).unwrap();
    assert_eq!(stuck.wait().unwrap(), 3);
}

/// A panic in a destructor during unwinding aborts the process.
#[test]
fn while_unwinding() {
    let (handle, lanes) = lanes(1).and_handle();
    let cpu = lanes.cpu;
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _cpu = cpu;
        panic!("with the lane in scope");
    }));
    assert!(unwound.is_err());
    assert!(handle.spawn_cpu(nothing).wait().unwrap_err().kind() == JoinErrorKind::Shutdown);
}

/// By a thread that ends, by a task that is aborted, by the I/O runtime's own
/// shutdown: everything the owner can be captured in.
#[test]
fn captured_in_what_ends() {
    let (handle, lanes) = lanes(1).and_handle();
    let cpu = Arc::new(lanes.cpu);
    let held = cpu.clone();
    lanes.io.spawn(async move {
        let _held = held;
        std::future::pending::<()>().await;
    });
    let held = cpu.clone();
    // In a suspended job of the lane itself.
    cpu.spawn(async move {
        let _held = held;
        std::future::pending::<()>().await;
    })
    .detach();
    drop(cpu);
    // The last but one; what remains is the job's own.
    drop(lanes.io);
    let error = handle.spawn_io(async {}).wait().unwrap_err();
    assert_eq!(error.kind(), JoinErrorKind::IoRuntimeGone, "{error}");
}
