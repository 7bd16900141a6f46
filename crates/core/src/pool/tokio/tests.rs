//! A job does not wait beside a worker that Tokio let park.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::{Backend, CpuRuntime};

const NAME: &str = "stranded";
/// For a test that hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// Holds a worker that is about to park until it is dropped or sent to.
type Gate = Sender<()>;
static GATES: Mutex<Option<(usize, Sender<Gate>)>> = Mutex::new(None);

/// What the runtimes of this crate's tests call before a worker parks.
pub(super) fn before_park() {
    // The workers of the other priorities, as `stranded-low-0`, may park for the first time only now.
    let thread = thread::current();
    let own = thread.name().and_then(|name| name.strip_prefix(NAME));
    if !matches!(own, Some("-0" | "-1")) {
        return;
    }
    let mut gates = GATES.lock().unwrap();
    let Some((left @ 1.., sender)) = gates.as_mut() else {
        return;
    };
    *left -= 1;
    let (gate, opened) = channel();
    sender.send(gate).unwrap();
    drop(gates);
    let _ = opened.recv();
}

/// A job that tells when it has begun, and ends when the sender is dropped.
fn blocked(cpu: &CpuRuntime) -> Sender<()> {
    let ((begins, begun), (end, ended)) = (channel(), channel::<()>());
    cpu.spawn_cpu(move || {
        begins.send(()).unwrap();
        let _ = ended.recv();
    })
    .detach();
    received(&begun);
    end
}

fn received<T>(from: &Receiver<T>) -> T {
    from.recv_timeout(LIMIT).expect("the lane hangs")
}

#[test]
fn a_job_does_not_wait_beside_a_worker_that_parked_without_a_look() {
    let io = ::tokio::runtime::Runtime::new().unwrap();
    let settings = CpuRuntime::builder().io_handle(io.handle().clone());
    let settings = settings.backend(Backend::Runtime).thread_name(NAME);
    let cpu = settings.worker_threads(2).build().unwrap();
    let (first, second) = (blocked(&cpu), blocked(&cpu));
    let (gates, held) = channel();
    *GATES.lock().unwrap() = Some((2, gates));
    drop(first);
    let searching = received(&held);
    drop(second);
    // It does not search, since the other one does.
    let not_searching = received(&held);
    drop(searching);
    let blocks = blocked(&cpu);
    let (runs, has_run) = channel();
    // Tokio wakes no worker: none has parked, as it counts.
    cpu.spawn_cpu(move || runs.send(()).unwrap()).detach();
    drop(not_searching);
    received(&has_run);
    drop(blocks);
}
