//! Heads that are too much: many lines, one line that is huge, and none that is the last.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use super::siege::under;
use super::victim::Victim;
use crate::client::{Client, read_answer};

/// How many do it at once.
const AT_ONCE: usize = 50;
/// So much of one that does not end may be under way.
const UNDER_WAY: usize = 16 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_too_much_is_refused() {
    let victim = Victim::new();
    let lines = "X: y\r\n".repeat(10_000);
    let huge = format!("X: {}\r\n", "y".repeat(1 << 20));
    let fits = format!("X: {}\r\n", "y".repeat(8 << 10));
    let path = format!("GET /{} HTTP/1.1\r\nHost: orch\r\n\r\n", "x".repeat(1 << 20));
    let spaces = format!("{}GET /health HTTP/1.1\r\nHost: orch\r\n\r\n", "\r\n".repeat(1 << 19));
    let with = |more: &str| format!("GET /health HTTP/1.1\r\nHost: orch\r\n{more}\r\n");
    let cases = [
        ("one that is large, and fits", with(&fits), vec![200]),
        ("10,000 lines", with(&lines), vec![431]),
        ("a line of a mebibyte", with(&huge), vec![431]),
        ("a path of a mebibyte", path, vec![414, 431]),
        ("empty lines first", spaces, vec![400, 431]),
        ("two lengths", with("Content-Length: 1\r\nContent-Length: 2\r\n"), vec![400]),
        ("a length that is none", with("Content-Length: -1\r\n"), vec![400]),
        ("a zero byte", with("X: a\0b\r\n"), vec![400]),
    ];
    under(&format!("{AT_ONCE} at once of {} kinds of heads", cases.len()), &victim, async {
        for (name, head, expected) in &cases {
            for status in at_once(&victim.scene.client, head, |client, head| async move {
                let (mut from, mut to) = tokio::io::split(client.connect().await.unwrap());
                let reading = tokio::spawn(async move { read_answer(&mut from).await.unwrap().status });
                // It need not be read to its end.
                let _ = to.write_all(head.as_bytes()).await;
                reading.await.unwrap()
            })
            .await
            {
                assert!(expected.contains(&status), "{name}: {status}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_without_end_is_cut_off() {
    let victim = Victim::new();
    let sent = under(&format!("{AT_ONCE} heads without end"), &victim, async {
        let start = "GET /health HTTP/1.1\r\nHost: orch\r\n";
        let sent = at_once(&victim.scene.client, start, |client, start| async move {
            let mut stream = client.connect().await.unwrap();
            stream.write_all(start.as_bytes()).await.unwrap();
            let line = format!("X: {}\r\n", "y".repeat(4000));
            let (begun, mut sent) = (Instant::now(), 0);
            while begun.elapsed() < Duration::from_secs(20) && stream.write_all(line.as_bytes()).await.is_ok()
            {
                sent += line.len();
            }
            sent
        })
        .await;
        sent.into_iter().max().unwrap()
    })
    .await;
    eprintln!("    {} KiB were sent at most before nobody took them any more", sent >> 10);
    assert!(sent < UNDER_WAY, "{sent} bytes were taken");
}

async fn at_once<T, F>(client: &Client, head: &str, send: impl Fn(Client, String) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let senders: Vec<_> = (0..AT_ONCE).map(|_| tokio::spawn(send(client.clone(), head.to_owned()))).collect();
    let mut outcomes = Vec::new();
    for sender in senders {
        outcomes.push(sender.await.unwrap());
    }
    outcomes
}
