//! Does a stream return what a plain iterator returns, whatever its settings?

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use crate::buffered;
use crate::context::{SOURCES, Source};
use crate::dice;
use crate::support::wait::wait_until;
use crate::support::{BOTH, Lanes, lanes_with, time_limit};
use futures::StreamExt;
use futures::executor::block_on;
use futures::stream::{self, BoxStream};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use twolane::{Backend, CpuIteratorExt, CpuStreamExt, Handle, JoinError, Priority};

/// What is alive of all items, inputs and outputs.
#[derive(Clone, Default)]
struct Live(Arc<AtomicIsize>);

struct Item {
    value: u32,
    live: Live,
}

impl Item {
    fn new(value: u32, live: &Live) -> Self {
        live.0.fetch_add(1, SeqCst);
        let live = live.clone();
        Self { value, live }
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        self.live.0.fetch_sub(1, SeqCst);
    }
}

#[derive(Debug, PartialEq, Clone, Copy)]
enum End {
    Complete,
    /// A lane was shut down.
    Gone,
    Error(u32),
    Panic(u32),
}

enum Failure {
    Error(u32),
    Join(JoinError),
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        Self::Join(error)
    }
}

type Items = BoxStream<'static, Result<Item, Failure>>;

#[derive(Debug, PartialEq, Clone, Copy)]
enum Gone {
    Cpu,
    Io,
}

#[derive(Debug, Clone)]
struct Plan {
    backend: Backend,
    threads: usize,
    inputs: u32,
    queue_limit: Option<usize>,
    source: Source,
    pending_each: u32,
    ordered: bool,
    window: usize,
    batch: Duration,
    bytes: Option<usize>,
    error_at: Option<u32>,
    panic_at: Option<u32>,
    source_panics_at: Option<u32>,
    /// The consumer drops the stream after so many items.
    take: Option<usize>,
    pause_each: usize,
    /// What is shut down after so many items.
    gone: Option<(Gone, usize)>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let at = || prop_oneof![3 => Just(None), 1 => (0..120_u32).prop_map(Some)];
    let source = (0..100_u32, prop::sample::select(&SOURCES), 2..9_u32);
    let batch = prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_micros(500)),
        Just(Duration::MAX)
    ];
    let bytes = prop_oneof![Just(None), (1..40_usize).prop_map(Some)];
    let limit = prop_oneof![Just(None), (1..3_usize).prop_map(Some)];
    let lane = (prop::sample::select(&BOTH), 1..3_usize, limit);
    let gone = (prop::sample::select(&[Gone::Cpu, Gone::Io]), 0..60_usize);
    let settings = (any::<bool>(), 1..70_usize, batch, bytes);
    let consumer = (
        prop_oneof![3 => Just(None), 1 => (0..100_usize).prop_map(Some)],
        1..20_usize,
        prop_oneof![2 => Just(None), 1 => gone.prop_map(Some)],
    );
    (lane, source, settings, (at(), at(), at()), consumer).prop_map(
        |(
            (backend, threads, queue_limit),
            (inputs, source, pending_each),
            (ordered, window, batch, bytes),
            (error_at, panic_at, source_panics_at),
            (take, pause_each, gone),
        )| Plan {
            backend,
            threads,
            inputs,
            queue_limit,
            source,
            pending_each,
            ordered,
            window,
            batch,
            bytes,
            error_at,
            panic_at,
            source_panics_at,
            take,
            pause_each,
            gone,
        },
    )
}

/// The outputs of one input: none, one or some.
fn outputs_of(input: u32) -> impl Iterator<Item = u32> {
    (0..input % 4).map(move |n| input * 4 + n)
}

/// The stages are types of their own for each source.
macro_rules! stages {
    ($plan:expr, $source:expr, $live:expr) => {{
        let (error_at, panic_at, live) = ($plan.error_at, $plan.panic_at, $live.clone());
        let of_worker = live.clone();
        let stages = $source
            .batch_time($plan.batch)
            // The state is one of the values that must be dropped.
            .map_init(
                move || Item::new(0, &of_worker),
                |state, item| {
                    state.value += 1;
                    item
                },
            )
            .map(move |item: Item| {
                if panic_at == Some(item.value) {
                    std::panic::panic_any(item.value);
                }
                item
            })
            .flat_map(move |item: Item| {
                if error_at == Some(item.value) {
                    return vec![Err(Failure::Error(item.value))];
                }
                let outputs = outputs_of(item.value);
                outputs.map(|output| Ok(Item::new(output, &live))).collect()
            });
        let (items, ordered) = ($plan.window, $plan.ordered);
        let numbers = match $plan.bytes {
            None => buffered(stages, items, ordered),
            Some(limit) => {
                let output = |output: &Result<Item, Failure>| match output {
                    Ok(item) => item.value as usize % 13,
                    Err(_) => 1,
                };
                let stages = stages.max_bytes(limit, |item| item.value as usize % 50, output);
                buffered(stages, items, ordered)
            }
        };
        numbers.map(|item| item?).boxed()
    }};
}

