//! HTTP/1 and HTTP/2 on loopback, with connections that can be cut.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::keeper::Kept;
use crate::BoxError;

/// Cut the connections, and say when it is done.
type Cut = oneshot::Sender<()>;

pub(super) struct Web {
    address: SocketAddr,
    runtime: Runtime,
    cuts: mpsc::Sender<Cut>,
}

impl Web {
    /// Serves every connection with a clone of `service`.
    pub(super) fn start<S, B>(service: S) -> Result<Self, BoxError>
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let (cuts, mut cut) = mpsc::channel::<Cut>(1);
        runtime.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => if let Ok((socket, _)) = accepted {
                        connections.spawn(serve(socket, service.clone()));
                    },
                    Some(done) = cut.recv() => {
                        connections.shutdown().await;
                        let _ = done.send(());
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok(Self {
            address,
            runtime,
            cuts,
        })
    }
}

async fn serve<S, B>(socket: TcpStream, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    // Else the kernel holds small answers back for 40 ms.
    let _ = socket.set_nodelay(true);
    // Its error is a client that goes.
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

impl Kept for Web {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn cut(&mut self) -> Result<(), BoxError> {
        self.runtime.block_on(async {
            let (done, is_done) = oneshot::channel();
            self.cuts.send(done).await?;
            Ok(is_done.await?)
        })
    }
}
