//! Streams that compute: sources, stages and ends of every kind.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use twolane::{CpuIteratorExt, CpuStreamExt, Handle, HandleExt, IoOwned, JoinError};

use crate::dice::Dice;
use crate::surroundings::{Done, Item, Live, Round, wait_a_little};
use crate::watchdog::Planned;

enum Failure {
    Planned(u64),
    Join(JoinError),
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        Self::Join(error)
    }
}

type Items = BoxStream<'static, Result<Item, Failure>>;
type Inputs = Pin<Box<dyn Stream<Item = Item> + Send>>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    IoOwned,
    OnCpu,
    Iterator,
    /// A task of another runtime sends the inputs.
    Channel,
    /// The reader sends the next input when it has had the output of the one before.
    Lockstep,
    Bridge,
    OfOnIo,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stages {
    Map,
    MapInit,
    FlatMap,
    Fallible,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    id: u64,
    inputs: u64,
    source: Source,
    pending_each: u64,
    stages: Stages,
    ordered: bool,
    window: usize,
    batch: Duration,
    bytes: Option<usize>,
    error_at: Option<u64>,
    panic_at: Option<u64>,
    source_panics_at: Option<u64>,
    /// The consumer drops the stream after so many outputs.
    take: usize,
    pause_each: usize,
}

/// What reads, and what it has to send for that.
pub(crate) struct Started {
    plan: Plan,
    outputs: Items,
    inputs: Option<UnboundedSender<u64>>,
}

impl Plan {
    pub(crate) fn draw(dice: &mut Dice, id: u64) -> Self {
        const SOURCES: [Source; 7] = [
            Source::IoOwned,
            Source::OnCpu,
            Source::Iterator,
            Source::Channel,
            Source::Lockstep,
            Source::Bridge,
            Source::OfOnIo,
        ];
        let inputs = dice.below(100);
        let at = |dice: &mut Dice| dice.once_in(5).then(|| dice.below(inputs + 20));
        let source = dice.one_of(&SOURCES);
        let stages = match source {
            // One output for each input.
            Source::Lockstep => &[Stages::Map, Stages::MapInit][..],
            _ => &[
                Stages::Map,
                Stages::MapInit,
                Stages::FlatMap,
                Stages::Fallible,
            ],
        };
        let millis = |n: u64| Duration::from_micros(1_000 * n);
        Self {
            id,
            inputs,
            source,
            pending_each: 2 + dice.below(8),
            stages: dice.one_of(stages),
            ordered: dice.once_in(2),
            window: 1 + dice.below(40) as usize,
            batch: dice.one_of(&[Duration::ZERO, millis(1) / 2, millis(20), Duration::MAX]),
            bytes: dice.once_in(3).then(|| 1 + dice.below(40) as usize),
            error_at: at(dice),
            panic_at: at(dice),
            source_panics_at: at(dice),
            take: if dice.once_in(4) {
                dice.below(60) as usize
            } else {
                usize::MAX
            },
            pause_each: 1 + dice.below(20) as usize,
        }
    }

    fn outputs_of(&self, input: u64) -> Vec<u64> {
        match self.stages {
            Stages::Map | Stages::MapInit => vec![4 * input],
            Stages::FlatMap | Stages::Fallible => (0..input % 4).map(|n| 4 * input + n).collect(),
        }
    }

    /// An error is an output of `Fallible` alone.
    fn error_at(&self) -> Option<u64> {
        self.error_at.filter(|_| self.stages == Stages::Fallible)
    }

    /// What a plain loop returns, and whether it gets to the end.
    fn expected(&self) -> (Vec<u64>, bool) {
        let stops = [self.source_panics_at, self.panic_at, self.error_at()];
        let stop = stops.into_iter().flatten().min();
        let end = stop.map_or(self.inputs, |stop| stop.min(self.inputs));
        let outputs = (0..end).flat_map(|input| self.outputs_of(input));
        (outputs.collect(), end == self.inputs)
    }

    fn make_inputs(&self, live: &Live) -> impl Iterator<Item = Item> + Send + use<> {
        let (id, live, panics_at) = (self.id, live.clone(), self.source_panics_at);
        (0..self.inputs).map(move |input| {
            if panics_at == Some(input) {
                std::panic::panic_any(Planned(id));
            }
            live.item(input)
        })
    }

