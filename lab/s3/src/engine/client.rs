//! The HTTP client of all contenders: reqwest without TLS. object_store's own client is reqwest
//! too, and has TLS.

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store_0_14::Result;
use object_store_0_14::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService, SpawnService,
};
use tokio::runtime::Handle;

#[derive(Clone, Debug)]
struct Client(reqwest::Client);

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let error = |error| HttpError::new(HttpErrorKind::Request, error);
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string().parse().unwrap();
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        *request.body_mut() = Some(reqwest::Body::wrap(body));
        let response: http::Response<reqwest::Body> =
            self.0.execute(request).await.map_err(error)?.into();
        let (parts, body) = response.into_parts();
        let body = HttpResponseBody::new(body.map_err(error));
        Ok(HttpResponse::from_parts(parts, body))
    }
}

/// Requests where they are made; or, as object_store's `SpawnedReqwestConnector` has it, on
/// another runtime.
#[derive(Debug, Default)]
pub struct Connector {
    pub spawned_on: Option<Handle>,
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        let client = reqwest::Client::builder().no_proxy().build();
        let client = Client(client.expect("it has no settings that fail"));
        Ok(match &self.spawned_on {
            Some(runtime) => HttpClient::new(SpawnService::new(client, runtime.clone())),
            None => HttpClient::new(client),
        })
    }
}
