//! Those who ask and never read the answer.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;

use super::siege::under;
use super::victim::{PATIENCE, Victim};
use crate::client::Client;
use crate::scene::{A, Scene, write};

/// Of a node that may have much.
const OF_A_NODE: usize = 200;
/// Of somebody who must ask for little, many times.
const OF_NOBODY: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn whoever_never_reads_costs_little_and_is_sent_away() {
    let scene = Scene::without_server();
    // One that no kernel takes off the server's hands.
    let content = "0123456789abcdef".repeat(50_000);
    let spec = format!("schema_version: 1\nfiles: [{{ path: /etc/large, content: {content} }}]\n");
    write(&scene.site("specs/base.yaml"), &spec);
    let victim = Victim::of(scene, 2048);
    let token = victim.scene.token(A);
    let question =
        format!("GET /v1/spec/{A} HTTP/1.1\r\nHost: orch\r\nAuthorization: Bearer {token}\r\n\r\n");
    under(&format!("{OF_A_NODE} times a node that never reads 800 KB"), &victim, async {
        let _held = ask_all(OF_A_NODE, &victim.scene.client, &question.repeat(4)).await;
        is_alone(&victim).await;
    })
    .await;
    let healthy = "GET /health HTTP/1.1\r\nHost: orch\r\n\r\n".repeat(100_000);
    under(&format!("{OF_NOBODY} times 100,000 questions, and nobody who reads"), &victim, async {
        let _held = ask_all(OF_NOBODY, &victim.scene.client, &healthy).await;
        is_alone(&victim).await;
    })
    .await;
}

/// Waits until the server has let go of everybody, although they hold on to it.
async fn is_alone(victim: &Victim) {
    // Its own files, and whoever asks meanwhile.
    let most = 18;
    let begun = std::time::Instant::now();
    while victim.files() > most {
        assert!(
            begun.elapsed() < 4 * PATIENCE,
            "{} files are open after {:?}",
            victim.files(),
            begun.elapsed()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    eprintln!("    all were sent away within {:.1?}", begun.elapsed());
}

async fn ask_all(connections: usize, client: &Client, questions: &str) -> Vec<TlsStream<TcpStream>> {
    let mut asking = JoinSet::new();
    for _ in 0..connections {
        let (client, questions) = (client.clone(), questions.to_owned());
        asking.spawn(async move {
            let mut stream = client.connect_over(narrow(client.address).await).await.unwrap();
            // What the server does not take any more is not sent.
            let _ = tokio::time::timeout(PATIENCE / 2, stream.write_all(questions.as_bytes())).await;
            stream
        });
    }
    asking.join_all().await
}

/// A connection of which this side takes next to nothing by itself.
async fn narrow(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(address).await.unwrap()
}
