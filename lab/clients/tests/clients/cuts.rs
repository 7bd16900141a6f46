//! The server cuts its connections, and a job is the first to ask again.

use twolane_clients::clock::Work;
use twolane_clients::lanes::{Lanes, Side};
use twolane_clients::rows::{self, Mark, World};
use twolane_clients::servers::Kind;

use crate::servers::own;
use crate::support::time_limit;

/// On a runtime without an I/O driver the job's attempt to connect panicked inside the
/// state that all users of a `ConnectionManager` share, and each later request panicked too.
#[test]
fn a_connection_manager_reconnects_for_a_job() {
    let rows = rows::all();
    let manager = rows
        .iter()
        .find(|row| row.name == "redis ConnectionManager");
    let ways = manager.unwrap().ways.iter();
    for way in ways.filter(|way| way.mark == Mark::Recommended) {
        let _limit = time_limit();
        let server = own(Kind::Redis);
        let lanes = Lanes::start(Side::Twolane).unwrap();
        let world = World {
            address: server.address(),
            cpu: lanes.cpu(),
            work: Work::new(|_| ()),
        };
        let ready = lanes.io.block_on(lanes.io.spawn((way.make)(world)));
        let ready = ready.unwrap().unwrap();
        lanes.io.block_on((ready.request)()).unwrap();
        for _ in 0..3 {
            server.cut().unwrap();
            // The first that asks learns of the cut, and those that come while it
            // reconnects may.
            while lanes
                .io
                .block_on(lanes.cpu().spawn((ready.job)()))
                .unwrap()
                .is_err()
            {}
            lanes.io.block_on((ready.request)()).unwrap();
        }
        drop(ready);
        lanes.end();
    }
}
