//! A lane that ends while a store is at work.

use std::sync::mpsc;

use futures::TryStreamExt;
use tokio::sync::oneshot;
use twolane::{JoinError, JoinErrorKind};

use super::object_store::client::{HttpConnector, SpawnedReqwestConnector};
use super::object_store::multipart::MultipartStore;
use super::object_store::path::Path;
use super::object_store::{ClientOptions, Error, ObjectStore, ObjectStoreExt, Result, RetryConfig};
use super::store::{Site, get, io_connector, object, read, retries, store, store_by, wait};
use crate::errors::{find, story};
use crate::support::{Lanes, lanes};
use twolane_s3::faults::{After, Fault, How};

const SIZE: usize = 300_000;
const STALL: Fault = Fault::Cut(After::Body(100_000), How::Stall);

/// Where the reader is.
#[derive(Clone, Copy, Debug)]
enum Reader {
    /// The lane ends with its I/O runtime, and the job with it.
    Job,
    /// On a runtime of its own.
    Elsewhere,
}

/// What a reader gets that has a part of the object when the I/O lane ends.
fn read_until_io_ends(
    site: &Site,
    Lanes { cpu, io }: Lanes,
    connector: impl HttpConnector,
    reader: Reader,
    retry: RetryConfig,
) -> Result<Result<Vec<u8>>, JoinError> {
    let store = store_by(connector, &site.access(), retry, ClientOptions::new());
    site.proxy.plan([STALL]);
    let (begins, begun) = mpsc::channel();
    let reading = async move {
        let got = store.get(&object()).await?;
        read(got, || begins.send(()).unwrap()).await
    };
    let end_io = || {
        begun.recv().unwrap();
        site.proxy.wait_for_fault();
        io.shutdown_background();
    };
    let job = match reader {
        Reader::Job => cpu.spawn(reading),
        Reader::Elsewhere => {
            let thread = std::thread::spawn(|| wait(reading));
            end_io();
            return Ok(thread.join().unwrap());
        }
    };
    end_io();
    job.wait()
}

/// The same by our connector.
fn read_by_ours(
    site: &Site,
    reader: Reader,
    retry: RetryConfig,
) -> Result<Result<Vec<u8>>, JoinError> {
    println!("{reader:?}");
    let lanes = lanes(1);
    let connector = io_connector(lanes.cpu.handle());
    read_until_io_ends(site, lanes, connector, reader, retry)
}

#[test]
fn a_body_whose_io_lane_ends_is_an_error_that_says_so() {
    let site = Site::new(SIZE);
    for reader in [Reader::Job, Reader::Elsewhere] {
        let error = match read_by_ours(&site, reader, retries(0)) {
            Ok(read) => read.unwrap_err(),
            Err(ended) => {
                assert_eq!(ended.kind(), JoinErrorKind::IoRuntimeGone, "{ended}");
                continue;
            }
        };
        let lost = find::<twolane::io::BridgeError>(&error).unwrap();
        assert!(!lost.is_panic(), "{lost}");
        assert!(lost.to_string().contains("the I/O lane stopped"), "{lost}");
    }
}

/// What the bridge is for: by object_store's own connector for another runtime, the same body ends
/// like a complete one.
#[test]
fn object_store_s_own_connector_is_silent() {
    let lanes = lanes(1);
    let connector = SpawnedReqwestConnector::new(lanes.io.handle().clone());
    let site = Site::new(SIZE);
    let read = read_until_io_ends(&site, lanes, connector, Reader::Elsewhere, retries(0));
    print!("SpawnedReqwestConnector: ");
    match read.unwrap() {
        Ok(read) if read.len() == SIZE => panic!("the rest came from nowhere"),
        Ok(read) => println!("Ok with {} of {SIZE} bytes", read.len()),
        Err(error) => println!("an error: mended, or lucky. {}", story(&error)),
    }
}

