//! How many threads does a lane start that is being shut down?

use std::collections::HashSet;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, ThreadId};

use futures::StreamExt;
use futures::executor::block_on;
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, Handle};

use crate::support::{Stuck, lanes, thread_name};

/// Says which thread drops it.
struct State(Sender<(ThreadId, String)>);

impl Drop for State {
    fn drop(&mut self) {
        let _ = self.0.send((thread::current().id(), thread_name()));
    }
}

fn read_to_its_end(cpu: &Handle, dropped: &Sender<(ThreadId, String)>) -> Buffered<u8> {
    let dropped = dropped.clone();
    let one = std::iter::once(1).on_cpu(cpu);
    let one = one.map_init(move || State(dropped.clone()), |_: &mut State, n| n);
    let mut one = one.buffered(1);
    assert_eq!(block_on(one.next()).unwrap().unwrap(), 1);
    assert!(block_on(one.next()).is_none());
    one
}

/// A closure holds a shutdown, and the streams of a server's clients go meanwhile. Up to
/// one thread was started for each of them, to drop the state of its worker.
#[test]
fn one_thread_drops_what_comes_during_a_shutdown() {
    const STREAMS: usize = 1_000;
    let (cpu, lanes) = lanes(1).and_handle();
    let (dropped, drops) = mpsc::channel();
    let streams: Vec<_> = (0..STREAMS)
        .map(|_| read_to_its_end(&cpu, &dropped))
        .collect();
    // The one worker is busy from now on: it has let go of the states.
    let stuck = Stuck::start(&cpu);
    let over = lanes.cpu.shutdown();
    drop(streams);
    let by: Vec<_> = drops.iter().take(STREAMS).collect();
    let on_lane = by.iter().all(|(_, name)| name.starts_with("cpu-"));
    assert!(on_lane, "{by:?}");
    let threads: HashSet<_> = by.into_iter().map(|(thread, _)| thread).collect();
    assert_eq!(threads.len(), 1);
    stuck.end();
    assert!(over.wait().is_empty());
}
