//! What a large object costs while its reader is busy. A process of its own:
//! the memory that is measured is the process's.

#![cfg(target_os = "linux")]

#[path = "../../../crates/core/tests/support/mod.rs"]
mod support;

use futures::TryStreamExt;
use object_store_0_14::ObjectStoreExt;
use object_store_0_14::aws::AmazonS3Builder;
use object_store_0_14::client::ReqwestConnector;
use object_store_0_14::path::Path;
use support::{Lanes, lanes, memory};
use twolane::io::{DEFAULT_BODY_LIMIT, IoConnector};
use twolane_s3::server::install_cryptography;
use twolane_s3::torrent::{Event, Torrent};

const MIB: usize = 1 << 20;
const OBJECT: usize = 512 * MIB;
/// For the rest: hyper's buffers, the sockets', the allocator's habits, huge pages of the kernel.
const ROOM: usize = OBJECT / 4;

/// What was so while the reader of an object was busy, and the server could send no more.
struct Busy {
    event: Event,
    resident: usize,
}

/// Reads the one object on a lane. Its length is the second of what it returns.
fn download(torrent: Torrent, limit: Option<usize>) -> (Busy, usize) {
    install_cryptography();
    let Lanes { cpu, io: _io } = lanes(1);
    let mut connector = IoConnector::new(ReqwestConnector::default(), cpu.handle());
    if let Some(limit) = limit {
        connector = connector.body_limit(limit);
    }
    let full = limit.unwrap_or(DEFAULT_BODY_LIMIT) as u64;
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
        // Busy, until the server can't send more; or has sent it all. A limit is used: nothing else
        // than a full bridge keeps the server from sending.
        let is_early = |event: &Event| matches!(*event, Event::Blocked { sent } if sent < full);
        let event = torrent.events.iter().find(|event| !is_early(event));
        let busy = Busy {
            event: event.unwrap(),
            resident: memory("VmRSS") as usize * 1024,
        };
        while let Some(chunk) = chunks.try_next().await? {
            read += chunk.len();
        }
        Ok::<_, object_store_0_14::Error>((busy, read))
    });
    job.wait().unwrap().unwrap()
}

#[test]
fn a_large_object_takes_no_more_memory_than_the_limit_while_its_reader_is_busy() {
    // A small one warms up what each request needs.
    let (small, _) = download(Torrent::start(1_000), None);
    assert_eq!(small.event, Event::Done);
    for limit in [None, Some(0), Some(40 * MIB)] {
        let torrent = Torrent::start(OBJECT as u64);
        let (busy, read) = download(torrent, limit);
        assert_eq!(read, OBJECT, "{limit:?}");
        let Busy { event, resident } = busy;
        let grown = resident.saturating_sub(small.resident);
        println!("{limit:?}: {grown} bytes more; {event:?}");
        let bound = limit.unwrap_or(DEFAULT_BODY_LIMIT) + ROOM;
        assert!(matches!(event, Event::Blocked { sent } if sent < bound as u64));
        assert!(grown < bound);
    }
}
