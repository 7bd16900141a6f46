//! What is called, by chance.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Closure,
    /// A closure that is handed its context, and ends by a checkpoint if it is told to look.
    ClosureWith,
    /// A future that keeps its thread from its first poll on, until it is told to
    /// suspend.
    Busy,
    /// A future that suspends until it is told something.
    Sleepy,
}

impl Kind {
    pub(crate) fn is_closure(self) -> bool {
        matches!(self, Self::Closure | Self::ClosureWith)
    }
}

/// What a job is told from outside, through its gate. Also before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    End,
    Panic,
    /// To a future that keeps its thread. To others it is nothing.
    Suspend,
    /// To a future that is suspended.
    Block,
    /// To a closure with a context: to end if its checkpoint says so.
    Checkpoint,
}

/// The deadline of the handle by which a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    None,
    Ahead,
    Passed,
    /// Of two the earlier one holds.
    PassedAndAhead,
    Taken,
}

/// What a handle carries, for the jobs that are submitted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    High,
    Low,
    Name,
    Key,
    DeadlineAhead,
    DeadlinePassed,
    NoLimit,
}

/// How it was got: the handle itself, or the current one where it is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Direct,
    Entered,
    ProcessDefault,
    InSpawnIo,
    InIoSpawn,
    InJob,
    InFuture,
    /// By an I/O task of the job's.
    InFutureByIo,
    InStreamFromIo,
    InStreamFromCpu,
}

/// One of those that there are, as far as there are any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which(u8);

impl Which {
    pub(crate) fn of<T: Copy>(self, those: &[T]) -> Option<T> {
        let which = usize::from(self.0).checked_rem(those.len())?;
        Some(those[which])
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Spawn(Deadline, Kind, Option<Tell>),
    /// By the job that runs.
    SpawnChild(Deadline, Kind, Option<Tell>),
    TryReserve(Deadline),
    /// Polled once.
    Reserve(Deadline),
    PollReserve(Which),
    DropReserve(Which),
    SetDeadline {
        permit: Which,
        has_passed: bool,
    },
    SpawnByPermit(Which, Kind, Option<Tell>),
    /// With a deadline that comes in a moment, and is let pass: the permit's, or the handle's.
    SpawnUntilSoon(Option<Which>, Kind),
    DropPermit(Which),
    Tell(Which, Tell),
    /// Tells the job that runs, and awaits it at once.
    TellAndAwait(Tell),
    Cancel(Which),
    Abort(Which),
    Drop(Which),
    Detach(Which),
    /// Of one that may not have ended.
    Poll(Which),
    /// Of one that has ended.
    Await(Which),
    Shutdown,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) queue_limit: Option<usize>,
    pub(crate) calls: Vec<Call>,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let limits = option::weighted(0.8, 1_usize..=3);
    (limits, vec(calls(), 1..50)).prop_map(|(queue_limit, calls)| Case { queue_limit, calls })
}

fn calls() -> impl Strategy<Value = Call> {
    use Call::*;
    let by_permit = (which(), kinds(), first()).prop_map(|(p, k, f)| SpawnByPermit(p, k, f));
    let deadline = (which(), any::<bool>())
        .prop_map(|(permit, has_passed)| SetDeadline { permit, has_passed });
    prop_oneof![
        6 => (deadlines(), kinds(), first()).prop_map(|(until, kind, first)| Spawn(until, kind, first)),
        2 => (deadlines(), kinds(), first()).prop_map(|(until, kind, first)| SpawnChild(until, kind, first)),
        4 => deadlines().prop_map(TryReserve),
        4 => deadlines().prop_map(Reserve),
        4 => which().prop_map(PollReserve),
        2 => which().prop_map(DropReserve),
        1 => deadline,
        5 => by_permit,
        2 => (option::of(which()), kinds()).prop_map(|(permit, kind)| SpawnUntilSoon(permit, kind)),
        2 => which().prop_map(DropPermit),
        12 => (which(), tells()).prop_map(|(job, tell)| Tell(job, tell)),
        2 => tells().prop_map(TellAndAwait),
        3 => which().prop_map(Cancel),
        2 => which().prop_map(Abort),
        2 => which().prop_map(Drop),
        2 => which().prop_map(Detach),
        2 => which().prop_map(Poll),
        3 => which().prop_map(Await),
        1 => Just(Shutdown),
    ]
}

fn which() -> impl Strategy<Value = Which> {
    any::<u8>().prop_map(Which)
}

fn kinds() -> impl Strategy<Value = Kind> {
    use Kind::*;
    select(&[Closure, ClosureWith, Busy, Sleepy][..])
}

/// Most handles have none.
fn deadlines() -> impl Strategy<Value = Deadline> {
    use Deadline::*;
    prop_oneof![6 => Just(None), 4 => select(&[Ahead, Passed, PassedAndAhead, Taken][..])]
}

/// For most jobs there is nothing in the gate when they start.
fn first() -> impl Strategy<Value = Option<Tell>> {
    option::weighted(0.25, tells())
}

fn tells() -> impl Strategy<Value = Tell> {
    prop_oneof![
        4 => Just(Tell::End),
        1 => Just(Tell::Panic),
        2 => Just(Tell::Suspend),
        1 => Just(Tell::Block),
        2 => Just(Tell::Checkpoint),
    ]
}
