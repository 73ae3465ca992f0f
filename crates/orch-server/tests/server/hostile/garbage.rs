//! Bytes that are no TLS, or not the one that is spoken here.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::siege::under;
use super::victim::Victim;

/// How many connections with each kind of garbage.
const CONNECTIONS: usize = 100;
/// A record that is nothing but bad news.
const ALERT: u8 = 0x15;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_tls_1_3_is_answered_with_an_alert_at_most() {
    let victim = Victim::new();
    let kinds: [(&str, Vec<u8>); 8] = [
        ("noise", noise(1, 4096)),
        ("a lot of noise", noise(2, 1 << 20)),
        ("plain HTTP", b"GET /health HTTP/1.1\r\nHost: orch\r\n\r\n".to_vec()),
        ("zeros", vec![0; 4096]),
        ("a record that says it is huge", [&[0x16, 3, 1, 0xff, 0xff][..], &noise(3, 1 << 17)].concat()),
        (
            "a hello that says it is huge",
            [&[0x16, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff][..], &noise(4, 1 << 17)].concat(),
        ),
        ("empty records", [0x16, 3, 1, 0, 0].repeat(4096)),
        ("TLS 1.2", hello_of_tls_1_2()),
    ];
    under(&format!("{CONNECTIONS} connections each of {} kinds of garbage", kinds.len()), &victim, async {
        for (name, bytes) in &kinds {
            let asked: Vec<_> = (0..CONNECTIONS)
                .map(|_| {
                    let (address, bytes) = (victim.scene.client.address, bytes.clone());
                    tokio::spawn(async move {
                        let mut stream = TcpStream::connect(address).await.unwrap();
                        // It may be refused before it is all there.
                        let _ = stream.write_all(&bytes).await;
                        let mut answer = Vec::new();
                        let _ =
                            tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer))
                                .await
                                .expect("it is sent away");
                        answer
                    })
                })
                .collect();
            for answer in asked {
                let answer = answer.await.unwrap();
                assert!(answer.first().is_none_or(|first| *first == ALERT), "{name}: {answer:?}");
                if *name == "TLS 1.2" {
                    assert_eq!(answer[5..], [2, 70], "a fatal alert: protocol version");
                }
            }
        }
    })
    .await;
}

/// Bytes that mean nothing, the same ones every time.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// A whole hello that offers ECDHE with AES in GCM, P-256 and ECDSA, and no version but 1.2.
fn hello_of_tls_1_2() -> Vec<u8> {
    let extensions = [0, 10, 0, 4, 0, 2, 0, 23, 0, 13, 0, 4, 0, 2, 4, 3, 0, 11, 0, 2, 1, 0];
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0xc0, 0x2b, 1, 0, 0, 22]);
    body.extend(extensions);
    let length = u8::try_from(body.len()).unwrap();
    [&[0x16, 3, 1, 0, length + 4, 1, 0, 0, length][..], &body].concat()
}
