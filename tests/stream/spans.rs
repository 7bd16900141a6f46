//! The submitter's span goes with the items.

use crate::context::{INPUTS, SOURCES, all, numbers};
use crate::log::Log;
use crate::support::lanes_with;
use twolane::Priority;

/// With a queue limit, too: there a task of the I/O lane spawns the jobs that read.
#[test]
fn source_and_stages_run_inside_the_span() {
    for limited in [false, true] {
        for source in SOURCES {
            let lanes = lanes_with(2, |builder| match limited {
                true => builder.queue_limit(Priority::Normal, 1),
                false => builder,
            });
            let (_, lines) = Log::during(|| {
                let event = || tracing::info!("here");
                let cpu = lanes.cpu.handle().clone();
                let request = tracing::info_span!("request");
                let numbers = request.in_scope(|| numbers(&cpu, source, event, event));
                all(&lanes, numbers)
            });
            assert_eq!(
                lines,
                vec!["request: here"; 2 * INPUTS as usize],
                "{source:?}"
            );
        }
    }
}
