//! Jobs in every form, and jobs that they submit themselves: drawn, submitted by whatever call,
//! and awaited, cancelled, dropped or left alone.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::{Either, join_all, select};
use futures::poll;
use tokio::sync::oneshot;
use tokio::task::unconstrained;
use twolane::{Handle, Key, Permit};

use crate::dice::Dice;
use crate::held::Held;
use crate::ledger::{Asks, Captures, Entry, Seen, What, submitting};
use crate::surroundings::{Done, Round, wait_a_little};
use crate::watchdog::{self, Payload};
use crate::work::{Bomb, Does, Job};

type Outcome = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where jobs are submitted.
#[derive(Clone)]
pub(crate) struct At {
    pub(crate) round: Arc<Round>,
    /// The runtime that outlives the lanes.
    pub(crate) outer: tokio::runtime::Handle,
    /// Of the unit.
    pub(crate) id: u64,
    /// Of jobs that submit others.
    pub(crate) depth: u32,
    /// On a thread of its own.
    pub(crate) may_block: bool,
}

impl At {
    pub(crate) fn deeper(&self) -> Self {
        Self {
            depth: self.depth + 1,
            may_block: false,
            ..self.clone()
        }
    }

    pub(super) fn aside(&self, mut dice: Dice, what: impl FnOnce() + Send + 'static) {
        self.outer.spawn(async move {
            wait_a_little(&mut dice).await;
            what();
        });
    }
}

/// Whose jobs they are: those of a key, or plain ones.
struct Tenant {
    level: usize,
    cpu: Handle,
    has_key: bool,
}

impl Tenant {
    fn draw(round: &Round, dice: &mut Dice) -> Self {
        let (level, mut cpu) = round.level(dice);
        let has_key = dice.once_in(2);
        if has_key {
            let key = Key::new(dice.below(4).to_string());
            let key = key.with_weight(1 + dice.below(4) as u16);
            cpu = cpu.with_key(key.with_max_jobs(round.jobs_of_key));
        }
        Self {
            level,
            cpu,
            has_key,
        }
    }
}

/// The call that submits.
enum Way {
    Direct,
    OnIo,
    Permit(Permit),
}

/// Submits some jobs, each of which may submit others.
pub(crate) fn tree(at: At, mut dice: Dice) -> Outcome {
    Box::pin(async move {
        let times = dice.below(if at.depth == 0 { 16 } else { 3 });
        for _ in 0..times {
            let at_once = dice.one_of(&[1, 1, 6]);
            let some = (0..at_once).map(|_| one(at.clone(), dice.fork(), at_once == 1));
            join_all(some).await;
            at.round.ledger.look(&at.round);
            wait_a_little(&mut dice).await;
        }
    })
}

/// A job of one that runs, which leaves it alone.
pub(crate) fn child(at: &At, dice: &mut Dice) {
    let tenant = Tenant::draw(&at.round, dice);
    let mut drawn = Drawn::new(at, dice, &tenant, false, false);
    if matches!(drawn.job.does, Does::Lasts) {
        drawn.job.does = Does::Nothing;
    }
    if let Some(held) = drawn.submit(&tenant.cpu, Way::Direct) {
        match dice.below(3) {
            0 => held.detach(),
            1 => held.abort(),
            _ => drop(held),
        }
    }
}

/// Another job sends what one waits for, or drops it if it never runs.
pub(crate) fn sender(at: &At, dice: &mut Dice, send: oneshot::Sender<()>) {
    let tenant = Tenant::draw(&at.round, dice);
    let mut drawn = Drawn::new(&at.deeper(), dice, &tenant, false, false);
    drawn.job.does = Does::Sends(send);
    if let Some(held) = drawn.submit(&tenant.cpu, Way::Direct) {
        held.detach();
    }
}

async fn one(at: At, mut dice: Dice, is_alone: bool) {
    let mut tenant = Tenant::draw(&at.round, &mut dice);
    let mut may_expire = false;
    if dice.once_in(4) {
        let (deadline, may_come) = deadline(&mut dice);
        tenant.cpu = tenant.cpu.with_deadline(deadline);
        may_expire = may_come;
    }
    let mut way = match dice.below(10) {
        0..=4 => Way::Direct,
        5 => Way::OnIo,
        _ => match permit(&at, &mut dice, &tenant, is_alone && at.may_block).await {
            Some(permit) => Way::Permit(permit),
            None => return,
        },
    };
    if let Way::Permit(permit) = way {
        let (deadline, may_come) = deadline(&mut dice);
        may_expire |= may_come;
        way = Way::Permit(permit.with_deadline(deadline));
        if dice.once_in(8) {
            return;
        }
    }
    let is_on_io = matches!(way, Way::OnIo);
    let drawn = Drawn::new(&at, &mut dice, &tenant, may_expire, is_on_io);
    let lasts = matches!(drawn.job.does, Does::Lasts);
    let Some(mut held) = drawn.submit(&tenant.cpu, way) else {
        return;
    };
    match dice.below(12) {
        0 if !lasts => held.detach(),
        1 => drop(held),
        2 => {
            if let Poll::Ready(outcome) = poll!(&mut held.task()) {
                held.answered(outcome);
            }
        }
        3 | 4 => {
            held.abort();
            held.settle().await;
        }
        // Not beside others, which might have a permit that this job waits for.
        5 if !lasts && is_alone && at.may_block => held.settle_here(),
        // Before its reader waits, or while it does.
        6 => {
            at.aside(dice.fork(), held.aborter());
            held.settle().await;
        }
        _ if lasts => {
            at.aside(dice.fork(), held.aborter());
            held.settle().await;
        }
        _ => {
            if dice.once_in(8) {
                wait_a_little(&mut dice).await;
            }
            held.settle().await;
        }
    }
}

