//! Bodies that the lane encodes, parses or streams, on a real connection.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use futures::stream;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use twolane::CpuRuntime;
use twolane::axum::{CpuJson, CpuJsonRejection, JobError, Reserved, body_from_cpu, json_from_cpu};

use crate::support::thread_name;
use crate::{ask, lane, listen, of};

/// The name of the thread that serialises, or parses, it.
struct Thread(String);

impl Serialize for Thread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&thread_name())
    }
}

impl<'a> Deserialize<'a> for Thread {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(|_| Self(thread_name()))
    }
}

struct NoJson;

impl Serialize for NoJson {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom("the secret of this value"))
    }
}

async fn encode(Reserved(permit): Reserved) -> Result<Response, JobError> {
    json_from_cpu(permit, Thread(String::new())).await
}

async fn encode_none(Reserved(permit): Reserved) -> Result<Response, JobError> {
    json_from_cpu(permit, NoJson).await
}

async fn parse(CpuJson(Thread(thread)): CpuJson<Thread>) -> String {
    thread
}

async fn own_answer(body: Result<CpuJson<Thread>, CpuJsonRejection>) -> (StatusCode, String) {
    let error = body.err().expect("it is no such value");
    (error.status(), format!("own: {error}"))
}

async fn chunks(Reserved(permit): Reserved) -> Body {
    let chunks = (0..1_000).map(|n| Ok(Bytes::from(format!("{n},"))));
    body_from_cpu(permit, stream::iter(chunks))
}

async fn fails_half_way(Reserved(permit): Reserved) -> Body {
    let chunks = [Ok(Bytes::from("half")), Err(io::Error::other("disk"))];
    body_from_cpu(permit, stream::iter(chunks))
}

async fn panics_half_way(Reserved(permit): Reserved) -> Body {
    let chunks = (0..2).map(|n| match n {
        0 => Ok(Bytes::from("half")),
        _ => panic!("in a chunk"),
    });
    body_from_cpu(permit, stream::iter(chunks))
}

async fn serve(cpu: &CpuRuntime) -> SocketAddr {
    let app = Router::new()
        .route("/encode", get(encode))
        .route("/none", get(encode_none))
        .route("/parse", post(parse).layer(DefaultBodyLimit::max(64)))
        .route("/own", post(own_answer).layer(DefaultBodyLimit::max(64)))
        .route("/chunks", get(chunks))
        .route("/fails", get(fails_half_way))
        .route("/panics", get(panics_half_way))
        .with_state(cpu.handle().clone());
    listen(app).await
}

fn status(answer: &str) -> &str {
    answer.split_whitespace().nth(1).unwrap()
}

#[tokio::test]
async fn a_value_is_encoded_on_the_lane() {
    let cpu = lane();
    let server = serve(&cpu).await;
    let answer = ask(server, "GET /encode", "\r\n").await;
    assert_eq!(status(&answer), "200");
    assert!(
        answer.contains("content-type: application/json\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\"cpu-0\""), "{answer}");
    let answer = ask(server, "GET /none", "\r\n").await;
    assert_eq!(status(&answer), "500");
    assert!(!answer.contains("secret"), "{answer}");
}

#[tokio::test]
async fn a_body_is_parsed_on_the_lane() {
    let cpu = lane();
    let server = serve(&cpu).await;
    let json = |text: &str| {
        format!(
            "content-type: application/json; charset=utf-8\r\n{}",
            of(text)
        )
    };
    let post = async |body: &str| ask(server, "POST /parse", body).await;
    let answer = post(&json("7")).await;
    assert!(answer.ends_with("\r\ncpu-0"), "{answer}");
    let answer = post(&format!("content-type: application/x+json\r\n{}", of("7"))).await;
    assert_eq!(status(&answer), "200");
    for (body, expected) in [
        (of("7"), "415"),
        (format!("content-type: text/json\r\n{}", of("7")), "415"),
        (json("7 x"), "400"),
        (json("\"seven\""), "422"),
        (json(&" ".repeat(65)), "413"),
    ] {
        let answer = post(&body).await;
        assert_eq!(status(&answer), expected, "{body}: {answer}");
        let own = ask(server, "POST /own", &body).await;
        assert_eq!(status(&own), expected, "{body}: {own}");
        // The text of the answer is that of the error.
        let text = |answer: &str| answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        assert_eq!(text(&own), format!("own: {}", text(&answer)));
    }
    // Before the body is there.
    let _permit = cpu.handle().try_reserve().unwrap();
    let head = "content-type: application/json\r\ncontent-length: 1\r\n\r\n";
    assert_eq!(status(&post(head).await), "503");
}

async fn has_all_permits(cpu: &CpuRuntime) {
    while cpu.handle().metrics().permits_in_use > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stream_is_the_body_and_gives_its_permit_back() {
    let cpu = lane();
    let server = serve(&cpu).await;
    let answer = ask(server, "GET /chunks", "\r\n").await;
    assert!(
        answer.contains("998,") && answer.ends_with("0\r\n\r\n"),
        "{answer}"
    );
    // A chunked body that is complete ends with a chunk of no length.
    for path in ["GET /fails", "GET /panics"] {
        has_all_permits(&cpu).await;
        let answer = ask(server, path, "\r\n").await;
        // Or none at all, if the error comes before the head has gone out.
        assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
    }
    has_all_permits(&cpu).await;
}
