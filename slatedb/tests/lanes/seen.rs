//! A store and an HTTP client that write down the threads on which they are called.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::path::Path;
use object_store::{
    ClientOptions, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use tokio::sync::Notify;

use crate::support::thread_name;

#[derive(Clone, Default)]
pub struct Calls(Arc<Inner>);

#[derive(Default)]
struct Inner {
    seen: Mutex<Vec<Call>>,
    changed: Notify,
}

struct Call {
    thread: String,
    path: String,
    writes: bool,
}

impl Calls {
    fn note(&self, path: impl fmt::Display, writes: bool) {
        self.0.seen.lock().unwrap().push(Call {
            thread: thread_name(),
            path: path.to_string(),
            writes,
        });
        self.0.changed.notify_waiters();
    }

    /// The threads that have called for what lies below that path.
    pub fn threads(&self, below: &str) -> BTreeSet<String> {
        self.of(|call| call.path.starts_with(below))
    }

    pub fn writers(&self, below: &str) -> BTreeSet<String> {
        self.of(|call| call.writes && call.path.starts_with(below))
    }

    fn of(&self, is: impl Fn(&Call) -> bool) -> BTreeSet<String> {
        let seen = self.0.seen.lock().unwrap();
        let calls = seen.iter().filter(|call| is(call));
        calls.map(|call| call.thread.clone()).collect()
    }

    /// Waits for a write by such a thread to such a path.
    pub async fn until(&self, is: impl Fn(&str, &str) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            let is = |call: &Call| call.writes && is(&call.thread, &call.path);
            if !self.of(is).is_empty() {
                return;
            }
            changed.await;
        }
    }
}

#[derive(Clone)]
pub struct SeenConnector(pub Calls);

impl fmt::Debug for SeenConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeenConnector")
    }
}

impl HttpConnector for SeenConnector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(SeenClient(client, self.0.clone())))
    }
}

struct SeenClient(HttpClient, Calls);

impl fmt::Debug for SeenClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeenClient")
    }
}

#[async_trait]
impl HttpService for SeenClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.1.note(request.uri(), request.method() != "GET");
        self.0.execute(request).await
    }
}

pub struct SeenStore<S> {
    store: S,
    calls: Calls,
}

impl<S> SeenStore<S> {
    pub fn new(store: S, calls: Calls) -> Self {
        Self { store, calls }
    }
}

#[async_trait]
impl<S: ObjectStore> ObjectStore for SeenStore<S> {
    async fn put_opts(
        &self,
        to: &Path,
        data: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.calls.note(to, true);
        self.store.put_opts(to, data, options).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.calls.note(to, true);
        self.store.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
        self.calls.note(from, false);
        self.store.get_opts(from, options).await
    }

    async fn get_ranges(&self, from: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.calls.note(from, false);
        self.store.get_ranges(from, ranges).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.store.delete_stream(paths)
    }

    fn list(&self, below: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(below)
    }

    fn list_with_offset(
        &self,
        below: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list_with_offset(below, offset)
    }

    async fn list_with_delimiter(&self, below: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(below).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.store.rename_opts(from, to, options).await
    }
}

impl<S: fmt::Display> fmt::Display for SeenStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl<S: fmt::Debug> fmt::Debug for SeenStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}
