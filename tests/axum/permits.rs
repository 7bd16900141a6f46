//! One request, one permit; and what becomes of a value that the lane does not take.

use std::sync::mpsc;
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde::{Serialize, Serializer};
use twolane::Handle;
use twolane::axum::{CpuJson, JobError, Reserved, json_from_cpu};

use crate::support::Dropped;
use crate::{ask, lane, listen, of};

struct Value(Dropped);

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let _ = &self.0;
        serializer.serialize_unit()
    }
}

/// The handler's thread dropped it: 5 MB stopped the I/O lane for 77 ms.
#[tokio::test]
async fn a_value_that_the_lane_refuses_is_dropped_on_the_lane() {
    let cpu = lane();
    let (dropped, drops) = mpsc::channel();
    let late = cpu.handle().try_reserve().unwrap();
    let late = late.with_deadline(Instant::now());
    let refused = json_from_cpu(late, Value(Dropped(dropped))).await;
    assert_eq!(refused.unwrap_err().status(), 503);
    assert_eq!(drops.recv().unwrap(), "cpu-0");
}

async fn sum(
    Reserved(permit): Reserved,
    CpuJson(numbers): CpuJson<Vec<u64>>,
) -> Result<String, JobError> {
    let sum = permit.spawn_cpu(move || numbers.iter().sum::<u64>());
    Ok(sum.await?.to_string())
}

async fn length(State(cpu): State<Handle>, CpuJson(text): CpuJson<String>) -> String {
    let permits = cpu.metrics().permits_in_use;
    format!("{} {permits}", text.len())
}

/// Each took a permit: with a limit of 1 the answer was always 503. And all that `CpuJson` parsed
/// was one row.
#[tokio::test]
async fn a_permit_and_a_parsed_body_are_one_permit() {
    let cpu = lane();
    let app = Router::new()
        .route("/sum", post(sum))
        .route("/length", post(length))
        .with_state(cpu.handle().clone());
    let server = listen(app).await;
    let json = |text| format!("content-type: application/json\r\n{}", of(text));
    let answer = ask(server, "POST /sum", &json("[1,2,3]")).await;
    assert!(answer.ends_with("\r\n6"), "{answer}");
    let answer = ask(server, "POST /length", &json("\"four\"")).await;
    assert!(answer.ends_with("\r\n4 0"), "{answer}");
    let sites = cpu.handle().call_sites();
    for parsed in ["Vec<u64>>", "String>"] {
        let is_it = |site: &str| site.contains("CpuJson<") && site.ends_with(parsed);
        let row = sites.iter().filter(|row| is_it(&row.site));
        assert_eq!(row.count(), 1, "{sites:?}");
    }
}
