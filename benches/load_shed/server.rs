//! What serves, and how: one contender in this process, until it is killed.

use std::error::Error;

use axum::serve::ListenerExt;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::work::Work;
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
    /// The work of a request, in slices of half a millisecond or so; calibrated to 10 ms unless
    /// given.
    pub slices: Option<u32>,
    /// Requests that may be taken on at a time, where there is a limit.
    pub limit: usize,
}

impl Server {
    /// Says on stdout which port it is, and how much work a request is.
    pub fn run(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let runtime = tokio::runtime::Runtime::new()?;
        let work = self.slices.map_or_else(Work::calibrated, Work::of);
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
                "port {} slices {}",
                listener.local_addr()?.port(),
                work.slices
            );
            // Else the kernel holds small answers back for 40 ms.
            let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
            axum::serve(listener, router).await?;
            Ok(())
        })
    }
}
