//! What serves, and how: one contender in this process, until it is killed.

use std::future::Future;

use axum::Router;
use axum::serve::ListenerExt;
use clap::ValueEnum;
use tokio::net::TcpListener;
use tower::BoxError;

use crate::work::Work;
use crate::{others, service};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Contender {
    Twolane,
    Inline,
    SpawnBlocking,
    SpawnBlockingLimited,
}

impl Contender {
    /// As on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("none is skipped");
        value.get_name().to_owned()
    }
}

pub struct Server {
    pub contender: Contender,
    pub work: Work,
    pub limit: usize,
}

impl Server {
    /// Says on stdout which port it is, and how much work a request is.
    pub fn run(&self, port: u16) -> Result<(), BoxError> {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(self.serve(port))
    }

    async fn serve(&self, port: u16) -> Result<(), BoxError> {
        // The lane lives as long as its service.
        let (router, _lane) = match self.contender {
            Contender::Twolane => {
                let (router, cpu) = service::router(self.work, self.limit)?;
                (router, Some(cpu))
            }
            Contender::Inline => (others::inline(self.work), None),
            Contender::SpawnBlocking => (others::spawn_blocking(self.work), None),
            Contender::SpawnBlockingLimited => {
                let router = others::spawn_blocking_limited(self.work, self.limit);
                (router, None)
            }
        };
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        println!("port {port} slices {}", self.work.slices);
        serve_on(listener, router).await?;
        Ok(())
    }
}

fn serve_on(listener: TcpListener, router: Router) -> impl Future<Output = std::io::Result<()>> {
    // Else the kernel holds small answers back for 40 ms.
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    async move { axum::serve(listener, router).await }
}
