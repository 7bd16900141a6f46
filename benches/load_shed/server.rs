//! What serves, and how: one contender in this process, until it is killed.

use std::error::Error;
use std::time::Duration;

use axum::serve::ListenerExt;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use twolane_benches::tail::work::Work;

use crate::{others, service};

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Twolane,
    Inline,
    SpawnBlocking,
    SpawnBlockingLimited,
}

/// The role of a process, and what `measure` asks for.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Server {
    pub side: Side,
    /// The work of a request; as much as takes 10 ms unless given.
    pub steps: Option<u64>,
    /// Requests that may be taken on at a time, where there is a limit.
    pub limit: usize,
}

impl Server {
    /// Says on stdout which port it is, and how much work a request is.
    pub fn run(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let runtime = tokio::runtime::Runtime::new()?;
        let steps = self.steps.unwrap_or_else(|| calibrated().steps);
        let work = Work { steps };
        runtime.block_on(async {
            // The lane lives as long as its service.
            let _lane;
            let router = match self.side {
                Side::Twolane => {
                    let (router, cpu) = service::router(work, self.limit)?;
                    _lane = cpu;
                    router
                }
                Side::Inline => others::inline(work),
                Side::SpawnBlocking => others::spawn_blocking(work),
                Side::SpawnBlockingLimited => others::spawn_blocking_limited(work, self.limit),
            };
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            println!(
                "port {} steps {}",
                listener.local_addr()?.port(),
                work.steps
            );
            // Else the kernel holds small answers back for 40 ms.
            let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
            axum::serve(listener, router).await?;
            Ok(())
        })
    }
}

pub fn calibrated() -> Work {
    Work::calibrated(Duration::from_millis(10))
}

/// Asks before each of twenty pieces whether to go on: work that is cancelled stops that soon.
pub fn compute<E>(work: Work, mut go_on: impl FnMut() -> Result<(), E>) -> Result<String, E> {
    const PIECES: u64 = 20;
    for _ in 0..PIECES {
        go_on()?;
        work.piece(PIECES).run();
    }
    Ok(format!("{} steps\n", work.steps))
}
