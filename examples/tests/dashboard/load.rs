//! The load: calm, then more than the lane takes, then calm again, with all that can
//! happen to a job.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Client;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout};

use crate::service::Error;

pub(crate) async fn put(service: SocketAddr, time: Duration) -> Result<(), Error> {
    let begin = Instant::now();
    let end = begin + time;
    let crowd = (begin + time / 3, begin + time * 2 / 3);
    let client = Client::new();
    let all = [
        Visitor::calm("work/normal/3", 12, end),
        Visitor::calm("work/high/1", 8, end),
        Visitor::calm("work/low/20", 10, end),
        Visitor::calm("panic", 2, end),
        Visitor::calm("digest", 2, end),
        Visitor::calm("report", 1, end),
        // The job is still queued, or runs: its client has gone.
        Visitor {
            leaves_after: Some(Duration::from_millis(10)),
            ..Visitor::calm("work/normal/40", 3, end)
        },
        Visitor {
            from: crowd.0,
            ..Visitor::calm("work/normal/15/within/5", 40, crowd.1)
        },
        Visitor {
            from: crowd.0,
            ..Visitor::calm("work/normal/8", 400, crowd.1)
        },
    ];
    let mut visitors = JoinSet::new();
    for visitor in all {
        visitors.spawn(visitor.visit(client.clone(), service));
    }
    while let Some(ended) = visitors.join_next().await {
        ended?;
    }
    Ok(())
}

struct Visitor {
    path: &'static str,
    a_second: u32,
    leaves_after: Option<Duration>,
    from: Instant,
    until: Instant,
}

impl Visitor {
    fn calm(path: &'static str, a_second: u32, until: Instant) -> Self {
        Self {
            path,
            a_second,
            leaves_after: None,
            from: Instant::now(),
            until,
        }
    }

    /// Sends a request whenever one is due, whatever becomes of the others.
    async fn visit(self, client: Client, service: SocketAddr) {
        let url = format!("http://{service}/{}", self.path);
        tokio::time::sleep_until(self.from).await;
        // No divisor of a second: else each sample of the metrics, one a second, could come
        // when no request is under way.
        let mut due = interval(Duration::from_millis(930) / self.a_second);
        let mut requests = JoinSet::new();
        while Instant::now() < self.until {
            due.tick().await;
            let request = client.get(&url).send();
            let patience = self.leaves_after.unwrap_or(Duration::from_secs(60));
            requests.spawn(timeout(
                patience,
                async move { request.await?.bytes().await },
            ));
            while requests.try_join_next().is_some() {}
        }
    }
}
