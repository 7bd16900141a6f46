//! Ballista's scheduler, behind a proxy that sees the heartbeats.

use std::net::TcpListener;
use std::sync::Arc;

use ballista_core::error::Result;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use serde::{Deserialize, Serialize};

use crate::common::{Common, say};
use crate::proxy::Proxy;

#[derive(Debug, Serialize, Deserialize)]
pub struct Role {
    pub common: Common,
    /// After which an executor that is not heard of is dead.
    pub timeout_seconds: u64,
}

/// What the bench asks the proxy.
#[derive(Debug, Serialize, Deserialize)]
pub enum Question {
    /// Answered by [`Seen`](crate::proxy::Seen).
    Seen,
    /// Answered by `()`.
    Forget,
}

pub fn run(role: Role) -> ! {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let ended = runtime.block_on(serve(role));
    eprintln!("the scheduler ended: {ended:?}");
    std::process::exit(1)
}

async fn serve(role: Role) -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let front = TcpListener::bind("127.0.0.1:0")?;
    let port = front.local_addr()?.port();
    let proxy = Proxy::new(listener.local_addr()?);
    proxy.serve(front);

    let access = role.common.access;
    let environment = RuntimeEnv::default();
    let store = access.builder().build().expect("a store");
    access.register_store(&environment, store);
    let environment = Arc::new(environment);
    let config = SchedulerConfig {
        external_host: "127.0.0.1".to_owned(),
        // Executors report there.
        bind_port: port,
        scheduling_policy: role.common.policy.into(),
        // So that all three have tasks.
        task_distribution: TaskDistributionPolicy::RoundRobin,
        executor_timeout_seconds: role.timeout_seconds,
        expire_dead_executor_interval_seconds: 1,
        override_session_builder: Some(Arc::new(move |config| {
            Ok(SessionStateBuilder::new()
                .with_config(config)
                .with_runtime_env(environment.clone())
                .with_default_features()
                .build())
        })),
        ..Default::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let scheduler = create_scheduler::<
        datafusion_proto::protobuf::LogicalPlanNode,
        datafusion_proto::protobuf::PhysicalPlanNode,
    >(cluster, Arc::new(config))
    .await?;
    std::thread::spawn(move || answer(&proxy));
    say(&port);
    start_grpc_service_with_listener(listener, scheduler).await
}

/// Until the bench closes our stdin.
fn answer(proxy: &Proxy) -> ! {
    for line in std::io::stdin().lines() {
        let line = line.expect("the bench asks");
        match serde_json::from_str(&line).expect("a question") {
            Question::Seen => say(&proxy.seen()),
            Question::Forget => {
                proxy.forget();
                say(&());
            }
        }
    }
    std::process::exit(0)
}
