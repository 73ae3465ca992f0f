//! More connections than there is room for.

use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream};

use super::siege::under;
use super::victim::{PATIENCE, Victim};
use crate::client::ask_on;
use crate::scene::{A, Scene, node};

const ROOM: usize = 100;

/// Somebody who connects from where no node is.
async fn stranger(victim: &Victim) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
    socket.connect(victim.scene.client.address).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_no_room_the_stranger_that_came_first_goes() {
    let victim = Victim::of(Scene::without_server(), ROOM);
    under("five times as many strangers as there is room for", &victim, async {
        let begun = Instant::now();
        let mut strangers = Vec::new();
        for _ in 0..5 * ROOM {
            strangers.push(stranger(&victim).await);
        }
        let mut first = strangers.remove(0);
        assert_eq!(first.read(&mut [0]).await.unwrap_or(0), 0, "it is gone");
        assert!(begun.elapsed() < PATIENCE, "and not because it was slow: {:?}", begun.elapsed());
        let mut last = strangers.pop().unwrap();
        let silent = tokio::time::timeout(Duration::from_millis(100), last.read(&mut [0])).await;
        assert!(silent.is_err(), "the last one is still there");
        assert!(victim.files() < ROOM + 40, "{} files are open", victim.files());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_waits_is_not_sent_away_for_strangers() {
    let victim = Victim::of(Scene::without_server(), ROOM);
    let first = victim.scene.fetch(A, &victim.scene.token(A)).await;
    let (token, path) =
        (first.next.spec.expose().to_owned(), format!("/v1/wait/{A}?after={}", first.revision));
    let mut stream = victim.scene.client.connect().await.unwrap();
    let waiting = tokio::spawn(async move { ask_on(&mut stream, "GET", &path, Some(&token), b"").await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    under("strangers beside a node that waits", &victim, async {
        let mut strangers = Vec::new();
        for _ in 0..3 * ROOM {
            strangers.push(stranger(&victim).await);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    })
    .await;
    assert!(!waiting.is_finished(), "it still waits");
    victim.scene.operator().converge(&node(A)).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_cannot_take_the_place_of_all_others() {
    let victim = Victim::of(Scene::without_server(), ROOM);
    let first = victim.scene.fetch(A, &victim.scene.token(A)).await;
    let token = first.next.spec.expose().to_owned();
    let path = format!("/v1/wait/{A}?after={}", first.revision);
    under("a node that waits twice as often as there is room", &victim, async {
        let mut waiting = Vec::new();
        for _ in 0..2 * ROOM {
            let (client, path, token) = (victim.scene.client.clone(), path.clone(), token.clone());
            let stream = stranger(&victim).await;
            waiting.push(tokio::spawn(async move {
                let Ok(mut stream) = client.connect_over(stream).await else { return };
                let _ = ask_on(&mut stream, "GET", &path, Some(&token), b"").await;
            }));
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(victim.files() < ROOM, "{} files are open", victim.files());
        for waiting in waiting {
            waiting.abort();
        }
    })
    .await;
}
