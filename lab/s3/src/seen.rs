//! A store whose calls a test sees before it makes them.

use std::fmt;

use async_trait::async_trait;
use futures::future::{BoxFuture, ready};
use futures::stream::BoxStream;

use crate::object_store::path::Path;
use crate::object_store::*;

/// What sees them.
pub trait See: Send + Sync + 'static {
    /// On the thread that calls. `writes`, or reads.
    fn call(&self, _path: &Path, _writes: bool) {}

    /// Before a read, which waits for it.
    fn read(&self, _options: &GetOptions) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }

    /// What the caller gets for an upload in parts.
    fn upload(&self, upload: Box<dyn MultipartUpload>) -> Box<dyn MultipartUpload> {
        upload
    }
}

pub struct Seen<S, B> {
    pub store: S,
    pub by: B,
}

impl<S: fmt::Debug, B> fmt::Debug for Seen<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl<S: fmt::Display, B> fmt::Display for Seen<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl<S: ObjectStore, B: See> ObjectStore for Seen<S, B> {
    async fn put_opts(
        &self,
        to: &Path,
        data: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.by.call(to, true);
        self.store.put_opts(to, data, options).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.by.call(to, true);
        let upload = self.store.put_multipart_opts(to, options).await?;
        Ok(self.by.upload(upload))
    }

    async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
        self.by.call(from, false);
        self.by.read(&options).await;
        self.store.get_opts(from, options).await
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

    async fn list_with_delimiter(&self, below: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(below).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}
