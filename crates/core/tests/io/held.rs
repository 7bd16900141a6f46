//! What the metrics say of the bytes in bridges: no item is left in the sum, however its
//! bridge ends.

use std::sync::mpsc;
use std::task::Poll;

use crate::support::wait::wait_until;
use crate::support::{lanes_with, with_both};
use futures::stream::{self, StreamExt};
use twolane_core::Priority;

#[test]
fn what_is_buffered_counts_until_it_is_read_or_dropped() {
    with_both(|backend| {
        let lanes = lanes_with(backend, 1, |builder| builder.histograms(true));
        let cpu = lanes.cpu.handle().clone();
        let bytes = || cpu.metrics().bridge_bytes;
        let filled = || {
            let (ended, has_ended) = mpsc::channel();
            let end = stream::poll_fn(move |_| {
                ended.send(()).unwrap();
                Poll::Ready(None)
            });
            let source = stream::iter(0..5).chain(end);
            let bridged = cpu.stream_from_io(source, 10_000, |_| 100);
            has_ended.recv().unwrap();
            bridged
        };
        let mut bridged = filled();
        assert_eq!(bytes(), 500);
        assert_eq!(cpu.with_priority(Priority::High).metrics().bridge_bytes, 0);
        lanes.io.block_on(bridged.next()).unwrap().unwrap();
        assert_eq!(bytes(), 400);
        drop(bridged);
        assert_eq!(bytes(), 0);
        let read = lanes.io.block_on(filled().collect::<Vec<_>>());
        assert_eq!((read.len(), bytes()), (5, 0));
    });
}

/// Its item goes into a buffer that no reader will empty.
#[test]
fn an_item_that_comes_after_its_reader_has_gone_is_taken_out_of_the_sum() {
    with_both(|backend| {
        let lanes = lanes_with(backend, 1, |builder| builder.histograms(true));
        let cpu = lanes.cpu.handle().clone();
        let (polled, is_polled) = mpsc::channel();
        let (let_go, wait) = mpsc::channel();
        let sized = |size: &usize| *size;
        let source = stream::poll_fn(move |_| {
            polled.send(()).unwrap();
            Poll::Ready(Some(wait.recv().unwrap()))
        });
        let bridged = cpu.stream_from_io(source, 10_000, sized);
        is_polled.recv().unwrap();
        drop(bridged);
        let_go.send(700).unwrap();
        // The pump drops the source, and then the last of the bridge.
        is_polled.recv().unwrap_err();
        wait_until(|| cpu.metrics().bridge_bytes == 0);
    });
}
