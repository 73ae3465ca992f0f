//! Bodies of a gigabyte: declared, and in pieces without end; from a node, and from nobody.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use super::siege::under;
use super::victim::Victim;
use crate::client::{Client, read_answer};
use crate::scene::A;

/// How often four at once do it, so that it lasts.
const ROUNDS: usize = 10;
const GIGABYTE: usize = 1 << 30;
/// So much may be under way before somebody who sends hears that nobody listens: buffers of two kernels, and of TLS.
const UNDER_WAY: usize = 32 << 20;

#[derive(Clone, Copy, PartialEq)]
enum Framing {
    Declared,
    Chunked,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_a_gigabyte_is_refused_before_it_is_there() {
    let victim = Victim::new();
    let first = victim.scene.fetch(A, &victim.scene.token(A)).await;
    let (fetches, good) = (first.next.spec.expose().to_owned(), first.next.report.expose().to_owned());
    let bad = format!("{}AAAA", &good[..good.len() - 4]);
    let (spec, report) = (format!("GET /v1/spec/{A}"), format!("POST /v1/report/{A}"));
    let cases = [
        (&report, &good, Framing::Declared, 413),
        (&report, &good, Framing::Chunked, 413),
        (&report, &bad, Framing::Declared, 401),
        (&report, &bad, Framing::Chunked, 401),
        // A question that has no body is answered as ever where it has one, and that is the last of the connection.
        (&spec, &fetches, Framing::Declared, 200),
        (&spec, &fetches, Framing::Chunked, 200),
        (&spec, &bad, Framing::Chunked, 401),
    ];
    for (what, token, framing, status) in cases {
        let (words, name) = match framing {
            Framing::Declared => (format!("Content-Length: {GIGABYTE}"), "declared"),
            Framing::Chunked => ("Transfer-Encoding: chunked".to_owned(), "in pieces without end"),
        };
        let head =
            format!("{what} HTTP/1.1\r\nHost: orch\r\nAuthorization: Bearer {token}\r\n{words}\r\n\r\n");
        let name = format!("40 gigabytes {name}, answered with {status}");
        let sent = under(&name, &victim, async {
            let mut most = 0;
            for _ in 0..ROUNDS {
                let senders = [(); 4].map(|()| {
                    let (client, head) = (victim.scene.client.clone(), head.clone());
                    tokio::spawn(async move { send(&client, &head, framing, status).await })
                });
                for sender in senders {
                    most = most.max(sender.await.unwrap());
                }
            }
            most
        })
        .await;
        eprintln!("    {} KiB were sent before nobody took them any more", sent >> 10);
        assert!(sent < UNDER_WAY, "{sent} bytes were taken");
    }
}

/// Sends for as long as it is let, and says how much that was.
async fn send(client: &Client, head: &str, framing: Framing, status: u16) -> usize {
    const PIECE: usize = 16 << 10;
    let mut piece = vec![b'x'; PIECE];
    if framing == Framing::Chunked {
        piece = [format!("{PIECE:x}\r\n").as_bytes(), &piece, b"\r\n"].concat();
    }
    let (mut from, mut to) = tokio::io::split(client.connect().await.unwrap());
    let reading = tokio::spawn(async move { read_answer(&mut from).await });
    to.write_all(head.as_bytes()).await.unwrap();
    let (begun, mut sent) = (Instant::now(), 0);
    while sent < GIGABYTE && begun.elapsed() < Duration::from_secs(20) {
        if to.write_all(&piece).await.is_err() || to.flush().await.is_err() {
            break;
        }
        sent += PIECE;
    }
    assert_eq!(reading.await.unwrap().unwrap().status, status, "who is refused hears why");
    sent
}
