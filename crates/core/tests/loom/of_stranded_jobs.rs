//! A ticker that looks at a queue and rests in between, and the pushes that begin its looks: the
//! code of `pool/tokio/stranded.rs`. `shuttle/of_stranded_jobs.rs` has the worker that parks.

use std::sync::Arc;

use loom::sync::Notify;
use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::fence;
use loom::thread;

use crate::model;
use crate::stranded::Stranded;
use crate::sync::Queue;

/// A push that neither the last look finds nor begins the looks would leave the ticker at rest for
/// good, which loom reports.
#[test]
fn each_job_is_taken() {
    model(|| {
        let looks = Arc::new((Queue::new(), Stranded::new(1), Notify::new()));
        let pushes: Vec<_> = (0..2)
            .map(|n| {
                let looks = looks.clone();
                thread::spawn(move || {
                    let (queue, stranded, begun) = &*looks;
                    queue.push(n);
                    fence(SeqCst);
                    if stranded.must_look() {
                        begun.notify();
                    }
                })
            })
            .collect();
        let (queue, stranded, begun) = &*looks;
        let mut taken = 0;
        while taken < 2 {
            if queue.pop().is_some() {
                taken += 1;
            } else if !stranded.tick(|| !queue.is_empty(), || ()) {
                begun.wait();
            }
        }
        for push in pushes {
            push.join().unwrap();
        }
    });
}
