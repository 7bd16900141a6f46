//! The figures that the bench is there for.

use crate::contender::Contender;
use crate::sample::{Found, Sample};
use crate::support::Ratio;

/// One line of them. `None`: not both sides ran.
pub struct Line {
    pub name: &'static str,
    pub ratio: Option<Ratio>,
    pub unit: &'static str,
}

type Figure = fn(&Sample) -> f64;

pub fn of(found: &Found) -> Vec<Line> {
    use Contender::*;
    let rounds = |contender, figure: Figure| found.figures(contender, |s| Some(figure(s)));
    let ratio = |name, over, under, figure| Line {
        name,
        ratio: rounds(over, figure)
            .zip(rounds(under, figure))
            .map(|(over, under)| Ratio::of_rounds(over, under)),
        unit: "",
    };
    let bytes = |name, contender| Line {
        name,
        ratio: rounds(contender, |s| s.resident).map(|totals| {
            let counts = rounds(contender, |s| s.count).expect("as many as of the totals");
            Ratio::of_rounds(totals, counts)
        }),
        unit: "B",
    };
    let memory: Figure = |s| s.resident;
    let wall: Figure = |s| s.wall;
    let cpu: Figure = |s| s.cpu;
    vec![
        bytes("bytes_per_job", QueuedTwolaneRayon),
        bytes("bytes_per_job_runtime", QueuedTwolaneRuntime),
        bytes("bytes_per_parked_future", ParkedTwolaneRayon),
        bytes("bytes_per_parked_future_runtime", ParkedTwolaneRuntime),
        ratio(
            "bytes_over_goroutine",
            ParkedTwolaneRayon,
            ParkedGoroutines,
            memory,
        ),
        ratio(
            "bytes_over_goroutine_runtime",
            ParkedTwolaneRuntime,
            ParkedGoroutines,
            memory,
        ),
        ratio(
            "bytes_parked_over_tokio_task",
            ParkedTwolaneRayon,
            ParkedTokio,
            memory,
        ),
        ratio(
            "bytes_parked_over_thread_extrapolated",
            ParkedTwolaneRayon,
            ParkedThreads,
            memory,
        ),
        ratio(
            "bytes_queued_over_spawn_blocking",
            QueuedTwolaneRayon,
            QueuedSpawnBlocking,
            memory,
        ),
        ratio(
            "bytes_queued_over_async_task",
            QueuedTwolaneRayon,
            QueuedAsyncTask,
            memory,
        ),
        ratio(
            "wall_queued_over_spawn_blocking",
            QueuedTwolaneRayon,
            QueuedSpawnBlocking,
            wall,
        ),
        ratio(
            "wall_queued_over_async_task",
            QueuedTwolaneRayon,
            QueuedAsyncTask,
            wall,
        ),
        ratio(
            "wall_parked_over_go",
            ParkedTwolaneRayon,
            ParkedGoroutines,
            wall,
        ),
        ratio(
            "wall_parked_over_tokio_task",
            ParkedTwolaneRayon,
            ParkedTokio,
            wall,
        ),
        ratio(
            "wall_parked_over_thread_extrapolated",
            ParkedTwolaneRayon,
            ParkedThreads,
            wall,
        ),
        ratio(
            "wall_sleeping_over_go",
            SleepingTwolaneRayon,
            SleepingGoroutines,
            wall,
        ),
        ratio(
            "wall_sleeping_over_tokio_task",
            SleepingTwolaneRayon,
            SleepingTokio,
            wall,
        ),
        ratio(
            "cpu_queued_over_spawn_blocking",
            QueuedTwolaneRayon,
            QueuedSpawnBlocking,
            cpu,
        ),
        ratio(
            "cpu_parked_over_go",
            ParkedTwolaneRayon,
            ParkedGoroutines,
            cpu,
        ),
        ratio(
            "cpu_parked_over_tokio_task",
            ParkedTwolaneRayon,
            ParkedTokio,
            cpu,
        ),
    ]
}
