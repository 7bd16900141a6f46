//! A thread that looks at a queue and dozes in between, and the pushes that wake it.

use std::sync::Arc;

use loom::sync::Notify;
use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::fence;
use loom::thread;

use crate::doze::Doze;
use crate::model;
use crate::sync::{AtomicBool, Queue};

/// A lost wake-up would leave the thread asleep for good, which loom reports.
#[test]
fn each_job_is_taken() {
    model(|| {
        let looks = Arc::new((Queue::new(), Doze(AtomicBool::new(false)), Notify::new()));
        let pushes: Vec<_> = (0..2)
            .map(|n| {
                let looks = looks.clone();
                thread::spawn(move || {
                    let (queue, doze, unparked) = &*looks;
                    queue.push(n);
                    fence(SeqCst);
                    if doze.end() {
                        unparked.notify();
                    }
                })
            })
            .collect();
        let (queue, doze, unparked) = &*looks;
        let mut taken = 0;
        while taken < 2 {
            if queue.pop().is_some() {
                taken += 1;
            } else if doze.begin(|| queue.is_empty()) {
                while doze.lasts() {
                    unparked.wait();
                }
            }
        }
        for push in pushes {
            push.join().unwrap();
        }
    });
}
