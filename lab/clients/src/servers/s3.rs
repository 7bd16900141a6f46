//! S3: `s3s-fs` over a temporary folder. Each answer has the time in a header that S3's
//! clients show as the object's metadata.

use std::net::SocketAddr;

use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tempfile::TempDir;

use super::keeper::Kept;
use super::process;
use super::web::Web;
use crate::BoxError;
use crate::clock::now;

pub const KEY: &str = "twolane";
pub const SECRET: &str = "twolane-secret";
pub const BUCKET: &str = "twolane";
/// An object that is there.
pub const OBJECT: &str = "object";

pub(super) struct S3 {
    web: Web,
    _folder: TempDir,
}

pub(super) fn start() -> Result<S3, BoxError> {
    let folder = process::folder("s3")?;
    let bucket = folder.path().join(BUCKET);
    std::fs::create_dir(&bucket)?;
    std::fs::write(bucket.join(OBJECT), "an object")?;
    let files = s3s_fs::FileSystem::new(folder.path()).map_err(|error| format!("{error:?}"))?;
    let mut builder = S3ServiceBuilder::new(files);
    builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
    let service: S3Service = builder.build();
    let service = service_fn(move |request: Request<Incoming>| {
        let service = service.clone();
        async move {
            let mut answer = Service::call(&service, request).await?;
            let time = HeaderValue::from(now());
            answer.headers_mut().insert("x-amz-meta-time", time);
            Ok::<_, s3s::HttpError>(answer)
        }
    });
    Ok(S3 {
        web: Web::start(service)?,
        _folder: folder,
    })
}

impl Kept for S3 {
    fn address(&self) -> SocketAddr {
        self.web.address()
    }

    fn cut(&mut self) -> Result<(), BoxError> {
        self.web.cut()
    }
}