    /// The inputs, with a pause now and then.
    fn paused(&self, live: &Live) -> Inputs {
        let (mut inputs, each, mut polls) = (self.make_inputs(live), self.pending_each, 0);
        let next = move |cx: &mut std::task::Context<'_>| {
            polls += 1;
            if polls % each == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(inputs.next())
        };
        stream::poll_fn(next).boxed()
    }

    /// Starts the stream on that handle. `senders`: where a channel is filled.
    pub(crate) fn start(
        self,
        round: &Arc<Round>,
        cpu: &Handle,
        senders: &tokio::runtime::Handle,
    ) -> Started {
        let live = &round.live;
        let mut to_send = None;
        // A bridge that has broken off ends the stream with a panic.
        let whole = {
            let (round, id) = (round.clone(), self.id);
            let done = Done {
                panics: Some(id),
                ..Done::default()
            };
            move |item| match item {
                Ok(item) => item,
                Err(error) => {
                    round.check_bridge(error, done);
                    std::panic::panic_any(Planned(id));
                }
            }
        };
        let source: Inputs = match self.source {
            Source::Iterator => {
                let outputs = self.stages(self.make_inputs(live).on_cpu(cpu), live);
                return Started {
                    outputs,
                    plan: self,
                    inputs: None,
                };
            }
            Source::OnCpu => {
                let source = CpuStreamExt::on_cpu(self.paused(live), cpu).source_on_cpu();
                let outputs = self.stages(source, live);
                return Started {
                    outputs,
                    plan: self,
                    inputs: None,
                };
            }
            Source::IoOwned => self.paused(live),
            Source::Bridge => {
                let limit = self.window;
                let bridge = cpu.stream_from_io(self.paused(live), limit, |_| 1);
                bridge.map(whole).boxed()
            }
            Source::OfOnIo => {
                let value: IoOwned<Inputs> = cpu.io_owned(self.paused(live));
                let bridge = value.into_stream(|inputs| inputs.as_mut().boxed(), 8, |_| 1);
                bridge.map(whole).boxed()
            }
            Source::Channel | Source::Lockstep => {
                let (sender, mut receiver) = unbounded_channel();
                if self.source == Source::Channel {
                    let inputs = self.inputs;
                    senders.spawn(async move {
                        for input in 0..inputs {
                            tokio::task::yield_now().await;
                            // An error means that the stream has ended.
                            let _ = sender.send(input);
                        }
                    });
                } else {
                    to_send = Some(sender);
                }
                let (id, live, panics_at) = (self.id, live.clone(), self.source_panics_at);
                let inputs = stream::poll_fn(move |cx| receiver.poll_recv(cx));
                let inputs = inputs.map(move |input| {
                    if panics_at == Some(input) {
                        std::panic::panic_any(Planned(id));
                    }
                    live.item(input)
                });
                inputs.boxed()
            }
        };
        let outputs = self.stages(CpuStreamExt::on_cpu(source, cpu), live);
        Started {
            outputs,
            plan: self,
            inputs: to_send,
        }
    }
}

/// Ends the stages in each of the ways there are.
macro_rules! ends {
    ($plan:expr, $stages:expr, $size:expr) => {{
        let window = $plan.window;
        let stages = $stages;
        match ($plan.bytes.filter(|bytes| *bytes > 0), $plan.ordered) {
            (None, true) => stages.buffered(window).boxed(),
            (None, false) => stages.buffer_unordered(window).boxed(),
            (Some(limit), ordered) => {
                let stages = stages.max_bytes(limit, |item| item.value as usize % 50, $size);
                match ordered {
                    true => stages.buffered(window).boxed(),
                    false => stages.buffer_unordered(window).boxed(),
                }
            }
        }
    }};
}

