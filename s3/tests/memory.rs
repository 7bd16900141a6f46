//! What a large object costs while its reader is busy. A process of its own:
//! the memory that is measured is the process's.

#![cfg(target_os = "linux")]

#[path = "../../tests/support/mod.rs"]
mod support;

use futures::TryStreamExt;
use object_store_0_14::ObjectStoreExt;
use object_store_0_14::aws::AmazonS3Builder;
use object_store_0_14::client::{HttpConnector, ReqwestConnector, SpawnedReqwestConnector};
use object_store_0_14::path::Path;
use support::{BOTH, Lanes, lanes};
use twolane::Backend;
use twolane::io::{DEFAULT_BODY_LIMIT, IoConnector};
use twolane_s3::torrent::{Event, Torrent};

const MIB: usize = 1 << 20;
const OBJECT: usize = 512 * MIB;
/// For the rest of the process: hyper's buffers, the allocator's habits.
const ROOM: usize = 16 * MIB;

/// The memory that is resident now.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().strip_suffix("kB").unwrap().trim();
    kib.parse::<usize>().unwrap() * 1024
}

fn download(torrent: Torrent, backend: Backend, limit: Option<usize>) -> (Event, usize, usize) {
    download_by(torrent, backend, |lanes| {
        let connector = IoConnector::new(ReqwestConnector::default(), &lanes.cpu.handle());
        match limit {
            Some(limit) => connector.body_limit(limit),
            None => connector,
        }
    })
}

/// What reading the one object on a lane of this kind gives: how the server
/// fared while the reader was busy, what was resident then, and the length.
fn download_by<C: HttpConnector>(
    torrent: Torrent,
    backend: Backend,
    connector: impl FnOnce(&Lanes) -> C,
) -> (Event, usize, usize) {
    let lanes = lanes(backend, 1);
    let connector = connector(&lanes);
    let Lanes { cpu, io: _io } = lanes;
    let store = AmazonS3Builder::new()
        .with_http_connector(connector)
        .with_endpoint(format!("http://{}", torrent.address))
        .with_allow_http(true)
        .with_bucket_name("twolane")
        .with_skip_signature(true)
        .build()
        .unwrap();
    let job = cpu.spawn(async move {
        let mut chunks = store.get(&Path::from("large")).await?.into_stream();
        let mut read = chunks.try_next().await?.unwrap().len();
        // Busy, until the server can't send more; or has sent it all.
        let event = torrent.events.recv().unwrap();
        let resident = resident();
        while let Some(chunk) = chunks.try_next().await? {
            read += chunk.len();
        }
        Ok::<_, object_store_0_14::Error>((event, resident, read))
    });
    job.wait().unwrap().unwrap()
}

#[test]
fn a_large_object_takes_no_more_memory_than_the_limit_while_its_reader_is_busy() {
    let _limit = support::time_limit();
    // A small one warms up what each request needs.
    let (event, before, _) = download(Torrent::start(1_000), BOTH[0], None);
    assert_eq!(event, Event::Done);
    for (backend, limit) in [
        (BOTH[0], None),
        (BOTH[1], None),
        (BOTH[0], Some(0)),
        (BOTH[1], Some(40 * MIB)),
    ] {
        let torrent = Torrent::start(OBJECT as u64);
        let (event, resident, read) = download(torrent, backend, limit);
        assert_eq!(read, OBJECT, "{backend:?}, {limit:?}");
        let grown = resident.saturating_sub(before);
        println!("{backend:?}, {limit:?}: {grown} bytes more; {event:?}");
        let bound = limit.unwrap_or(DEFAULT_BODY_LIMIT);
        assert!(
            grown <= bound + ROOM,
            "{backend:?}, {limit:?}: {grown} bytes more"
        );
        // A larger limit is used: the server got rid of as much at least.
        if let Event::Blocked { sent } = event {
            assert!(sent as usize > bound, "{backend:?}, {limit:?}: {sent}");
        }
    }
    // Nothing of ours to assert: what object_store's own makes of it.
    let theirs = |lanes: &Lanes| SpawnedReqwestConnector::new(lanes.io.handle().clone());
    let (event, resident, _) = download_by(Torrent::start(OBJECT as u64), BOTH[1], theirs);
    let grown = resident.saturating_sub(before);
    println!("SpawnedReqwestConnector: {grown} bytes more; {event:?}");
}
