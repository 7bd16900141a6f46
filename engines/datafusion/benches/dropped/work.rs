//! A turn, in its process.

use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use twolane::CpuRuntime;
use twolane_datafusion::{collect_on, run_on, threads_of_ended_queries};
use twolane_tpch::{queries, tables};

/// After which a lane is taken not to become quiet.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// What their names begin with.
pub const HOURS: &str = "hours: ";
pub const CROSS_JOIN: &str = "hours: cross join";

/// Of 100,000 rows each: ten billion pairs.
const LONG: [(&str, &str); 4] = [
    // Of tables, DataFusion would multiply the counts.
    (
        CROSS_JOIN,
        "select count(*) from generate_series(1, 100000) a(n) \
            cross join generate_series(1, 100000) b(n)",
    ),
    (
        "hours: cross join, summed",
        "select sum(a.n * b.n) from a cross join b",
    ),
    (
        "hours: hash join, all filtered",
        "select count(*) from a join b on a.one = b.one and a.n + b.n > 300000",
    ),
    (
        "hours: nested loop join, all filtered",
        "select count(*) from a join b on a.n + b.n > 300000",
    ),
];

#[derive(Serialize, Deserialize)]
pub struct Role {
    pub yields: bool,
    pub scale: f64,
    /// How often the 22 queries are timed.
    pub passes: usize,
    /// How often each query is dropped.
    pub moments: u32,
}

#[derive(Serialize, Deserialize)]
pub struct Answer {
    /// Of each query, the longest time from a drop until the lane was quiet, in ms.
    pub quiet: Vec<(String, f64)>,
    /// Of the 22 queries, for one pass.
    pub seconds: f64,
}

pub fn names() -> Vec<String> {
    let tpch = (1..=queries::all().len()).map(|number| format!("q{number:02}"));
    tpch.chain(LONG.map(|(name, _)| name.to_owned())).collect()
}

pub fn run(role: Role) -> Answer {
    let turn = Turn::new(&role).expect("the tables");
    let own = turn.lane();
    let mut quiet = Vec::new();
    for query in queries::all() {
        let whole = turn.time(&own, query);
        let moments = (1..=role.moments).map(|k| whole * k / (role.moments + 1));
        quiet.push(turn.longest(&own, query, moments));
    }
    let begin = Instant::now();
    for _ in 0..role.passes {
        for query in queries::all() {
            turn.time(&own, query);
        }
    }
    let seconds = begin.elapsed().as_secs_f64() / role.passes as f64;
    for (_, query) in LONG {
        // What the last one has left computes on there.
        let own = turn.lane();
        let moments = (1..=role.moments).map(|k| Duration::from_millis(100) * k);
        quiet.push(turn.longest(&own, query, moments));
    }
    Answer {
        quiet: names().into_iter().zip(quiet).collect(),
        seconds,
    }
}

struct Turn {
    io: &'static Runtime,
    context: SessionContext,
    yields: bool,
}

type Rows = Pin<Box<dyn Future<Output = Result<Vec<RecordBatch>>> + Send>>;

impl Turn {
    fn new(role: &Role) -> Result<Self> {
        let config = SessionConfig::new().with_target_partitions(twolane_benches::cores());
        let context = SessionContext::new_with_config(config);
        tables::in_memory(&context, role.scale)?;
        for name in ["a", "b"] {
            context.register_table(name, Arc::new(numbers()?))?;
        }
        Ok(Self {
            // It ends with the process, as the lanes do.
            io: Box::leak(Box::new(Runtime::new()?)),
            context,
            yields: role.yields,
        })
    }

    fn lane(&self) -> twolane::Handle {
        let cpu = CpuRuntime::builder().io_handle(self.io.handle().clone());
        let cpu = cpu.build().expect("a lane");
        let handle = cpu.handle().clone();
        std::mem::forget(cpu);
        handle
    }

    /// Begins the query.
    fn begin(&self, cpu: &twolane::Handle, sql: &str) -> Rows {
        let frame = self.io.block_on(self.context.sql(sql)).expect("a plan");
        if self.yields {
            Box::pin(collect_on(cpu, frame))
        } else {
            Box::pin(run_on(cpu, frame.collect()))
        }
    }

    fn time(&self, cpu: &twolane::Handle, sql: &str) -> Duration {
        let begin = Instant::now();
        let query = self.begin(cpu, sql);
        self.io.block_on(query).expect("the query succeeds");
        begin.elapsed()
    }

    /// The longest time until the lane is quiet, in ms, of queries that are dropped at `moments`.
    fn longest(
        &self,
        cpu: &twolane::Handle,
        sql: &str,
        moments: impl Iterator<Item = Duration>,
    ) -> f64 {
        let mut longest = Duration::ZERO;
        for moment in moments {
            let query = self.begin(cpu, sql);
            thread::sleep(moment);
            let begin = Instant::now();
            drop(query);
            while !is_quiet(cpu) && begin.elapsed() < PATIENCE {
                thread::sleep(Duration::from_micros(200));
            }
            longest = longest.max(begin.elapsed());
            if longest >= PATIENCE {
                break;
            }
        }
        longest.as_secs_f64() * 1e3
    }
}

fn is_quiet(cpu: &twolane::Handle) -> bool {
    let lane = cpu.metrics();
    let jobs = lane.queued + lane.running + lane.suspended;
    jobs + lane.tokio_tasks == 0 && threads_of_ended_queries() == 0
}

/// In batches of 8,192 rows, and a part for each core.
fn numbers() -> Result<MemTable> {
    let batch = |from: i64| {
        let rows = from..(from + 8_192).min(100_000);
        let one: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone().map(|_| 1)));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("n", numbers), ("one", one)]).expect("of equal lengths")
    };
    let batches: Vec<_> = (0..100_000).step_by(8_192).map(batch).collect();
    let parts = batches.chunks(batches.len().div_ceil(twolane_benches::cores()));
    MemTable::try_new(batches[0].schema(), parts.map(<[_]>::to_vec).collect())
}
