//! The rule that has queries yield changes no rows.

use std::sync::Arc;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use twolane::Niceness;
use twolane_datafusion::{EnsureYields, collect_on};

use crate::support::{lanes_with, time_limit};

const QUERIES: [&str; 16] = [
    "select a.n, b.n from a join b on a.k = b.k and a.n < b.n",
    "select a.n, b.n from a left join b on a.k = b.k and a.n + b.n < 200",
    "select a.n, b.n from a right join b on a.k = b.k and a.n + b.n < 200",
    "select a.n, b.n from a full join b on a.n = b.n - 40 and a.n % 3 = 0",
    "select a.n from a where exists (select 1 from b where b.k = a.k and b.n < a.n)",
    "select a.n from a where not exists (select 1 from b where b.k = a.k and b.n < a.n)",
    "select a.n from a where a.n in (select n + 20 from b) or a.k = 1",
    "select a.n from a where a.n not in (select n + 20 from b)",
    "select a.n, b.n from a join b on a.n < b.n - 400",
    "select a.n, b.n from a left join b on a.n > b.n + 400",
    "select a.n, b.n from a full join b on a.n > b.n + 490",
    "select count(*), sum(a.n * b.n) from a cross join b",
    "select k, count(distinct n), sum(n) over (partition by k) from a group by k, n",
    "select n, row_number() over (order by n desc) from a limit 7 offset 3",
    "select n from a union all select n from b order by n limit 70",
    "with recursive t(n) as (select 1 union all select n + 1 from t where n < 50) \
        select t.n, a.k from t join a on t.n = a.n",
];

/// Tables of some batches each, which become many.
async fn context(partitions: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions);
    let context = SessionContext::new_with_config(config.with_batch_size(100));
    for name in ["a", "b"] {
        let create = format!(
            "create table {name} as select v as n, v % 11 as k from generate_series(1, 500) t(v)"
        );
        context.sql(&create).await.unwrap().collect().await.unwrap();
    }
    context
}

#[test]
fn the_rows_are_those_of_plain_datafusion() {
    // Beside compilers on both cores, niced threads get a hundredth of a core, and unoptimized
    // queries run into the time limit.
    let lanes = lanes_with(2, |builder| builder.niceness(Niceness::off()));
    let cpu = lanes.cpu.handle().clone();
    lanes.io.block_on(async {
        for partitions in [1, 3] {
            let context = context(partitions).await;
            for sql in QUERIES {
                let frame = context.sql(sql).await.unwrap();
                let plain = frame.clone().collect().await.unwrap();
                let ours = collect_on(&cpu, frame).await.unwrap();
                let [plain, ours] = [plain, ours].map(|batches| {
                    let table = pretty_format_batches(&batches).unwrap().to_string();
                    let mut rows: Vec<_> = table.lines().map(str::to_owned).collect();
                    rows.sort();
                    rows
                });
                assert!(plain.len() > 4, "{sql} has rows");
                assert_eq!(plain, ours, "{sql}");
            }
        }
    });
}

#[test]
fn once_and_twice_are_the_same() {
    let _limit = time_limit();
    let io = tokio::runtime::Runtime::new().unwrap();
    io.block_on(async {
        let context = context(3).await;
        for sql in QUERIES {
            let plan = context.sql(sql).await.unwrap();
            let plan = plan.create_physical_plan().await.unwrap();
            let rule = |plan| EnsureYields::new().optimize(plan, &ConfigOptions::new());
            let once = rule(plan).unwrap();
            let twice = rule(Arc::clone(&once)).unwrap();
            let [once, twice] =
                [once, twice].map(|plan| displayable(&*plan).indent(true).to_string());
            assert!(once.contains("YieldExec"), "{once}");
            assert_eq!(once, twice);
            assert!(
                !sql.contains("a join b on a.k") || once.contains("divides"),
                "{once}"
            );
        }
    });
}
