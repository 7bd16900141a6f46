//! The span of a value's user, on the I/O lane.

use std::sync::mpsc;

use crate::log::{Log, Logs, two_polls};
use crate::support::{Lanes, lanes};
use twolane::HandleExt;

/// What a client logs belongs to the request that asks it, and so does what it logs when
/// it is dropped.
#[test]
fn a_value_on_the_io_lane_is_used_and_dropped_inside_its_user_s_span() {
    let Lanes { cpu, io: _io } = lanes(1);
    let (dropped, wait) = mpsc::channel();
    let mut client = cpu.handle().io_owned(Logs(dropped));
    let ((), lines) = Log::during(|| {
        let span = tracing::info_span!("request").entered();
        let job = cpu.spawn(async move { client.with(async |_| two_polls().await).await });
        drop(span);
        job.wait().unwrap().unwrap();
        wait.recv().unwrap();
    });
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let expected = ["request: first", "request: second", "request: dropped"];
    assert_eq!(lines, expected);
}
