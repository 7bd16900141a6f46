//! HTTP: `GET /` answers with the time.

use axum::Router;
use axum::routing::get;
use hyper_util::service::TowerToHyperService;

use super::web::Web;
use crate::BoxError;
use crate::clock::now;

pub(super) fn start() -> Result<Web, BoxError> {
    let router = Router::new().route("/", get(|| async { now().to_string() }));
    Web::start(TowerToHyperService::new(router))
}
