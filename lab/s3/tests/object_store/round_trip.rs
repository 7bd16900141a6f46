//! What a store does when nothing goes wrong.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use http_body_util::BodyExt;
use hyper::body::Body;

use super::object_store::aws::AmazonS3;
use super::object_store::client::HttpConnector;
use super::object_store::path::Path;
use super::object_store::signer::Signer;
use super::object_store::{
    ClientOptions, Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, UpdateVersion,
};
use super::store::{Site, content, io_connector, object, retries, store, wait};
use crate::support::{Lanes, lanes};
use twolane_s3::server;

/// A path of this test alone, in a bucket that others may use.
fn mine(path: &str) -> Path {
    let version = module_path!().replace("::", "-");
    Path::from(format!("{version}-{}/{path}", std::process::id()))
}

fn in_a_job<F: Future<Output = ()> + Send + 'static>(work: impl FnOnce(Arc<AmazonS3>) -> F) {
    let (_server, access) = server::from_environment(Duration::ZERO).unwrap();
    let Lanes { cpu, io: _io } = lanes(1);
    let store = store(&access, cpu.handle(), retries(3));
    cpu.spawn(work(store)).wait().unwrap();
}

#[test]
fn what_was_put_is_found_from_a_job() {
    in_a_job(|store| async move {
        let (one, two) = (mine("trip/one"), mine("trip/two"));
        let whole = content(300_000);
        store.put(&one, whole.clone().into()).await.unwrap();
        assert_eq!(store.head(&one).await.unwrap().size, 300_000);
        let got = store.get(&one).await.unwrap().bytes().await.unwrap();
        assert!(got == whole);
        let parts = [10..20, 200_000..299_999];
        let got = store.get_ranges(&one, &parts).await.unwrap();
        for (range, got) in parts.into_iter().zip(got) {
            assert!(got == whole[range.start as usize..range.end as usize]);
        }

        store.copy(&one, &two).await.unwrap();
        let got = store.get(&two).await.unwrap().bytes().await.unwrap();
        assert!(got == whole);
        let listed = store.list(Some(&mine("trip"))).map_ok(|meta| meta.location);
        let listed: Vec<_> = listed.try_collect().await.unwrap();
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert!(listed.contains(&one) && listed.contains(&two));

        store.delete(&two).await.unwrap();
        assert!(matches!(
            store.head(&two).await,
            Err(Error::NotFound { .. })
        ));
        store.delete(&one).await.unwrap();
    });
}

#[test]
fn an_upload_in_parts_is_whole() {
    in_a_job(|store| async move {
        let whole = content((5 << 20) + 1_000);
        let path = mine("parts");
        let mut upload = store.put_multipart(&path).await.unwrap();
        let (first, last) = whole.split_at(5 << 20);
        let parts = [first, last].map(|part| upload.put_part(part.to_vec().into()));
        futures::future::try_join_all(parts).await.unwrap();
        upload.complete().await.unwrap();
        let got = store.get(&path).await.unwrap().bytes().await.unwrap();
        assert!(got == whole);
        store.delete(&path).await.unwrap();
    });
}

#[test]
fn a_conditional_put_respects_what_is_there() {
    in_a_job(|store| async move {
        let path = mine("condition");
        let create = || store.put_opts(&path, "new".into(), PutMode::Create.into());
        let first: UpdateVersion = create().await.unwrap().into();
        let error = create().await.unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
        let update = || {
            let mode = PutMode::Update(first.clone());
            store.put_opts(&path, "newer".into(), mode.into())
        };
        update().await.unwrap();
        let error = update().await.unwrap_err();
        assert!(matches!(error, Error::Precondition { .. }), "{error:?}");
        let got = store.get(&path).await.unwrap().bytes().await.unwrap();
        assert_eq!(got, "newer");
        store.delete(&path).await.unwrap();
    });
}

/// A reader of the body can allocate for it once.
#[test]
fn the_size_of_a_body_is_known_in_advance() {
    let site = Site::new(300_000);
    let Lanes { cpu, io: _io } = lanes(1);
    let store = store(&site.access(), cpu.handle(), retries(0));
    let hour = Duration::from_secs(3600);
    let url = wait(store.signed_url(http::Method::GET, &object(), hour)).unwrap();
    let options = ClientOptions::new().with_allow_http(true);
    let client = io_connector(cpu.handle()).connect(&options).unwrap();
    let request = http::Request::get(url.as_str()).body(bytes::Bytes::new().into());
    wait(async {
        let response = client.execute(request.unwrap()).await.unwrap();
        assert!(response.status().is_success());
        let mut body = response.into_body();
        assert_eq!(body.size_hint().exact(), Some(300_000));
        let frame = body.frame().await.unwrap().unwrap();
        let read = frame.into_data().unwrap().len() as u64;
        assert_eq!(body.size_hint().exact(), Some(300_000 - read));
    });
}
