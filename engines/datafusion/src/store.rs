//! [`IoStore`]: an object store that works on the I/O lane.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    Result, UploadPart,
};
use twolane_core::Handle;

/// How much of one file is read ahead: as much as of an HTTP body.
const BYTES_AHEAD: usize = 2 * 1024 * 1024;

/// How many names of a list are read ahead.
const NAMES: usize = 1_000;
/// How many bytes of a file are read at a time.
const PIECE: u64 = 1 << 20;

/// A store whose calls run on the I/O lane.
///
/// For `LocalFileSystem`, which reads files on the blocking pool of the runtime that calls it.
/// Without it a query reads files on the blocking pool of the lane's own runtime, whose threads are niced
/// as the lane's are. In a plain job, a call would start threads of the I/O runtime's pool from a thread of
/// the lane, whose niceness they keep: then `spawn_blocking` of a request handler waits for queries.
///
/// A store that sends HTTP requests needs none: build it with
/// `twolane::io::IoConnector`, which moves the requests alone. What computes, to sign
/// and to parse, stays with the job.
///
/// # Errors
///
/// Those of the store, and [`Error::Generic`] if the I/O runtime ends during a call, or if the
/// CPU lane was shut down before it.
///
/// # Cost
///
/// A hop to the I/O lane and back for each call, and one for each MiB of a file that is read.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use datafusion::prelude::SessionContext;
/// use object_store::local::LocalFileSystem;
/// use twolane_datafusion::IoStore;
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let cpu = twolane::CpuRuntime::new()?;
/// let ctx = SessionContext::new();
/// let files = IoStore::new(LocalFileSystem::new(), cpu.handle());
/// ctx.register_object_store(&"file:///".parse()?, Arc::new(files));
/// // From now on paths and `file://` URLs go through it.
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("t.csv").display().to_string();
/// # std::fs::write(&path, "a,b\n1,2\n")?;
/// ctx.register_csv("t", path, Default::default()).await?;
/// # Ok(()) }
/// ```
pub struct IoStore<S> {
    store: Arc<S>,
    handle: Handle,
}

impl<S> IoStore<S> {
    /// Wraps `store`, to work on the I/O lane of `handle`.
    pub fn new(store: S, handle: &Handle) -> Self {
        Self {
            store: Arc::new(store),
            handle: handle.clone(),
        }
    }

    async fn on_io<T, F>(&self, call: impl FnOnce(Arc<S>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let call = self.handle.spawn_io(call(self.store.clone()));
        call.await.unwrap_or_else(|error| Err(generic(error)))
    }

    fn bytes_from_io(
        &self,
        bytes: BoxStream<'static, Result<Bytes>>,
    ) -> BoxStream<'static, Result<Bytes>> {
        from_io(&self.handle, bytes, BYTES_AHEAD, Bytes::len)
    }
}

fn generic(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic {
        store: "IoStore",
        source: error.into(),
    }
}

/// The items of a store's stream, read on the I/O lane.
fn from_io<T: Send + 'static>(
    handle: &Handle,
    stream: BoxStream<'static, Result<T>>,
    limit: usize,
    size: impl Fn(&T) -> usize + Send + 'static,
) -> BoxStream<'static, Result<T>> {
    let size = move |item: &Result<T>| item.as_ref().map_or(0, &size);
    let stream = handle.stream_from_io(stream, limit, size);
    let items = stream.map(|item| item.unwrap_or_else(|error| Err(generic(error))));
    items.boxed()
}

/// The bytes of a file. In a stream of its own, object_store goes to the blocking pool for each
/// 8 KiB.
fn pieces(
    file: File,
    path: PathBuf,
    meta: ObjectMeta,
    range: Range<u64>,
) -> impl Stream<Item = Result<Bytes>> {
    stream::iter(range.clone().step_by(PIECE as usize)).then(move |start| {
        let piece = file.try_clone().map(|file| GetResult {
            payload: GetResultPayload::File(file, path.clone()),
            meta: meta.clone(),
            range: start..range.end.min(start + PIECE),
            attributes: Default::default(),
        });
        async { piece.map_err(generic)?.bytes().await }
    })
}

