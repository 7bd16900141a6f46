//! The example `query_service`, by real HTTP: rows, errors as a status, a full queue, a deadline, and
//! an end in the middle of an answer.

#[path = "../examples/query_service/main.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod example;
#[path = "../../../crates/core/tests/support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use example::{MEMORY, QUERIES, context_within, cpu_lane, serve};
use reqwest::{Client, Response};
use support::wait::wait_until;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use twolane::Handle;
use twolane_datafusion::run_on;

const ROWS: usize = 20_000;
/// It takes hours.
const ENDLESS: &str = "select value from generate_series(1, 100000000000)";

struct Site {
    url: String,
    cpu: Handle,
    ctx: SessionContext,
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), example::Error>>,
}

/// A deadline that does not matter.
const HOUR: Duration = Duration::from_secs(3600);

fn with_site(test: impl AsyncFnOnce(Site)) {
    with(HOUR, MEMORY, test);
}

/// A service with a table `numbers` in a Parquet file.
fn with(limit: Duration, memory: usize, test: impl AsyncFnOnce(Site)) {
    let _limit = support::time_limit();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers").display().to_string();
    let io = Runtime::new().unwrap();
    io.block_on(async {
        let cpu = cpu_lane().unwrap();
        let handle = cpu.handle().clone();
        let ctx = context_within(memory, &handle).unwrap();
        let own = ctx.clone();
        let write = async move {
            let sql = format!("select value as n, 'row' as name from generate_series(1, {ROWS})");
            let rows = own.sql(&sql).await?;
            let options = DataFrameWriteOptions::new();
            rows.write_parquet(&format!("{path}/"), options, None)
                .await?;
            let options = ParquetReadOptions::default();
            own.register_parquet("numbers", &path, options).await
        };
        run_on(&handle, write).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let server = serve(listener, cpu, ctx.clone(), limit, async {
            drop(stopped.await)
        });
        test(Site {
            url,
            cpu: handle,
            ctx,
            stop,
            server: tokio::spawn(server),
        })
        .await;
    });
}

impl Site {
    async fn begin(&self, sql: &str) -> Response {
        self.begin_as("*/*", sql).await
    }

    async fn begin_as(&self, accept: &str, sql: &str) -> Response {
        let request = Client::new().post(format!("{}/query", self.url));
        let request = request.header("accept", accept).body(sql.to_owned());
        request.send().await.unwrap()
    }

    async fn query(&self, sql: &str) -> (u16, String) {
        let answer = self.begin(sql).await;
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

#[test]
fn rows_are_lines_of_json() {
    with_site(async |site: Site| {
        let two = "{\"n\":1,\"name\":\"row\"}\n{\"n\":2,\"name\":\"row\"}\n";
        let sql = "select * from numbers where n < 3 order by n";
        assert_eq!(site.query(sql).await, (200, two.into()));
        let none = "select * from numbers where n < 0";
        assert_eq!(site.query(none).await, (200, String::new()));
        let all: String = (1..=ROWS).map(|n| format!("{{\"n\":{n}}}\n")).collect();
        let (status, rows) = site.query("select n from numbers order by n").await;
        assert!((status, rows) == (200, all), "other rows");
    });
}

const ARROW: &str = "application/vnd.apache.arrow.stream";

fn decoded(body: &[u8]) -> Result<Vec<RecordBatch>, ArrowError> {
    StreamReader::try_new(body, None)?.collect()
}

#[test]
fn rows_are_a_stream_of_arrow() {
    with_site(async |site: Site| {
        let accept = format!("{ARROW}; q=1, application/x-ndjson; q=0.5");
        let sql = "select n, arrow_cast(name, 'Dictionary(Int32, Utf8)') as name from numbers";
        let answer = site.begin_as(&accept, &format!("{sql} order by n")).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], ARROW);
        let body = answer.bytes().await.unwrap();
        let batches = decoded(&body).unwrap();
        assert!(batches.len() > 1, "a test of several batches");
        let numbers = batches.iter().flat_map(|batch| {
            let names = batch.column(1).as_any_dictionary();
            assert_eq!(names.values().as_string::<i32>().value(0), "row");
            batch.column(0).as_primitive::<Int64Type>().values()
        });
        assert!(numbers.copied().eq(1..=ROWS as i64), "other rows");
        // A reader stops at the end that the body marks, and reads no second copy.
        let twice = [&body[..], &body[..]].concat();
        let batches = decoded(&twice).unwrap();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, ROWS);

        // No rows are a schema.
        let none = "select * from numbers where n < 0";
        let body = site.begin_as(ARROW, none).await.bytes().await.unwrap();
        let reader = StreamReader::try_new(&body[..], None).unwrap();
        let schema = reader.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
        assert_eq!(names, ["n", "name"]);
        assert_eq!(reader.count(), 0);
    });
}

const LIMIT: Duration = Duration::from_millis(200);

fn until_all_have_ended(site: &Site) {
    wait_until(|| site.cpu.metrics().permits_in_use == 0);
}

/// With later and later deadlines, until the test says that what it is about has begun before its
/// deadline: on a slow machine that takes a later one.
fn with_deadlines(test: impl AsyncFn(&Site) -> bool) {
    for limit in (0..).map(|nth| LIMIT * (1 << nth)) {
        let mut has_begun = false;
        with(limit, MEMORY, async |site: Site| {
            has_begun = test(&site).await;
            until_all_have_ended(&site);
        });
        if has_begun {
            return;
        }
    }
}

