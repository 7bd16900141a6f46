//! What must hold for twolane's service after the load: it sheds nothing while it
//! is idle, and clients that went away hold no permit of the queue.

use std::time::{Duration, Instant};

use futures::future::join_all;
use http::{StatusCode, Uri};
use tower::BoxError;

use crate::client::{Client, Running};

const ONE_BY_ONE: usize = 20;
const QUIET_WITHIN: Duration = Duration::from_secs(3);

/// Says what was found. False if something does not hold.
pub async fn all(server: &Running, limit: usize) -> Result<bool, BoxError> {
    let mut hold = true;
    for path in ["/work", "/plain"] {
        let url = server.url(path);
        become_quiet(server).await?;
        let idle = one_by_one(&url).await?;
        go_away(&url, 3 * limit).await;
        let quiet = become_quiet(server).await?;
        let at_once = served_at_once(&url, limit).await;
        let took = quiet.map_or("NEVER".to_owned(), |took| format!("after {took:.0?}"));
        println!(
            "{path:<7} idle: {idle} of {ONE_BY_ONE} served; {} clients came and went: \
             quiet {took}; then {at_once} of {limit} at once served",
            3 * limit
        );
        hold &= idle == ONE_BY_ONE && quiet.is_some() && at_once == limit;
    }
    Ok(hold)
}

async fn one_by_one(url: &Uri) -> Result<usize, BoxError> {
    let client = Client::new();
    let mut served = 0;
    for _ in 0..ONE_BY_ONE {
        served += usize::from(client.get(url).await?.0 == StatusCode::OK);
    }
    Ok(served)
}

/// More clients than permits, and all gone before most of them are served.
async fn go_away(url: &Uri, clients: usize) {
    let client = Client::new();
    let asked = join_all((0..clients).map(|_| client.get(url)));
    drop(tokio::time::timeout(Duration::from_millis(25), asked).await);
}

async fn served_at_once(url: &Uri, limit: usize) -> usize {
    let client = Client::new();
    let asked = join_all((0..limit).map(|_| client.get(url))).await;
    let is_ok = |asked: &Result<_, _>| matches!(asked, Ok((StatusCode::OK, _)));
    asked.iter().filter(|asked| is_ok(asked)).count()
}

/// How long it took until the lane had nothing to do.
async fn become_quiet(server: &Running) -> Result<Option<Duration>, BoxError> {
    let client = Client::new();
    let begun = Instant::now();
    while begun.elapsed() < QUIET_WITHIN {
        let (_, metrics) = client.get(&server.url("/metrics")).await?;
        let metrics = std::str::from_utf8(&metrics)?;
        let is_quiet = |name: &str| metrics.contains(&format!("lane_{name} 0\n"));
        if ["queued", "running", "suspended"].into_iter().all(is_quiet) {
            return Ok(Some(begun.elapsed()));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(None)
}
