//! What one process found.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::contender::Contender;

/// Figures of all of its jobs together.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub count: f64,
    /// Seconds from before the first submission until the last submission, and
    /// until the last one has been awaited.
    pub submit: f64,
    pub wall: f64,
    /// Seconds of CPU time meanwhile, all threads.
    pub cpu: f64,
    /// Bytes, with all of them queued or parked; those that sleep: at the peak.
    pub resident: f64,
    /// Calls of the allocator and bytes asked of it until then. Go doesn't say.
    pub allocations: Option<f64>,
    pub allocated: Option<f64>,
    /// Cores that others had meanwhile, if the system tells.
    pub others: Option<f64>,
}

impl Sample {
    /// What `count` would take, if each took what those take by which `more`
    /// exceeds `fewer`: the costs that don't depend on the number drop out.
    /// NaN where the noise was larger than the difference.
    pub fn extrapolated(fewer: Self, more: Self, count: f64) -> Self {
        let scale = count / (more.count - fewer.count);
        let positive = |slope: f64| if slope > 0.0 { slope } else { f64::NAN };
        let slope = |figure: fn(&Self) -> f64| positive(scale * (figure(&more) - figure(&fewer)));
        let optional =
            |figure: fn(&Self) -> Option<f64>| Some(scale * (figure(&more)? - figure(&fewer)?));
        Self {
            count,
            submit: slope(|s| s.submit),
            wall: slope(|s| s.wall),
            cpu: slope(|s| s.cpu),
            resident: slope(|s| s.resident),
            allocations: optional(|s| s.allocations),
            allocated: optional(|s| s.allocated),
            others: None,
        }
    }

    pub fn to_json(self) -> Value {
        json!({
            "count": self.count,
            "submit_s": self.submit,
            "wall_s": self.wall,
            "cpu_s": self.cpu,
            "resident_bytes": self.resident,
            "allocations": self.allocations,
            "allocated_bytes": self.allocated,
        })
    }

    pub fn from_json(found: &Value) -> Option<Self> {
        let figure = |name: &str| found[name].as_f64();
        Some(Self {
            count: figure("count")?,
            submit: figure("submit_s")?,
            wall: figure("wall_s")?,
            cpu: figure("cpu_s")?,
            resident: figure("resident_bytes")?,
            allocations: figure("allocations"),
            allocated: figure("allocated_bytes"),
            others: None,
        })
    }
}

/// All samples, by contender; one's are in the order of the rounds.
#[derive(Default)]
pub struct Found(BTreeMap<Contender, Vec<Sample>>);

impl Found {
    pub fn add(&mut self, contender: Contender, sample: Sample) {
        self.0.entry(contender).or_default().push(sample);
    }

    /// One figure of each round; none if a round lacks it.
    pub fn figures(
        &self,
        contender: Contender,
        figure: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<Vec<f64>> {
        self.0.get(&contender)?.iter().map(figure).collect()
    }
}
