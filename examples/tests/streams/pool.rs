//! No item sees what another has left in its worker's state. (That each worker has one:
//! `tests/stream/context.rs`.)

use std::io::Read;

use flate2::read::ZlibDecoder;
use futures::StreamExt;
use tokio::sync::mpsc;

use super::recipes::pool::{compressor, pool};
use super::with_cpu;

/// The state that one item leaves must not show in the next one's output.
#[test]
fn no_item_sees_another() {
    with_cpu(async |cpu| {
        let documents = 500;
        let document = |n: usize| format!("document {n} ").repeat(n).into_bytes();
        let (send, jobs) = mpsc::channel(4);
        let sender = tokio::spawn(async move {
            for n in 0..documents {
                send.send(document(n)).await.unwrap();
            }
        });
        let mut outputs = pool(cpu, jobs, compressor);
        for n in 0..documents {
            let compressed = outputs.next().await.unwrap().unwrap();
            let mut found = Vec::new();
            ZlibDecoder::new(&compressed[..])
                .read_to_end(&mut found)
                .unwrap();
            assert!(found == document(n), "document {n}");
        }
        assert!(outputs.next().await.is_none());
        sender.await.unwrap();
    });
}

/// Its jobs' sender sees that the pool is gone.
#[test]
fn dropping_the_pool_closes_the_channel() {
    with_cpu(async |cpu| {
        let (send, jobs) = mpsc::channel(4);
        let outputs = pool(cpu, jobs, compressor);
        send.send(b"document".to_vec()).await.unwrap();
        drop(outputs);
        send.closed().await;
    });
}
