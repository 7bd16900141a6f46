//! What the watch has said, held against what was planted.

use std::time::{Duration, Instant};

use twolane::watch::{Cause, Stall};
use twolane_benches::Sample;

use crate::machine::Machine;
use crate::routes::WRONG;
use crate::service::Found;

#[derive(Clone, Copy)]
pub struct Setting {
    pub workers: Option<usize>,
    pub machine: Machine,
}

impl Setting {
    pub fn name(&self) -> String {
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
    pub first: Option<(Duration, Stall)>,
    pub has_right_cause: bool,
}

pub struct Findings {
    pub setting: Setting,
    pub said: Vec<Said>,
    /// Of an innocent route.
    pub falsely: Vec<Stall>,
    /// Of an innocent route that waited for a lock in the throttled cgroup.
    pub behind_stopped: usize,
    pub stalls: usize,
    pub innocent_requests: u64,
    pub times_throttled: Option<u64>,
}

fn is_of(stall: &Stall, route: &str) -> bool {
    stall.culprit() == Some(route)
}

/// Whether the stall says rightly that it computes or blocks, and where.
fn has_cause(stall: &Stall, planted: &str) -> bool {
    match stall.cause() {
        // The platform does not tell.
        Cause::Unknown => true,
        cause => cause.to_string() == planted,
    }
}

/// The quota stops a thread of Tokio's blocking pool while it holds the pool's lock, and the
/// route that calls `spawn_blocking` meanwhile waits for it: that is true, and not its fault. Of one
/// that no look has seen the call is not known.
fn waits_for_a_stopped_thread(setting: Setting, stall: &Stall) -> bool {
    let waits =
        has_cause(stall, "blocks in futex") || stall.is_over() && has_cause(stall, "blocks");
    setting.machine == Machine::Throttled && waits
}

pub fn are_all_reported(stalls: &[(Instant, Stall)]) -> bool {
    let is_reported = |route| stalls.iter().any(|(_, stall)| is_of(stall, route));
    WRONG.iter().all(|(route, _)| is_reported(route))
}

impl Findings {
    pub fn of(setting: Setting, found: &Found, times_throttled: Option<u64>) -> Self {
        let said = WRONG.map(|(route, planted)| {
            let of_route = |(_, stall): &&(_, Stall)| is_of(stall, route);
            let first = found.stalls.iter().find(of_route);
            let began = found.episodes.get(route);
            let first = first.zip(began).map(|((reported, stall), began)| {
                (reported.saturating_duration_since(*began), stall.clone())
            });
            Said {
                route,
                planted,
                has_right_cause: (first.as_ref())
                    .is_some_and(|(_, stall)| has_cause(stall, planted)),
                first,
            }
        });
        let is_planted = |stall: &&Stall| {
            let mut wrong = WRONG.iter();
            wrong.any(|(route, _)| is_of(stall, route))
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

    /// When each route was reported, in ms after it began, and counts.
    pub fn sample(&self) -> Sample {
        let mut sample = Sample::of("stalls", "", self.stalls as f64);
        sample.put("false", "", self.falsely.len() as f64);
        sample.put("behind_stopped", "", self.behind_stopped as f64);
        sample.put("innocent_requests", "", self.innocent_requests as f64);
        if let Some(times) = self.times_throttled {
            sample.put("throttled", "", times as f64);
        }
        for said in &self.said {
            if let Some((after, _)) = &said.first {
                sample.put(said.route, "ms", after.as_secs_f64() * 1e3);
            }
        }
        sample
    }

    pub fn is_perfect(&self) -> bool {
        let is_reported = |said: &Said| said.first.is_some();
        self.falsely.is_empty() && self.said.iter().all(is_reported)
    }
}
