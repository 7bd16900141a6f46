//! Lanes, a file, a function that sees where it is decoded, and a store that sees its requests.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use futures::future::{BoxFuture, pending, ready};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt};
use tokio::sync::mpsc;
use twolane_core::Builder;
use twolane_vortex::on_lane;
use vortex::VortexSessionDefault;
use vortex::array::arrays::{ChunkedArray, PrimitiveArray};
use vortex::array::dtype::DType;
use vortex::array::expr::root;
use vortex::array::scalar_fn::{
    Arity, ChildName, EmptyOptions, ExecutionArgs, ScalarFnId, ScalarFnVTable, ScalarFnVTableExt,
};
use vortex::array::{ArrayRef, Canonical, ExecutionCtx, IntoArray, VortexSessionExecute};
use vortex::error::VortexResult;
use vortex::expr::Expression;
use vortex::file::{OpenOptionsSessionExt, VortexFile, WriteOptionsSessionExt};
use vortex::session::VortexSession;

use crate::seen::{See, Seen};
use crate::support::wait::wait_until;
use crate::support::{self, Lanes, thread_name};

pub const ROWS: u64 = 1_000_000;

/// As users have them.
pub fn lanes_with(set: impl FnOnce(Builder) -> Builder) -> Lanes {
    support::lanes_with(2, |lane| set(lane.short_jobs_first(true)))
}

pub fn lanes() -> Lanes {
    lanes_with(|lane| lane)
}

impl Lanes {
    pub fn session(&self) -> VortexSession {
        on_lane(VortexSession::default(), self.cpu.handle())
    }

    /// Waits until the lane has that many jobs.
    pub fn until_jobs(&self, left: u64) {
        wait_until(|| {
            let jobs = self.cpu.handle().metrics();
            jobs.queued + jobs.running + jobs.suspended == left
        });
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
pub struct Decoder {
    pub names: Names,
    pub panics: Arc<AtomicBool>,
}

impl Decoder {
    pub fn of_root(&self) -> Expression {
        self.new_expr(EmptyOptions, [root()])
    }
}

impl ScalarFnVTable for Decoder {
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
        let lanes = lanes();
        let bytes = lanes.io.block_on(write(&lanes.session(), numbers()));
        assert!(bytes.len() > 2_000_000, "{}", bytes.len());
        bytes.into()
    })
}

pub async fn open(session: &VortexSession, store: &Store) -> VortexResult<VortexFile> {
    let store: Arc<dyn ObjectStore> = store.clone();
    // Without what opening has read anyway.
    let options = session.open_options().without_segment_cache();
    options
        .open_object_store(&store, Path::from("numbers"))
        .await
}

/// What a scan maps its parts by.
pub fn decode(
    session: VortexSession,
) -> impl Fn(ArrayRef) -> VortexResult<ArrayRef> + Clone + Send + Sync + 'static {
    move |array| {
        let mut ctx = session.create_execution_ctx();
        Ok(array.execute::<Canonical>(&mut ctx)?.into_array())
    }
}

/// A store in memory.
pub type Store = Arc<Seen<InMemory, Requests>>;

/// One that has the file of [`file`].
pub fn store() -> Store {
    let (store, by) = (InMemory::new(), Requests::default());
    let path = Path::from("numbers");
    let put = store.put(&path, file().clone().into());
    futures::executor::block_on(put).unwrap();
    Arc::new(Seen { store, by })
}

/// Where the requests for data run, and the others.
#[derive(Clone, Default)]
pub struct Requests {
    pub data: Names,
    pub heads: Names,
    /// Where requests stay, once it is there: each sends a message, and one when it is dropped.
    stuck: Arc<Mutex<Option<mpsc::UnboundedSender<&'static str>>>>,
}

impl Requests {
    /// From now on requests for data have no end.
    pub fn stick(&self) -> mpsc::UnboundedReceiver<&'static str> {
        let (sender, messages) = mpsc::unbounded_channel();
        *self.stuck.lock().unwrap() = Some(sender);
        messages
    }

    async fn stay(self) {
        // As a client that spawns its connections.
        let data = self.data.clone();
        tokio::spawn(async move { data.see() }).await.unwrap();
        let stuck = self.stuck.lock().unwrap().clone();
        if let Some(sender) = stuck {
            sender.send("stuck").unwrap();
            let _stuck = Stuck(sender);
            pending::<()>().await;
        }
    }
}

impl See for Requests {
    fn read(&self, options: &GetOptions) -> BoxFuture<'static, ()> {
        if options.head {
            self.heads.see();
            return Box::pin(ready(()));
        }
        self.data.see();
        Box::pin(self.clone().stay())
    }
}

struct Stuck(mpsc::UnboundedSender<&'static str>);

impl Drop for Stuck {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}
