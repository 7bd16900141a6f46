//! The process of one contender.

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use twolane::Backend;

use crate::args::bound;
use crate::cases::{parked, queued, sleeping, threads};
use crate::contender::Contender;
use crate::lane::{AsyncTask, SpawnBlocking, Tokio, Twolane, io_runtime};
use crate::sample::Sample;
use crate::support::watchdog::Watchdog;

/// Prints what it found, and ends the process: what is left of the contender
/// goes with it.
pub fn run(contender: Contender, count: usize) -> ! {
    // Until the end: without an owner it rests.
    let watchdog = Watchdog::start();
    watchdog.allow(contender.to_string(), bound(count));
    let answer = match sample(contender, count) {
        Ok(sample) => sample.to_json(),
        Err(why) => json!({ "cannot": why }),
    };
    println!("{answer}");
    std::process::exit(0)
}

/// The other side of [`run`].
pub fn read(answer: &Value) -> Result<Sample, String> {
    match answer["cannot"].as_str() {
        Some(why) => Err(why.to_owned()),
        None => Ok(Sample::from_json(answer).expect("figures")),
    }
}

fn sample(contender: Contender, count: usize) -> Result<Sample, String> {
    use Contender::*;
    if contender == ParkedThreads {
        return threads(count);
    }
    let io = &io_runtime();
    let twolane = |backend| Twolane::open(io.handle(), backend);
    let tokio = |io: &Runtime| Tokio(io.handle().clone());
    Ok(match contender {
        QueuedTwolaneRayon => queued(io, &twolane(Backend::Rayon), count),
        QueuedTwolaneRuntime => queued(io, &twolane(Backend::Runtime), count),
        QueuedSpawnBlocking => queued(io, &SpawnBlocking(io.handle().clone()), count),
        QueuedAsyncTask => queued(io, &AsyncTask::open(), count),
        QueuedTokio => queued(io, &tokio(io), count),
        ParkedTwolaneRayon => parked(io, &twolane(Backend::Rayon), count),
        ParkedTwolaneRuntime => parked(io, &twolane(Backend::Runtime), count),
        ParkedTokio => parked(io, &tokio(io), count),
        SleepingTwolaneRayon => sleeping(io, &twolane(Backend::Rayon), count),
        SleepingTwolaneRuntime => sleeping(io, &twolane(Backend::Runtime), count),
        SleepingTokio => sleeping(io, &tokio(io), count),
        ParkedThreads | ParkedGoroutines | SleepingGoroutines => {
            unreachable!("{contender} has no lane of Rust's")
        }
    })
}
