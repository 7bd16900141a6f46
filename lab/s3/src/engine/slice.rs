//! One contender at work for some seconds: bursts of flushes, with or without
//! compactions beside them.
//!
//! The source of the flushes is a thread that does nothing else, and it does
//! not wait for one burst to end before it sends the next: a flush's latency
//! counts from when it was due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use object_store_0_14::{ObjectStore, path::Path};

use super::client::Connector;
use super::contender::{Contender, World, store_builder};
use super::fixture::{self, Input};
use super::lsm::Error;
use super::lsm::compact::compact;
use super::lsm::file::File;
use super::lsm::flush::{MEMTABLE_ROWS, flush};
use super::lsm::row::{Fingerprint, Row, readings};
use super::lsm::steps::Steps;
use super::verify;
use crate::server::Access;

pub const BURST: usize = 4;
pub const BURST_EVERY: Duration = Duration::from_millis(100);
pub const COMPACTORS: usize = 4;

/// What goes on beside the flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    Alone,
    /// `COMPACTORS` compactions, always.
    Busy,
}

/// Connections and threads are there, and the first compactions are not in step.
const WARM_UP: Duration = Duration::from_millis(700);

/// One flush or compaction that has ended.
#[derive(Clone, Debug)]
pub struct Operation {
    /// When it should have begun.
    pub due: Instant,
    pub end: Instant,
    pub steps: Steps,
}

impl Operation {
    pub fn took_ms(&self) -> f64 {
        (self.end - self.due).as_secs_f64() * 1e3
    }
}

/// What one slice gave.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The time that counts, after the warm-up.
    pub start: Instant,
    pub end: Instant,
    /// Those that were due in it.
    pub flushes: Vec<Operation>,
    /// All that touched it.
    pub compactions: Vec<Operation>,
    /// Read back, of all that was written.
    pub rows_verified: u64,
}

impl Slice {
    pub fn ms_from_start(&self, at: Instant) -> f64 {
        let before = self.start.saturating_duration_since(at).as_secs_f64();
        (at.saturating_duration_since(self.start).as_secs_f64() - before) * 1e3
    }

    /// Compactions a second: one that was only partly in the time counts in
    /// part.
    pub fn compactions_per_s(&self) -> f64 {
        let part = |one: &Operation| {
            let inside = one.end.min(self.end) - one.due.max(self.start).min(self.end);
            inside.as_secs_f64() / (one.end - one.due).as_secs_f64()
        };
        let done: f64 = self.compactions.iter().map(part).sum();
        done / (self.end - self.start).as_secs_f64()
    }
}

/// The places and the runtime from which slices are run.
pub struct Bench {
    access: Access,
    store: Arc<dyn ObjectStore>,
    folder: Path,
    inputs: Vec<Input>,
    runtime: tokio::runtime::Runtime,
    idle_class: bool,
}

enum Done {
    Flush(Operation, Result<File, Error>, Fingerprint),
    Compaction(Operation, Result<File, Error>, Fingerprint),
    /// One of the compactors.
    Stopped,
}