impl Plan {
    /// What a plain loop returns, and how it ends.
    fn expected(&self) -> (Vec<u32>, End) {
        let mut outputs = Vec::new();
        for input in 0..self.inputs {
            if self.source_panics_at == Some(input) || self.panic_at == Some(input) {
                return (outputs, End::Panic(input));
            }
            if self.error_at == Some(input) {
                return (outputs, End::Error(input));
            }
            outputs.extend(outputs_of(input));
        }
        (outputs, End::Complete)
    }

    fn inputs(&self, live: &Live) -> impl Iterator<Item = Item> + Send + 'static {
        let (live, panics_at) = (live.clone(), self.source_panics_at);
        (0..self.inputs).map(move |input| {
            if panics_at == Some(input) {
                std::panic::panic_any(input);
            }
            Item::new(input, &live)
        })
    }

    fn start(&self, cpu: &Handle, live: &Live) -> Items {
        if self.source == Source::Iterator {
            return stages!(self, self.inputs(live).on_cpu(cpu), live);
        }
        let (mut inputs, each) = (self.inputs(live), self.pending_each);
        let mut polls = 0;
        let source = stream::poll_fn(move |cx| {
            polls += 1;
            if polls % each == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(inputs.next())
        });
        let stages = CpuStreamExt::on_cpu(source, cpu);
        match self.source {
            Source::OnCpu => stages!(self, stages.source_on_cpu(), live),
            _ => stages!(self, stages, live),
        }
    }

    /// Until there are so many outputs, or the stream has ended.
    async fn read(&self, stream: &mut Items, most: usize, outputs: &mut Vec<u32>) -> Option<End> {
        while outputs.len() < most {
            let error = match stream.next().await {
                None => return Some(End::Complete),
                Some(Ok(item)) => {
                    outputs.push(item.value);
                    if outputs.len() % self.pause_each == 0 {
                        tokio::task::yield_now().await;
                    }
                    continue;
                }
                Some(Err(error)) => error,
            };
            let error = match error {
                // The caller drops the stream here, as a loop with `try_next` does.
                Failure::Error(at) => return Some(End::Error(at)),
                Failure::Join(error) => error,
            };
            assert!(stream.next().await.is_none());
            return Some(match self.gone.map(|(gone, _)| gone) {
                Some(Gone::Cpu) if error.is_shutdown() => End::Gone,
                Some(Gone::Io) if error.is_io_runtime_gone() => End::Gone,
                _ => End::Panic(*error.into_panic().downcast::<u32>().unwrap()),
            });
        }
        None
    }

    fn run(&self) {
        let Lanes { cpu, io } = lanes_with(self.backend, self.threads, |builder| {
            match self.queue_limit {
                Some(limit) => builder.queue_limit(Priority::Normal, limit),
                None => builder,
            }
        });
        let live = Live::default();
        let mut stream = self.start(&cpu.handle(), &live);
        let mut outputs = Vec::new();
        let most = self.take.unwrap_or(usize::MAX);
        let first = self.gone.map_or(most, |(_, at)| at.min(most));
        let mut end = io.block_on(self.read(&mut stream, first, &mut outputs));
        let mut io = Some(io);
        match self.gone {
            Some((Gone::Cpu, _)) => drop(cpu.shutdown()),
            Some((Gone::Io, _)) => drop(io.take()),
            None => {}
        }
        if end.is_none() {
            end = block_on(self.read(&mut stream, most, &mut outputs));
        }
        drop(stream);
        let (mut expected, expected_end) = self.expected();
        if self.ordered {
            match end {
                None | Some(End::Gone) => expected.truncate(outputs.len()),
                Some(end) => assert_eq!(end, expected_end),
            }
            assert_eq!(outputs, expected);
        } else {
            let mut all: Vec<_> = (0..self.inputs).flat_map(outputs_of).collect();
            outputs.sort_unstable();
            all.sort_unstable();
            match end {
                Some(End::Complete) => {
                    assert_eq!(expected_end, End::Complete);
                    assert_eq!(outputs, all);
                }
                Some(End::Error(at)) => assert_eq!(self.error_at, Some(at)),
                Some(End::Panic(at)) => {
                    assert!([self.panic_at, self.source_panics_at].contains(&Some(at)));
                }
                None | Some(End::Gone) => {}
            }
            outputs.dedup_by(|a, b| {
                assert_ne!(a, b, "it came twice");
                false
            });
            assert!(outputs.iter().all(|n| all.binary_search(n).is_ok()));
        }
        // It waits for the lane's threads and for the destructors.
        assert!(cpu.shutdown().wait().is_empty());
        drop(io);
        // What comes to a closed lane is dropped by the lane's control thread.
        if self.gone.is_some() {
            wait_until(|| live.0.load(SeqCst) <= 0);
        }
        assert_eq!(live.0.load(SeqCst), 0);
        let now = cpu.handle().metrics();
        let ended = now.completed + now.panicked + now.cancelled + now.expired + now.dropped;
        assert_eq!((now.queued, now.running, now.suspended), (0, 0, 0));
        assert_eq!(now.submitted, ended);
    }
}

#[test]
fn a_stream_returns_what_a_plain_loop_returns() {
    // Panics by plan would fill the output.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<u32>() {
            hook(info);
        }
    }));
    let mut runner = TestRunner::new(Config {
        cases: 400,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(dice::seed_of_environment()),
        ..Config::default()
    });
    let outcome = runner.run(&plans(), |plan| {
        let _limit = time_limit();
        plan.run();
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
