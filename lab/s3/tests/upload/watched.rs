//! A real store, of which a test sees the multipart uploads, and holds their parts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use async_trait::async_trait;
use object_store_0_14::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};
use tokio::sync::{Semaphore, mpsc};
use twolane_s3::seen::See;

#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Completed,
    Aborted,
}

/// Counts in bytes.
pub struct Counts {
    /// Of bodies, by the service.
    pub taken: AtomicUsize,
    /// Acknowledged by the store.
    pub stored: AtomicUsize,
    pub parts_under_way: AtomicUsize,
    /// A part goes to the store when it gets a permit.
    pub gate: Semaphore,
    ends: mpsc::UnboundedSender<End>,
}

impl Counts {
    /// And how each upload ends, once the store says so.
    pub fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<End>) {
        let (ends, ended) = mpsc::unbounded_channel();
        let counts = Self {
            taken: AtomicUsize::new(0),
            stored: AtomicUsize::new(0),
            parts_under_way: AtomicUsize::new(0),
            gate: Semaphore::new(0),
            ends,
        };
        (Arc::new(counts), ended)
    }

    pub fn open(&self) {
        self.gate.add_permits(1_000_000);
    }
}

/// As the service's store has it.
pub struct Watched(pub Arc<Counts>);

impl See for Watched {
    fn upload(&self, upload: Box<dyn MultipartUpload>) -> Box<dyn MultipartUpload> {
        let counts = self.0.clone();
        Box::new(Upload { upload, counts })
    }
}

struct Upload {
    upload: Box<dyn MultipartUpload>,
    counts: Arc<Counts>,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.upload.fmt(f)
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (size, counts) = (data.content_length(), self.counts.clone());
        counts.parts_under_way.fetch_add(1, SeqCst);
        let part = self.upload.put_part(data);
        Box::pin(async move {
            counts.gate.acquire().await.unwrap().forget();
            part.await?;
            counts.stored.fetch_add(size, SeqCst);
            counts.parts_under_way.fetch_sub(1, SeqCst);
            Ok(())
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let result = self.upload.complete().await?;
        self.counts.ends.send(End::Completed).unwrap();
        Ok(result)
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await?;
        self.counts.ends.send(End::Aborted).unwrap();
        Ok(())
    }
}
