//! Threads that sleep, wake up and wake one another.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use giveway::Weight;
use hdrhistogram::Histogram;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use twolane_benches::findings::empty_histogram;
use twolane_benches::tail::sleep_until;
use twolane_benches::{BoxError, Sample, not_here};

/// How late sleepers wake, and those whom they wake.
struct Late {
    timer: Histogram<u64>,
    woken: Histogram<u64>,
}

/// Measures for so long. Returns how long that was.
pub fn measure(time: Duration, short: bool, sample: &mut Sample) -> Result<Duration, BoxError> {
    let cores = first_two_cores()?;
    let began = Instant::now();
    let (remote, free) = thread::scope(|scope| {
        let remote = scope.spawn(|| wake_for(time, Some(cores), short));
        let free = scope.spawn(|| wake_for(time, None, short));
        (remote.join().unwrap(), free.join().unwrap())
    });
    let (remote, free) = (remote?, free?);
    let took = began.elapsed();
    let mut timer = remote.timer;
    timer.add(free.timer).unwrap();
    sample.put_latencies("timer", timer);
    sample.put_latencies("remote", remote.woken);
    sample.put_latencies("free", free.woken);
    Ok(took)
}

/// Those after the first may share no cache with it; these do on most machines.
fn first_two_cores() -> Result<[usize; 2], BoxError> {
    let mask = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| mask.is_set(*core));
    let two = cores.next().zip(cores.next());
    two.map(<[usize; 2]>::from)
        .ok_or_else(|| not_here("cores", "it takes two"))
}

fn prepare(core: Option<usize>, short: bool) -> Result<(), String> {
    let bind = |core| {
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only).map_err(|error| error.to_string())
    };
    core.map_or(Ok(()), bind)?;
    match short {
        true => {
            let short = Weight::raised_by(0).with_slice(Duration::from_micros(100));
            short.apply().map_err(|error| error.to_string())
        }
        false => Ok(()),
    }
}

/// `bound`: the cores of the waker and of the other thread. `short`: both take short slices.
fn wake_for(time: Duration, bound: Option<[usize; 2]>, short: bool) -> Result<Late, String> {
    let (wake, woken) = mpsc::channel::<Instant>();
    let (tell, told) = mpsc::channel();
    let other = thread::spawn(move || {
        prepare(bound.map(|[_, core]| core), short)?;
        for began in woken {
            if tell.send(began.elapsed()).is_err() {
                break;
            }
        }
        Ok::<_, String>(())
    });
    prepare(bound.map(|[core, _]| core), short)?;
    let mut late = Late {
        timer: empty_histogram(),
        woken: empty_histogram(),
    };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap();
    let mut random = fastrand::Rng::with_seed(u64::from(bound.is_some()));
    let (mut at, end) = (Instant::now(), Instant::now() + time);
    while at < end {
        // 1 to 2 ms, in no step with the tick.
        at = at.max(Instant::now()) + Duration::from_nanos(random.u64(1_000_000..2_000_000));
        sleep_until(at);
        late.timer.saturating_record(nanos(at.elapsed()));
        let Ok(()) = wake.send(Instant::now()) else {
            break;
        };
        let Ok(woken) = told.recv() else { break };
        late.woken.saturating_record(nanos(woken));
    }
    drop(wake);
    other.join().unwrap()?;
    Ok(late)
}
