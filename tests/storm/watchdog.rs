//! What notices that nothing goes on, and any panic that is not by plan.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::panic_any;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use twolane::Handle;

use crate::dice::Dice;
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

/// No round takes a tenth of this.
const PATIENCE: Duration = Duration::from_secs(180);

#[derive(Default)]
struct UnderWay {
    seed: u64,
    plan: String,
    phase: &'static str,
    lane: Option<Handle>,
    units: BTreeMap<u64, String>,
    panics: Vec<String>,
}

static UNDER_WAY: Mutex<Option<UnderWay>> = Mutex::new(None);
static BEATS: AtomicU64 = AtomicU64::new(0);

fn locked() -> MutexGuard<'static, Option<UnderWay>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with(f: impl FnOnce(&mut UnderWay)) {
    f(locked().get_or_insert_default());
}

pub(crate) fn start() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if is_by_plan(info.payload()) {
            return;
        }
        hook(info);
        with(|now| now.panics.push(info.to_string()));
    }));
    std::thread::spawn(|| {
        let (mut seen, mut since) = (0, Duration::ZERO);
        let look = Duration::from_millis(500);
        loop {
            std::thread::sleep(look);
            let beats = BEATS.load(SeqCst);
            since = if beats == seen {
                since + look
            } else {
                Duration::ZERO
            };
            seen = beats;
            if since >= PATIENCE {
                tell(&format!("nothing has ended for {PATIENCE:?}: aborting"));
                report();
                std::process::abort();
            }
        }
    });
}

/// The harness would keep what `eprintln` writes, and an abort would lose it.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

pub(crate) fn report() {
    with(|now| {
        tell(&format!(
            "TWOLANE_SEED={}\n{}\n{}",
            now.seed, now.plan, now.phase
        ));
        for (id, unit) in &now.units {
            tell(&format!("  {id}: {unit}"));
        }
        let Some(lane) = &now.lane else { return };
        for priority in PRIORITIES {
            let metrics = lane.with_priority(priority).metrics();
            let permits = metrics.permits_in_use;
            tell(&format!(
                "  {priority:?}: {metrics}, permits in use {permits}"
            ));
        }
    });
}

/// A round begins.
pub(crate) fn begin(seed: u64, plan: String, lane: Handle) {
    with(|now| {
        *now = UnderWay {
            seed,
            plan,
            lane: Some(lane),
            ..UnderWay::default()
        }
    });
}

pub(crate) fn phase(phase: &'static str) {
    with(|now| now.phase = phase);
}

/// Until the guard is dropped.
pub(crate) fn unit(id: u64, what: String) -> impl Drop + Send {
    with(|now| {
        now.units.insert(id, what);
    });
    Unit(id)
}

struct Unit(u64);

impl Drop for Unit {
    fn drop(&mut self) {
        BEATS.fetch_add(1, SeqCst);
        with(|now| {
            now.units.remove(&self.0);
        });
    }
}

/// The round is over: fails if there was a panic that is not by plan.
pub(crate) fn end() {
    let mut panics = 0;
    with(|now| {
        panics = now.panics.len();
        now.lane = None;
    });
    if panics > 0 {
        report();
        panic!("{panics} panics that are not by plan");
    }
}

pub(crate) fn beats() -> u64 {
    BEATS.load(SeqCst)
}
