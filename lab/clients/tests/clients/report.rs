//! The example `report`, with a real PostgreSQL: whole reports, rows as a stream, errors.

#[path = "../../examples/report.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod example;

use std::time::Duration;

use example::{REPORTS, cpu_lane, routes};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use twolane::{Handle, Priority};
use twolane_clients::servers::Kind;

use crate::servers::server;
use crate::support::time_limit;

/// Of 1,000 bytes each: more than an export and the sockets hold.
const ROWS: i64 = 20_000;
const MANY: i64 = 7;
const FEW: i64 = 8;

struct Site {
    url: String,
    cpu: Handle,
    pool: PgPool,
}

/// On a pool of one connection.
fn with_site(table: &str, test: impl AsyncFn(&Site)) {
    let _limit = time_limit();
    let io = Runtime::new().unwrap();
    io.block_on(async {
        let address = server(Kind::Postgres).address();
        let options = PgPoolOptions::new().max_connections(1);
        // Longer than a test may take: to wait in vain is a failure.
        let options = options.acquire_timeout(Duration::from_secs(600));
        // Each test has a table of its own.
        let schema = format!("postgres://twolane@{address}/postgres?options[search_path]={table}");
        let pool = options.connect(&schema).await.unwrap();
        for statement in [
            format!("CREATE SCHEMA {table}"),
            "CREATE TABLE sales (customer bigint, month text, cents bigint)".into(),
            "INSERT INTO sales VALUES (8, '2026-02', 250), (8, '2026-01', 100)".into(),
            format!(
                "INSERT INTO sales SELECT 7, lpad(n::text, 1000), n FROM generate_series(1, {ROWS}) n"
            ),
        ] {
            sqlx::query(&statement).execute(&pool).await.unwrap();
        }
        let cpu = cpu_lane().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Site {
            url: format!("http://{}", listener.local_addr().unwrap()),
            cpu: cpu.handle().clone(),
            pool: pool.clone(),
        };
        tokio::spawn(axum::serve(listener, routes(cpu.handle().clone(), pool)).into_future());
        test(&site).await;
        cpu.shutdown().await;
    });
}

impl Site {
    async fn get(&self, path: &str) -> (u16, String) {
        let answer = self.begin(path).await;
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn begin(&self, path: &str) -> reqwest::Response {
        reqwest::get(format!("{}/{path}", self.url)).await.unwrap()
    }
}

#[test]
fn a_report_has_all_rows() {
    with_site("reports", async |site: &Site| {
        let report = "2026-01          100          100\n2026-02          250          350\n";
        assert_eq!(
            site.get(&format!("reports/{FEW}")).await,
            (200, report.into())
        );
        assert_eq!(site.get("reports/9").await, (200, String::new()));
        let (status, report) = site.get(&format!("reports/{MANY}")).await;
        let sum = ROWS * (ROWS + 1) / 2;
        assert_eq!((status, report.lines().count() as i64), (200, ROWS));
        assert!(report.trim_end().ends_with(&sum.to_string()));
    });
}

#[test]
fn a_full_queue_is_a_503() {
    with_site("queue", async |site: &Site| {
        let low = site.cpu.with_priority(Priority::Low);
        let permits: Vec<_> = std::iter::from_fn(|| low.try_reserve().ok()).collect();
        assert_eq!(permits.len(), REPORTS);
        let (status, _) = site.get(&format!("reports/{FEW}")).await;
        assert_eq!(status, 503);
    });
}

#[test]
fn an_export_has_all_rows_in_order() {
    with_site("exports", async |site: &Site| {
        let export = "2026-01,100\n2026-02,250\n";
        assert_eq!(
            site.get(&format!("exports/{FEW}")).await,
            (200, export.into())
        );
        assert_eq!(site.get("exports/9").await, (200, String::new()));
        let all: String = (1..=ROWS).map(|n| format!("{n:>1000},{n}\n")).collect();
        let (status, export) = site.get(&format!("exports/{MANY}")).await;
        assert!((status, export) == (200, all), "other rows");
    });
}

/// Which is the only one of the pool.
#[test]
fn an_export_that_is_given_up_gives_its_connection_back() {
    with_site("given_up", async |site: &Site| {
        let mut export = site.begin(&format!("exports/{MANY}")).await;
        assert!(export.chunk().await.unwrap().is_some());
        drop(export);
        let (status, _) = site.get(&format!("reports/{FEW}")).await;
        assert_eq!(status, 200);
    });
}

#[test]
fn a_query_that_fails_is_a_500() {
    with_site("broken", async |site: &Site| {
        let drop = sqlx::query("DROP TABLE sales");
        drop.execute(&site.pool).await.unwrap();
        for path in ["reports/8", "exports/8"] {
            assert_eq!(site.get(path).await, (500, String::new()), "{path}");
        }
    });
}
