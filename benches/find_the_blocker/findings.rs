//! What the watch has said, held against what was planted.

use std::time::{Duration, Instant};

use twolane::watch::Stall;
use twolane_benches::Sample;

use crate::machine::Machine;
use crate::routes::{Episode, WRONG};
use crate::service::Found;
use crate::tier::{Tier, has_cause};

#[derive(Clone, Copy)]
pub struct Setting {
    pub tier: Tier,
    pub workers: Option<usize>,
    pub machine: Machine,
}

impl Setting {
    fn is_due(&self, planted: &str) -> bool {
        self.tier.tells(planted, self.workers, self.machine)
    }

    pub fn name(&self) -> String {
        format!("{}, {}", self.tier.name(), self.place())
    }

    pub fn place(&self) -> String {
        let workers = match self.workers {
            Some(1) => "1 worker".to_owned(),
            Some(workers) => format!("{workers} workers"),
            None => "current_thread".to_owned(),
        };
        format!("{}, {workers}", self.machine.name())
    }
}

/// What was said of a wrong route at first.
pub struct Said {
    pub route: &'static str,
    pub planted: &'static str,
    /// Whether it has to be reported in this setting.
    pub is_due: bool,
    pub first: Option<(Duration, Stall)>,
    pub has_right_cause: bool,
}

pub struct Findings {
    pub setting: Setting,
    pub said: Vec<Said>,
    /// Of an innocent route, or while none of the wrong ones was at it.
    pub falsely: Vec<Stall>,
    /// Of an innocent route that waited for a lock in the throttled cgroup.
    pub behind_stopped: usize,
    pub stalls: usize,
    pub innocent_requests: u64,
    pub times_throttled: Option<u64>,
}

/// Whether the stall is one of this route: it names it, or it has no name and the route
/// kept its thread at that time.
fn is_of(setting: Setting, stall: &Stall, route: &str, episodes: &[Episode]) -> bool {
    let until = stall.since() + stall.lasted();
    let is_then = |episode: &Episode| {
        episode.route == route
            && episode.began <= until
            && episode.ended.is_none_or(|ended| stall.since() <= ended)
    };
    match setting.tier {
        Tier::Nothing => stall.culprit().is_none() && episodes.iter().any(is_then),
        tier => tier.names(stall, route),
    }
}

/// The quota stops a thread of Tokio's blocking pool while it holds the pool's lock, and the
/// route that calls `spawn_blocking` meanwhile waits for it: that is true, and not its fault.
fn waits_for_a_stopped_thread(setting: Setting, stall: &Stall) -> bool {
    setting.machine == Machine::Throttled && has_cause(stall, "blocks in futex")
}

pub fn are_all_reported(
    setting: Setting,
    stalls: &[(Instant, Stall)],
    episodes: &[Episode],
) -> bool {
    WRONG.iter().all(|(route, planted)| {
        let mut stalls = stalls.iter();
        !setting.is_due(planted) || stalls.any(|(_, stall)| is_of(setting, stall, route, episodes))
    })
}

impl Findings {
    pub fn of(setting: Setting, found: &Found, times_throttled: Option<u64>) -> Self {
        let episodes = &found.episodes;
        let said = WRONG.map(|(route, planted)| {
            let of_route = |(_, stall): &&(_, Stall)| is_of(setting, stall, route, episodes);
            let first = found.stalls.iter().find(of_route);
            let began = episodes.iter().find(|episode| episode.route == route);
            let first = first.zip(began).map(|((reported, stall), episode)| {
                (
                    reported.saturating_duration_since(episode.began),
                    stall.clone(),
                )
            });
            Said {
                route,
                planted,
                is_due: setting.is_due(planted),
                has_right_cause: (first.as_ref())
                    .is_some_and(|(_, stall)| has_cause(stall, planted)),
                first,
            }
        });
        let is_planted = |stall: &&Stall| {
            let mut wrong = WRONG.iter();
            wrong.any(|(route, _)| is_of(setting, stall, route, episodes))
        };
        let stalls = found.stalls.iter().map(|(_, stall)| stall);
        let unplanned = stalls.filter(|stall| !is_planted(stall)).cloned();
        let (behind_stopped, falsely): (Vec<_>, Vec<_>) =
            unplanned.partition(|stall| waits_for_a_stopped_thread(setting, stall));
        Self {
            setting,
            said: said.into(),
            falsely,
            behind_stopped: behind_stopped.len(),
            stalls: found.stalls.len(),
            innocent_requests: found.innocent_requests,
            times_throttled,
        }
    }

    /// When each route was reported, in ms after it began.
    pub fn sample(&self) -> Sample {
        let innocent = self.innocent_requests as f64;
        let mut sample = Sample::of("innocent_requests", "", innocent);
        for said in &self.said {
            if let Some((after, _)) = &said.first {
                sample.put(said.route, "ms", after.as_secs_f64() * 1e3);
            }
        }
        sample
    }

    pub fn is_perfect(&self) -> bool {
        let is_reported = |said: &Said| !said.is_due || said.first.is_some();
        self.falsely.is_empty() && self.said.iter().all(is_reported)
    }
}
