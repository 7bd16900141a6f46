//! object_store: `IoConnector`, when the store is made. Its use is the usual one.

use object_store_0_14::Result;
use object_store_0_14::aws::{AmazonS3, AmazonS3Builder};
use object_store_0_14::client::ReqwestConnector;
use twolane::Handle;
use twolane::io::IoConnector;

pub fn store(settings: AmazonS3Builder, cpu: &Handle) -> Result<AmazonS3> {
    settings
        .with_http_connector(IoConnector::new(ReqwestConnector::default(), cpu))
        .build()
}