#[async_trait]
impl<S: ObjectStore> ObjectStore for IoStore<S> {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let to = location.clone();
        self.on_io(|store| async move { store.put_opts(&to, payload, options).await })
            .await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let to = location.clone();
        let upload = self
            .on_io(|store| async move { store.put_multipart_opts(&to, options).await })
            .await?;
        Ok(Box::new(Upload {
            upload: Some(upload),
            handle: self.handle.clone(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (from, is_head) = (location.clone(), options.head);
        let mut result = self
            .on_io(|store| async move { store.get_opts(&from, options).await })
            .await?;
        let bytes = match result.payload {
            // `LocalFileSystem` returns the file all the same.
            _ if is_head => stream::empty().boxed(),
            // Its reader would read it where it is itself.
            GetResultPayload::File(file, path) => {
                let bytes = pieces(file, path, result.meta.clone(), result.range.clone());
                self.bytes_from_io(bytes.boxed())
            }
            GetResultPayload::Stream(bytes) => self.bytes_from_io(bytes),
        };
        result.payload = GetResultPayload::Stream(bytes);
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (from, ranges) = (location.clone(), ranges.to_vec());
        self.on_io(|store| async move { store.get_ranges(&from, &ranges).await })
            .await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let deleted = self.store.delete_stream(locations);
        from_io(&self.handle, deleted, NAMES, |_| 1)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        from_io(&self.handle, self.store.list(prefix), NAMES, |_| 1)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let list = self.store.list_with_offset(prefix, offset);
        from_io(&self.handle, list, NAMES, |_| 1)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = prefix.cloned();
        self.on_io(|store| async move { store.list_with_delimiter(prefix.as_ref()).await })
            .await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (from, to) = (from.clone(), to.clone());
        self.on_io(|store| async move { store.copy_opts(&from, &to, options).await })
            .await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let (from, to) = (from.clone(), to.clone());
        self.on_io(|store| async move { store.rename_opts(&from, &to, options).await })
            .await
    }
}

/// An upload whose parts are written on the I/O lane.
#[derive(Debug)]
struct Upload {
    /// `None` while a call has it, and after one that was dropped.
    upload: Option<Box<dyn MultipartUpload>>,
    handle: Handle,
}

impl Upload {
    async fn on_io<T, F>(&mut self, call: impl FnOnce(Box<dyn MultipartUpload>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = (Box<dyn MultipartUpload>, Result<T>)> + Send + 'static,
    {
        let upload = self.upload.take().ok_or_else(was_dropped)?;
        let call = self.handle.spawn_io(call(upload));
        let (upload, result) = call.await.map_err(generic)?;
        self.upload = Some(upload);
        result
    }
}

/// An upload that is not complete removes its file: by the blocking pool of the runtime that it
/// is dropped on.
impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            self.handle.spawn_io(async { drop(upload) }).detach();
        }
    }
}

fn was_dropped() -> Error {
    generic("an earlier call of this upload was dropped before its end")
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let Some(upload) = &mut self.upload else {
            return Box::pin(async { Err(was_dropped()) });
        };
        let part = self.handle.spawn_io(upload.put_part(data));
        Box::pin(async move { part.await.unwrap_or_else(|error| Err(generic(error))) })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.on_io(|mut upload| async move {
            let result = upload.complete().await;
            (upload, result)
        })
        .await
    }

    async fn abort(&mut self) -> Result<()> {
        self.on_io(|mut upload| async move {
            let result = upload.abort().await;
            (upload, result)
        })
        .await
    }
}

impl<S: fmt::Display> fmt::Display for IoStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on the I/O lane", self.store)
    }
}

impl<S: fmt::Debug> fmt::Debug for IoStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IoStore").field(&self.store).finish()
    }
}
