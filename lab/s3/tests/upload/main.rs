//! The example `upload`: what goes in comes out, in bounded memory, and an upload that is
//! cut short leaves nothing.

#[path = "../../examples/upload/lines.rs"]
mod lines;
#[path = "../../examples/upload/service.rs"]
mod service;
mod site;
#[path = "../../../../crates/core/tests/support/mod.rs"]
mod support;
mod watched;

use std::io::Write;
use std::sync::atomic::Ordering::SeqCst;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{StreamExt, stream};
use lines::{BLOCK, ROW};
use service::{LIMIT, PART, PARTS};
use site::{Site, with_site};
use support::Stuck;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use watched::End;

/// Lines of the same length each, and their rows.
const LINE: usize = 40;

fn table(rows: u64) -> (Vec<u8>, Vec<u8>) {
    let (mut lines, mut encoded) = (Vec::new(), Vec::new());
    for key in 0..rows {
        let value = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 4;
        writeln!(lines, "{key:019},{value:019}").unwrap();
        encoded.extend(key.to_le_bytes());
        encoded.extend(value.to_le_bytes());
    }
    assert_eq!(lines.len(), LINE * encoded.len() / ROW);
    (lines, encoded)
}

fn gzip(text: &[u8], compression: Compression) -> Bytes {
    let mut gzip = GzEncoder::new(Vec::new(), compression);
    gzip.write_all(text).unwrap();
    gzip.finish().unwrap().into()
}

#[test]
fn the_object_has_all_rows_in_order() {
    with_site(async |site: &mut Site| {
        site.counts.open();
        let rows = 400_000;
        let (lines, encoded) = table(rows);
        assert!(encoded.len() > PART, "one part only");
        let answer = site.post("rows/all", gzip(&lines, Compression::fast()));
        assert_eq!(answer.await.unwrap(), (200, format!("{rows} rows\n")));
        assert_eq!(site.ended.recv().await, Some(End::Completed));
        assert!(site.object("all").await.unwrap() == encoded, "other rows");

        // The last line may lack its end. No line at all is an object as well.
        let answer = site.post("rows/some", gzip(b"1,2\n3,4", Compression::fast()));
        assert_eq!(answer.await.unwrap(), (200, "2 rows\n".into()));
        assert_eq!(site.object("some").await.unwrap().len(), 2 * ROW);
        let answer = site.post("rows/none", gzip(b"", Compression::fast()));
        assert_eq!(answer.await.unwrap(), (200, "0 rows\n".into()));
        assert_eq!(site.object("none").await.unwrap().len(), 0);
    });
}

#[test]
fn a_broken_upload_is_aborted() {
    with_site(async |site: &mut Site| {
        site.counts.open();
        let (lines, _) = table(200_000);
        let whole = gzip(&lines, Compression::fast());
        let mut other_sum = whole.to_vec();
        other_sum[whole.len() - 8] ^= 1;
        let mut bad_line = lines.clone();
        bad_line.extend(b"no comma");
        // It has no end, and takes little to send.
        let long_line = vec![b'0'; 100 * BLOCK];
        for (body, cause) in [
            (whole.slice(..whole.len() / 2), "unexpected end"),
            (whole.slice(..whole.len() - 1), "unexpected end"),
            (other_sum.into(), "CRC"),
            (Bytes::from_static(b"no gzip"), "gzip header"),
            (gzip(&bad_line, Compression::fast()), "comma"),
            (gzip(&long_line, Compression::fast()), "too long"),
        ] {
            let (status, text) = site.post("rows/broken", body).await.unwrap();
            assert_eq!(status, 400, "{cause}: {text}");
            assert!(text.contains(cause), "{cause}: {text}");
            assert_eq!(site.ended.recv().await, Some(End::Aborted), "{cause}");
            assert_eq!(site.object("broken").await, None, "{cause}");
        }
    });
}

#[test]
fn a_client_that_goes_away_leaves_no_object() {
    with_site(async |site: &mut Site| {
        site.counts.open();
        let (lines, _) = table(200_000);
        let whole = gzip(&lines, Compression::fast());
        // Where the client stops. At the end, all that is missing is the end of the body.
        for (sent, head) in [
            (whole.len() / 2, "Transfer-Encoding: chunked"),
            (whole.len(), "Transfer-Encoding: chunked"),
            (whole.len(), &format!("Content-Length: {}", whole.len() + 1)),
        ] {
            let taken = site.counts.taken.load(SeqCst) + sent;
            let mut client = TcpStream::connect(site.address).await.unwrap();
            let request = format!("POST /rows/gone HTTP/1.1\r\nHost: here\r\n{head}\r\n\r\n");
            client.write_all(request.as_bytes()).await.unwrap();
            if head.ends_with("chunked") {
                let chunk = format!("{sent:x}\r\n");
                client.write_all(chunk.as_bytes()).await.unwrap();
            }
            client.write_all(&whole[..sent]).await.unwrap();
            // It goes in the middle: all that it has sent is taken.
            while site.counts.taken.load(SeqCst) < taken {
                site.health().await;
            }
            drop(client);
            assert_eq!(
                site.ended.recv().await,
                Some(End::Aborted),
                "{head}, {sent}"
            );
            assert_eq!(site.object("gone").await, None, "{head}, {sent}");
        }
    });
}

