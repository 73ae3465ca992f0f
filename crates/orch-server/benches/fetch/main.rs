//! Fetches of a configuration over TLS 1.3, beside nginx, which serves the same bytes as a file: how many in a second, how
//! long they take where a thousand nodes ask at once, and what the server keeps in memory of ten thousand nodes.
//!
//! `cargo bench -p orch-server --bench fetch` prints the tables of docs/benchmarks.md; nginx is Debian's `nginx-light`.
//! Without `--bench` a short turn of everything shows that it still works.

#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set its scene has failed")]

mod client;
mod load;
mod nginx;
mod process;
mod served;
mod site;

use std::time::Duration;
use std::{env, fs};

use load::{Connections, Load, Tokens};
use nginx::Nginx;
use process::Process;
use served::Served;
use site::Site;

/// Threads of the server, and processes of nginx.
const WORKERS: usize = 2;
/// How many ask at once where it is counted how many are answered.
const AT_ONCE: usize = 32;
/// How many do who wait for the same disk.
const MANY: usize = 256;
/// How many nodes the site has, and the server is to know.
const NODES: usize = 10_000;
/// How many ask at once where it is measured how long they wait.
const CROWD: usize = 1000;
/// The server is to need no more with all nodes known, in KiB.
const ROOM: u64 = 64 << 10;

fn main() {
    if served::is_asked_for() {
        return served::serve(WORKERS);
    }
    let is_bench = env::args().any(|argument| argument == "--bench");
    let (turns, lasts, nodes, crowd) = if is_bench {
        (5, Duration::from_secs(1), NODES, CROWD)
    } else {
        (1, Duration::from_millis(100), 100, 20)
    };
    let site = Site::of(nodes);
    let served = Served::start(&site);
    let load = Load::new(&site, served.address, nodes);
    let nginx = Nginx::start(WORKERS, &load.answer());
    if nginx.is_none() {
        println!("no nginx at {}: the comparison is skipped\n", nginx::PROGRAM);
    }
    rates(&load, &served, nginx.as_ref(), turns, lasts);
    println!("\nthe disk flushed a line {:.0} times a second, one at a time\n", site.flushes());
    crowds(&load, nginx.as_ref(), crowd, turns);
    println!();
    memory(&site, nodes);
    println!("\nload at the end: {}", fs::read_to_string("/proc/loadavg").unwrap().trim());
}

/// How many fetches there are in a second, and what one costs the server.
fn rates(load: &Load, served: &Served, nginx: Option<&Nginx>, turns: usize, lasts: Duration) {
    let size = load.answer().len();
    println!("| {size} bytes | nodes at once | fetches/s | nginx | ratio | CPU per fetch | nginx | ratio |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let rows = [
        ("new connection, same token", AT_ONCE, Connections::New, Tokens::Same),
        ("new connection, next token", AT_ONCE, Connections::New, Tokens::Next),
        ("kept connection, same token", AT_ONCE, Connections::Kept, Tokens::Same),
        ("kept connection, next token", AT_ONCE, Connections::Kept, Tokens::Next),
        ("kept connection, next token", MANY, Connections::Kept, Tokens::Next),
    ];
    let mut ours = rows.map(|_| Vec::new());
    let mut theirs = rows.map(|_| Vec::new());
    // By turns, so that whatever else the machine does falls upon all of them.
    for _ in 0..turns {
        for (row, (_, at_once, connections, tokens)) in rows.into_iter().enumerate() {
            let run = || load.run(served.address, at_once, connections, tokens, lasts);
            ours[row].push(measured(&served.process, run));
            if let Some(nginx) = nginx {
                let run = || load.run(nginx.address, at_once, connections, Tokens::Same, lasts);
                theirs[row].push(measured(&nginx.process, run));
            }
        }
    }
    for (row, (name, at_once, ..)) in rows.into_iter().enumerate() {
        let (rate, cost) = medians(&ours[row]);
        if nginx.is_some() {
            let (their_rate, their_cost) = medians(&theirs[row]);
            let ratios = (rate / their_rate, their_cost / cost);
            println!(
                "| {name} | {at_once} | {rate:.0} | {their_rate:.0} | {:.2} | {cost:.0} µs | {their_cost:.0} µs | {:.2} |",
                ratios.0, ratios.1
            );
        } else {
            println!("| {name} | {at_once} | {rate:.0} | – | – | {cost:.0} µs | – | – |");
        }
    }
}

/// How long nodes wait where very many ask at once, each on a new connection.
fn crowds(load: &Load, nginx: Option<&Nginx>, crowd: usize, turns: usize) {
    println!(
        "| {crowd} nodes at once, new connection, next token | median | p99 | worst |\n|---|---:|---:|---:|"
    );
    let mut all = vec![("orch", load.server, Tokens::Next)];
    all.extend(nginx.map(|nginx| ("nginx", nginx.address, Tokens::Same)));
    let mut times = vec![Vec::new(); all.len()];
    for _ in 0..turns {
        for ((_, address, tokens), times) in all.iter().zip(&mut times) {
            times.extend(load.crowd(*address, crowd, *tokens));
        }
    }
    for ((name, ..), times) in all.iter().zip(&mut times) {
        times.sort_unstable();
        let at = |per_cent: usize| millis(times[(times.len() - 1) * per_cent / 100]);
        println!("| {name} | {} | {} | {} |", at(50), at(99), at(100));
    }
}

/// What a server keeps in memory once it knows every node of its site.
fn memory(site: &Site, nodes: usize) {
    let site = Site::like(site);
    let served = Served::start(&site);
    let before = served.process.memory();
    let load = Load::new(&site, served.address, nodes);
    load.show_all();
    let (after, most) = (served.process.memory(), served.process.most_memory());
    println!("| nodes known | memory before the first | after the last | at most |\n|---:|---:|---:|---:|");
    let mebibytes = |kibibytes: u64| format!("{}.{} MiB", kibibytes >> 10, (kibibytes & 1023) * 10 / 1024);
    println!("| {nodes} | {} | {} | {} |", mebibytes(before), mebibytes(after), mebibytes(most));
    assert!(most <= ROOM, "{nodes} nodes take {most} KiB");
}

/// The fetches in a second, and the microseconds of processor for each.
fn measured(process: &Process, run: impl FnOnce() -> (u32, Duration)) -> (f64, f64) {
    let before = process.cpu();
    let (count, took) = run();
    let cpu = process.cpu().saturating_sub(before);
    let count = f64::from(count);
    (count / took.as_secs_f64(), cpu.as_secs_f64() * 1e6 / count)
}

fn medians(runs: &[(f64, f64)]) -> (f64, f64) {
    let median = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (median(runs.iter().map(|run| run.0).collect()), median(runs.iter().map(|run| run.1).collect()))
}

fn millis(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}
