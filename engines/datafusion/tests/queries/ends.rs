//! How a query ends before its end.

use std::time::Duration;

use futures::StreamExt;
use twolane::io::BridgeError;
use twolane::{JoinError, JoinErrorKind};
use twolane_datafusion::{collect_on, stream_on};

use crate::setting::{GROUPS, LONG, Site, each, each_with, lane_error};

/// At a thousand moments of its life.
#[test]
fn a_thousand_queries_that_are_dropped_leave_nothing() {
    each(&[1, 4], async |site| {
        for n in 0..500_u64 {
            let query = collect_on(&site.cpu, site.frame(GROUPS).await);
            let moment = Duration::from_micros(n * n % 20_011);
            if let Ok(result) = tokio::time::timeout(moment, query).await {
                result.unwrap();
            }
        }
        site.until_quiet();
        let jobs = site.cpu.metrics();
        assert!(jobs.cancelled > 0, "{jobs:?}");
        assert_eq!(jobs.panicked, 0, "{jobs:?}");
        // It takes and ends queries as before.
        collect_on(&site.cpu, site.frame(GROUPS).await)
            .await
            .unwrap();
    });
}

/// The query, and its tasks, end as shut down: no panic on the way.
#[test]
fn a_shutdown_ends_a_query_as_such() {
    each(&[1, 4], async |site| {
        let query = collect_on(&site.cpu, site.frame(LONG).await);
        let frame = site.frame(LONG).await;
        let mut stream = stream_on(&site.cpu, frame, 1 << 20).await.unwrap();
        assert!(futures::poll!(stream.next()).is_pending());
        site.until_it_computes();
        site.lanes.cpu.shutdown_background();
        let error = query.await.unwrap_err();
        let is_such = lane_error(&error)
            .is_some_and(|error: &JoinError| error.kind() == JoinErrorKind::Shutdown);
        assert!(is_such, "{error:?}");
        let error = stream.next().await.unwrap().unwrap_err();
        let cut = lane_error::<BridgeError>(&error);
        assert!(cut.is_some_and(|cut| !cut.is_panic()), "{error:?}");
        site.until_quiet();
        assert_eq!(site.cpu.metrics().panicked, 0);
    });
}

/// The lane ends with it, and a query that would go on.
#[test]
fn the_end_of_the_io_runtime_is_an_error() {
    let site = Site::new(4, |lane| lane);
    let other = tokio::runtime::Runtime::new().unwrap();
    let query = collect_on(&site.cpu, other.block_on(site.frame(LONG)));
    site.until_it_computes();
    site.lanes.io.shutdown_background();
    let error = other.block_on(query).unwrap_err();
    let kind = lane_error(&error).map(JoinError::kind);
    assert_eq!(kind, Some(JoinErrorKind::IoRuntimeGone), "{error:?}");
}

/// One thread, which a query never leaves by itself for long.
#[test]
fn other_jobs_have_their_turn() {
    let set = |lane: twolane::Builder| lane.worker_threads(1);
    each_with(&[1], set, async |site| {
        let query = collect_on(&site.cpu, site.frame(LONG).await);
        site.until_it_computes();
        assert_eq!(site.cpu.spawn(async { 42 }).await.unwrap(), 42);
        drop(query);
    });
}
