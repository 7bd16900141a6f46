//! twolane: the small ones as the long ones, the small ones High, and futures
//! that give way.

use std::sync::Arc;

use tokio::runtime::Handle as Tokio;
use twolane::{Backend, CpuRuntime, Handle, Priority};

use crate::contender::{Contestant, Ending};
use crate::fib::{SMALL, compute, compute_in_pieces};

pub fn open(io: &Tokio, backend: Backend) -> CpuRuntime {
    CpuRuntime::builder()
        .backend(backend)
        .io_handle(io.clone())
        .build()
        .unwrap()
}

/// Closures, all at the priority that one gets without asking.
pub fn normal(io: &Tokio) -> Contestant {
    let cpu = open(io, Backend::Rayon);
    let late = cpu.handle();
    closures(cpu, late)
}

/// Closures, the small ones at [`Priority::High`].
pub fn high(io: &Tokio) -> Contestant {
    let cpu = open(io, Backend::Rayon);
    let late = cpu.handle().with_priority(Priority::High);
    closures(cpu, late)
}

fn closures(cpu: CpuRuntime, late: Handle) -> Contestant {
    let submit = |handle: &Handle, n| -> Ending {
        let job = handle.spawn_cpu(move || compute(n));
        Box::pin(async move { job.await.unwrap() })
    };
    let long = cpu.handle();
    Contestant {
        long: Box::new(move |k| submit(&long, k)),
        late: Arc::new(move || submit(&late, SMALL)),
        close: Box::new(move || close(&cpu)),
    }
}

/// Futures of one priority.
pub fn futures(io: &Tokio, backend: Backend) -> Contestant {
    let cpu = open(io, backend);
    let (long, late) = (cpu.handle(), cpu.handle());
    Contestant {
        long: Box::new(move |k| {
            let job = long.spawn(compute_in_pieces(k));
            Box::pin(async move { job.await.unwrap() })
        }),
        late: Arc::new(move || small_future(&late)),
        close: Box::new(move || close(&cpu)),
    }
}

/// Submits a small job as a future.
pub fn small_future(handle: &Handle) -> Ending {
    let job = handle.spawn(async { compute(SMALL) });
    Box::pin(async move { job.await.unwrap() })
}

pub fn close(cpu: &CpuRuntime) {
    cpu.shutdown().wait();
}
