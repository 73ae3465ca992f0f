//! What happens to nodes at the server, for those who wait for it. Kept in memory: what must outlive the server is in the
//! ledger and the reports.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use orch_model::{Digest, Fetched, Identity, Refused};
use tokio::sync::watch;

/// What happens to nodes.
#[derive(Debug)]
pub(crate) struct Events {
    nodes: Mutex<BTreeMap<Identity, Seen>>,
    /// Something happened to a node that people may wait for.
    happened: watch::Sender<()>,
    /// Something may be new for nodes that wait: the site changed, or one is to converge.
    news: watch::Sender<()>,
    /// Nobody is kept waiting any more.
    is_over: AtomicBool,
}

/// What was seen of a node since the server was started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) count: u64,
    pub(crate) fetched: Option<Fetched>,
    pub(crate) doing: Option<String>,
    pub(crate) refused: Option<Refused>,
    /// How often it was told to converge.
    signals: u64,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Mutex::default(),
            happened: watch::Sender::new(()),
            news: watch::Sender::new(()),
            is_over: AtomicBool::new(false),
        }
    }

    /// Lets everybody go who waits.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.happened.send_replace(());
        self.news.send_replace(());
    }

    pub(crate) fn seen(&self, node: &Identity) -> Seen {
        self.nodes().get(node).cloned().unwrap_or_default()
    }

    /// What a node is asked to compare: it changes when its configuration does, and when it is told to converge.
    pub(crate) fn revision(&self, node: &Identity, wanted: Digest) -> u64 {
        let signals = self.nodes().get(node).map_or(0, |seen| seen.signals);
        // An odd number with high bits: every signal moves the ones that are kept. JSON numbers are exact up to there,
        // whoever reads them.
        wanted.as_number().wrapping_add(signals.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 11
    }

    pub(crate) fn fetched(&self, node: &Identity, fetched: Fetched) {
        self.note(node, |seen| (seen.fetched, seen.doing, seen.refused) = (Some(fetched), None, None));
    }

    pub(crate) fn refused(&self, node: &Identity, refused: Refused) {
        self.note(node, |seen| seen.refused = Some(refused));
    }

    pub(crate) fn doing(&self, node: &Identity, doing: String) {
        self.note(node, |seen| seen.doing = Some(doing));
    }

    pub(crate) fn reported(&self, node: &Identity) {
        self.note(node, |seen| seen.doing = None);
    }

    /// Has a node converge, if it waits, or when it next does.
    pub(crate) fn signal(&self, node: &Identity) {
        self.note(node, |seen| seen.signals += 1);
        self.something_is_new();
    }

    pub(crate) fn something_is_new(&self) {
        self.news.send_replace(());
    }

    /// Looks again and again until something comes of it, whenever something may be new for nodes; nothing after `limit`.
    pub(crate) async fn until_new<T>(&self, limit: Duration, look: impl FnMut() -> Option<T>) -> Option<T> {
        self.until(self.news.subscribe(), limit, look).await
    }

    /// The same whenever something has happened to a node.
    pub(crate) async fn until_happened<T>(
        &self,
        limit: Duration,
        look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        self.until(self.happened.subscribe(), limit, look).await
    }

    async fn until<T>(
        &self,
        mut changes: watch::Receiver<()>,
        limit: Duration,
        mut look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let found = async {
            loop {
                if let Some(found) = look() {
                    return Some(found);
                }
                if self.is_over.load(Ordering::SeqCst) || changes.changed().await.is_err() {
                    return None;
                }
            }
        };
        tokio::time::timeout(limit, found).await.unwrap_or_default()
    }

    fn note(&self, node: &Identity, change: impl FnOnce(&mut Seen)) {
        {
            let mut nodes = self.nodes();
            let seen = nodes.entry(node.clone()).or_default();
            seen.count += 1;
            change(seen);
        }
        self.happened.send_replace(());
    }

    fn nodes(&self) -> std::sync::MutexGuard<'_, BTreeMap<Identity, Seen>> {
        self.nodes.lock().expect("nobody panics while holding this")
    }
}
