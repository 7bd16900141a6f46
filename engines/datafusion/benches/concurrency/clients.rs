//! The clients: each has one query under way, over HTTP.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::Instant;

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
    /// Nanoseconds from a query to its answer.
    pub latencies: Histogram<u64>,
    /// Queries that found no memory.
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

/// Asks for all of `work`.
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
                let begin = Instant::now();
                let answer = query(&client, &url, nth).await?;
                let (latencies, failed, answers) = &mut *seen.borrow_mut();
                match answer {
                    Some(answer) => {
                        latencies.saturating_record(begin.elapsed().as_nanos() as u64);
                        answers.insert((nth, answer));
                    }
                    None => *failed += 1,
                }
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

/// The answer, or none if the query found no memory.
async fn query(client: &Client, url: &str, nth: usize) -> Result<Option<Bytes>, String> {
    let request = client
        .post(format!("{url}/query"))
        .body(queries::all()[nth]);
    let answer = request.send().await.map_err(text)?;
    let status = answer.status();
    let body = answer.bytes().await.map_err(text)?;
    match status {
        status if status.is_success() => Ok(Some(body)),
        NO_MEMORY => Ok(None),
        _ => {
            let body = String::from_utf8_lossy(&body);
            Err(format!("query {}: {status}: {body}", nth + 1))
        }
    }
}