#[test]
fn an_upload_that_is_all_there_outlives_its_client() {
    with_site(async |site: &mut Site| {
        let (lines, encoded) = table(1_000);
        let whole = gzip(&lines, Compression::fast());
        let mut client = TcpStream::connect(site.address).await.unwrap();
        let head = format!("Host: here\r\nContent-Length: {}", whole.len());
        let head = format!("POST /rows/left HTTP/1.1\r\n{head}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        client.write_all(&whole).await.unwrap();
        while site.counts.parts_under_way.load(SeqCst) == 0 {
            site.health().await;
        }
        drop(client);
        // The store would keep the part for ever.
        site.dropped_handlers.recv().await.unwrap();
        site.counts.open();
        assert_eq!(site.ended.recv().await, Some(End::Completed));
        assert_eq!(site.object("left").await.unwrap(), encoded);
    });
}

#[test]
fn a_slow_store_slows_the_client_and_health_answers() {
    with_site(async |site: &mut Site| {
        // 80 MB of lines, in gzip members that are quick to make.
        let rows = 200_000;
        let (lines, encoded) = table(rows);
        let member = gzip(&lines, Compression::none());
        let members = 10;
        let body = stream::iter(vec![member; members]).map(Ok::<_, std::io::Error>);
        let answer = site.post("rows/large", reqwest::Body::wrap_stream(body));
        let answer = tokio::spawn(answer);

        // What is on its way in each step, in encoded bytes: text is larger than that.
        let limits = (PARTS + 1) * PART + LIMIT + 2 * LIMIT * ROW / LINE;
        let items = 8 * BLOCK;
        let under_way = || {
            // In this order: not more than there is.
            let taken = site.counts.taken.load(SeqCst) / LINE * ROW;
            taken.saturating_sub(site.counts.stored.load(SeqCst))
        };
        let look = || {
            assert!(under_way() <= limits + items, "{} bytes", under_way());
            assert!(site.counts.parts_under_way.load(SeqCst) <= PARTS);
        };

        // No part is stored. So the service stops to take, sooner or later.
        while site.counts.parts_under_way.load(SeqCst) < PARTS {
            site.health().await;
            look();
        }
        // The same steps take a tenth as much from another client. It has no end, so it
        // fails once all of it is taken.
        let broken = gzip(&lines, Compression::none());
        let (status, text) = site
            .post("rows/broken", broken.slice(..broken.len() - 1))
            .await
            .unwrap();
        assert_eq!(status, 400, "{text}");
        assert_eq!(site.ended.recv().await, Some(End::Aborted));
        site.counts.taken.fetch_sub(broken.len() - 1, SeqCst);
        look();
        assert!(!answer.is_finished());

        // One after the other.
        while !answer.is_finished() {
            if site.counts.gate.available_permits() == 0 {
                site.counts.gate.add_permits(1);
            }
            site.health().await;
            look();
        }
        let text = format!("{} rows\n", rows as usize * members);
        assert_eq!(answer.await.unwrap().unwrap(), (200, text));
        let object = site.object("large").await.unwrap();
        assert!(object == encoded.repeat(members), "other rows");
    });
}

#[test]
fn health_answers_while_an_upload_waits_for_the_lane() {
    with_site(async |site: &mut Site| {
        site.counts.open();
        let cpu = site.cpu.handle();
        let stuck = (0..cpu.worker_threads()).map(|_| Stuck::start(cpu).split());
        let stuck: Vec<_> = stuck.collect();
        let (lines, encoded) = table(1_000);
        let whole = gzip(&lines, Compression::fast());
        let middle = whole.len() / 2;
        let (half, rest) = (whole.slice(..middle), whole.slice(middle..));

        let (answer, send) = site.begin("rows/half", half).await;
        site.health().await;
        assert!(!answer.is_finished());
        send.send(rest).unwrap();
        drop(send);
        for (task, let_go) in stuck {
            let_go.send(()).unwrap();
            task.await.unwrap();
        }
        assert_eq!(answer.await.unwrap().unwrap(), (200, "1000 rows\n".into()));
        assert_eq!(site.object("half").await.unwrap(), encoded);
    });
}

#[test]
fn an_upload_that_the_lane_leaves_is_aborted() {
    with_site(async |site: &mut Site| {
        site.counts.open();
        let (lines, _) = table(1_000);
        let whole = gzip(&lines, Compression::fast());
        let half = whole.slice(..whole.len() / 2);
        let (answer, _send) = site.begin("rows/half", half).await;
        site.cpu.shutdown().await;
        let (status, text) = answer.await.unwrap().unwrap();
        assert_eq!(status, 400, "{text}");
        assert!(text.contains("shut down"), "{text}");
        assert_eq!(site.ended.recv().await, Some(End::Aborted));
        assert_eq!(site.object("half").await, None);
    });
}
