//! The pool makes a state for each worker, and no item sees what another has left.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use flate2::read::ZlibDecoder;
use futures::StreamExt;
use tokio::sync::mpsc;

use super::recipes::pool::{compressor, pool};
use super::{THREADS, with_cpu};

/// The state that one item leaves must not show in the next one's output.
#[test]
fn each_worker_has_one_compressor_and_no_item_sees_another() {
    with_cpu(async |cpu| {
        let documents = 500;
        let document = |n: usize| format!("document {n} ").repeat(n).into_bytes();
        let (send, jobs) = mpsc::channel(4);
        let sender = tokio::spawn(async move {
            for n in 0..documents {
                send.send(document(n)).await.unwrap();
            }
        });
        let made = Arc::new(AtomicUsize::new(0));
        let makes = made.clone();
        let mut outputs = pool(cpu, jobs, move || {
            makes.fetch_add(1, SeqCst);
            compressor()
        });
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
        let made = made.load(SeqCst);
        assert!((1..=THREADS).contains(&made), "{made} compressors");
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
