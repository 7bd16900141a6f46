//! What runs in each round.

use std::cell::LazyCell;
use std::thread;
use std::time::{Duration, Instant};

use twolane_benches::go::Go;
use twolane_benches::{Bench, Contender, Sample, median};

use crate::beside;
use crate::goroutines::{self, GoWay};
use crate::items::{Clock, Items, Kind};
use crate::lanes::{Lanes, rate};
use crate::memory::{self, Holder};
use crate::ways::{self, Way};

pub const LOOP: &str = "plain loop";
pub const PAR_ITER: &str = "par_iter";
/// The echo with nothing beside it.
pub const ALONE: &str = "nothing";

/// The ways beside which the echo runs.
pub const BESIDE: [Way; 3] = [Way::Ordered, Way::Blocking, Way::Workers];

/// By how much fewer small items the peers have.
const FEWER: u64 = 10;

/// Items of 10 µs until whose first output it is measured how long it takes.
const FIRST_OF: u64 = 1_000;
/// All threads fall asleep.
const GAP: Duration = Duration::from_millis(1);

/// What all turns have, made at the first.
pub struct Bed<'a> {
    pub bench: &'a Bench,
    pub clock: LazyCell<Clock>,
    pub lanes: LazyCell<Lanes>,
    pub go: Go,
}

impl Bed<'_> {
    fn items(&self, kind: Kind, count: u64) -> Items {
        Items::new(*self.clock, kind, count)
    }
}

pub fn row(kind: Kind, name: impl std::fmt::Display) -> String {
    format!("{kind}/{name}")
}

pub fn first_output(name: impl std::fmt::Display) -> String {
    format!("first output/{name}")
}

pub fn with_memory(name: &str) -> String {
    format!("memory/{name}")
}

pub fn echo_beside(name: impl std::fmt::Display) -> String {
    format!("beside/{name}")
}

pub fn all<'a>(bed: &'a Bed<'_>) -> Vec<Contender<'a>> {
    let rows = Kind::ALL.into_iter().flat_map(|kind| row_of(bed, kind));
    rows.chain(first_outputs(bed))
        .chain(memories(bed))
        .chain(besides(bed))
        .collect()
}

fn row_of<'a>(bed: &'a Bed<'_>, kind: Kind) -> Vec<Contender<'a>> {
    let count = bed.bench.pick(kind.counts());
    let fewer = if kind.is_small() {
        count / FEWER
    } else {
        count
    };
    // What is not a stream.
    let plain = |name, run: fn(&Lanes, Items)| {
        Contender::new(row(kind, name), move || {
            let (lanes, items) = (&*bed.lanes, bed.items(kind, count));
            let start = Instant::now();
            run(lanes, items);
            Ok(rate(count, start.elapsed()))
        })
    };
    let mut contenders = vec![plain(LOOP, |_, items| items.check(items.in_place()))];
    contenders.extend(Way::ALL.map(|way| {
        let is_peer = Way::PEERS.contains(&way);
        let count = if is_peer { fewer } else { count };
        Contender::new(row(kind, way), move || {
            let taken = way.run(&bed.lanes, kind, bed.items(kind, count));
            Ok(rate(count, taken.all))
        })
    }));
    contenders.push(plain(PAR_ITER, ways::par_iter));
    contenders.extend(GoWay::ALL.map(|way| {
        Contender::new(row(kind, way), move || {
            let printed = goroutines::run(&bed.go, way, bed.items(kind, fewer), 1)?;
            let all = printed.each[0] * fewer as f64;
            Ok(rate(fewer, Duration::from_nanos(all as u64)))
        })
    }));
    contenders
}

fn first_outputs<'a>(bed: &'a Bed<'_>) -> Vec<Contender<'a>> {
    let repetitions = bed.bench.pick([1, 10, 20, 50]);
    let sample = |micros: Vec<f64>| {
        let mut sample = Sample::default();
        sample.put("first_output", "us", median(micros));
        sample
    };
    let kind = Kind::Us10;
    let ways = Way::ALL.map(|way| {
        Contender::new(first_output(way), move || {
            let items = bed.items(kind, FIRST_OF);
            let micros = (0..repetitions).map(|_| {
                thread::sleep(GAP);
                let taken = way.run(&bed.lanes, kind, items);
                taken.first.as_secs_f64() * 1e6
            });
            Ok(sample(micros.collect()))
        })
    });
    let goroutines = [GoWay::Pipeline, GoWay::FanOut].map(|way| {
        Contender::new(first_output(way), move || {
            let items = bed.items(kind, FIRST_OF);
            let printed = goroutines::run(&bed.go, way, items, repetitions)?;
            Ok(sample(printed.first))
        })
    });
    ways.into_iter().chain(goroutines).collect()
}

fn memories<'a>(bed: &'a Bed<'_>) -> Vec<Contender<'a>> {
    let items = bed.bench.pick([20, 600, 1_000, 3_000]);
    let contender = |(name, holder): (&str, Holder)| {
        Contender::new(with_memory(name), move || memory::measure(holder, items))
    };
    Holder::ALL.into_iter().map(contender).collect()
}

fn besides<'a>(bed: &'a Bed<'_>) -> Vec<Contender<'a>> {
    let measured = Duration::from_millis(bed.bench.pick([20, 500, 2_000, 3_000]));
    let kind = Kind::Us10;
    // A plain loop over them takes the whole time. So few streams begin or end meanwhile.
    let count = measured.as_millis() as u64 * 100;
    let contender = |name: String, way| {
        Contender::new(echo_beside(name), move || {
            let items = bed.items(kind, count);
            Ok(beside::measure(way, kind, items, measured))
        })
    };
    let ways = BESIDE.map(|way| contender(way.to_string(), Some(way)));
    let mut contenders = vec![contender(ALONE.to_owned(), None)];
    contenders.extend(ways);
    contenders
}
