//! An executor that computes nothing: the test takes its tasks and makes its reports.

use async_trait::async_trait;
use ballista_core::BALLISTA_PROTOCOL_VERSION;
use ballista_core::serde::protobuf::executor_grpc_server::{ExecutorGrpc, ExecutorGrpcServer};
use ballista_core::serde::protobuf::executor_resource::Resource;
use ballista_core::serde::protobuf::executor_status;
use ballista_core::serde::protobuf::failed_task::FailedReason;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use ballista_core::serde::protobuf::task_status::Status;
use ballista_core::serde::protobuf::{
    CancelTasksParams, CancelTasksResult, ExecutorHeartbeat, ExecutorRegistration,
    ExecutorResource, ExecutorSpecification, ExecutorStatus, FailedTask, HeartBeatParams,
    LaunchMultiTaskParams, LaunchMultiTaskResult, LaunchTaskParams, LaunchTaskResult,
    PollWorkParams, RegisterExecutorParams, RemoveJobDataParams, RemoveJobDataResult,
    ShuffleWritePartition, StopExecutorParams, StopExecutorResult, SuccessfulTask, TaskKilled,
    TaskStatus, UpdateTaskStatusParams,
};
use ballista_core::serde::scheduler::ExecutorOperatingSystemSpecification;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tonic::transport::server::{Server as Grpc, TcpIncoming};
use tonic::{Request, Response, Status as Refusal};

use crate::Server;

pub struct Puppet {
    pub id: String,
    registration: ExecutorRegistration,
    launched: UnboundedReceiver<Task>,
    cancelled: UnboundedReceiver<(u32, u32)>,
    server: JoinHandle<()>,
}

/// Of one partition, for it has one vcore.
#[derive(Debug)]
pub struct Task {
    executor: String,
    job: String,
    stage: u32,
    attempt: u32,
    id: u32,
    partitions: Vec<u32>,
}

impl Puppet {
    /// Registers it, if the scheduler pushes tasks.
    pub async fn start(id: &str, scheduler: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (launches, launched) = unbounded_channel();
        let (cancels, cancelled) = unbounded_channel();
        let service = ExecutorGrpcServer::new(Service {
            id: id.to_owned(),
            launches,
            cancels,
        });
        let server = Grpc::builder().add_service(service);
        let server = server.serve_with_incoming(TcpIncoming::from(listener));
        let server = tokio::spawn(async move { server.await.unwrap() });
        let vcores = Resource::Vcores(1);
        let vcores = ExecutorResource {
            resource: Some(vcores),
        };
        let registration = ExecutorRegistration {
            id: id.to_owned(),
            host: Some("127.0.0.1".to_owned()),
            port: port.into(),
            grpc_port: port.into(),
            specification: Some(ExecutorSpecification {
                resources: vec![vcores],
            }),
            os_info: Some(ExecutorOperatingSystemSpecification::default().into()),
            ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
        };
        if scheduler.state.config.is_push_staged_scheduling() {
            let metadata = Some(registration.clone());
            let register = Request::new(RegisterExecutorParams { metadata });
            scheduler.register_executor(register).await.unwrap();
        }
        Self {
            id: id.to_owned(),
            registration,
            launched,
            cancelled,
            server,
        }
    }

    /// A task that it is handed, or polls for.
    pub async fn take(&mut self, scheduler: &Server) -> Task {
        if scheduler.state.config.is_push_staged_scheduling() {
            return self.launched.recv().await.unwrap();
        }
        let mut tasks = self.poll(scheduler, 1, vec![]).await;
        tasks.pop().expect("a poll is answered with a task")
    }

    pub fn is_idle(&self) -> bool {
        self.launched.is_empty()
    }

    pub async fn report(&self, scheduler: &Server, task_status: Vec<TaskStatus>) {
        if !scheduler.state.config.is_push_staged_scheduling() {
            assert!(self.poll(scheduler, 0, task_status).await.is_empty());
            return;
        }
        let report = Request::new(UpdateTaskStatusParams {
            executor_id: self.id.clone(),
            task_status,
        });
        scheduler.update_task_status(report).await.unwrap();
    }

    async fn poll(&self, scheduler: &Server, vcores: u32, reports: Vec<TaskStatus>) -> Vec<Task> {
        let poll = Request::new(PollWorkParams {
            metadata: Some(self.registration.clone()),
            num_free_vcores: vcores,
            task_status: reports,
        });
        let answer = scheduler.poll_work(poll).await.unwrap().into_inner();
        let tasks = answer.tasks.into_iter().map(|task| Task {
            executor: self.id.clone(),
            job: task.job_id,
            stage: task.stage_id,
            attempt: task.stage_attempt_num,
            id: task.task_id,
            partitions: task.global_output_partition_ids,
        });
        tasks.collect()
    }

