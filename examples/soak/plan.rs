//! What is drawn for a whole round, before it begins.

use fastrand::Rng;
use twolane::{Backend, CpuRuntime, Priority};

pub const PRIORITIES: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];

/// How the lane is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Shutdown,
    Timeout {
        micros: u64,
    },
    Background,
    Drop,
    /// `shutdown()`, whose future is dropped.
    Unawaited,
}

/// Where that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the thread that submits at that moment: of any submitter, or of a job.
    Anywhere,
    IoTask,
    Thread,
    Job,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub round: u64,
    pub backend: Backend,
    pub threads: usize,
    pub limits: [Option<usize>; 3],
    pub paces: bool,
    pub jobs: u32,
    /// Submitters: tasks of the I/O runtime that outlives the round, of the one
    /// that the lane is bound to, and plain threads.
    pub tasks: u32,
    pub tasks_on_own_io: u32,
    pub on_threads: u32,
    /// The lane is bound to an I/O runtime of its own.
    pub own_io: bool,
    /// With that job it dies.
    pub io_dies_at: Option<u32>,
    /// With that job the lane is shut down; none: after the last.
    pub ends_at: Option<u32>,
    pub form: Form,
    pub place: Place,
    /// How many tasks a submitter holds at most.
    pub window: usize,
}

impl Plan {
    pub fn draw(rng: &mut Rng, round: u64, backends: &[Backend], jobs: (u32, u32)) -> Self {
        let (least, most) = jobs;
        let jobs = least + rng.u32(..=(most - least)).min(rng.u32(..=(most - least)));
        let own_io = rng.u8(..4) == 0;
        let limit = |rng: &mut Rng| {
            let top = [1, 4, 64, 1024][rng.usize(..4)];
            (rng.u8(..5) < 2).then(|| rng.usize(1..=top))
        };
        Self {
            round,
            backend: backends[rng.usize(..backends.len())],
            threads: rng.usize(1..=4),
            limits: [limit(rng), limit(rng), limit(rng)],
            paces: rng.bool(),
            jobs,
            tasks: rng.u32(1..=3),
            tasks_on_own_io: if own_io { rng.u32(..=2) } else { 0 },
            on_threads: rng.u32(..=1),
            own_io,
            io_dies_at: (own_io && rng.bool()).then(|| rng.u32(..jobs)),
            ends_at: (rng.u8(..3) > 0).then(|| rng.u32(jobs / 4..jobs)),
            form: match rng.u8(..5) {
                0 => Form::Shutdown,
                1 => Form::Timeout {
                    micros: [0, 100, 2_000, 60_000_000][rng.usize(..4)],
                },
                2 => Form::Background,
                3 => Form::Drop,
                _ => Form::Unawaited,
            },
            place: match rng.u8(..4) {
                0 => Place::Anywhere,
                1 => Place::IoTask,
                2 => Place::Thread,
                _ => Place::Job,
            },
            window: [1, 8, 64, 512][rng.usize(..4)],
        }
    }

    pub fn on_rayon(&self) -> bool {
        self.backend == Backend::Rayon
    }

    pub fn is_limited(&self, level: usize) -> bool {
        self.limits[level].is_some()
    }

    /// `token`: held by the lane until its memory goes.
    pub fn build(
        &self,
        io: &tokio::runtime::Handle,
        token: impl Send + Sync + 'static,
    ) -> CpuRuntime {
        let mut builder = CpuRuntime::builder()
            .backend(self.backend)
            .worker_threads(self.threads)
            .thread_name("lane")
            .io_handle(io.clone())
            .throttle_to_quota(self.paces)
            .on_thread_start(move || {
                let _held = &token;
            });
        for (priority, limit) in PRIORITIES.into_iter().zip(self.limits) {
            if let Some(limit) = limit {
                builder = builder.queue_limit(priority, limit);
            }
        }
        builder.build().expect("a lane")
    }
}
