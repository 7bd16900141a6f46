//! The last worker that has nothing to do parks where rayon
//! does not see it (`src/pool/drain.rs`): is it there when it is needed?

use std::sync::mpsc;

use crate::support::busy::Busy;
use crate::support::{gives, lanes};

/// `install` goes to rayon, and not to the lane's queue: the only worker must leave its place for
/// it, each time. And it is told to: if it found out when it looks around, 20 ms later each time,
/// that would be beyond the limit.
#[test]
fn install_finds_a_worker_that_parks() {
    for threads in [1, 2] {
        let (cpu, _lanes) = lanes(threads).and_handle();
        for n in 0..10_000 {
            assert_eq!(cpu.spawn_cpu(gives(n)).wait().unwrap(), n);
            if n % 2 == 0 {
                // As long as a trip to the other lane takes: it parks meanwhile. Else it is awake,
                // or parks, or something between.
                cpu.spawn_io(async {}).wait().unwrap();
            }
            assert_eq!(cpu.install(|| n).unwrap(), n);
            if n % 50 == 0 {
                // All workers, not only those that sleep in rayon.
                let of_all = cpu.install(|| rayon::broadcast(|_| ())).unwrap();
                assert_eq!(of_all.len(), threads);
            }
        }
    }
}

/// The other way round: a lane that is never empty still lets rayon's own work run, also what its jobs
/// leave to rayon.
#[test]
fn a_busy_lane_does_not_starve_rayon() {
    for threads in [1, 2] {
        let (cpu, _lanes) = lanes(threads).and_handle();
        let _busy = Busy::with(2 * threads, &cpu);
        let (sent, received) = mpsc::channel();
        let leaves = move || rayon::spawn(move || sent.send("native").unwrap());
        cpu.spawn_cpu(leaves).wait().unwrap();
        assert_eq!(received.recv().unwrap(), "native");
        assert_eq!(cpu.install(|| 3).unwrap(), 3);
    }
}

/// Two at a time, and a job meanwhile: no worker parks until the last one is done.
#[test]
fn those_who_install_share_the_workers() {
    let lanes = lanes(1);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for n in 0..300 {
                    assert_eq!(lanes.cpu.handle().install(|| n).unwrap(), n);
                    assert_eq!(lanes.cpu.spawn_cpu(gives(n)).wait().unwrap(), n);
                }
            });
        }
    });
}

/// What a job leaves behind wants every worker, and the job's own parks as soon
/// as the job has ended: it looks again now and then, and finds it.
#[test]
fn what_a_job_leaves_behind_gets_all_workers_in_the_end() {
    for threads in [2, 3] {
        let lanes = lanes(threads);
        for _ in 0..3 {
            let (told, workers) = mpsc::channel();
            let (let_go, wait) = mpsc::channel::<()>();
            let (started, is_running) = mpsc::channel();
            let job = lanes.cpu.spawn_cpu(move || {
                rayon::spawn(move || {
                    started.send(()).unwrap();
                    wait.recv().unwrap();
                    told.send(rayon::broadcast(|_| ()).len()).unwrap();
                });
                // On another worker, so that this one goes and parks.
                is_running.recv().unwrap();
            });
            job.wait().unwrap();
            let_go.send(()).unwrap();
            assert_eq!(workers.recv().unwrap(), threads);
        }
    }
}

/// The only worker does what its job has left behind, and not only after some
/// milliseconds of rest: each time, though the jobs are short.
#[test]
fn the_only_worker_looks_after_what_a_short_job_leaves() {
    let lanes = lanes(1);
    for n in 0..10_000 {
        let (told, said) = mpsc::channel();
        let job = move || rayon::spawn(move || told.send(n).unwrap());
        lanes.cpu.spawn_cpu(job).wait().unwrap();
        // 20 ms each would be beyond the limit. (Only a release build has jobs
        // of this kind that are short, after which it might forget to look.)
        assert_eq!(said.recv().unwrap(), n);
    }
}

/// A future that goes on is not kept waiting by what it has left to rayon:
/// the worker that ran it may be busy with that, so another comes for it.
#[test]
fn a_future_that_goes_on_does_not_wait_for_rayons_work() {
    for _ in 0..20 {
        let lanes = lanes(2);
        let task = lanes.cpu.spawn(async {
            for _ in 0..100 {
                let (let_go, wait) = mpsc::channel::<()>();
                // The worker that runs this waits until the future has gone on.
                rayon::spawn(move || wait.recv().unwrap());
                twolane_core::yield_now().await;
                let_go.send(()).unwrap();
            }
        });
        task.wait().unwrap();
    }
}

/// Jobs that follow each other closely, and far from it, from several sides:
/// whether a worker parks or deactivates, none is left in the queue.
#[test]
fn no_job_is_left_between_two_workers() {
    for threads in [1, 2, 3] {
        let (handle, lanes) = lanes(threads).and_handle();
        let submitters = [0, 1, 7, 50].map(|every| {
            let handle = handle.clone();
            lanes.io.spawn(async move {
                for n in 0..2_000_u64 {
                    if every > 0 && n % every == 0 {
                        // Lets the lane become idle.
                        tokio::task::yield_now().await;
                        std::thread::yield_now();
                    }
                    let sum = handle.spawn(async move {
                        // A nested one, from inside the lane.
                        n + twolane_core::spawn_cpu(gives(n)).await.unwrap()
                    });
                    assert_eq!(sum.await.unwrap(), 2 * n);
                }
            })
        });
        for submitter in submitters {
            lanes.io.block_on(submitter).unwrap();
        }
    }
}