    pub async fn beat(&self, scheduler: &Server) {
        let beat = Request::new(HeartBeatParams {
            executor_id: self.id.clone(),
            metrics: vec![],
            status: Some(ExecutorStatus {
                status: Some(executor_status::Status::Active(String::new())),
            }),
            metadata: Some(self.registration.clone()),
        });
        scheduler.heart_beat_from_executor(beat).await.unwrap();
    }

    /// As SIGKILL does: its port is closed. The last heartbeat that the scheduler has of it is
    /// then an old one, without a wait.
    pub fn kill(self) -> ExecutorHeartbeat {
        self.server.abort();
        ExecutorHeartbeat {
            executor_id: self.id,
            ..Default::default()
        }
    }

    pub async fn told_to_cancel(&mut self, task: &Task) {
        let told = self.cancelled.recv().await.unwrap();
        assert_eq!(told, (task.stage, task.id));
    }
}

impl Task {
    pub fn done(&self) -> TaskStatus {
        // The first stage writes for two tasks of the second.
        let partitions = if self.stage == 1 {
            vec![0, 1]
        } else {
            self.partitions.clone()
        };
        let written = partitions
            .into_iter()
            .map(|partition| ShuffleWritePartition {
                partition_id: partition.into(),
                num_batches: 1,
                num_rows: 1,
                num_bytes: 1,
                ..Default::default()
            });
        self.status(Status::Successful(SuccessfulTask {
            executor_id: self.executor.clone(),
            partitions: written.collect(),
            ..Default::default()
        }))
    }

    /// As an executor reports a task that it was told to cancel.
    pub fn killed(&self) -> TaskStatus {
        self.status(Status::Failed(FailedTask {
            error: "Task cancelled".to_owned(),
            retryable: true,
            failed_reason: Some(FailedReason::TaskKilled(TaskKilled {})),
            ..Default::default()
        }))
    }

    fn status(&self, status: Status) -> TaskStatus {
        TaskStatus {
            task_id: self.id,
            job_id: self.job.clone(),
            stage_id: self.stage,
            stage_attempt_num: self.attempt,
            status: Some(status),
            ..Default::default()
        }
    }
}

struct Service {
    id: String,
    launches: UnboundedSender<Task>,
    cancels: UnboundedSender<(u32, u32)>,
}

#[async_trait]
impl ExecutorGrpc for Service {
    async fn launch_task(
        &self,
        _: Request<LaunchTaskParams>,
    ) -> Result<Response<LaunchTaskResult>, Refusal> {
        Err(Refusal::unimplemented("Ballista 55 does not call it"))
    }

    async fn launch_multi_task(
        &self,
        request: Request<LaunchMultiTaskParams>,
    ) -> Result<Response<LaunchMultiTaskResult>, Refusal> {
        for tasks in request.into_inner().multi_tasks {
            for task in tasks.task_ids {
                let _ = self.launches.send(Task {
                    executor: self.id.clone(),
                    job: tasks.job_id.clone(),
                    stage: tasks.stage_id,
                    attempt: tasks.stage_attempt_num,
                    id: task.task_id,
                    partitions: task.global_output_partition_ids,
                });
            }
        }
        Ok(Response::new(Default::default()))
    }

    async fn stop_executor(
        &self,
        _: Request<StopExecutorParams>,
    ) -> Result<Response<StopExecutorResult>, Refusal> {
        Ok(Response::new(Default::default()))
    }

    async fn cancel_tasks(
        &self,
        request: Request<CancelTasksParams>,
    ) -> Result<Response<CancelTasksResult>, Refusal> {
        for task in request.into_inner().task_infos {
            let _ = self.cancels.send((task.stage_id, task.task_id));
        }
        Ok(Response::new(CancelTasksResult { cancelled: true }))
    }

    async fn remove_job_data(
        &self,
        _: Request<RemoveJobDataParams>,
    ) -> Result<Response<RemoveJobDataResult>, Refusal> {
        Ok(Response::new(Default::default()))
    }
}

/// What the scheduler says; shown by `--nocapture`, or if a test fails.
pub fn log_to_stderr() {
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(log::LevelFilter::Debug);
    }
}

struct Stderr;

impl log::Log for Stderr {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // That it has no vcores to offer is one of its debug messages.
        let is_terse = metadata.level() <= log::Level::Info;
        let target = metadata.target();
        target == "ballista_scheduler::cluster"
            || is_terse && target.starts_with("ballista_scheduler")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{} {}: {}", record.level(), record.target(), record.args());
        }
    }

    fn flush(&self) {}
}
