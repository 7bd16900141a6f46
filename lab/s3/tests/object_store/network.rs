//! What servers and networks do, with and without retries: the whole object or
//! an error.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures::TryStreamExt;

use super::object_store::aws::AmazonS3;
use super::object_store::client::{HttpError, HttpErrorKind};
use super::object_store::{ClientOptions, Error, ObjectStoreExt};
use super::store::{Site, get, io_connector, object, read, retries, store, store_by};
use crate::errors::{find, story};
use crate::support::{Lanes, lanes};
use twolane_s3::faults::{After, Fault, How};
use twolane_s3::torrent::{Event, Torrent};

const SIZE: usize = 300_000;
const STALL: Fault = Fault::Cut(After::Body(100_000), How::Stall);

/// The server and the proxy before it, whose listeners go too.
#[test]
fn a_server_that_dies_in_mid_body_is_an_error_after_the_retries() {
    let Lanes { cpu, io: _io } = lanes(1);
    let site = Site::new(SIZE);
    let store = store(&site.access(), cpu.handle(), retries(3));
    site.proxy.plan([STALL]);
    let (begins, begun) = mpsc::channel();
    let job = cpu.spawn(async move {
        let got = store.get(&object()).await?;
        read(got, || begins.send(()).unwrap()).await
    });
    begun.recv().unwrap();
    drop(site);
    let error = job.wait().unwrap().unwrap_err();
    let story = story(&error);
    assert!(story.contains("after 3 retries"), "{story}");
}

/// The clock of the timeout is the I/O lane's. A busy machine may spend one or the other try; it
/// has 30.
#[test]
fn a_server_that_stalls_in_mid_body_times_out_and_is_asked_again() {
    const PATIENCE: Duration = Duration::from_secs(2);
    let site = Site::new(SIZE);
    let Lanes { cpu, io: _io } = lanes(1);
    let stalling = |max_retries| {
        site.proxy.plan([STALL]);
        let store = store_by(
            io_connector(cpu.handle()),
            &site.access(),
            retries(max_retries),
            ClientOptions::new().with_timeout(PATIENCE),
        );
        let got = cpu.spawn(async move { get(&store).await }).wait().unwrap();
        site.proxy.wait_for_fault();
        got
    };
    assert!(stalling(30).unwrap() == site.content);

    let error = stalling(0).unwrap_err();
    let kind = find::<HttpError>(&error).unwrap().kind();
    assert_eq!(kind, HttpErrorKind::Timeout, "{}", story(&error));
    assert!(story(&error).contains("timed out"), "{}", story(&error));
}

/// The peer's failures do not look like ours.
fn is_the_peer_s(error: &Error) -> bool {
    let ours = find::<twolane::io::BridgeError>(error).is_some()
        || find::<twolane::JoinError>(error).is_some();
    find::<HttpError>(error).is_some() && !ours
}

/// As reqwest has it: whether the reset or the end was seen first.
fn is_reset(error: &Error) -> bool {
    let kind = find::<HttpError>(error).unwrap().kind();
    [HttpErrorKind::Interrupted, HttpErrorKind::Request].contains(&kind)
}

/// So many times, at most: with retries it is not seen; without, it is an error, which is checked.
#[test]
fn a_fault_is_asked_again_or_an_error() {
    let cut = |after, how| Fault::Cut(After::Body(after), how);
    let site = Site::new(SIZE);
    type IsSuch = fn(&Error) -> bool;
    let faults: [(Fault, usize, IsSuch); 6] = [
        (Fault::Reset, 3, is_reset),
        (Fault::SlowDown, 3, |error| story(error).contains("503")),
        (cut(50_000, How::Reset), 3, is_the_peer_s),
        // A body that is shorter than it said, of which not a byte comes, or all but one: the rest
        // is too short for a second time.
        (cut(50_000, How::Fin), 3, is_the_peer_s),
        (cut(0, How::Fin), 3, is_the_peer_s),
        (cut(SIZE - 1, How::Fin), 1, is_the_peer_s),
    ];
    let Lanes { cpu, io: _io } = lanes(1);
    for (fault, most, is_such) in faults {
        for (max_retries, times) in [(3, 1), (3, most), (0, 1)] {
            println!("{fault:?}, {times} times, {max_retries} retries");
            let store = store(&site.access(), cpu.handle(), retries(max_retries));
            site.proxy.plan(vec![fault; times]);
            let before = (site.proxy.struck(), site.proxy.connections());
            let got = cpu.spawn(async move { get(&store).await }).wait().unwrap();
            assert_eq!(site.proxy.struck() - before.0, times);
            if max_retries == 0 {
                let error = got.unwrap_err();
                assert!(is_such(&error), "{}", story(&error));
            } else {
                assert!(got.unwrap() == site.content);
                assert_eq!(site.proxy.connections() - before.1, times + 1);
            }
        }
    }
}

/// One that waits for more, and one that has more than the job reads.
#[test]
fn dropping_the_stream_or_the_job_stops_the_download() {
    let site = Site::new(SIZE);
    let torrent = Torrent::start(1 << 40);
    let Lanes { cpu, io: _io } = lanes(1);
    let store_of = |access| store(&access, cpu.handle(), retries(3));
    let read_a_part_of = |store: Arc<AmazonS3>| {
        let job = cpu.spawn(async move {
            let mut chunks = store.get(&object()).await.unwrap().into_stream();
            assert!(chunks.try_next().await.unwrap().is_some());
        });
        job.wait().unwrap();
    };
    // The stores stay, and with them their clients and pools.
    let store = store_of(site.access());
    site.proxy.plan([STALL]);
    read_a_part_of(store.clone());
    site.proxy.wait_for_leave();

    site.proxy.plan([STALL]);
    let (begins, begun) = mpsc::channel();
    let inside = store.clone();
    let job = cpu.spawn(async move {
        let got = inside.get(&object()).await?;
        read(got, || begins.send(()).unwrap()).await
    });
    begun.recv().unwrap();
    drop(job);
    site.proxy.wait_for_leave();

    let endless = store_of(site.server.access_by(torrent.address));
    read_a_part_of(endless.clone());
    let mut events = torrent.events.iter();
    assert!(events.any(|event| matches!(event, Event::Gone { .. })));
}
