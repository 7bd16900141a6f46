//! The clients: each has one query under way, over HTTP.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::error::Result;
use futures::future::try_join_all;
use hdrhistogram::Histogram;
use reqwest::Client;
use twolane_benches::findings::empty_histogram;
use twolane_tpch::queries;

use crate::children::text;
use crate::service::{Figures, NO_MEMORY};

/// What all clients do together.
#[derive(Clone, Copy)]
pub struct Work {
    pub clients: usize,
    /// How often each of the 22 queries is asked.
    pub passes: usize,
    /// Of the order. All contenders of a round have the same one.
    pub seed: usize,
}

pub struct Seen {
    pub seconds: f64,
    /// Nanoseconds from when a query was first asked to its answer.
    pub latencies: Histogram<u64>,
    /// Answers that say that there was no memory. The client then asks again.
    pub failed: usize,
    /// Without copies: the index of the query, and the body.
    answers: BTreeSet<(usize, Bytes)>,
    pub figures: Figures,
}

impl Seen {
    /// The numbers of the queries that had other rows than plain DataFusion's, at least once.
    pub fn unequal(&self, plain: &[u64]) -> Result<BTreeSet<usize>> {
        let mut unequal = BTreeSet::new();
        for (nth, answer) in &self.answers {
            let batches = StreamReader::try_new(&answer[..], None)?;
            let batches = batches.collect::<Result<Vec<_>, _>>()?;
            if queries::digest(&batches)? != plain[*nth] {
                unequal.insert(nth + 1);
            }
        }
        Ok(unequal)
    }
}

/// After an answer that there was no memory: long enough that asking costs little.
const AGAIN: Duration = Duration::from_millis(10);

/// Asks until all of `work` is answered.
pub fn ask(address: SocketAddr, work: Work) -> Result<Seen, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(text)?.block_on(async {
        let order = RefCell::new(order(work).into_iter());
        let seen = RefCell::new((empty_histogram(), 0, BTreeSet::new()));
        let client = Client::new();
        let url = format!("http://{address}");
        let one_client = async |_| {
            while let Some(nth) = { order.borrow_mut().next() } {
                let (answer, latency, failed) = until_answered(&client, &url, nth).await?;
                let (latencies, failures, answers) = &mut *seen.borrow_mut();
                latencies.saturating_record(latency.as_nanos() as u64);
                *failures += failed;
                answers.insert((nth, answer));
            }
            Ok::<_, String>(())
        };
        let begin = Instant::now();
        try_join_all((0..work.clients).map(one_client)).await?;
        let seconds = begin.elapsed().as_secs_f64();
        let figures = client.get(format!("{url}/figures")).send().await;
        let figures = figures.map_err(text)?.bytes().await.map_err(text)?;
        let (latencies, failed, answers) = seen.into_inner();
        Ok(Seen {
            seconds,
            latencies,
            failed,
            answers,
            figures: serde_json::from_slice(&figures).map_err(text)?,
        })
    })
}

/// The indices of the queries: all 22 in one order, then in another.
fn order(work: Work) -> Vec<usize> {
    let pass = |pass: usize| {
        let mut order: Vec<usize> = (0..queries::all().len()).collect();
        order.sort_by_cached_key(|nth| {
            let mut hasher = DefaultHasher::new();
            (work.seed, pass, nth).hash(&mut hasher);
            hasher.finish()
        });
        order
    };
    (0..work.passes).flat_map(pass).collect()
}

/// The answer, its latency, and how often there was no memory before.
async fn until_answered(
    client: &Client,
    url: &str,
    nth: usize,
) -> Result<(Bytes, Duration, usize), String> {
    let (begin, query) = (Instant::now(), queries::all()[nth]);
    for failed in 0.. {
        let answer = client.post(format!("{url}/query")).body(query).send().await;
        let answer = answer.map_err(text)?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(text)?;
        match status {
            status if status.is_success() => return Ok((body, begin.elapsed(), failed)),
            NO_MEMORY => tokio::time::sleep(AGAIN).await,
            _ => {
                let body = String::from_utf8_lossy(&body);
                return Err(format!("query {}: {status}: {body}", nth + 1));
            }
        }
    }
    unreachable!("the loop has no end")
}
