//! Lanes, a file, a function that sees where it is decoded, and a store that sees its requests.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::mpsc;
use twolane_core::{Builder, CpuRuntime};
use twolane_vortex::on_lane;
use vortex::VortexSessionDefault;
use vortex::array::arrays::{ChunkedArray, PrimitiveArray};
use vortex::array::dtype::DType;
use vortex::array::expr::root;
use vortex::array::scalar_fn::{
    Arity, ChildName, EmptyOptions, ExecutionArgs, ScalarFnId, ScalarFnVTable, ScalarFnVTableExt,
};
use vortex::array::{ArrayRef, Canonical, ExecutionCtx, IntoArray};
use vortex::error::VortexResult;
use vortex::expr::Expression;
use vortex::file::{OpenOptionsSessionExt, VortexFile, WriteOptionsSessionExt};
use vortex::session::VortexSession;

use crate::limit::thread_name;

pub const ROWS: u64 = 1_000_000;

pub struct Lanes {
    pub cpu: CpuRuntime,
    pub io: tokio::runtime::Runtime,
}

/// An I/O runtime of two workers named `io`, and a CPU lane of two threads named `cpu-N`.
pub fn lanes(set: impl FnOnce(Builder) -> Builder) -> Lanes {
    let mut io = tokio::runtime::Builder::new_multi_thread();
    let io = io.worker_threads(2).thread_name("io").enable_all();
    let io = io.build().unwrap();
    let builder = CpuRuntime::builder().worker_threads(2);
    let builder = builder.thread_name("cpu").io_handle(io.handle().clone());
    let cpu = set(builder).build().unwrap();
    Lanes { cpu, io }
}

impl Lanes {
    pub fn session(&self) -> VortexSession {
        on_lane(VortexSession::default(), self.cpu.handle())
    }

    /// Waits until the lane has that many jobs. The test's time limit ends it otherwise.
    pub async fn until_jobs(&self, left: u64) {
        until(|| {
            let jobs = self.cpu.handle().metrics();
            jobs.queued + jobs.running + jobs.suspended == left
        })
        .await;
    }
}

pub async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

/// Names of threads, without their numbers.
#[derive(Clone, Default)]
pub struct Names(Arc<Mutex<BTreeSet<String>>>);

impl Names {
    pub fn see(&self) {
        let name = thread_name();
        let kind = name.split('-').next().unwrap();
        self.0.lock().unwrap().insert(kind.to_owned());
    }

    pub fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().cloned().collect()
    }
}

/// A function of one argument, which it decodes and returns.
#[derive(Clone, Default)]
pub struct Seen {
    pub names: Names,
    pub panics: Arc<AtomicBool>,
}

impl Seen {
    pub fn of_root(&self) -> Expression {
        self.new_expr(EmptyOptions, [root()])
    }
}

impl ScalarFnVTable for Seen {
    type Options = EmptyOptions;

    fn id(&self) -> ScalarFnId {
        ScalarFnId::new("twolane.seen")
    }

    fn arity(&self, _: &EmptyOptions) -> Arity {
        Arity::Exact(1)
    }

    fn child_name(&self, _: &EmptyOptions, _: usize) -> ChildName {
        ChildName::from("input")
    }

    fn return_dtype(&self, _: &EmptyOptions, arguments: &[DType]) -> VortexResult<DType> {
        Ok(arguments[0].clone())
    }

    fn execute(
        &self,
        _: &EmptyOptions,
        arguments: &dyn ExecutionArgs,
        ctx: &mut ExecutionCtx,
    ) -> VortexResult<ArrayRef> {
        assert!(!self.panics.load(SeqCst), "a broken function");
        self.names.see();
        let decoded = arguments.get(0)?.execute::<Canonical>(ctx)?;
        Ok(decoded.into_array())
    }
}

/// Numbers that bit-packing makes smaller: a file of some MB, in tens of chunks.
pub fn numbers() -> ArrayRef {
    let chunk = |rows: Range<u64>| {
        let numbers = rows.map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44);
        numbers.collect::<PrimitiveArray>().into_array()
    };
    let starts = (0..ROWS).step_by(65_536);
    let chunks: Vec<ArrayRef> = starts.map(|n| chunk(n..(n + 65_536).min(ROWS))).collect();
    let dtype = chunks[0].dtype().clone();
    ChunkedArray::try_new(chunks, dtype).unwrap().into_array()
}

/// The numbers as a file, written by `session`.
pub async fn write(session: &VortexSession, numbers: ArrayRef) -> Vec<u8> {
    let mut bytes = Vec::new();
    let write = session.write_options();
    let summary = write
        .write(&mut bytes, numbers.to_array_stream())
        .await
        .unwrap();
    assert_eq!(summary.row_count(), ROWS);
    bytes
}

/// That file, written once for all tests.
pub fn file() -> &'static Bytes {
    static FILE: OnceLock<Bytes> = OnceLock::new();
    FILE.get_or_init(|| {
        let lanes = lanes(|builder| builder);
        let bytes = lanes.io.block_on(write(&lanes.session(), numbers()));
        assert!(bytes.len() > 2_000_000, "{}", bytes.len());
        bytes.into()
    })
}

pub async fn open(session: &VortexSession, store: &Store) -> VortexResult<VortexFile> {
    let store: Arc<dyn ObjectStore> = Arc::new(store.clone());
    // Without what opening has read anyway.
    let options = session.open_options().without_segment_cache();
    options
        .open_object_store(&store, Path::from("numbers"))
        .await
}

/// A store in memory that sees where its requests for data run.
#[derive(Clone, Debug, Default)]
pub struct Store {
    memory: Arc<InMemory>,
    requests: Names,
    heads: Names,
    /// Where requests stay, once it is there: each sends a message, and one when it is dropped.
    stuck: Arc<Mutex<Option<mpsc::UnboundedSender<&'static str>>>>,
}

impl Store {
    /// With the file of [`file`] in it.
    pub fn with_file() -> Self {
        let store = Self::default();
        let (path, bytes) = (Path::from("numbers"), file().clone());
        let put = store.put_opts(&path, bytes.into(), PutOptions::default());
        futures::executor::block_on(put).unwrap();
        store
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.seen()
    }

    pub fn heads(&self) -> Vec<String> {
        self.heads.seen()
    }

    /// From now on requests for data have no end.
    pub fn stick(&self) -> mpsc::UnboundedReceiver<&'static str> {
        let (sender, messages) = mpsc::unbounded_channel();
        *self.stuck.lock().unwrap() = Some(sender);
        messages
    }
}

struct Stuck(mpsc::UnboundedSender<&'static str>);

impl Drop for Stuck {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seen().fmt(f)
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[async_trait]
impl ObjectStore for Store {
    async fn put_opts(
        &self,
        to: &Path,
        data: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.memory.put_opts(to, data, options).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.memory.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
        if options.head {
            self.heads.see();
            return self.memory.get_opts(from, options).await;
        }
        self.requests.see();
        // As a client that spawns its connections.
        let requests = self.requests.clone();
        tokio::spawn(async move { requests.see() }).await.unwrap();
        let stuck = self.stuck.lock().unwrap().clone();
        if let Some(sender) = stuck {
            sender.send("stuck").unwrap();
            let _stuck = Stuck(sender);
            std::future::pending::<()>().await;
        }
        self.memory.get_opts(from, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.memory.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.memory.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.memory.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.memory.copy_opts(from, to, options).await
    }
}
