//! How much of the machine other programs have: a tail measured beside a compiler
//! is the compiler's.

/// The clock ticks of all cores, and of the bench and its children.
#[derive(Clone, Copy)]
struct Ticks {
    all: u64,
    busy: u64,
    own: u64,
}

/// A moment from which on the others are counted.
pub struct Others(Option<Ticks>);

impl Others {
    pub fn since_now() -> Self {
        Self(ticks())
    }

    /// The fraction of all cores' time that others have (and, on a virtual machine, that its host
    /// keeps). Ticks are coarse: read it as a warning, not as a figure. NaN where there is no
    /// `/proc`. The time of a child counts as the bench's own once the child has ended.
    pub fn fraction(&self) -> f64 {
        let (Some(start), Some(end)) = (self.0, ticks()) else {
            return f64::NAN;
        };
        let others = (end.busy - start.busy).saturating_sub(end.own - start.own);
        others as f64 / (end.all - start.all).max(1) as f64
    }
}

fn ticks() -> Option<Ticks> {
    let machine = std::fs::read_to_string("/proc/stat").ok()?;
    // "cpu  user nice system idle iowait irq softirq steal guest guest_nice";
    // the last two are in the first two already.
    let line = machine.lines().next()?.split_whitespace().skip(1).take(8);
    let fields: Vec<u64> = line.map_while(|field| field.parse().ok()).collect();
    let all: u64 = fields.iter().sum();
    let own = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold anything; utime, stime, cutime and cstime
    // are the 12th to 15th field after it.
    let (_, after) = own.rsplit_once(')')?;
    let own = after.split_whitespace().skip(11).take(4);
    Some(Ticks {
        all,
        busy: all - fields.get(3)? - fields.get(4)?,
        own: own
            .map(|field| field.parse::<u64>().ok())
            .sum::<Option<u64>>()?,
    })
}