/// object_store begins each retry of a body with a `tokio::time::sleep` where
/// the body is read, whatever the error. Where the reader's timers live on, the
/// retry then finds the lane gone.
#[test]
fn with_retries_the_second_request_says_so() {
    let site = Site::new(SIZE);
    for retry in [retries(3), RetryConfig::default()] {
        let read = read_by_ours(&site, Reader::Elsewhere, retry);
        let error = read.unwrap().unwrap_err();
        let join = find::<JoinError>(&error).unwrap();
        assert_eq!(join.kind(), JoinErrorKind::IoRuntimeGone, "{join}");
        // No third: a runtime does not come back.
        let story = story(&error);
        assert!(story.contains("after 1 retries"), "{story}");
    }
}

/// The timers of a job are the I/O runtime's, and Tokio's timers panic when theirs is gone. The lane
/// mostly ends the job before.
#[test]
fn with_retries_a_job_ends_with_its_io_runtime() {
    let site = Site::new(SIZE);
    for retry in [retries(3), RetryConfig::default()] {
        let error = read_by_ours(&site, Reader::Job, retry).unwrap_err();
        let tokio_says = "A Tokio 1.x context was found, but it is being shutdown";
        let is_gone = error.kind() == JoinErrorKind::IoRuntimeGone;
        assert!(is_gone || error.to_string().contains(tokio_says), "{error}");
    }
}

/// Before there is a body, object_store heeds the kind of the error, which
/// says that there is no point in asking again: no timer.
#[test]
fn a_request_whose_io_lane_ends_is_not_sent_again() {
    let site = Site::new(SIZE);
    let Lanes { cpu, io } = lanes(1);
    let store = store(&site.access(), cpu.handle(), RetryConfig::default());
    site.proxy.plan([Fault::Cut(After::Head(10), How::Stall)]);
    let (goes_on, may_go_on) = oneshot::channel::<()>();
    // Not in a job: the lane ends with its I/O runtime.
    let asks = std::thread::spawn(|| {
        wait(async move {
            let during = get(&store).await;
            may_go_on.await.unwrap();
            (during, get(&store).await)
        })
    });
    site.proxy.wait_for_fault();
    io.shutdown_background();
    goes_on.send(()).unwrap();
    let (during, after) = asks.join().unwrap();
    for error in [during.unwrap_err(), after.unwrap_err()] {
        let join = find::<JoinError>(&error).unwrap();
        assert_eq!(join.kind(), JoinErrorKind::IoRuntimeGone, "{join}");
        assert!(!story(&error).contains("retries,"), "{}", story(&error));
    }
}

/// The job ends; the store does not, since its requests need the I/O lane
/// alone: code that has the upload's id can still clean up.
#[test]
fn an_upload_cut_off_by_the_cpu_lane_s_end_is_not_seen_and_can_be_aborted() {
    let site = Site::new(10);
    let Lanes { cpu, io } = lanes(1);
    let store = store(&site.access(), cpu.handle(), retries(3));
    let path = Path::from("upload");
    let (begins, begun) = mpsc::channel();
    let (inside, to) = (store.clone(), path.clone());
    let job = cpu.spawn(async move {
        let id = inside.create_multipart(&to).await.unwrap();
        let part = vec![7; 100_000].into();
        inside.put_part(&to, &id, 0, part).await.unwrap();
        begins.send(id).unwrap();
        std::future::pending::<()>().await;
    });
    let id = begun.recv().unwrap();
    cpu.shutdown().wait();
    assert_eq!(job.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);

    io.block_on(async {
        let is_there = || store.head(&path);
        assert!(matches!(is_there().await, Err(Error::NotFound { .. })));
        let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
        assert_eq!(listed.len(), 1, "{listed:?}");
        store.abort_multipart(&path, &id).await.unwrap();
        // It is no more.
        let part = store.put_part(&path, &id, 1, "more".into()).await;
        part.unwrap_err();
        assert!(matches!(is_there().await, Err(Error::NotFound { .. })));
    });
    let got = wait(async {
        store.put(&path, "anew".into()).await?;
        store.get(&path).await?.bytes().await
    });
    assert_eq!(got.unwrap(), "anew");
    wait(store.delete(&path)).unwrap();
}
