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
use twolane_core::Handle;

/// A pool of connections to other executors, which are opened and driven on the I/O lane.
///
/// A stage that opened one itself would need an I/O driver on the CPU lane, where there is none;
/// and the connection would wait for what computes there. What a stage reads from a connection it
/// decodes where it is itself. A new connection costs a hop to the I/O lane and back.
#[derive(Debug)]
pub(crate) struct IoClientPool {
    idle: Arc<Idle<BallistaClient>>,
    handle: Handle,
}

type Key = (String, u16, GrpcClientConfig);

/// For each key, the connections that no stage uses, the one that was used last at the end.
type Clients<C> = HashMap<Key, Vec<(Instant, C)>>;

/// A lane's thread may be preempted with the lock, so the I/O lane never waits for it; and
/// connections are dropped without it, for their drop runs code of others.
struct Idle<C> {
    clients: Mutex<Clients<C>>,
    ttl: Duration,
}

impl<C> Idle<C> {
    fn clients(&self) -> MutexGuard<'_, Clients<C>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, key: &Key) -> Option<C> {
        let now = Instant::now();
        let mut clients = self.clients();
        let (since, client) = clients.get_mut(key)?.pop()?;
        if self.is_young(since, now) {
            return Some(client);
        }
        // The others of the key are older still.
        let older = clients.remove(key);
        drop(clients);
        drop((client, older));
        None
    }

    fn put_back(&self, key: Key, client: C) {
        let entry = (Instant::now(), client);
        self.clients().entry(key).or_default().push(entry);
    }

    /// Closes those that have been idle for too long, unless a lane's thread has the lock: the
    /// next tick finds them.
    fn evict(&self) {
        let now = Instant::now();
        let Ok(mut clients) = self.clients.try_lock() else {
            return;
        };
        let mut old = Vec::new();
        clients.retain(|_, clients| {
            old.extend(clients.extract_if(.., |(since, _)| !self.is_young(*since, now)));
            !clients.is_empty()
        });
        drop(clients);
        drop(old);
    }

    fn is_young(&self, since: Instant, now: Instant) -> bool {
        now.saturating_duration_since(since) < self.ttl
    }
}

impl<C> std::fmt::Debug for Idle<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idle")
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

impl IoClientPool {
    /// Makes a pool that closes connections that have been idle for `ttl`.
    pub(crate) fn new(ttl: Duration, handle: &Handle) -> Self {
        let clients = Mutex::default();
        let idle = Arc::new(Idle { clients, ttl });
        handle
            .io()
            .runtime()
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
        let lost = |error: twolane_core::JoinError| Err(BallistaError::General(error.to_string()));
        connected.await.unwrap_or_else(lost)
    }
}

async fn evict_until_gone(idle: Weak<Idle<BallistaClient>>) {
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
        let put_back = move |client| idle.put_back(key, client);
        Ok(PooledClient::new(client, Box::new(put_back)))
    }

    async fn evict_idle(&self) {
        self.idle.evict();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that looks, in its drop, for the pool's lock.
    struct Fake(Arc<Idle<Fake>>);

    impl Drop for Fake {
        fn drop(&mut self) {
            assert!(self.0.clients.try_lock().is_ok(), "dropped under the lock");
        }
    }

    fn key(port: u16) -> Key {
        ("localhost".to_owned(), port, GrpcClientConfig::default())
    }

    fn idle(ttl: Duration) -> Arc<Idle<Fake>> {
        let clients = Mutex::default();
        let idle = Arc::new(Idle { clients, ttl });
        for port in [1, 1, 2] {
            idle.put_back(key(port), Fake(idle.clone()));
        }
        idle
    }

    fn ports(idle: &Idle<Fake>) -> Vec<(u16, usize)> {
        let clients = idle.clients();
        let count = clients.iter().map(|(key, clients)| (key.1, clients.len()));
        let mut ports: Vec<_> = count.collect();
        ports.sort();
        ports
    }

    #[test]
    fn a_young_connection_is_taken_once() {
        let idle = idle(Duration::MAX);
        idle.evict();
        assert!(idle.take(&key(2)).is_some());
        assert!(idle.take(&key(2)).is_none());
        assert!(idle.take(&key(3)).is_none());
        assert_eq!(ports(&idle), [(1, 2), (2, 0)]);
        idle.evict();
        assert_eq!(ports(&idle), [(1, 2)]);
        let rest = std::mem::take(&mut *idle.clients());
        drop(rest);
    }

    #[test]
    fn old_connections_are_closed_and_not_taken() {
        let idle = idle(Duration::ZERO);
        assert!(idle.take(&key(1)).is_none());
        assert_eq!(ports(&idle), [(2, 1)]);
        idle.evict();
        assert_eq!(ports(&idle), []);
    }

    #[test]
    fn eviction_does_not_wait_for_the_lock() {
        let idle = idle(Duration::ZERO);
        let clients = idle.clients();
        idle.evict();
        drop(clients);
        assert_eq!(ports(&idle), [(1, 2), (2, 1)]);
        idle.evict();
    }
}
