//! A shutdown drops a part of what a stream reads: its reader must not take that for the end. (Of
//! jobs and bridges: `tests/shutdown/parts.rs` of `twolane-core`.)

use futures::executor::block_on_stream;
use twolane::{CpuStreamExt, JoinError, in_cpu_context};

use crate::parts_of::{is_cut, is_cut_with_a_job};

#[test]
fn a_source_that_ends_because_of_it_is_an_error() {
    is_cut(|cpu, part| {
        let source = in_cpu_context(part.into_stream());
        let items = source.on_cpu(cpu).source_on_cpu().map(|item: u8| item);
        let items = items.buffered(1);
        let items: Vec<_> = block_on_stream(items).collect();
        items
            .into_iter()
            .collect::<Result<Vec<u8>, JoinError>>()
            .map(|all| all.len())
    });
}

/// A channel ends like a complete one when the job that sends is dropped. The reader took that
/// for the end.
#[test]
fn a_source_that_ends_with_a_job_of_its_lane_is_an_error() {
    is_cut_with_a_job(|cpu, source, look| {
        let items = source.on_cpu(cpu).source_on_cpu().map(|item| item);
        block_on_stream(items.buffered(1)).for_each(|item| look(item.is_ok()));
    });
}
