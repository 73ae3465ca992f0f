//! One byte a second, on a thousand connections: in the handshake, and in the head.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::siege::under;
use super::victim::{PATIENCE, Victim};

const CONNECTIONS: usize = 1000;
/// How many shake hands at once: this is about those who are slow, and not about those who compute.
const HANDSHAKES: usize = 32;
/// The beginning of a handshake, of which more than this never comes.
const HELLO: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const HEAD: &[u8] = b"GET /health HTTP/1.1\r\nHost: orch\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy";
/// A thousand are not looked after at the very moment, in a build without optimisation.
const GRACE: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_one_byte_a_second_of_a_handshake_is_sent_away() {
    let victim = Victim::new();
    let address = victim.scene.client.address;
    let lasted = under("1,000 handshakes of a byte a second", &victim, async {
        let mut slow = JoinSet::new();
        for _ in 0..CONNECTIONS {
            slow.spawn(async move { drip(TcpStream::connect(address).await.unwrap(), HELLO).await });
        }
        slow.join_all().await
    })
    .await;
    check(&lasted);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_one_byte_a_second_of_a_head_is_sent_away() {
    let victim = Victim::new();
    let lasted = under("1,000 heads of a byte a second", &victim, async {
        let mut slow = JoinSet::new();
        let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
        for _ in 0..CONNECTIONS {
            let (client, handshakes) = (victim.scene.client.clone(), Arc::clone(&handshakes));
            slow.spawn(async move {
                let turn = handshakes.acquire().await.unwrap();
                let stream = client.connect().await.unwrap();
                drop(turn);
                drip(stream, HEAD).await
            });
        }
        slow.join_all().await
    })
    .await;
    check(&lasted);
}

fn check(lasted: &[Duration]) {
    let longest = lasted.iter().max().unwrap();
    eprintln!("    {} were sent away, the last after {longest:.1?}", lasted.len());
    assert!(*longest < PATIENCE + GRACE, "{longest:?}");
}

/// Sends a byte a second until the other side has had enough, and says how long that took.
async fn drip(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Duration {
    let begun = Instant::now();
    for byte in bytes {
        if stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        let mut answer = [0; 1024];
        // Anything but silence is the end of it.
        if tokio::time::timeout(Duration::from_secs(1), stream.read(&mut answer)).await.is_ok() {
            break;
        }
    }
    begun.elapsed()
}
