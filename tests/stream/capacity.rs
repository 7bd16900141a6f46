//! Does a number that a user sets become memory before there are items?

use std::time::Duration;

use crate::channel;
use crate::support::cpu_lane;
use crate::support::turns::current_thread;
use alloc_tracker::Session;
use futures::StreamExt;
use twolane::CpuStreamExt;

/// The pump reserved memory for a whole chunk before it read the first input of it: with a
/// large window as much as the batch time held by the cost of an item. Of an hour that
/// were 51.8 GB, and the process was aborted.
#[test]
fn a_long_batch_in_a_large_window_reserves_nothing() {
    const ROUNDS: usize = 20;
    const ITEMS: usize = 100;
    const MOST: f64 = 16e6;
    for seconds in [1, 60, 3_600, u64::MAX] {
        // This thread drives the pump, so what that allocates counts here.
        let io = current_thread();
        let cpu = cpu_lane(1, io.handle());
        let (sender, source) = channel();
        let stages = source.on_cpu(cpu.handle()).map(|item: [u64; 32]| item[0]);
        let stages = stages.batch_time(Duration::from_secs(seconds));
        let mut numbers = stages.buffered(usize::MAX);
        let session = Session::new().no_stdout().no_file();
        {
            let _all = session.operation("reads").measure_thread().iterations(1);
            io.block_on(async {
                for _ in 0..ROUNDS {
                    (0..ITEMS).for_each(|_| sender.send([1; 32]).unwrap());
                    for _ in 0..ITEMS {
                        assert_eq!(numbers.next().await.unwrap().unwrap(), 1);
                    }
                }
            });
        }
        let report = session.to_report();
        let (_, reads) = report.operations().next().unwrap();
        let bytes = reads.bytes().unwrap();
        assert!(bytes < MOST, "{seconds} s: {bytes} bytes");
    }
}
