//! aws-sdk-s3: the whole call, its body too, in one `spawn_io`.

use std::collections::HashMap;

use aws_sdk_s3::Client;
use bytes::Bytes;

use crate::BoxError;

/// The object's metadata and content.
pub async fn read(
    client: &Client,
    bucket: &str,
    key: &str,
) -> Result<(HashMap<String, String>, Bytes), BoxError> {
    let request = client.get_object().bucket(bucket).key(key);
    let read = async {
        let object = request.send().await?;
        let content = object.body.collect().await?.into_bytes();
        Ok((object.metadata.unwrap_or_default(), content))
    };
    twolane::spawn_io(read).await?
}
