//! The fan loses nothing, and a slow item or a slow writer holds no other up.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};

use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::Barrier;

use super::recipes::fan::{WRITERS, fan, write_all};
use super::{Error, with_cpu};

const SOURCES: u64 = 3;
const ITEMS: u64 = 2_000;

fn sources() -> Vec<impl futures::Stream<Item = u64> + Send + Unpin> {
    let source = |n| stream::iter(n * ITEMS..(n + 1) * ITEMS);
    (0..SOURCES).map(source).collect()
}

#[test]
fn each_item_of_each_source_comes_once() {
    with_cpu(async |cpu| {
        let outputs = fan(cpu, sources(), |n| n * n);
        let mut outputs: Vec<_> = outputs.try_collect().await.unwrap();
        outputs.sort_unstable();
        let plain = (0..SOURCES * ITEMS).map(|n| n * n);
        assert_eq!(outputs, plain.collect::<Vec<_>>());
    });
}

#[test]
fn a_slow_item_holds_no_other_up() {
    with_cpu(async |cpu| {
        let (let_go, wait) = mpsc::channel::<()>();
        let (wait, is_first) = (Mutex::new(wait), AtomicBool::new(true));
        let mut outputs = fan(cpu, sources(), move |n| {
            if is_first.swap(false, SeqCst) {
                wait.lock().unwrap().recv().unwrap();
                return None;
            }
            Some(n)
        });
        let mut others = 0;
        while others < SOURCES * ITEMS - 1 {
            assert!(outputs.next().await.unwrap().unwrap().is_some());
            others += 1;
        }
        let_go.send(()).unwrap();
        assert_eq!(outputs.next().await.unwrap().unwrap(), None);
        assert!(outputs.next().await.is_none());
    });
}

#[test]
fn outputs_are_written_many_at_once() {
    with_cpu(async |cpu| {
        let written = Arc::new(Mutex::new(BTreeSet::new()));
        let count = (SOURCES * ITEMS / WRITERS as u64) * WRITERS as u64;
        assert_eq!(count, SOURCES * ITEMS);
        // It lets as many through as come: with fewer at once, none comes through.
        let barrier = Barrier::new(WRITERS);
        let write = async |n| {
            barrier.wait().await;
            written.lock().unwrap().insert(n);
            Ok(())
        };
        write_all(fan(cpu, sources(), |n| n), write).await.unwrap();
        assert_eq!(written.lock().unwrap().len(), count as usize);
    });
}

#[test]
fn the_error_of_a_writer_ends_it() {
    with_cpu(async |cpu| {
        let write = async |n| match n {
            100 => Err(Error::from("the disk is full")),
            _ => Ok(()),
        };
        let error = write_all(fan(cpu, sources(), |n| n), write).await;
        assert_eq!(error.unwrap_err().to_string(), "the disk is full");
    });
}
