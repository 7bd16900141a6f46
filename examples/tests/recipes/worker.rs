//! `queue_worker`: a message is taken with a permit, and goes back if it has not begun.

use tokio::sync::{mpsc, oneshot};
use twolane::{CpuRuntime, Priority};

use crate::queue_worker::{Message, work};
use crate::support::Lanes;
use crate::{busy, fill, lanes_of, let_go};

fn message() -> (Message, oneshot::Receiver<bool>) {
    let (done, is_done) = oneshot::channel();
    let body = vec![1; 10];
    (Message { body, done }, is_done)
}

#[test]
fn a_message_stays_in_the_queue_until_there_is_a_permit() {
    let limited = || {
        CpuRuntime::builder()
            .queue_limit(Priority::Normal, 2)
            .build()
    };
    let Lanes { cpu, io } = lanes_of(limited);
    io.block_on(async {
        let permits = fill(cpu.handle());
        let (queue, messages) = mpsc::channel(1);
        let (stop, stopped) = oneshot::channel();
        let worker = tokio::spawn(work(cpu.handle().clone(), messages, stopped));
        let (first, is_done) = message();
        queue.send(first).await.unwrap();
        // It is still there: there is no room for a second one.
        for _ in 0..100 {
            tokio::task::yield_now().await;
            assert_eq!(queue.capacity(), 0);
        }
        drop(permits);
        assert!(is_done.await.unwrap());
        stop.send(()).unwrap();
        worker.await.unwrap().join_all().await;
    });
}

#[test]
fn what_has_not_begun_goes_back() {
    let Lanes { cpu, io } = lanes_of(CpuRuntime::new);
    let others = busy(cpu.handle());
    let (under_way, shutdown) = io.block_on(async {
        let (queue, messages) = mpsc::channel(1);
        let (stop, stopped) = oneshot::channel();
        let worker = tokio::spawn(work(cpu.handle().clone(), messages, stopped));
        let (queued, is_done) = message();
        queue.send(queued).await.unwrap();
        while cpu.handle().metrics().queued == 0 {
            tokio::task::yield_now().await;
        }
        stop.send(()).unwrap();
        let under_way = worker.await.unwrap();
        // All threads compute still.
        let shutdown = cpu.shutdown();
        assert!(!is_done.await.unwrap());
        (under_way, shutdown)
    });
    let_go(others);
    io.block_on(async {
        under_way.join_all().await;
        shutdown.await;
    });
}
