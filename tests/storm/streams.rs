//! Streams that compute: sources, settings and ends of every kind. (`stages.rs` has what they
//! compute, `reading.rs` how they are read.)

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use twolane::{CpuIteratorExt, CpuStreamExt, Handle, HandleExt, IoOwned, JoinError};

use crate::dice::Dice;
use crate::surroundings::{Done, Item, Live, Round, items_taken, paused};
use crate::watchdog::Planned;

pub(crate) enum Failure {
    Planned(u64),
    Join(JoinError),
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        Self::Join(error)
    }
}

pub(crate) type Items = BoxStream<'static, Result<Item, Failure>>;
type Inputs = Pin<Box<dyn Stream<Item = Item> + Send>>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
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
pub(crate) enum Stages {
    Map,
    MapInit,
    FlatMap,
    Fallible,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) id: u64,
    pub(super) inputs: u64,
    pub(super) source: Source,
    pending_each: u64,
    pub(super) stages: Stages,
    pub(super) ordered: bool,
    pub(super) window: usize,
    pub(super) batch: Duration,
    pub(super) bytes: Option<usize>,
    error_at: Option<u64>,
    pub(super) panic_at: Option<u64>,
    source_panics_at: Option<u64>,
    /// The consumer drops the stream after so many outputs.
    pub(super) take: usize,
    pub(super) pause_each: usize,
}

/// What reads, and what it has to send for that.
pub(crate) struct Started {
    pub(super) plan: Plan,
    pub(super) outputs: Items,
    pub(super) inputs: Option<UnboundedSender<u64>>,
    /// How many inputs the reader may have taken all outputs of.
    pub(super) taken: Arc<AtomicU64>,
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
        const ALL: [Stages; 4] = [
            Stages::Map,
            Stages::MapInit,
            Stages::FlatMap,
            Stages::Fallible,
        ];
        let inputs = dice.below(100);
        let at = |dice: &mut Dice| dice.once_in(5).then(|| dice.below(inputs + 20));
        let source = dice.one_of(&SOURCES);
        let stages = match source {
            // One output for each input.
            Source::Lockstep => &ALL[..2],
            _ => &ALL,
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
            take: items_taken(dice),
            pause_each: 1 + dice.below(20) as usize,
        }
    }

    pub(super) fn outputs_of(&self, input: u64) -> Vec<u64> {
        match self.stages {
            Stages::Map | Stages::MapInit => vec![4 * input],
            Stages::FlatMap | Stages::Fallible => (0..input % 4).map(|n| 4 * input + n).collect(),
        }
    }

    /// An error is an output of `Fallible` alone.
    pub(super) fn error_at(&self) -> Option<u64> {
        self.error_at.filter(|_| self.stages == Stages::Fallible)
    }

    /// What a plain loop returns, and whether it gets to the end.
    pub(super) fn expected(&self) -> (Vec<u64>, bool) {
        let stops = [self.source_panics_at, self.panic_at, self.error_at()];
        let stop = stops.into_iter().flatten().min();
        let end = stop.map_or(self.inputs, |stop| stop.min(self.inputs));
        let outputs = (0..end).flat_map(|input| self.outputs_of(input));
        (outputs.collect(), end == self.inputs)
    }

    /// How many inputs are taken with so many outputs.
    pub(super) fn taken(&self, outputs: usize) -> u64 {
        let mut left = outputs;
        let is_taken = |input: &u64| {
            let own = match self.error_at() == Some(*input) {
                true => 1,
                false => self.outputs_of(*input).len(),
            };
            let is_taken = own <= left;
            left = left.saturating_sub(own);
            is_taken
        };
        match (self.stages, self.ordered) {
            (Stages::Map | Stages::MapInit, _) => outputs as u64,
            (_, true) => (0..self.inputs).take_while(is_taken).count() as u64,
            // Which ones they are is not known.
            (_, false) => self.inputs,
        }
    }

    /// Looks at each input that is pulled: none is behind the window.
    fn pulled(&self, taken: &Arc<AtomicU64>) -> impl FnMut(Item) -> Item + Send + use<> {
        let (plan, taken) = (self.clone(), taken.clone());
        move |input| {
            let end = taken.load(SeqCst) + plan.window as u64;
            assert!(input.value < end, "{plan:?}: {} at {end}", input.value);
            input
        }
    }

    fn make_inputs(&self, live: &Live) -> impl Iterator<Item = Item> + Send + use<> {
        live.inputs(self.inputs, self.id, self.source_panics_at)
    }

    fn paused(&self, live: &Live) -> Inputs {
        paused(self.make_inputs(live), self.pending_each).boxed()
    }

    /// Starts the stream on that handle. `senders`: where a channel is filled.
    pub(crate) fn start(
        self,
        round: &Arc<Round>,
        cpu: &Handle,
        senders: &tokio::runtime::Handle,
    ) -> Started {
        let live = &round.live;
        let (mut to_send, taken) = (None, Arc::default());
        let pulled = self.pulled(&taken);
        // A bridge that has broken off ends the stream with a panic.
        let whole = {
            let (round, id) = (round.clone(), self.id);
            move |item| match item {
                Ok(item) => item,
                Err(error) => {
                    round.check_bridge(error, Done::panics(id));
                    std::panic::panic_any(Planned(id));
                }
            }
        };
        let source: Inputs = match self.source {
            Source::Iterator => {
                let source = self.make_inputs(live).map(pulled).on_cpu(cpu);
                return Started {
                    outputs: self.stages(source, live),
                    plan: self,
                    inputs: None,
                    taken,
                };
            }
            Source::OnCpu | Source::IoOwned => self.paused(live),
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
                let input = move |input| live.input(input, id, panics_at);
                inputs.map(input).boxed()
            }
        };
        let mut source = CpuStreamExt::on_cpu(source.map(pulled), cpu);
        if self.source == Source::OnCpu {
            source = source.source_on_cpu();
        }
        Started {
            outputs: self.stages(source, live),
            plan: self,
            inputs: to_send,
            taken,
        }
    }
}
