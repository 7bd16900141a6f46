//! Does a paused clock of Tokio's wait for a stream that computes?

use crate::context::{INPUTS, SOURCES, Source, in_window};
use crate::paused::{SECOND, compute, lane, stands};
use futures::{StreamExt, stream};
use tokio::time::timeout;
use twolane::stream::Buffered;
use twolane::{CpuRuntime, CpuStreamExt};

/// The ways in which a source is read, with stages that compute. So does an iterator.
fn streams(cpu: &CpuRuntime, window: usize) -> [Buffered<u32>; 3] {
    SOURCES.map(|source| {
        let pull = move || {
            if source == Source::Iterator {
                compute();
            }
        };
        in_window(window, cpu.handle(), source, pull, |n| {
            compute();
            n
        })
    })
}

/// The jobs of a stream are futures, which held nothing: a timeout around `next` fired at
/// once.
#[tokio::test(start_paused = true)]
async fn a_timeout_does_not_fire_while_a_stage_runs() {
    for window in [1, 4, 64] {
        let cpu = lane();
        for mut numbers in streams(&cpu, window) {
            for n in 0..INPUTS {
                assert_eq!(stands(numbers.next()).await.unwrap().unwrap(), n);
            }
            assert!(stands(numbers.next()).await.is_none());
        }
    }
}

/// What waits does not hold it: a stream whose source is pending, one whose window is full.
#[tokio::test(start_paused = true)]
async fn a_stream_that_waits_lets_the_clock_go() {
    let cpu = lane();
    let _full = streams(&cpu, 4);
    let window = 1;
    let silent = || CpuStreamExt::on_cpu(stream::pending::<()>(), cpu.handle());
    let silent = [
        silent().buffered(window),
        silent().source_on_cpu().buffered(window),
    ];
    for mut silent in silent {
        assert!(timeout(SECOND, silent.next()).await.is_err());
    }
}
