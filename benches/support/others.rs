//! How much of the machine went to others than this bench: a tail measured
//! beside a compiler is the compiler's.

/// The clock ticks of all cores, and of the bench's own processes.
#[derive(Clone, Copy)]
struct Ticks {
    all: u64,
    busy: u64,
    own: u64,
}

/// Since when, and whose ticks are the bench's own.
pub struct Others {
    own: Vec<u32>,
    start: Option<Ticks>,
}

impl Others {
    /// `children`: processes that are a part of the bench and run now.
    pub fn since_now(children: impl IntoIterator<Item = u32>) -> Self {
        let own: Vec<u32> = children.into_iter().chain([std::process::id()]).collect();
        let start = ticks(&own);
        Self { own, start }
    }

    /// The fraction of all cores' time that others had (and, on a virtual
    /// machine, that its host kept). Ticks are coarse: read it as a warning,
    /// not as a figure. NaN where there is no `/proc`.
    pub fn fraction(&self) -> f64 {
        let (Some(start), Some(end)) = (self.start, ticks(&self.own)) else {
            return f64::NAN;
        };
        let others = (end.busy - start.busy).saturating_sub(end.own - start.own);
        others as f64 / (end.all - start.all) as f64
    }

    /// The same as a number of cores; `None` where the system doesn't tell.
    pub fn cores(&self) -> Option<f64> {
        let cores = self.fraction() * super::cores() as f64;
        cores.is_finite().then_some(cores)
    }
}

fn ticks(own: &[u32]) -> Option<Ticks> {
    let machine = std::fs::read_to_string("/proc/stat").ok()?;
    // "cpu  user nice system idle iowait irq softirq steal guest guest_nice";
    // the last two are in the first two already.
    let fields: Vec<u64> = machine
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .take(8)
        .map_while(|field| field.parse().ok())
        .collect();
    let all: u64 = fields.iter().sum();
    Some(Ticks {
        all,
        busy: all - fields.get(3)? - fields.get(4)?,
        own: own
            .iter()
            .map(|pid| of_process(*pid))
            .sum::<Option<u64>>()?,
    })
}

/// In user and kernel mode, with that of the children it has waited for.
fn of_process(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; utime, stime, cutime
    // and cstime are the 12th to 15th field after it.
    let (_, after) = stat.rsplit_once(')')?;
    let times = after.split_whitespace().skip(11).take(4);
    times.map(|field| field.parse::<u64>().ok()).sum()
}
