//! How a scan ends before its end.

use std::error::Error;
use std::sync::atomic::Ordering::SeqCst;

use futures::{StreamExt, TryStreamExt};
use twolane_core::{JoinError, JoinErrorKind, Priority};
use twolane_vortex::{is_unavailable, run_on, stream_on};
use vortex::array::ArrayRef;
use vortex::array::stream::ArrayStreamExt;
use vortex::error::{VortexError, VortexResult};
use vortex::file::VortexFile;
use vortex::session::VortexSession;

use crate::setting::{Decoder, ROWS, Store, decode, lanes_with, open, store};
use crate::support::Lanes;

/// A file on lanes, opened.
fn opened() -> (Lanes, VortexSession, Store, VortexFile) {
    let lanes = lanes_with(|builder| builder.queue_limit(Priority::Normal, 2));
    let (session, store) = (lanes.session(), store());
    let file = lanes.io.block_on(open(&session, &store)).unwrap();
    (lanes, session, store, file)
}

async fn read(file: VortexFile) -> VortexResult<ArrayRef> {
    file.scan()?.into_array_stream()?.read_all().await
}

#[track_caller]
fn assert_kind(error: &VortexError, kind: JoinErrorKind) {
    assert_eq!(join_error(error).unwrap().kind(), kind, "{error:?}");
}

fn join_error(error: &VortexError) -> Option<&JoinError> {
    error.source()?.downcast_ref()
}

#[test]
fn a_dropped_scan_drops_its_jobs_and_its_requests() {
    for in_job in [false, true] {
        let (lanes, _session, store, file) = opened();
        let cpu = lanes.cpu.handle().clone();
        lanes.io.block_on(async {
            let mut messages = store.by.stick();
            if in_job {
                let read = run_on(&cpu, read(file));
                assert_eq!(messages.recv().await, Some("stuck"));
                drop(read);
            } else {
                let mut scan = Box::pin(file.scan().unwrap().into_stream().unwrap());
                let mut read = scan.next();
                tokio::select! {
                    _ = &mut read => panic!("it reads from a store that does not answer"),
                    message = messages.recv() => assert_eq!(message, Some("stuck")),
                }
                drop((scan, file));
            }
            // One for each request, of which there may be more than the first.
            let mut stuck = 1;
            while stuck > 0 {
                match messages.recv().await {
                    Some("stuck") => stuck += 1,
                    _ => stuck -= 1,
                }
            }
            lanes.until_jobs(0);
        });
    }
}

/// No hang, and no panic that a service would see.
#[test]
fn a_shutdown_in_mid_scan_is_an_error() {
    let (lanes, _session, store, file) = opened();
    let (cpu, Lanes { cpu: lane, io }) = lanes.and_handle();
    io.block_on(async {
        let mut messages = store.by.stick();
        let scan = file.scan().unwrap().into_stream().unwrap();
        let whole = run_on(&cpu, read(file));
        let mut parts = Box::pin(stream_on(&cpu, scan, 1 << 20, |_| 1));
        assert_eq!(messages.recv().await, Some("stuck"));
        assert!(lane.shutdown().await.is_empty());
        let error = whole.await.unwrap_err();
        assert_kind(&error, JoinErrorKind::Shutdown);
        let error = parts.next().await.unwrap().unwrap_err();
        assert!(is_unavailable(&error), "{error:?}");
        assert!(parts.next().await.is_none());
    });
}

/// While splits compute: they end, and what they yield is not told as the whole.
#[test]
fn a_shutdown_while_splits_decode_is_an_error() {
    let (lanes, session, _store, file) = opened();
    let (cpu, Lanes { cpu: lane, io }) = lanes.and_handle();
    let (started, mut has_started) = tokio::sync::mpsc::unbounded_channel();
    let (closed, decode) = (cpu.clone(), decode(session));
    let decode_late = move |array: ArrayRef| {
        started.send(()).unwrap();
        while !twolane_core::adapters::is_closed(&closed) {
            std::thread::yield_now();
        }
        decode(array)
    };
    io.block_on(async {
        let scan = file.scan().unwrap().map(decode_late);
        let scan = scan.into_stream().unwrap();
        let whole = run_on(&cpu, scan.try_collect::<Vec<_>>());
        has_started.recv().await.unwrap();
        assert!(lane.shutdown().await.is_empty());
        let error = whole.await.unwrap_err();
        assert_kind(&error, JoinErrorKind::Shutdown);
    });
}

