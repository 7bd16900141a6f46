//! What a large object costs while its reader is busy. A process of its own:
//! the memory that is measured is the process's.

#![cfg(all(target_os = "linux", feature = "object_store_0_14"))]

mod support;
#[path = "support/torrent.rs"]
mod torrent;

use std::sync::{Arc, Mutex};

use futures::TryStreamExt;
use object_store_0_14::ObjectStoreExt;
use object_store_0_14::aws::AmazonS3Builder;
use object_store_0_14::client::ReqwestConnector;
use object_store_0_14::path::Path;
use support::{BOTH, Lanes, lanes};
use torrent::{Event, Torrent};
use twolane::{DEFAULT_BODY_LIMIT, IoConnector};

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

#[test]
fn a_large_object_takes_no_more_memory_than_the_limit_while_its_reader_is_busy() {
    let _limit = support::time_limit();
    let torrent = Torrent::start(OBJECT as u64);
    let address = torrent.address;
    let events = Arc::new(Mutex::new(torrent.events));
    let mut before = None;
    for (backend, limit) in [
        // The first warms up what each request needs.
        (BOTH[0], 0),
        (BOTH[0], DEFAULT_BODY_LIMIT),
        (BOTH[1], DEFAULT_BODY_LIMIT),
        (BOTH[1], 40 * MIB),
        (BOTH[0], 0),
    ] {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let mut connector = IoConnector::new(ReqwestConnector::default(), &cpu.handle());
        if limit != DEFAULT_BODY_LIMIT {
            connector = connector.body_limit(limit);
        }
        let store = AmazonS3Builder::new()
            .with_http_connector(connector)
            .with_endpoint(format!("http://{address}"))
            .with_allow_http(true)
            .with_bucket_name("twolane")
            .with_skip_signature(true)
            .build()
            .unwrap();
        let events = events.clone();
        let job = cpu.spawn(async move {
            let mut chunks = store.get(&Path::from("large")).await?.into_stream();
            let mut read = chunks.try_next().await?.unwrap().len();
            // Busy, until the server can't send more; or has sent it all.
            let event = events.lock().unwrap().recv().unwrap();
            let at_most = resident();
            while let Some(chunk) = chunks.try_next().await? {
                read += chunk.len();
            }
            if matches!(event, Event::Blocked { .. }) {
                // The server is done then; or was blocked again.
                let events = events.lock().unwrap();
                while events.recv().unwrap() != Event::Done {}
            }
            Ok::<_, object_store_0_14::Error>((event, at_most, read))
        });
        let (event, at_most, read) = job.wait().unwrap().unwrap();
        assert_eq!(read, OBJECT, "{backend:?}, {limit}");
        let before = *before.get_or_insert(at_most);
        let grown = at_most.saturating_sub(before);
        println!("{backend:?}, {limit}: {grown} bytes more; {event:?}");
        assert!(grown <= limit + ROOM, "{backend:?}: {limit}, {grown} more");
        if let Event::Blocked { sent } = event {
            assert!(limit < 40 * MIB || sent as usize > limit, "not read ahead");
        }
    }
}
