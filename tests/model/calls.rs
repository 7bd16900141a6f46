//! What is called, by chance.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use twolane::Backend;

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Closure,
    /// A future that keeps its thread from its first poll on, until it is told to
    /// suspend.
    Busy,
    /// A future that suspends until it is told something.
    Sleepy,
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
    Spawn(Kind, Option<Tell>),
    TrySpawn(Kind, Option<Tell>),
    /// By the job that runs.
    SpawnChild(Kind, Option<Tell>),
    TryAdmit,
    /// Polled once.
    Reserve,
    PollAdmit(Which),
    DropAdmit(Which),
    SetDeadline {
        permit: Which,
        has_passed: bool,
    },
    SpawnByPermit(Which, Kind, Option<Tell>),
    /// With a deadline that comes in a moment, and is let pass.
    SpawnUntilSoon(Which, Kind),
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
    pub(crate) backend: Backend,
    pub(crate) queue_limit: Option<usize>,
    pub(crate) calls: Vec<Call>,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let backends = prop_oneof![Just(Backend::Rayon), Just(Backend::Runtime)];
    let limits = option::weighted(0.8, 1_usize..=3);
    (backends, limits, vec(calls(), 1..50)).prop_map(|(backend, queue_limit, calls)| Case {
        backend,
        queue_limit,
        calls,
    })
}

fn calls() -> impl Strategy<Value = Call> {
    use Call::*;
    let by_permit = (which(), kinds(), first()).prop_map(|(p, k, f)| SpawnByPermit(p, k, f));
    let deadline = (which(), any::<bool>())
        .prop_map(|(permit, has_passed)| SetDeadline { permit, has_passed });
    prop_oneof![
        6 => (kinds(), first()).prop_map(|(kind, first)| Spawn(kind, first)),
        4 => (kinds(), first()).prop_map(|(kind, first)| TrySpawn(kind, first)),
        2 => (kinds(), first()).prop_map(|(kind, first)| SpawnChild(kind, first)),
        4 => Just(TryAdmit),
        4 => Just(Reserve),
        4 => which().prop_map(PollAdmit),
        2 => which().prop_map(DropAdmit),
        1 => deadline,
        5 => by_permit,
        1 => (which(), kinds()).prop_map(|(permit, kind)| SpawnUntilSoon(permit, kind)),
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
    prop_oneof![Just(Kind::Closure), Just(Kind::Busy), Just(Kind::Sleepy)]
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
    ]
}
