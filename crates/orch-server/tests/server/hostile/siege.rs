//! What an attack costs the server and the others: its memory, and how long a node waits for its configuration meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::victim::Victim;
use crate::client::Client;
use crate::scene::B;

/// A node that asks meanwhile has its answer by then, half of what it waits for before it tries again. It is a second at
/// worst where nobody else uses the machine: attackers, server and node share its processors, in a debug build.
const IN_TIME: Duration = Duration::from_secs(5);
/// The server never needs more than it did before and this, in KiB.
const ROOM: u64 = 64 << 10;
/// Afterwards it needs no more than before and this: what an allocator keeps for the next time.
const REST: u64 = 32 << 10;
/// How often a node asks.
const EVERY: Duration = Duration::from_millis(50);

/// One attack at a time: figures of two at once say nothing.
static ONE: Mutex<()> = Mutex::const_new(());

/// Has an attack happen, and sees to it that it hurts nobody.
pub(crate) async fn under<T>(name: &str, victim: &Victim, attack: impl Future<Output = T>) -> T {
    let _one = ONE.lock().await;
    let token = victim.scene.token(B);
    victim.scene.fetch(B, &token).await;
    let before = victim.memory();
    let node = Node::asks(victim.scene.client.clone(), token);
    let mut most = before;
    let begun = Instant::now();
    let outcome = {
        let watch = async {
            loop {
                most = most.max(victim.memory());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            outcome = attack => outcome,
            () = watch => unreachable!("it is watched for as long as it lasts"),
        }
    };
    let took = begun.elapsed();
    let times = node.ends();
    most = most.max(victim.memory());
    let after = settled(victim, before).await;
    let slowest = times.iter().max().copied().unwrap_or_default();
    let mebibytes = |kibibytes: u64| format!("{}.{} MiB", kibibytes >> 10, (kibibytes & 1023) * 10 / 1024);
    eprintln!(
        "{name}: {took:.1?}; memory {} before, {} at most, {} after; a node was answered {} times, in {slowest:.0?} at worst",
        mebibytes(before),
        mebibytes(most),
        mebibytes(after),
        times.len()
    );
    assert!(most < before + ROOM, "{name}: memory grew from {before} to {most} KiB");
    assert!(after < before + REST, "{name}: memory stayed at {after} KiB, after {before}");
    assert!(!times.is_empty() && slowest < IN_TIME, "{name}: a node waited for {slowest:?}");
    outcome
}

/// What the server has in memory once it has let go of what it will.
async fn settled(victim: &Victim, before: u64) -> u64 {
    let begun = Instant::now();
    while victim.memory() > before + REST / 2 && begun.elapsed() < Duration::from_secs(3) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    victim.memory()
}

/// A node that asks for its configuration again and again, on a thread of its own: how long it waits is not to be how long
/// the attackers keep this process busy.
struct Node {
    is_over: Arc<AtomicBool>,
    thread: thread::JoinHandle<Vec<Duration>>,
}

impl Node {
    fn asks(client: Client, token: String) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut times = Vec::new();
                while !end.load(Ordering::SeqCst) {
                    let begun = Instant::now();
                    let answer = client.get(&format!("/v1/spec/{B}"), &token).await;
                    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
                    times.push(begun.elapsed());
                    tokio::time::sleep(EVERY).await;
                }
                times
            })
        });
        Self { is_over, thread }
    }

    fn ends(self) -> Vec<Duration> {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}
