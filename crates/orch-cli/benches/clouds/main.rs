//! Fifty machines on a Proxmox VE and at Hetzner Cloud, as the lab stands in for them: tasks take as long as they were seen to
//! take at the real ones, every answer takes 20 ms longer, and the machines are on paper.
//!
//! `cargo bench -p orch-cli --bench clouds` prints the tables of docs/benchmarks.md. After `--`, the words `life` and `noop`
//! choose among them. Without `--bench` two nodes show that it still works.

#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set its scene has failed")]

mod bound;
mod lanes;
mod site;

use std::time::Duration;
use std::{env, fs, thread};

use lanes::Lanes;
use orch_lab::ProxmoxTimings;
use site::{HOSTS, Site, Tasks};

const NODES: usize = 50;
/// How much longer than the bound a create may take.
const MOST: f64 = 1.2;

fn main() {
    if !env::args().any(|argument| argument == "--bench") {
        for (host, _) in HOSTS {
            let site = Site::of(host, 2, Tasks::Quick);
            site.orch("create");
            site.orch("destroy --yes");
        }
        return;
    }
    let tables: [(&str, fn()); 2] = [("life", life), ("noop", unchanged)];
    let chosen: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (_, table) in
        tables.iter().filter(|(name, _)| chosen.is_empty() || chosen.iter().any(|one| one == name))
    {
        table();
        println!();
    }
    println!("load at the end: {}", fs::read_to_string("/proc/loadavg").unwrap());
}

/// What it takes to make, to leave alone and to destroy machines, and how near that is to what it must take.
fn life() {
    println!(
        "| {NODES} nodes | what | calls | time | least possible | ratio | lanes busy | longest idle gap |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    let mut worst = 0.0_f64;
    for (host, kind) in HOSTS {
        let site = Site::of(host, NODES, Tasks::Real);
        let made = site.orch("create");
        let (least, lanes) = (bound::create(kind, NODES), Lanes::of(&made.report));
        let ratio = made.wall.as_secs_f64() / least.as_secs_f64();
        worst = worst.max(ratio);
        println!(
            "| {} | create | {} | {} | {} | {ratio:.2} | {:.0} % | {} |",
            kind.word(),
            made.calls,
            seconds(made.wall),
            seconds(least),
            lanes.busy * 100.0,
            seconds(lanes.longest_gap)
        );
        // Until then the list of a Proxmox VE does not show everything.
        thread::sleep(ProxmoxTimings::default().report);
        let noop = site.orch("create");
        println!(
            "| {} | create again | {} | {} | – | – | – | – |",
            kind.word(),
            noop.calls,
            seconds(noop.wall)
        );
        let gone = site.orch("destroy --yes");
        let (least, lanes) = (bound::destroy(kind, NODES), Lanes::of(&gone.report));
        println!(
            "| {} | destroy | {} | {} | {} | {:.2} | {:.0} % | {} |",
            kind.word(),
            gone.calls,
            seconds(gone.wall),
            seconds(least),
            gone.wall.as_secs_f64() / least.as_secs_f64(),
            lanes.busy * 100.0,
            seconds(lanes.longest_gap)
        );
    }
    let verdict = if worst <= MOST { "within" } else { "beyond" };
    println!("\na create takes {worst:.2} times as long as it must at most: {verdict} {MOST}");
}

/// How many questions it takes to find that there is nothing to do.
fn unchanged() {
    println!("| create with nothing to do | 1 node | 50 nodes | 200 nodes |\n|---|---:|---:|---:|");
    for (host, kind) in HOSTS {
        let counts = [1, 50, 200].map(|nodes| {
            let site = Site::of(host, nodes, Tasks::Quick);
            site.orch("create");
            let noop = site.orch("create");
            format!("{} calls, {}", noop.calls, seconds(noop.wall))
        });
        println!("| {} | {} |", kind.word(), counts.join(" | "));
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
