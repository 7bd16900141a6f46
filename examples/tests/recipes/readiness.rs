//! `ready`: readiness follows the lane, liveness does not.

use reqwest::StatusCode;

use crate::ready::{cpu_lane, routes};
use crate::support::{Full, Lanes};
use crate::{lanes_of, serve};

#[test]
fn a_saturated_service_is_alive_and_not_ready() {
    let Lanes { cpu, io } = lanes_of(cpu_lane);
    let url = io.block_on(serve(routes(cpu.handle().clone())));
    let ask = async |path| reqwest::get(format!("{url}{path}")).await.unwrap().status();
    io.block_on(async {
        assert_eq!(ask("/ready").await, StatusCode::OK);
        let full = Full::of(cpu.handle());
        assert_eq!(ask("/ready").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask("/live").await, StatusCode::OK);
        full.end().await;
        assert_eq!(ask("/ready").await, StatusCode::OK);
        // The probes keep no room.
        for _ in 0..100 {
            assert_eq!(ask("/ready").await, StatusCode::OK);
        }
    });
}