/// As with any runtime of vortex that goes away. The crate says so.
#[test]
fn a_shutdown_panics_in_a_reader_that_is_no_job() {
    let (lanes, _session, store, file) = opened();
    let Lanes { cpu: lane, io } = lanes;
    io.block_on(async {
        let mut messages = store.by.stick();
        let reader = tokio::spawn(read(file));
        assert_eq!(messages.recv().await, Some("stuck"));
        lane.shutdown().await;
        let payload = reader.await.unwrap_err().into_panic();
        let text = payload.downcast_ref::<&str>().copied();
        assert_eq!(text, Some("Runtime dropped task without completing it"));
    });
}

#[test]
fn a_closed_or_full_lane_is_unavailable() {
    let (lanes, _session, _store, file) = opened();
    let (cpu, Lanes { cpu: lane, io }) = lanes.and_handle();
    io.block_on(async {
        let permits = [cpu.reserve().await.unwrap(), cpu.reserve().await.unwrap()];
        let error = run_on(&cpu, read(file.clone())).await.unwrap_err();
        assert_kind(&error, JoinErrorKind::QueueFull);
        let scan = file.scan().unwrap().into_stream().unwrap();
        let mut parts = Box::pin(stream_on(&cpu, scan, 1, |_| 1));
        assert!(is_unavailable(&parts.next().await.unwrap().unwrap_err()));
        drop(permits);
        assert_eq!(
            run_on(&cpu, read(file.clone())).await.unwrap().len() as u64,
            ROWS
        );
        lane.shutdown().await;
        let error = run_on(&cpu, read(file)).await.unwrap_err();
        assert_kind(&error, JoinErrorKind::Shutdown);
    });
}

#[test]
fn a_panic_in_a_split_is_an_error_with_its_text() {
    let (lanes, session, _store, file) = opened();
    let cpu = lanes.cpu.handle().clone();
    let decoder = Decoder::default();
    decoder.panics.store(true, SeqCst);
    let projection = decoder.of_root().bind(file.dtype()).unwrap();
    let decode = decode(session);
    let scan = || {
        let scan = file.scan().unwrap().with_projection(projection.clone());
        scan.map(decode.clone()).into_stream().unwrap()
    };
    lanes.io.block_on(async {
        let broken = run_on(&cpu, scan().try_collect::<Vec<_>>())
            .await
            .unwrap_err();
        assert!(join_error(&broken).unwrap().is_panic());
        assert!(broken.to_string().contains("a broken function"), "{broken}");
        assert!(!is_unavailable(&broken));
        let mut parts = Box::pin(stream_on(&cpu, scan(), 1 << 20, |_| 1));
        let broken = parts.next().await.unwrap().unwrap_err();
        assert!(broken.to_string().contains("a broken function"), "{broken}");
        lanes.until_jobs(1);
        decoder.panics.store(false, SeqCst);
        let parts = run_on(&cpu, scan().try_collect::<Vec<_>>()).await.unwrap();
        assert_eq!(parts.iter().map(ArrayRef::len).sum::<usize>() as u64, ROWS);
    });
}

/// Its requests cannot be made. Nothing waits for them.
#[test]
fn the_end_of_the_io_runtime_is_an_error() {
    let (lanes, _session, store, file) = opened();
    let (cpu, Lanes { cpu: lane, io }) = lanes.and_handle();
    let mut messages = store.by.stick();
    let whole = run_on(&cpu, read(file));
    assert_eq!(messages.blocking_recv(), Some("stuck"));
    io.shutdown_background();
    let error = futures::executor::block_on(whole).unwrap_err();
    assert!(join_error(&error).is_some(), "{error:?}");
    drop(lane);
}