#[test]
fn a_deadline_before_the_first_row_is_a_504() {
    with(LIMIT, MEMORY, async |site: Site| {
        let sql = format!("select count(*) from ({ENDLESS})");
        assert_eq!(site.query(&sql).await.0, 504);
        until_all_have_ended(&site);
    });
}

/// It kept its place, and with 16 of them each query was a 503.
#[test]
fn a_text_that_is_planned_for_long_is_a_504_and_no_more() {
    with_deadlines(async |site| {
        let (begins, begun) = mpsc::channel();
        let (_let_go, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        // With a literal it is called while the query is planned.
        let stuck = Arc::new(move |values: &[ColumnarValue]| {
            begins.send(()).unwrap();
            let _ = wait.lock().unwrap().recv();
            Ok(values[0].clone())
        });
        let (from, to) = (vec![DataType::Int64], DataType::Int64);
        let stuck = create_udf("stuck", from, to, Volatility::Immutable, stuck);
        site.ctx.register_udf(stuck);
        assert_eq!(site.query("select stuck(1)").await.0, 504);
        // Though it is still there.
        until_all_have_ended(site);
        let health = reqwest::get(format!("{}/health", site.url)).await.unwrap();
        assert_eq!(health.status(), 200);
        begun.try_recv().is_ok()
    });
}

/// Not an end, which would pass for all rows. Nor does an answer that is not read go on for ever.
#[test]
fn a_deadline_breaks_an_answer_that_goes_on() {
    for (accept, is_read) in [("*/*", true), (ARROW, true), ("*/*", false)] {
        with_deadlines(async |site| {
            let answer = site.begin_as(accept, ENDLESS).await;
            if answer.status() == 504 {
                return false;
            }
            assert_eq!(answer.status(), 200);
            if !is_read {
                until_all_have_ended(site);
            }
            assert!(answer.bytes().await.is_err());
            true
        });
    }
}

#[test]
fn an_early_error_is_a_status() {
    with_site(async |site: Site| {
        for (sql, status) in [
            ("selct 1", 400),
            ("select * from nowhere", 400),
            ("select nothing from numbers", 400),
            (
                "create external table t stored as csv location '/etc/passwd'",
                400,
            ),
            ("copy numbers to '/tmp/numbers.csv'", 400),
            ("set datafusion.execution.batch_size = 1", 400),
            ("select n / (n - n) from numbers", 400),
            ("select arrow_cast(n, 'Nope') from numbers", 500),
            ("select 1; select 2", 400),
            ("begin", 400),
            ("call x()", 400),
            ("with x as (insert into numbers values (1)) select 1", 400),
            ("explain select * from numbers", 400),
            (&format!("select {}1", "1+".repeat(1_000)), 400),
        ] {
            let (found, text) = site.query(sql).await;
            assert_eq!(found, status, "{sql}: {text}");
            assert_eq!(text.is_empty(), status == 500, "{sql}: {text}");
        }
    });
}

/// Of all queries together. The text says which had how much.
#[test]
fn a_query_without_memory_is_a_507() {
    with(HOUR, 8 << 20, async |site: Site| {
        // The table of a join does not spill.
        let rows = "generate_series(1, 3000000)";
        let sql = format!("select count(*) from {rows} a(n) join {rows} b(n) on a.n = b.n");
        let (status, text) = site.query(&sql).await;
        assert_eq!(status, 507, "{text}");
        assert!(text.contains("Resources exhausted"), "{text}");
    });
}

/// An answer whose client does not read keeps its place.
#[test]
fn a_full_queue_is_a_503_and_answers_that_are_not_read_count() {
    with_site(async |site: Site| {
        let mut answers = Vec::new();
        for _ in 0..QUERIES {
            let answer = site.begin(ENDLESS).await;
            assert_eq!(answer.status(), 200);
            answers.push(answer);
        }
        let shed = site.begin("select 1").await;
        assert_eq!(shed.status(), 503);
        assert_eq!(shed.headers()["retry-after"], "1");
        drop(answers);
        // Until axum sees that a client has gone.
        while site.begin("select 1").await.status() == 503 {}
        let one = (200, "{\"x\":1}\n".to_owned());
        assert_eq!(site.query("select 1 as x").await, one);
    });
}

#[test]
fn ctrl_c_breaks_an_answer_that_goes_on() {
    with_site(async |site: Site| {
        let mut answer = site.begin(ENDLESS).await;
        assert!(answer.chunk().await.unwrap().is_some());
        drop(site.stop);
        // Not an end, which would pass for all rows.
        while let Some(chunk) = answer.chunk().await.transpose() {
            if chunk.is_err() {
                site.server.await.unwrap().unwrap();
                return;
            }
        }
        panic!("the answer ended");
    });
}

/// The status is still open: the client learns that it may try again elsewhere.
#[test]
fn ctrl_c_before_the_first_row_is_a_503() {
    with_site(async |site: Site| {
        let sql = format!("select count(*) from ({ENDLESS})");
        let request = Client::new().post(format!("{}/query", site.url)).body(sql);
        let counting = tokio::spawn(request.send());
        wait_until(|| site.cpu.metrics().suspended > 0);
        drop(site.stop);
        let answer = counting.await.unwrap().unwrap();
        assert_eq!(answer.status(), 503);
        site.server.await.unwrap().unwrap();
    });
}
