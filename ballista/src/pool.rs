//! [`IoClientPool`]: shuffle connections on the I/O lane.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ballista_core::client::BallistaClient;
use ballista_core::client_pool::{BallistaClientPool, PooledClient};
use ballista_core::error::{BallistaError, Result};
use ballista_core::extension::BallistaConfigGrpcEndpoint;
use ballista_core::utils::GrpcClientConfig;
use twolane::Handle;

/// A pool of connections to other executors, which are opened and driven on the I/O lane.
///
/// A stage that opened one itself would need an I/O driver on the CPU lane, where there is none;
/// and the connection would wait for what computes there. What a stage reads from a connection it
/// decodes where it is itself.
///
/// [`on_lane`](crate::on_lane) makes one. Make one yourself only for an execution engine that
/// wants a pool.
///
/// # Errors
///
/// Those of connecting; [`BallistaError::General`] if the I/O runtime ends meanwhile.
///
/// # Cost
///
/// A hop to the I/O lane and back for each new connection.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use ballista_executor::execution_engine::DefaultExecutionEngine;
/// use ballista_executor::executor_process::ExecutorProcessConfig;
/// use twolane::{Backend, CpuRuntime};
/// use twolane_ballista::{IoClientPool, on_lane};
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cpu = CpuRuntime::builder().backend(Backend::Runtime).build()?;
/// let pool = IoClientPool::new(Duration::from_secs(30), &cpu.handle());
/// let engine = DefaultExecutionEngine::with_client_pool(Arc::new(pool));
/// let config = ExecutorProcessConfig {
///     override_execution_engine: Some(Arc::new(engine)),
///     ..Default::default()
/// };
/// let config = on_lane(config, &cpu.handle())?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct IoClientPool {
    idle: Arc<Idle>,
    handle: Handle,
}

type Key = (String, u16, GrpcClientConfig);

/// The connections that no stage uses, the one that was used last at the end.
struct Idle {
    clients: Mutex<HashMap<Key, Vec<(Instant, BallistaClient)>>>,
    ttl: Duration,
}

impl Idle {
    fn clients(&self) -> MutexGuard<'_, HashMap<Key, Vec<(Instant, BallistaClient)>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, key: &Key) -> Option<BallistaClient> {
        self.evict();
        let (_, client) = self.clients().get_mut(key)?.pop()?;
        Some(client)
    }

    /// Closes those that have been idle for too long.
    fn evict(&self) {
        let is_young = |since: &Instant| since.elapsed() < self.ttl;
        self.clients().retain(|_, clients| {
            clients.retain(|(since, _)| is_young(since));
            !clients.is_empty()
        });
    }
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idle")
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

impl IoClientPool {
    /// Makes a pool that closes connections that have been idle for `ttl`.
    pub fn new(ttl: Duration, handle: &Handle) -> Self {
        let clients = Mutex::default();
        let idle = Arc::new(Idle { clients, ttl });
        handle
            .io_handle()
            .spawn(evict_until_gone(Arc::downgrade(&idle)));
        Self {
            idle,
            handle: handle.clone(),
        }
    }

    async fn connect(
        &self,
        (host, port, config): Key,
        customize: Option<Arc<BallistaConfigGrpcEndpoint>>,
    ) -> Result<BallistaClient> {
        let connected = self.handle.spawn_io(async move {
            BallistaClient::try_new(
                &host,
                port,
                config.max_message_size,
                config.use_tls,
                customize,
                config.io_retries_times,
                config.io_retry_wait_time_ms,
                config.initial_connection_window_size,
                config.initial_stream_window_size,
            )
            .await
        });
        let lost = |error: twolane::JoinError| Err(BallistaError::General(error.to_string()));
        connected.await.unwrap_or_else(lost)
    }
}

async fn evict_until_gone(idle: Weak<Idle>) {
    let Some(ttl) = idle.upgrade().map(|idle| idle.ttl) else {
        return;
    };
    let mut ticks = tokio::time::interval(ttl.max(Duration::from_secs(1)));
    loop {
        ticks.tick().await;
        match idle.upgrade() {
            Some(idle) => idle.evict(),
            None => return,
        }
    }
}

#[async_trait]
impl BallistaClientPool for IoClientPool {
    async fn acquire(
        &self,
        host: &str,
        port: u16,
        config: &GrpcClientConfig,
        customize_endpoint: Option<Arc<BallistaConfigGrpcEndpoint>>,
    ) -> Result<PooledClient> {
        let key = (host.to_owned(), port, config.clone());
        let client = match self.idle.take(&key) {
            Some(client) => client,
            None => self.connect(key.clone(), customize_endpoint).await?,
        };
        let idle = self.idle.clone();
        let put_back = move |client| {
            let entry = (Instant::now(), client);
            idle.clients().entry(key).or_default().push(entry);
        };
        Ok(PooledClient::new(client, Box::new(put_back)))
    }

    async fn evict_idle(&self) {
        self.idle.evict();
    }
}
