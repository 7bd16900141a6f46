//! Which jobs of a stream go by which call site?

use crate::support::lanes_with;
use futures::{StreamExt, stream};
use twolane::{CpuStreamExt, Priority};

const WINDOW: usize = 64;

#[test]
fn a_stream_is_one_site_with_its_pump() {
    for limit in [None, Some(2)] {
        let (cpu, lanes) = lanes_with(2, |builder| match limit {
            Some(jobs) => builder.queue_limit(Priority::Normal, jobs),
            None => builder,
        })
        .and_handle();
        let numbers = stream::iter(0..1_000).on_cpu(&cpu).source_on_cpu();
        let (line, squares) = (line!(), numbers.map(|n| n * n).buffered(WINDOW));
        assert_eq!(lanes.io.block_on(squares.count()), 1_000);
        lanes.cpu.shutdown().wait();
        let mut sites = cpu.call_sites().into_iter();
        let site = sites.next().unwrap();
        assert!(sites.next().is_none());
        assert_eq!(site.site, format!("{}:{line}", file!()));
        assert_eq!(site.jobs, cpu.metrics().submitted);
    }
}
