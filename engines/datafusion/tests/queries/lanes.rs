//! Where the parts of a query run.

use datafusion::error::DataFusionError;
use futures::{StreamExt, TryStreamExt};
use twolane::Priority;
use twolane_datafusion::{collect_on, is_unavailable, run_on, stream_on};

use crate::setting::{GROUPS, each, each_with, rows};

#[test]
fn all_of_a_query_computes_on_the_lane() {
    each(&[1, 4], async |site| {
        let frame = site.frame(GROUPS).await;
        let batches = collect_on(&site.cpu, frame.clone()).await.unwrap();
        assert_eq!(rows(&batches), 1_000);
        site.assert_computed_on("cpu-");

        let fields = frame.schema().fields().len();
        let stream = stream_on(&site.cpu, frame, 1 << 20).await.unwrap();
        assert_eq!(stream.schema().fields().len(), fields);
        let batches: Vec<_> = stream.try_collect().await.unwrap();
        assert_eq!(rows(&batches), 1_000);
        site.assert_computed_on("cpu-");
    });
}

/// The tasks of a query have its priority, and share its permit.
#[test]
fn tasks_belong_to_their_query() {
    let set = |lane: twolane::Builder| lane.queue_limit(Priority::Low, 1);
    each_with(&[4], set, async |site| {
        let low = site.cpu.with_priority(Priority::Low);
        let context = site.context.clone();
        let query = async move { context.sql(GROUPS).await?.collect().await };
        run_on(&low, query).await.unwrap();
        site.assert_computed_on("cpu-low-");
        assert_eq!(low.metrics().completed, 1);
        assert_eq!(site.cpu.metrics().completed, 0);
    });
}

#[test]
fn errors_say_what_happened_and_end_a_stream() {
    each(&[1, 2], async |site| {
        let failing = site.frame("select failing(n) from numbers").await;
        let failed = collect_on(&site.cpu, failing.clone()).await.unwrap_err();
        let is_its_own = matches!(failed.find_root(), DataFusionError::Execution(_));
        assert!(is_its_own, "{failed:?}");
        // DataFusion's own stream of one partition goes on, with an error for each batch.
        let stream = stream_on(&site.cpu, failing, 1 << 20).await.unwrap();
        let items = stream.collect::<Vec<_>>().await;
        assert!(matches!(&items[..], [Err(_)]), "{items:?}");

        let broken = site.frame("select broken(n) from numbers").await;
        let stream = stream_on(&site.cpu, broken.clone(), 1 << 20).await.unwrap();
        // In one of the query's tasks.
        let in_a_task = site.frame(&GROUPS.replace("threads", "broken")).await;
        for broken in [
            collect_on(&site.cpu, broken).await.map(drop),
            stream.try_collect::<Vec<_>>().await.map(drop),
            collect_on(&site.cpu, in_a_task).await.map(drop),
        ] {
            let error = broken.unwrap_err();
            assert!(error.to_string().contains("a broken function"), "{error}");
        }
    });
}

#[test]
fn a_full_lane_refuses_a_query() {
    let set = |lane: twolane::Builder| lane.queue_limit(Priority::Normal, 1);
    each_with(&[2], set, async |site| {
        let frame = site.frame("select n from numbers").await;
        let _permit = site.cpu.reserve().await.unwrap();
        let full = collect_on(&site.cpu, frame.clone()).await.unwrap_err();
        let none = stream_on(&site.cpu, frame, 1 << 20).await.err().unwrap();
        for full in [full, none] {
            assert!(is_unavailable(&full), "{full:?}");
        }
    });
}