impl Bench {
    /// Writes the compactions' input.
    pub fn new(access: Access, idle_class: bool) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let store: Arc<dyn ObjectStore> = Arc::new(
            store_builder(&access)
                .with_http_connector(Connector::default())
                .build()?,
        );
        let folder = Path::from(format!("flush-compact-{}", std::process::id()));
        let inputs = runtime.block_on(async {
            let inputs = (0..COMPACTORS).map(|i| fixture::input(&*store, &folder, i));
            futures::future::try_join_all(inputs).await
        })?;
        Ok(Self {
            access,
            store,
            folder,
            inputs,
            runtime,
            idle_class,
        })
    }

    pub fn slice(
        &self,
        contender: Contender,
        load: Load,
        measured: Duration,
    ) -> Result<Slice, Error> {
        let folder = self.folder.clone().join("slice");
        let bursts = (WARM_UP + measured).div_duration_f64(BURST_EVERY).ceil() as usize;
        let memtables: Vec<_> = (0..bursts * BURST).map(|i| memtable(i as u64)).collect();
        let compactors = match load {
            Load::Alone => 0,
            Load::Busy => COMPACTORS,
        };
        let memtables_sent = memtables.len();
        let world = World::new(contender, &self.access, self.idle_class)?;

        let begin = Instant::now();
        let start = begin + WARM_UP;
        let end = start + measured;
        let stop = Arc::new(AtomicBool::new(false));
        let (done, results) = mpsc::channel();
        for (i, input) in self.inputs.iter().take(compactors).enumerate() {
            let prefix = folder.clone().join(format!("compacted-{i}"));
            world.spawn_compaction(compact_on_and_on(
                &world,
                input.clone(),
                prefix,
                &stop,
                &done,
            ));
        }
        for (i, (rows, fingerprint)) in memtables.into_iter().enumerate() {
            let due = begin + BURST_EVERY * (i / BURST) as u32;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let path = folder.clone().join(format!("flushed-{i}"));
            world.spawn_flush(flush_once(&world, due, rows, fingerprint, path, &done));
        }
        thread::sleep(end.saturating_duration_since(Instant::now()));
        stop.store(true, Relaxed);
        drop(done);

        let mut slice = Slice {
            start,
            end,
            flushes: Vec::new(),
            compactions: Vec::new(),
            rows_verified: 0,
        };
        let mut written = Vec::new();
        // Until the last of them has ended, in whatever way.
        let mut unheard = memtables_sent + compactors;
        for done in results {
            let (file, fingerprint) = match done {
                Done::Flush(flush, file, fingerprint) => {
                    unheard -= 1;
                    if flush.due >= start {
                        slice.flushes.push(flush);
                    }
                    (file, fingerprint)
                }
                Done::Compaction(compaction, file, fingerprint) => {
                    if compaction.end > start {
                        slice.compactions.push(compaction);
                    }
                    (file, fingerprint)
                }
                Done::Stopped => {
                    unheard -= 1;
                    continue;
                }
            };
            written.push((file?, fingerprint));
        }
        if unheard > 0 {
            return Err(format!("{unheard} flushes or compactors were lost").into());
        }
        drop(world);
        slice.rows_verified = written
            .iter()
            .map(|(_, fingerprint)| fingerprint.rows)
            .sum();
        self.runtime.block_on(async {
            verify::verify(&*self.store, written).await?;
            verify::clear(&*self.store, &folder).await
        })?;
        Ok(slice)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let cleared = verify::clear(&*self.store, &self.folder);
        if let Err(error) = self.runtime.block_on(cleared) {
            eprintln!("{} is left in the store: {error}", self.folder);
        }
    }
}

fn memtable(nth: u64) -> (Vec<Row>, Fingerprint) {
    let rows = readings(200, MEMTABLE_ROWS, nth, 1);
    let fingerprint = Fingerprint::of(&rows);
    (rows, fingerprint)
}

fn flush_once(
    world: &World,
    due: Instant,
    rows: Vec<Row>,
    fingerprint: Fingerprint,
    path: Path,
    done: &Sender<Done>,
) -> impl Future<Output = ()> + Send + use<> {
    let (store, cpu, done) = (world.store.clone(), world.cpu, done.clone());
    async move {
        let mut steps = Steps::default();
        let file = flush(&*store, cpu, rows, path, &mut steps).await;
        let end = Instant::now();
        let _ = done.send(Done::Flush(
            Operation { due, end, steps },
            file,
            fingerprint,
        ));
    }
}

fn compact_on_and_on(
    world: &World,
    input: Input,
    prefix: Path,
    stop: &Arc<AtomicBool>,
    done: &Sender<Done>,
) -> impl Future<Output = ()> + Send + use<> {
    let (store, cpu) = (world.store.clone(), world.cpu);
    let (stop, done) = (stop.clone(), done.clone());
    async move {
        for i in 0.. {
            let due = Instant::now();
            let mut steps = Steps::default();
            let path = prefix.clone().join(i.to_string());
            let file = compact(&*store, cpu, &input.files, path, &mut steps).await;
            let failed = file.is_err();
            let end = Instant::now();
            let operation = Operation { due, end, steps };
            let _ = done.send(Done::Compaction(operation, file, input.fingerprint));
            if failed || stop.load(Relaxed) {
                break;
            }
        }
        let _ = done.send(Done::Stopped);
    }
}
