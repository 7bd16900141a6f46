//! Where the jobs run.

use std::pin::Pin;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use twolane::Priority;
use twolane_benches::tail::lanes::TICK;
use twolane_benches::tail::work::Work;
use twolane_benches::{cores, lane};

/// As the lane's own threads have it.
const NICE: i32 = 16;

type Done = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Submits a job.
pub type Lane = Box<dyn Fn(Work) -> Done + Send + Sync>;

/// `None` for `idle`.
pub fn open(name: &str, io: &Handle) -> Option<Lane> {
    let each = match name {
        "each_0.5ms" => Some(TICK / 2),
        "each_2ms" => Some(TICK * 2),
        "twolane" | "high" | "low" => Some(TICK),
        _ => None,
    };
    giveway::tick_each(each).expect("a period within its range");
    let lane: Lane = match name {
        "idle" => return None,
        "second_runtime" => {
            let second = Builder::new_multi_thread()
                .worker_threads(cores())
                .on_thread_start(gives_way)
                .build()
                .unwrap();
            Box::new(move |work| {
                let task = second.spawn(async move { work.run() });
                Box::pin(async { task.await.unwrap() })
            })
        }
        "rayon" => {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(cores())
                .start_handler(|_| gives_way())
                .build()
                .unwrap();
            Box::new(move |work| {
                let (tell, told) = oneshot::channel();
                pool.spawn(move || {
                    work.run();
                    let _ = tell.send(());
                });
                Box::pin(async { told.await.unwrap() })
            })
        }
        name => {
            let cpu = lane(io, |lane| lane);
            let handle = cpu.handle().with_priority(match name {
                "high" => Priority::High,
                "low" => Priority::Low,
                _ => Priority::Normal,
            });
            Box::new(move |work| {
                let _ = &cpu;
                let task = handle.spawn_cpu(move || work.run());
                Box::pin(async { task.await.unwrap() })
            })
        }
    };
    Some(lane)
}

fn gives_way() {
    rustix::process::setpriority_process(None, NICE).expect("a nice value goes up");
}
