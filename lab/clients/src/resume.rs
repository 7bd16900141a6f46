//! How long jobs wait for their next step once their answer is there, beside jobs on two
//! plain runtimes.

use std::collections::BTreeMap;
use std::fmt;

use crate::lanes::Side;
use crate::rows::Mark;
use crate::table::Line;
use crate::trial::{Outcome, Setup};

/// Ratios: the longest wait of a trial over that of the peer's trial under
/// the same conditions in the same round. One maximum says little: a job that comes
/// last in one of two runs is no difference between them. So the figure is the median of
/// all ratios.
pub struct Waits {
    ratios: Vec<f64>,
    /// The row whose own median is the greatest, and that.
    worst: (String, f64),
}

impl Waits {
    /// Of all recommended rows that have a peer on `over`.
    pub fn of(lines: &[Line], over: Side) -> Option<Self> {
        let key = |line: &Line| (line.client, line.setup);
        let peers = lines.iter().filter(|line| line.side == over);
        let peers: BTreeMap<(&str, Setup), &Line> = peers.map(|line| (key(line), line)).collect();
        let mut rows: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let ours = lines.iter();
        for line in ours.filter(|line| line.mark == Some(Mark::Recommended)) {
            let Some(peer) = peers.get(&key(line)) else {
                continue;
            };
            let longest = |round: &Outcome| round.resumes.last().copied();
            let rounds = line.rounds.iter().zip(&peer.rounds);
            let rounds =
                rounds.filter_map(|(ours, theirs)| Some(longest(ours)? / longest(theirs)?));
            let name = format!("{}: {}", line.client, line.way);
            rows.entry(name).or_default().extend(rounds);
        }
        let mut ratios: Vec<f64> = rows.values().flatten().copied().collect();
        ratios.sort_by(f64::total_cmp);
        let rows = rows.into_iter().filter(|(_, ratios)| !ratios.is_empty());
        let rows = rows.map(|(row, mut ratios)| {
            ratios.sort_by(f64::total_cmp);
            (row, Outcome::quantile(&ratios, 0.5))
        });
        let worst = rows.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        Some(Self { ratios, worst })
    }

    pub fn quantile(&self, q: f64) -> f64 {
        Outcome::quantile(&self.ratios, q)
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, low, high] = [0.5, 0.25, 0.75].map(|q| self.quantile(q));
        let (row, worst) = &self.worst;
        let n = self.ratios.len();
        write!(
            f,
            "{median:.2} ({low:.2} to {high:.2} in half of {n} trials; row with the \
             greatest median: {worst:.2}, {row})"
        )
    }
}
