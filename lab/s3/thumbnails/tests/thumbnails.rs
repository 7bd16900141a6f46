//! The example `thumbnails`, with a real S3 server: what is stored, and what is refused.

#[path = "../thumbnails.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod example;
#[path = "../../../../crates/core/tests/support/mod.rs"]
mod support;

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use example::{BODY, MAX_SIDE, SIDE, UPLOADS, cpu_lane, routes};
use image::{DynamicImage, GenericImageView, ImageFormat};
use object_store::{Error, ObjectStore, ObjectStoreExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use twolane::Handle;
use twolane_s3::engine::contender::store_builder;
use twolane_s3::server::Server;

/// An S3 server, the service, and a client of it.
struct Site {
    address: String,
    cpu: Handle,
    store: Arc<dyn ObjectStore>,
    client: reqwest::Client,
}

fn with_site(test: impl AsyncFn(&Site)) {
    let _limit = support::time_limit();
    let server = Server::start(Duration::ZERO).unwrap();
    let store = Arc::new(store_builder(&server.access()).build().unwrap());
    let io = Runtime::new().unwrap();
    io.block_on(async {
        let cpu = cpu_lane().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Site {
            address: listener.local_addr().unwrap().to_string(),
            cpu: cpu.handle().clone(),
            store: store.clone(),
            client: reqwest::Client::new(),
        };
        tokio::spawn(axum::serve(listener, routes(cpu.handle().clone(), store)).into_future());
        test(&site).await;
        cpu.shutdown().await;
    });
}

impl Site {
    async fn post(&self, name: &str, body: Vec<u8>) -> u16 {
        let url = format!("http://{}/thumbnails/{name}", self.address);
        let answer = self.client.post(url).body(body).send().await.unwrap();
        answer.status().as_u16()
    }

    async fn object(&self, name: &str) -> Option<Vec<u8>> {
        match self.store.get(&name.into()).await {
            Ok(object) => Some(object.bytes().await.unwrap().into()),
            Err(Error::NotFound { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }
}

fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let picture = DynamicImage::new_rgb8(width, height);
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

#[test]
fn a_picture_becomes_a_small_jpeg() {
    with_site(async |site: &Site| {
        let wide = picture(1_024, 512, ImageFormat::Png);
        let high = picture(100, 1_000, ImageFormat::Jpeg);
        for (name, body, size) in [("wide", wide, (SIDE, SIDE / 2)), ("high", high, (26, SIDE))] {
            assert_eq!(site.post(name, body).await, 201);
            let jpeg = site.object(&format!("{name}.jpg")).await.unwrap();
            let small = image::load_from_memory_with_format(&jpeg, ImageFormat::Jpeg);
            assert_eq!(small.unwrap().dimensions(), size, "{name}");
        }
    });
}

#[test]
fn what_is_no_picture_leaves_no_object() {
    with_site(async |site: &Site| {
        let whole = picture(64, 64, ImageFormat::Png);
        for (body, status) in [
            (b"no picture".to_vec(), 400),
            (vec![], 400),
            (whole[..whole.len() / 2].to_vec(), 400),
            // A small file.
            (picture(MAX_SIDE + 1, 1, ImageFormat::Png), 400),
            (vec![0; BODY + 1], 413),
        ] {
            let bytes = body.len();
            assert_eq!(site.post("none", body).await, status, "{bytes} bytes");
            assert_eq!(site.object("none.jpg").await, None);
        }
    });
}

#[test]
fn a_full_queue_is_a_503_before_the_body() {
    with_site(async |site: &Site| {
        let permits: Vec<_> = std::iter::from_fn(|| site.cpu.try_reserve().ok()).collect();
        assert_eq!(permits.len(), UPLOADS);
        let mut client = TcpStream::connect(&site.address).await.unwrap();
        let head = "POST /thumbnails/cat HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        // The client has sent no body.
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 503");
        drop(permits);
        let body = picture(10, 10, ImageFormat::Png);
        assert_eq!(site.post("cat", body).await, 201);
    });
}
