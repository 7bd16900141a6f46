//! What servers and networks do, with and without retries: the whole object or
//! an error.

use std::sync::mpsc;
use std::time::Duration;

use futures::TryStreamExt;

use super::object_store::client::{HttpError, HttpErrorKind};
use super::object_store::{ClientOptions, ObjectStoreExt};
use super::store::{Site, get, io_connector, object, read, retries, store, store_by};
use crate::errors::{find, story};
use crate::support::{self, BOTH, Lanes, lanes};
use twolane_s3::faults::{After, Fault, How};
use twolane_s3::torrent::{Event, Torrent};

const SIZE: usize = 300_000;

/// The server and the proxy before it, whose listeners go too.
#[test]
fn a_server_that_dies_in_mid_body_is_an_error_after_the_retries() {
    let _limit = support::time_limit();
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let site = Site::new(SIZE);
        let store = store(&site.access(), &cpu.handle(), retries(3));
        site.proxy
            .plan([Fault::Cut(After::Body(100_000), How::Stall)]);
        let (begins, begun) = mpsc::channel();
        let job = cpu.spawn(async move {
            let got = store.get(&object()).await?;
            read(got, || begins.send(()).unwrap()).await
        });
        begun.recv().unwrap();
        drop(site);
        let error = job.wait().unwrap().unwrap_err();
        let story = story(&error);
        assert!(story.contains("after 3 retries"), "{backend:?}: {story}");
    }
}

/// The clock of the timeout is the I/O lane's. A busy machine may spend one or the other try; it
/// has 30.
#[test]
fn a_server_that_stalls_in_mid_body_times_out_and_is_asked_again() {
    const PATIENCE: Duration = Duration::from_secs(2);
    let _limit = support::time_limit();
    let site = Site::new(SIZE);
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let stalling = |max_retries| {
            site.proxy
                .plan([Fault::Cut(After::Body(100_000), How::Stall)]);
            let store = store_by(
                io_connector(&cpu.handle()),
                &site.access(),
                retries(max_retries),
                ClientOptions::new().with_timeout(PATIENCE),
            );
            let got = cpu.spawn(async move { get(&store).await }).wait().unwrap();
            site.proxy.wait_for_fault();
            got
        };
        assert!(stalling(30).unwrap() == site.content, "{backend:?}");

        let error = stalling(0).unwrap_err();
        let kind = find::<HttpError>(&error).unwrap().kind();
        assert_eq!(kind, HttpErrorKind::Timeout, "{}", story(&error));
        assert!(story(&error).contains("timed out"), "{}", story(&error));
    }
}

#[test]
fn a_connection_reset_on_the_first_byte_is_asked_again() {
    let _limit = support::time_limit();
    try_with(Fault::Reset, 3, |error| {
        let kind = find::<HttpError>(error).unwrap().kind();
        // As reqwest has it: whether the reset or the end was seen first.
        assert!(
            [HttpErrorKind::Interrupted, HttpErrorKind::Request].contains(&kind),
            "{}",
            story(error)
        );
    });
}

#[test]
fn a_server_that_is_too_busy_is_asked_again() {
    let _limit = support::time_limit();
    try_with(Fault::SlowDown, 3, |error| {
        assert!(story(error).contains("503"), "{}", story(error));
    });
}

#[test]
fn a_body_shorter_than_it_said_is_completed_or_an_error() {
    let _limit = support::time_limit();
    let ended = |after| Fault::Cut(After::Body(after), How::Fin);
    try_with(ended(50_000), 3, is_the_peer_s);
    // Not a byte of it.
    try_with(ended(0), 3, is_the_peer_s);
    // All but one: the rest is too short for a second time.
    try_with(ended(SIZE - 1), 1, is_the_peer_s);
}

#[test]
fn a_connection_reset_in_mid_body_is_completed_or_an_error() {
    let _limit = support::time_limit();
    let reset = Fault::Cut(After::Body(50_000), How::Reset);
    try_with(reset, 3, is_the_peer_s);
}

/// The peer's failures do not look like ours.
fn is_the_peer_s(error: &super::object_store::Error) {
    assert!(find::<HttpError>(error).is_some(), "{}", story(error));
    assert!(find::<twolane::BridgeError>(error).is_none());
    assert!(find::<twolane::JoinError>(error).is_none());
}

/// With retries the fault is not seen; without, it is an error.
fn try_with(fault: Fault, most: usize, check: impl Fn(&super::object_store::Error)) {
    let site = Site::new(SIZE);
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        for (max_retries, faults) in [(3, 1), (3, most), (0, 1)] {
            let store = store(&site.access(), &cpu.handle(), retries(max_retries));
            site.proxy.plan(vec![fault; faults]);
            let before = (site.proxy.struck(), site.proxy.connections());
            let got = cpu.spawn(async move { get(&store).await }).wait().unwrap();
            let struck = site.proxy.struck() - before.0;
            assert_eq!(struck, faults, "{fault:?}");
            match (max_retries, got) {
                (0, Err(error)) => check(&error),
                (0, Ok(got)) => panic!("{} bytes and no error", got.len()),
                (_, got) => {
                    assert!(got.unwrap() == site.content, "{backend:?}: {fault:?}");
                    assert_eq!(site.proxy.connections() - before.1, faults + 1);
                }
            }
        }
    }
}

/// One that waits for more, and one that has more than the job reads.
#[test]
fn dropping_the_stream_stops_the_download() {
    let _limit = support::time_limit();
    let site = Site::new(SIZE);
    let torrent = Torrent::start(1 << 40);
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let read_a_part_of = |access| {
            let store = store(&access, &cpu.handle(), retries(3));
            let job = cpu.spawn(async move {
                let mut chunks = store.get(&object()).await.unwrap().into_stream();
                assert!(chunks.try_next().await.unwrap().is_some());
                // The store stays, and with it the client and its pool.
                store
            });
            job.wait().unwrap()
        };
        site.proxy
            .plan([Fault::Cut(After::Body(100_000), How::Stall)]);
        let _store = read_a_part_of(site.access());
        site.proxy.wait_for_leave();

        let _store = read_a_part_of(site.server.access_by(torrent.address));
        let mut events = torrent.events.iter();
        assert!(events.any(|event| matches!(event, Event::Gone { .. })));
    }
}

/// The same for a job that is dropped while it reads.
#[test]
fn dropping_the_job_stops_the_download() {
    let _limit = support::time_limit();
    let site = Site::new(SIZE);
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let store = store(&site.access(), &cpu.handle(), retries(3));
        site.proxy
            .plan([Fault::Cut(After::Body(100_000), How::Stall)]);
        let (begins, begun) = mpsc::channel();
        let inside = store.clone();
        let job = cpu.spawn(async move {
            let got = inside.get(&object()).await?;
            read(got, || begins.send(()).unwrap()).await
        });
        begun.recv().unwrap();
        drop(job);
        site.proxy.wait_for_leave();
        drop(store);
    }
}
