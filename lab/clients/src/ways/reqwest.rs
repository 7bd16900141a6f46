//! reqwest: `send_io`.

use reqwest::Client;
use twolane::RequestBuilderExt;

use crate::BoxError;

pub async fn page(client: &Client, url: &str) -> Result<String, BoxError> {
    Ok(client.get(url).send_io().await?.text().await?)
}
