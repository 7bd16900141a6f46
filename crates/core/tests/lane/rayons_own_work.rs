//! Does rayon's own work run on a lane that has jobs all the time?

use std::sync::mpsc;

use crate::support::busy::Busy;
use crate::support::{lanes, time_limit};

/// A lane that is never empty still lets rayon's own work run.
#[test]
fn a_busy_lane_does_not_starve_rayon() {
    let _limit = time_limit();
    for threads in [1, 2] {
        let lanes = lanes(threads);
        let _busy = Busy::with(2 * threads, lanes.cpu.handle());
        let (sent, received) = mpsc::channel();
        let leaves = move || rayon::spawn(move || sent.send("native").unwrap());
        lanes.cpu.spawn_cpu(leaves).wait().unwrap();
        assert_eq!(received.recv().unwrap(), "native");
        assert_eq!(lanes.cpu.handle().install(|| 3).unwrap(), 3);
    }
}
