//! `ready`: readiness follows the lane, liveness does not.

use reqwest::StatusCode;
use tokio::runtime::Runtime;

use crate::ready::{cpu_lane, routes};
use crate::serve;
use crate::support::Full;
use crate::support::time_limit;

#[test]
fn a_saturated_service_is_alive_and_not_ready() {
    let _limit = time_limit();
    let io = Runtime::new().unwrap();
    let cpu = io.block_on(async { cpu_lane().unwrap() });
    let url = serve(&io, routes(cpu.handle().clone()));
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
