//! The pipeline does what a plain loop does, and its requests are many at once.

use std::f64::consts::PI;
use std::pin::pin;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::Barrier;

use super::recipes::pipeline::{REQUESTS, three_stages, with_io};
use super::with_cpu;
use crate::support::thread_name;

#[test]
fn three_stages_are_a_plain_loop() {
    with_cpu(async |cpu| {
        let plain = |n| format!("{:.3}", PI.powi(n).ln());
        let found: Vec<_> = three_stages(cpu, 0..10_000).try_collect().await.unwrap();
        assert_eq!(found, (0..10_000).map(plain).collect::<Vec<_>>());
    });
}

#[test]
fn requests_are_many_at_once_on_the_io_lane_and_keep_the_order() {
    with_cpu(async |cpu| {
        let orders = 4 * REQUESTS as u32;
        let lines = (0..orders).map(|n| format!("{n},2"));
        // It lets as many through as come: with fewer at once, none comes through.
        let barrier = Arc::new(Barrier::new(REQUESTS));
        let bills = with_io(
            cpu,
            stream::iter(lines.collect::<Vec<_>>()),
            move |product| {
                let barrier = barrier.clone();
                async move {
                    barrier.wait().await;
                    assert_eq!(thread_name(), "io");
                    Ok(u64::from(product) * 100)
                }
            },
        );
        let bills: Vec<_> = bills.try_collect().await.unwrap();
        let plain = |n| format!("2 of {n}: {}", 200 * n);
        assert_eq!(bills, (0..orders).map(plain).collect::<Vec<_>>());
    });
}

/// All bills before it come, and `try_next` stops at it.
#[test]
fn the_first_error_of_any_stage_is_at_its_place() {
    with_cpu(async |cpu| {
        for (bad, cause) in [("10", "no comma"), ("10,x", "digit"), ("666,1", "unknown")] {
            let line = move |n| {
                if n == 10 {
                    bad.into()
                } else {
                    format!("{n},1")
                }
            };
            let lines = stream::iter((0..1_000).map(line));
            let mut bills = pin!(with_io(cpu, lines, async |product| match product {
                666 => Err(std::io::Error::other("unknown")),
                _ => Ok(1),
            }));
            for n in 0..10 {
                let bill = bills.try_next().await.unwrap();
                assert_eq!(bill.unwrap(), format!("1 of {n}: 1"), "{cause}");
            }
            let error = bills.try_next().await.unwrap_err().to_string();
            assert!(error.contains(cause), "{cause}: {error}");
        }
    });
}

#[test]
fn a_panic_of_a_request_is_an_error() {
    with_cpu(async |cpu| {
        let lines = stream::iter((0..100).map(|n| format!("{n},1")));
        let bills = with_io(cpu, lines, async |product| {
            assert!(product < 50, "boom");
            Ok(1)
        });
        let bills: Vec<_> = bills.collect().await;
        let error = bills.last().unwrap().as_ref().unwrap_err().to_string();
        assert!(bills.len() <= 51 && error.contains("boom"), "{error}");
    });
}
