//! Nodes that ask, many at once, in this process.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::AT_ONCE;
use crate::client::{Client, Connection};
use crate::site::{Site, node};

/// Whether a node connects anew each time.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Connections {
    New,
    Kept,
}

/// Whether a node shows the token that the last answer gave it, so that each fetch is written down, or the same again.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Tokens {
    Same,
    Next,
}

/// The nodes of a site.
pub(crate) struct Load {
    runtime: Runtime,
    client: Client,
    nodes: Arc<[Asking]>,
    pub(crate) server: SocketAddr,
}

struct Asking {
    path: String,
    token: Mutex<String>,
}

impl Asking {
    async fn fetch(&self, connection: &mut Connection, tokens: Tokens) {
        let token = self.token.lock().unwrap().clone();
        let answer = connection.get(&self.path, &token).await;
        // Looked for in either case, so that either costs this side the same.
        let next = next(answer).unwrap();
        if tokens == Tokens::Next {
            next.clone_into(&mut self.token.lock().unwrap());
        }
    }
}

impl Load {
    pub(crate) fn new(site: &Site, server: SocketAddr, nodes: usize) -> Self {
        let asking = (0..nodes)
            .map(node)
            .map(|node| Asking { path: format!("/v1/spec/{node}"), token: Mutex::new(site.token(&node)) });
        let nodes = asking.collect();
        Self { runtime: Runtime::new().unwrap(), client: Client::new(), nodes, server }
    }

    /// What a node is answered.
    pub(crate) fn answer(&self) -> Vec<u8> {
        self.runtime.block_on(async {
            let mut connection = self.client.connect(self.server).await;
            let token = self.nodes[0].token.lock().unwrap().clone();
            connection.get(&self.nodes[0].path, &token).await.to_vec()
        })
    }

    /// Has so many ask for a while, and says how many fetches there were in which time.
    pub(crate) fn run(
        &self,
        address: SocketAddr,
        at_once: usize,
        connections: Connections,
        tokens: Tokens,
        lasts: Duration,
    ) -> (u32, Duration) {
        let begun = Instant::now();
        let counts = self.each(at_once, move |client, node| async move {
            let mut kept = None;
            let mut count = 0;
            while begun.elapsed() < lasts {
                let mut connection = match kept.take() {
                    Some(connection) => connection,
                    None => client.connect(address).await,
                };
                node.0[node.1].fetch(&mut connection, tokens).await;
                count += 1;
                kept = (connections == Connections::Kept).then_some(connection);
            }
            count
        });
        (counts.into_iter().sum(), begun.elapsed())
    }

    /// Has so many ask at once, each three times on a connection of its own, and says how long each of them waited.
    pub(crate) fn crowd(&self, address: SocketAddr, at_once: usize, tokens: Tokens) -> Vec<Duration> {
        let times = self.each(at_once, move |client, node| async move {
            let mut times = Vec::new();
            for _ in 0..3 {
                let begun = Instant::now();
                let mut connection = client.connect(address).await;
                node.0[node.1].fetch(&mut connection, tokens).await;
                times.push(begun.elapsed());
            }
            times
        });
        times.concat()
    }

    /// Has every node show its token once.
    pub(crate) fn show_all(&self) {
        let (next, server) = (Arc::new(AtomicUsize::new(0)), self.server);
        self.each(AT_ONCE, move |client, (nodes, _)| {
            let next = Arc::clone(&next);
            async move {
                let mut connection = client.connect(server).await;
                while let Some(node) = nodes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    node.fetch(&mut connection, Tokens::Same).await;
                }
            }
        });
    }

    fn each<T, F>(&self, at_once: usize, ask: impl Fn(Client, (Arc<[Asking]>, usize)) -> F) -> Vec<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let at_once = at_once.min(self.nodes.len());
        self.runtime.block_on(async {
            let mut asking = JoinSet::new();
            for number in 0..at_once {
                asking.spawn(ask(self.client.clone(), (Arc::clone(&self.nodes), number)));
            }
            asking.join_all().await
        })
    }
}

/// The token that an answer has for the next time.
fn next(answer: &[u8]) -> Option<&str> {
    const BEFORE: &[u8] = b"\"next\":{\"spec\":\"";
    // Nearer to the end than to the beginning.
    let start = answer.windows(BEFORE.len()).rposition(|window| window == BEFORE)? + BEFORE.len();
    let length = answer[start..].iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&answer[start..start + length]).ok()
}
