//! What notices that nothing goes on, and any panic that is not by plan.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::panic_any;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use twolane::Handle;

use crate::dice::Dice;
use crate::support::limit::limit_this_thread_or;
use crate::surroundings::PRIORITIES;

/// The payload of a panic by plan: which unit it belongs to.
pub(crate) struct Planned(pub(crate) u64);

/// What a job panics with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Payload {
    #[default]
    Value,
    Text,
    /// Its destructor panics.
    Explosive,
}

struct Explosive;

impl Drop for Explosive {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{OF_PLAN}: the destructor of a payload");
        }
    }
}

/// What a text of a panic by plan begins with.
const OF_PLAN: &str = "storm";

impl Payload {
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        dice.one_of(&[Self::Value, Self::Text, Self::Explosive])
    }

    pub(crate) fn panic(self, id: u64) -> ! {
        match self {
            Self::Value => panic_any(Planned(id)),
            Self::Text => panic!("{OF_PLAN} {id}"),
            Self::Explosive => panic_any(Explosive),
        }
    }
}

type AnyPanic = dyn Any;

fn text_of(payload: &AnyPanic) -> Option<&str> {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// What Tokio says to a job that comes to a timer while its runtime goes.
pub(crate) fn is_of_a_dying_runtime(payload: &AnyPanic) -> bool {
    text_of(payload).is_some_and(|text| text.contains("is being shutdown"))
}

/// The unit of a panic by plan.
pub(crate) fn planned(payload: &AnyPanic) -> Option<u64> {
    let of_text = |text: &str| text.strip_prefix(OF_PLAN)?.trim_start().parse().ok();
    let value = payload.downcast_ref::<Planned>().map(|planned| planned.0);
    value.or_else(|| text_of(payload).and_then(of_text))
}

fn is_by_plan(payload: &AnyPanic) -> bool {
    let has_text = text_of(payload).is_some_and(|text| text.starts_with(OF_PLAN));
    let has_value = payload.is::<Planned>() || payload.is::<Explosive>();
    has_text || has_value || is_of_a_dying_runtime(payload)
}

#[derive(Default)]
struct UnderWay {
    seed: u64,
    plan: String,
    phase: &'static str,
    lane: Option<Handle>,
    units: BTreeMap<u64, String>,
    /// How many were not by plan.
    panics: usize,
}

static UNDER_WAY: LazyLock<Mutex<UnderWay>> = LazyLock::new(Mutex::default);

fn under_way() -> MutexGuard<'static, UnderWay> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// To panics, from now on.
pub(crate) fn listen() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if is_by_plan(info.payload()) {
            return;
        }
        hook(info);
        under_way().panics += 1;
    }));
}

/// What is under way, and by which seed it can be had again.
pub(crate) fn report() -> String {
    let now = under_way();
    let mut text = format!("TWOLANE_SEED={}\n{}\n{}\n", now.seed, now.plan, now.phase);
    for (id, unit) in &now.units {
        writeln!(text, "  {id}: {unit}").unwrap();
    }
    let Some(lane) = &now.lane else { return text };
    for priority in PRIORITIES {
        let metrics = lane.with_priority(priority).metrics();
        let permits = metrics.permits_in_use;
        writeln!(text, "  {priority:?}: {metrics}, permits in use {permits}").unwrap();
    }
    text
}

/// A round begins. Its time limit is ten times what a round takes, or more.
pub(crate) fn begin(seed: u64, plan: String, lane: Handle) {
    *under_way() = UnderWay {
        seed,
        plan,
        lane: Some(lane),
        ..UnderWay::default()
    };
    limit_this_thread_or(report);
}

pub(crate) fn phase(phase: &'static str) {
    under_way().phase = phase;
}

/// Until the guard is dropped.
pub(crate) fn unit(id: u64, what: String) -> impl Drop + Send {
    under_way().units.insert(id, what);
    Unit(id)
}

struct Unit(u64);

impl Drop for Unit {
    fn drop(&mut self) {
        under_way().units.remove(&self.0);
    }
}

/// The round is over: fails if there was a panic that is not by plan.
pub(crate) fn end() {
    let panics = under_way().panics;
    assert_eq!(panics, 0, "panics that are not by plan\n{}", report());
    under_way().lane = None;
}