impl Plan {
    fn stages<S>(
        &self,
        source: twolane::stream::OnCpu<S, twolane::stream::Unchanged>,
        live: &Live,
    ) -> Items
    where
        S: Stream<Item = Item> + Send + 'static,
    {
        let plan = self.clone();
        let work = {
            let (id, panic_at) = (self.id, self.panic_at);
            move |mut item: Item| {
                if panic_at == Some(item.value) {
                    std::panic::panic_any(Planned(id));
                }
                item.value *= 4;
                item
            }
        };
        let source = source.batch_time(self.batch);
        let many = {
            let live = live.clone();
            move |item: Item| {
                let outputs = plan.outputs_of(item.value / 4);
                let live = live.clone();
                outputs.into_iter().map(move |output| live.item(output))
            }
        };
        let size = |item: &Item| item.value as usize % 13;
        let join = |output: Result<Item, JoinError>| output.map_err(Failure::Join);
        match self.stages {
            Stages::Map => {
                let outputs = ends!(self, source.map(work), size);
                outputs.map(join).boxed()
            }
            Stages::MapInit => {
                let live = live.clone();
                let work = move |state: &mut Item, item| {
                    state.value += 1;
                    work(item)
                };
                let stages = source.map_init(move || live.item(0), work);
                let outputs = ends!(self, stages, size);
                outputs.map(join).boxed()
            }
            Stages::FlatMap => {
                let stages = source.map(work).flat_map(many);
                let outputs = ends!(self, stages, size);
                outputs.map(join).boxed()
            }
            Stages::Fallible => {
                let error_at = self.error_at();
                let many = move |item: Item| match error_at == Some(item.value / 4) {
                    true => vec![Err(Failure::Planned(item.value / 4))],
                    false => many(item).map(Ok).collect(),
                };
                let stages = source.map(work).flat_map(many);
                let size = |output: &Result<Item, Failure>| match output {
                    Ok(item) => item.value as usize % 13,
                    Err(_) => 1,
                };
                let outputs = ends!(self, stages, size);
                outputs.map(|output| output?).boxed()
            }
        }
    }
}

impl Started {
    /// Reads the stream as far as its plan says, and holds it against a plain loop.
    pub(crate) async fn read(self, round: Arc<Round>, mut dice: Dice) {
        let Self {
            plan,
            mut outputs,
            inputs: mut to_send,
        } = self;
        let mut found = Vec::new();
        let mut sent = 0;
        let mut is_whole = false;
        let mut failed = None;
        while found.len() < plan.take {
            if let Some(inputs) = &to_send {
                if sent == plan.inputs {
                    to_send = None;
                } else if inputs.send(sent).is_ok() {
                    sent += 1;
                }
            }
            match outputs.next().await {
                None => {
                    is_whole = true;
                    break;
                }
                Some(Ok(item)) => found.push(item.value),
                Some(Err(error)) => {
                    // The drop of the stream cancels what is behind an error of a stage.
                    if matches!(error, Failure::Join(_)) {
                        assert!(
                            outputs.next().await.is_none(),
                            "the error was not the last item"
                        );
                    }
                    failed = Some(error);
                    break;
                }
            }
            if found.len() % plan.pause_each == 0 {
                wait_a_little(&mut dice).await;
            }
        }
        let (mut expected, ends_well) = plan.expected();
        match failed {
            Some(Failure::Planned(at)) => assert_eq!(Some(at), plan.error_at()),
            Some(Failure::Join(error)) => {
                let is_panic = error.is_panic();
                let done = Done {
                    panics: Some(plan.id),
                    ..Done::default()
                };
                round.check(error, done);
                let source_ends = matches!(plan.source, Source::Bridge | Source::OfOnIo);
                if is_panic && plan.ordered && !source_ends {
                    assert_eq!(found, expected, "{plan:?}");
                }
            }
            None if is_whole => assert!(ends_well, "{plan:?} ended without its error"),
            None => {}
        }
        if !plan.ordered {
            found.sort_unstable();
            expected = (0..plan.inputs).flat_map(|i| plan.outputs_of(i)).collect();
            let before = found.len();
            found.dedup();
            assert_eq!(found.len(), before, "{plan:?}: an output came twice");
            let all = |n: &u64| expected.binary_search(n).is_ok();
            assert!(found.iter().all(all), "{plan:?}: {found:?}");
        } else {
            assert!(expected.starts_with(&found), "{plan:?}: {found:?}");
        }
        if is_whole {
            assert_eq!(found, expected, "{plan:?}");
        }
    }
}
