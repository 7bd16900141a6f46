//! Does a paused clock of Tokio's wait for a stream that computes?

use crate::paused::{SECOND, compute, lane, stands};
use crate::support::time_limit;
use futures::{StreamExt, stream};
use tokio::time::timeout;
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, CpuRuntime, CpuStreamExt};

/// The ways in which a source is read, with stages that compute.
fn streams(cpu: &CpuRuntime, window: usize) -> [Buffered<u32>; 3] {
    let stage = |n| {
        compute();
        n
    };
    let source = || CpuStreamExt::on_cpu(stream::iter(0..10), cpu.handle()).map(stage);
    let iterator = (0..10)
        .inspect(|_| compute())
        .on_cpu(cpu.handle())
        .map(stage);
    [
        source().buffered(window),
        source().source_on_cpu().buffered(window),
        iterator.buffered(window),
    ]
}

/// The jobs of a stream are futures, which held nothing: a timeout around `next` fired at
/// once.
#[tokio::test(start_paused = true)]
async fn a_timeout_does_not_fire_while_a_stage_runs() {
    let _limit = time_limit();
    for window in [1, 4, 64] {
        let cpu = lane();
        for mut numbers in streams(&cpu, window) {
            for n in 0..10 {
                assert_eq!(stands(numbers.next()).await.unwrap().unwrap(), n);
            }
            assert!(stands(numbers.next()).await.is_none());
        }
    }
}

/// What waits does not hold it: a stream whose source is pending, one whose window is full.
#[tokio::test(start_paused = true)]
async fn a_stream_that_waits_lets_the_clock_go() {
    let _limit = time_limit();
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
