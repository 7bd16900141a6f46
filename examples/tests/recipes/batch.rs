//! `batch_on_low`: other jobs run beside it, and a shutdown ends it at a checkpoint.

use std::sync::mpsc::channel;

use twolane::{CpuRuntime, JoinErrorKind};

use crate::batch_on_low::reindex;
use crate::lanes_of;
use crate::support::Lanes;

#[test]
fn it_saves_each_chunk() {
    let Lanes { cpu, io: _io } = lanes_of(CpuRuntime::new);
    let (save, saved) = channel();
    let batch = reindex(cpu.handle(), 100..600, move |next| {
        save.send(next).unwrap();
    });
    batch.wait().unwrap();
    assert_eq!(saved.iter().collect::<Vec<_>>(), [356, 600]);
}

#[test]
fn a_shutdown_ends_it_and_other_jobs_run_beside_it() {
    let Lanes { cpu, io: _io } = lanes_of(CpuRuntime::new);
    let (save, saved) = channel();
    // It has no end.
    let batch = reindex(cpu.handle(), 0..usize::MAX, move |next| {
        let _ = save.send(next);
    });
    assert_eq!(saved.recv().unwrap(), 256);
    for n in 0..100 {
        assert_eq!(cpu.spawn_cpu(move || n).wait().unwrap(), n);
    }
    assert!(!batch.is_finished());
    cpu.shutdown().wait();
    assert_eq!(batch.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
    assert!(saved.iter().all(|next| next % 256 == 0));
}