/// None: there was none, or the wait for it was given up.
async fn permit(at: &At, dice: &mut Dice, tenant: &Tenant, may_block: bool) -> Option<Permit> {
    let (round, cpu) = (&at.round, &tenant.cpu);
    let asks = Asks::new(round, tenant.level);
    let answer = if dice.once_in(2) {
        cpu.try_reserve()
    } else if may_block && dice.once_in(2) {
        cpu.reserve().wait()
    } else {
        // The lane counts each wait that is given up, but not one that Tokio's budget has kept
        // from its first poll.
        let reserve = Box::pin(unconstrained(cpu.reserve()));
        match dice.once_in(6) {
            false => reserve.await,
            true => match select(reserve, Box::pin(wait_a_little(dice))).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => return None,
            },
        }
    };
    let done = Done {
        needs_permit: round.limits[tenant.level].is_some(),
        has_key: tenant.has_key,
        // The handle's.
        has_deadline: true,
        ..Done::default()
    };
    let permit = asks.answered(answer);
    permit.map_err(|error| round.check(error, done)).ok()
}

/// It has passed, comes soon, or is far ahead; and whether it may come.
fn deadline(dice: &mut Dice) -> (Instant, bool) {
    let micros = dice.one_of(&[0, 300, 3_600_000_000, 3_600_000_000]);
    let deadline = Instant::now() + Duration::from_micros(micros);
    (deadline, micros <= 300)
}

/// A job before its submission.
struct Drawn {
    job: Job,
    done: Done,
    has_context: bool,
}

impl Drawn {
    fn new(at: &At, dice: &mut Dice, tenant: &Tenant, may_expire: bool, is_on_io: bool) -> Self {
        let id = at.id;
        let is_closure = !is_on_io && dice.once_in(2);
        let does = match is_closure {
            true => Does::of_closure(at, dice),
            false => Does::of_future(at, dice),
        };
        let panics = dice.once_in(8).then(|| Payload::draw(dice));
        let panics = panics.filter(|_| !matches!(does, Does::Lasts));
        // Where it is refused its drop panics in the call.
        let bomb = dice.once_in(10).then(|| Bomb(id));
        let panics_in_rayon = matches!(does, Does::PanicsInRayon);
        let has_reason = panics.is_some() || bomb.is_some() || panics_in_rayon;
        let done = Done {
            panics: has_reason.then_some(id),
            payload: panics.filter(|_| !panics_in_rayon).unwrap_or_default(),
            must_panic: panics.is_some() || panics_in_rayon,
            needs_permit: at.round.limits[tenant.level].is_some(),
            has_key: tenant.has_key,
            has_deadline: may_expire,
            sleeps: matches!(does, Does::Sleeps),
            ..Done::default()
        };
        let what = What {
            level: tenant.level,
            has_key: tenant.has_key,
            is_closure,
            is_on_io,
            may_expire,
            has_parts: matches!(does, Does::SpawnsTasks),
        };
        let job = Job {
            captures: Captures::enroll(&at.round, what),
            at: at.clone(),
            dice: dice.fork(),
            does,
            panics,
            bomb,
            obeys: dice.once_in(2),
        };
        let has_context = dice.once_in(2);
        Self {
            job,
            done,
            has_context,
        }
    }

    /// Submits it, and writes down whether it was taken on. None: its captures' drop panicked.
    fn submit(self, cpu: &Handle, way: Way) -> Option<Held> {
        let Self {
            job,
            done,
            has_context,
        } = self;
        let (round, record) = (job.at.round.clone(), job.captures.record.clone());
        let what = record.what;
        let was_closed = round.is_closed.load(SeqCst);
        let without = |job: Job| move || job.run(None).unwrap_or_else(|_| unreachable!());
        let call = || match (way, what.is_closure) {
            (Way::Direct, true) if has_context => cpu.spawn_cpu_with(|c| job.run(Some(c))),
            (Way::Direct, true) => cpu.spawn_cpu(without(job)),
            (Way::Direct, false) => cpu.spawn(job.future()),
            (Way::Permit(it), true) if has_context => it.spawn_cpu_with(|c| job.run(Some(c))),
            (Way::Permit(permit), true) => permit.spawn_cpu(without(job)),
            (Way::Permit(permit), false) => permit.spawn(job.future()),
            (Way::OnIo, _) => cpu.spawn_io(job.future()),
        };
        let answer = submitting(&record, call);
        let entry = match &answer {
            _ if !record.facts().gone_in_call => Entry::Taken,
            _ if round.may_end() => Entry::RefusedOrClosed,
            _ => Entry::Refused,
        };
        record.note(|facts| facts.entry = entry);
        let is_late = was_closed && entry == Entry::Taken && !what.is_on_io;
        assert!(!is_late, "taken after the shutdown: {record:?}");
        let task = answer.map_err(|payload| {
            // The destructor of what it has captured, which was dropped in here.
            assert_eq!(watchdog::planned(&*payload), done.panics);
            record.see(Seen::Dropped);
        });
        let task = Some(task.ok()?);
        Some(Held {
            round,
            record,
            task,
            done,
        })
    }
}
