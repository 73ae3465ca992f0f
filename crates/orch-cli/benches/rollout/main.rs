//! NixOS systems brought to nodes on this computer, beside a script of twenty lines that does the least that deploys, and beside
//! colmena and deploy-rs where they are in `PATH`: nothing to do, over kept connections and over new ones, and a changed system; without
//! latency, and with some.
//!
//! `cargo bench -p orch-cli --bench rollout` prints the table of docs/benchmarks.md; it needs root, sshd and Nix. After `--`, numbers
//! choose how many nodes there are. Without `--bench` two nodes show that it still works.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set its scene has failed")]

mod peers;
mod site;
mod wire;

use std::time::{Duration, Instant};
use std::{env, fs};

use peers::{Peer, program};
use site::Site;

/// How often each command runs, by turns; the median counts.
const TURNS: usize = 3;
const LATENCIES: [Duration; 2] = [Duration::ZERO, Duration::from_millis(50)];

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if wire::is_wire(&arguments) {
        return;
    }
    if let Some(missing) = missing() {
        println!("skipped: {missing}");
        return;
    }
    if !arguments.iter().any(|argument| argument == "--bench") {
        compare(2, LATENCIES[1], 1);
        return;
    }
    let chosen: Vec<usize> = arguments.iter().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if chosen.is_empty() { vec![8, 32, 64] } else { chosen };
    for (peer, lack) in Peer::ALL.into_iter().filter_map(|peer| Some((peer, peer.lacks()?))) {
        println!("skipped: {}: {lack}", peer.name());
    }
    println!("| nodes | latency | what | beside | orch | the other | the other / orch |");
    println!("|---:|---:|---|---|---:|---:|---:|");
    for nodes in sizes {
        for latency in LATENCIES {
            compare(nodes, latency, TURNS);
        }
    }
    println!("load at the end: {}", fs::read_to_string("/proc/loadavg").unwrap());
}

/// What of this computer is not as it must be.
fn missing() -> Option<String> {
    let programs = ["ssh", "sshd", "unshare", "nix-store", "nix-instantiate"];
    if !rustix::process::geteuid().is_root() {
        return Some("only root can make nodes that have a Nix store".into());
    }
    if !std::path::Path::new("/nix").is_dir() {
        return Some("there is no folder `/nix` on this computer".into());
    }
    let missing = programs.into_iter().find(|name| program(name).is_none());
    missing.map(|name| format!("there is no `{name}` in PATH"))
}

/// What orch and one peer took, for each thing that both do.
#[derive(Default)]
struct Times {
    changed: Vec<Duration>,
    kept: Vec<Duration>,
    anew: Vec<Duration>,
}

/// Measures everybody by turns, and prints a row for each thing and peer.
fn compare(nodes: usize, latency: Duration, turns: usize) {
    let site = Site::of(nodes, latency);
    let peers: Vec<Peer> = Peer::ALL.into_iter().filter(|peer| peer.lacks().is_none()).collect();
    for peer in &peers {
        peer.prepare(&site);
    }
    let mut ours = Times::default();
    let mut theirs: Vec<(Peer, Times)> = peers.into_iter().map(|peer| (peer, Times::default())).collect();
    for turn in 0..turns {
        orch(&mut ours, &site, turn);
        for (peer, times) in &mut theirs {
            other(times, *peer, &site, turn);
        }
    }
    for (peer, mut times) in theirs {
        let row = |what, ours: &mut Vec<Duration>, theirs: &mut Vec<Duration>| {
            if !theirs.is_empty() {
                print(
                    &[nodes.to_string(), millis(latency), what, peer.name().into()],
                    median(ours),
                    median(theirs),
                );
            }
        };
        row("nothing to do, kept connections".into(), &mut ours.kept, &mut times.kept);
        row("nothing to do, new connections".into(), &mut ours.anew, &mut times.anew);
        row("a changed system, new connections".into(), &mut ours.changed, &mut times.changed);
    }
}

/// A change over new connections, nothing to do over those that were kept, and nothing to do over new ones.
fn orch(times: &mut Times, site: &Site, turn: usize) {
    let version = format!("{turn}.orch");
    site.change(&version);
    times.changed.push(time(|| site.orch("config --keep-connections 60")));
    site.assert_all_run(&version);
    times.kept.push(time(|| site.orch("config --keep-connections 60")));
    // This ends what was kept.
    site.orch("config --keep-connections 0");
    times.anew.push(time(|| site.orch("config --keep-connections 0")));
    site.assert_all_run(&version);
}

/// The same by another. Only the script keeps connections for the next time.
fn other(times: &mut Times, peer: Peer, site: &Site, turn: usize) {
    let version = format!("{turn}.{}", peer.name());
    site.change(&version);
    times.changed.push(time(|| peer.deploy(site)));
    site.assert_all_run(&version);
    if peer == Peer::Script {
        times.kept.push(time(|| peer.deploy(site)));
        site.hang_up();
    }
    times.anew.push(time(|| peer.deploy(site)));
    site.assert_all_run(&version);
    site.hang_up();
}

fn print(words: &[String], ours: Duration, theirs: Duration) {
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    println!("| {} | {} | {} | {ratio:.2} |", words.join(" | "), millis(ours), millis(theirs));
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn millis(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}
