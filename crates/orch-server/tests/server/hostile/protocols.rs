//! HTTP/2, which is not spoken: so there are no streams that could be reset rapidly.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::siege::under;
use super::victim::Victim;
use crate::client::Client;
use crate::scene::Scene;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Empty settings, by which HTTP/2 goes on.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

fn client(scene: &Scene, protocols: &[&[u8]]) -> Client {
    let pins = orch_server::Certificates::of(&scene.folder).unwrap().pins();
    Client::new(scene.client.address, &pins, protocols)
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_is_not_agreed_upon() {
    let scene = Scene::new();
    let refused = client(&scene, &[b"h2"]).connect().await.unwrap_err();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
    let agreed = client(&scene, &[b"h2", b"http/1.1"]).connect().await.unwrap();
    assert_eq!(agreed.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_are_opened_and_reset_a_thousand_times_are_not_even_read() {
    let victim = Victim::new();
    let mut flood = [PREFACE, &SETTINGS].concat();
    for stream in (1..2000_u32).step_by(2) {
        let [_, _, high, low] = stream.to_be_bytes();
        // `GET /` by the static table, and at once its reset.
        flood.extend([0, 0, 3, 1, 5, 0, 0, high, low, 0x82, 0x84, 0x87]);
        flood.extend([0, 0, 4, 3, 0, 0, 0, high, low, 0, 0, 0, 8]);
    }
    under("20 times 50 connections that reset 1,000 streams each", &victim, async {
        for protocols in [&[b"http/1.1".as_slice()][..], &[]] {
            for _ in 0..10 {
                let asked: Vec<_> = (0..50)
                    .map(|_| {
                        let (client, flood) = (client(&victim.scene, protocols), flood.clone());
                        tokio::spawn(async move {
                            let mut stream = client.connect().await.unwrap();
                            let _ = stream.write_all(&flood).await;
                            let mut answer = Vec::new();
                            let _ = stream.read_to_end(&mut answer).await;
                            answer
                        })
                    })
                    .collect();
                for answer in asked {
                    let answer = answer.await.unwrap();
                    // A frame of settings, by which a server agrees to HTTP/2, is not among it.
                    let is_no = answer.is_empty() || answer.starts_with(b"HTTP/1.1 4");
                    assert!(is_no, "{}", String::from_utf8_lossy(&answer));
                }
            }
        }
    })
    .await;
}
