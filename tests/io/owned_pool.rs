//! A connection pool keeps all its connections, whatever becomes of its users.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::dice::Dice;
use crate::stepped::wait;
use crate::support::{Lanes, cpu_lane, lanes, thread_name, with_both};
use futures::StreamExt;
use futures::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;
use twolane::{CpuRuntime, HandleExt, IoOwned, IoShared, JoinError, Task};

const CONNECTIONS: usize = 5;
const JOBS: usize = 1_000;

/// As sqlx's: what is taken from it returns by a task that its destructor spawns.
#[derive(Clone)]
struct Pool {
    connections: Arc<Semaphore>,
    /// The threads of destructors and of what they spawned.
    seen: Arc<Mutex<BTreeSet<String>>>,
}

struct Pooled(Pool, Option<OwnedSemaphorePermit>);

impl Pool {
    async fn acquire(self) -> Pooled {
        let connection = self.connections.clone().acquire_owned().await.unwrap();
        Pooled(self, Some(connection))
    }

    fn note_thread(&self) {
        self.seen.lock().unwrap().insert(thread_name());
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.0.note_thread();
        let (pool, connection) = (self.0.clone(), self.1.take());
        tokio::spawn(async move {
            pool.note_thread();
            yield_now().await;
            drop(connection);
        });
    }
}

async fn job(pool: IoShared<Pool>, mut dice: Dice) -> Result<(), JoinError> {
    let acquire = async |pool: Pool| IoOwned::new(pool.acquire().await);
    let mut connection = pool.with(acquire).await?;
    for _ in 0..dice.below(4) {
        let yields = dice.below(4);
        let query = async move |_: &mut Pooled| {
            for _ in 0..yields {
                yield_now().await;
            }
        };
        connection.with(query).await?;
    }
    match dice.below(12) {
        0 => panic!("of a job"),
        1 => connection.with(async |_| panic!("of a call")).await?,
        2 => connection.take(async |_| panic!("of a commit")).await?,
        3 => connection.take(async |connection| drop(connection)).await?,
        4 => {
            let mut rows = connection.stream(|_| stream::repeat(1).boxed(), 2, |_| 1);
            rows.next().await.unwrap().unwrap();
        }
        5 => {
            let rows = connection.into_stream(|_| stream::iter([1]).boxed(), 2, |_| 1);
            assert_eq!(rows.count().await, 1);
        }
        6 => std::future::pending().await,
        _ => {}
    }
    Ok(())
}

/// Some jobs on a lane of their own, which is shut down at a random moment.
fn round(dice: &mut Dice, cpu: &CpuRuntime, pool: &IoShared<Pool>, jobs: usize) {
    let pause = |dice: &mut Dice| {
        for _ in 0..dice.below(20_000) {
            std::hint::spin_loop();
        }
    };
    let mut tasks: Vec<Task<_>> = Vec::new();
    for _ in 0..jobs {
        tasks.push(cpu.spawn(job(pool.clone(), dice.fork())));
        if dice.below(3) == 0 {
            pause(dice);
            drop(tasks.swap_remove(dice.below(tasks.len() as u64) as usize));
        }
    }
    for _ in 0..dice.below(20) {
        pause(dice);
    }
    let over = cpu.shutdown();
    for task in tasks {
        if let Err(error) = task.wait() {
            assert!(error.is_panic() || error.is_shutdown(), "{error}");
        }
    }
    assert!(over.wait().is_empty());
}

/// A connection that a cancelled job dropped on its own thread went back to the pool by a
/// task of the CPU lane: behind all that computed there, or never, after a shutdown.
#[test]
fn a_pool_of_5_is_back_at_5_after_1000_jobs_that_ended_at_random() {
    let mut dice = Dice::from_environment();
    with_both(|backend| {
        let Lanes { cpu, io } = lanes(backend, 1);
        let plain = Pool {
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
            seen: Arc::default(),
        };
        let pool = cpu.handle().io_owned(plain.clone()).shared();
        const ROUNDS: usize = 20;
        for n in 0..ROUNDS {
            let lane = cpu_lane(backend, 1 + n % 2, io.handle());
            round(&mut dice, &lane, &pool, JOBS / ROUNDS);
            // A lost connection would be waited for until the time limit.
            drop(wait(plain.connections.acquire_many(CONNECTIONS as u32)).unwrap());
        }
        assert_eq!(*plain.seen.lock().unwrap(), ["io".to_owned()].into());
    });
}
