//! What one would write without twolane.

use std::sync::{Arc, Mutex};
use std::thread;

use rayon::ThreadPool;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::contender::{Contestant, Ending};
use crate::fib::{SMALL, compute};
use crate::support::cores;

/// The blocking pool of the I/O runtime itself, with the limit it has by
/// default. It ends with that runtime.
pub fn spawn_blocking(io: &Handle) -> Contestant {
    let submit = |io: &Handle, n| -> Ending {
        let job = io.spawn_blocking(move || compute(n));
        Box::pin(async move { job.await.unwrap() })
    };
    let (for_long, for_late) = (io.clone(), io.clone());
    Contestant {
        long: Box::new(move |k| submit(&for_long, k)),
        late: Arc::new(move || submit(&for_late, SMALL)),
        close: Box::new(|| ()),
    }
}

/// A rayon pool, and a oneshot for the result.
pub fn rayon_pool(_: &Handle) -> Contestant {
    let threads = Arc::new(Mutex::new(Vec::new()));
    let started = threads.clone();
    // Rayon doesn't wait for its threads when a pool is dropped; so that the
    // next contender has the machine to itself, we do.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(cores())
        .spawn_handler(move |worker| {
            let worker = thread::Builder::new().spawn(|| worker.run())?;
            started.lock().unwrap().push(worker);
            Ok(())
        })
        .build()
        .unwrap();
    let submit = |pool: &ThreadPool, n| -> Ending {
        let (done, ended) = oneshot::channel();
        pool.spawn(move || done.send(compute(n)).unwrap());
        Box::pin(async move { ended.await.unwrap() })
    };
    let pool = Arc::new(pool);
    let for_late = pool.clone();
    Contestant {
        long: Box::new(move |k| submit(&pool, k)),
        late: Arc::new(move || submit(&for_late, SMALL)),
        close: Box::new(move || {
            for worker in threads.lock().unwrap().drain(..) {
                worker.join().unwrap();
            }
        }),
    }
}

/// Tasks of a second runtime, one worker for each core.
pub fn second_runtime(_: &Handle) -> Contestant {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores())
        .build()
        .unwrap();
    let submit = |runtime: &Handle, n| -> Ending {
        let job = runtime.spawn(async move { compute(n) });
        Box::pin(async move { job.await.unwrap() })
    };
    let (for_long, for_late) = (runtime.handle().clone(), runtime.handle().clone());
    Contestant {
        long: Box::new(move |k| submit(&for_long, k)),
        late: Arc::new(move || submit(&for_late, SMALL)),
        close: Box::new(move || drop(runtime)),
    }
}
