//! What the engine costs beside bare spawning, how its memory grows, and what the journal costs beside bare flushing.
//!
//! Prints tables and asserts nothing: numbers depend on the machine.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use orch_dag::{FileJournal, Outcome, Plan, Runner};
use tempfile::TempDir;

const WIDTH: usize = 100;
const ROUNDS: usize = 9;

fn main() {
    match std::env::args().nth(1).filter(|argument| argument == "memory") {
        Some(_) => print_peak(std::env::args().nth(2).and_then(|tasks| tasks.parse().ok()).unwrap_or(0)),
        None => print_tables(),
    }
}

fn print_tables() {
    println!("layers of {WIDTH}, each task after two of the layer before; median of {ROUNDS}\n");
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>7} {:>12}",
        "tasks", "bare", "build", "run", "ratio", "incl. build"
    );
    for tasks in [1_000, 10_000, 100_000] {
        print_speed(tasks);
    }

    println!("\n{:>8} {:>10} {:>10}", "tasks", "peak", "per task");
    let base = peak_of_child(0);
    for tasks in [1_000, 10_000, 100_000, 200_000] {
        print_memory(tasks, base);
    }

    println!("\n{:>8} {:>8} {:>12} {:>12} {:>7}", "limit", "entries", "journal/s", "raw fsync/s", "ratio");
    for (limit, tasks) in [(1, 500), (64, 5_000)] {
        print_journal(limit, tasks);
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime starts")
}

/// The plan under test: empty tasks in layers.
fn layered(tasks: usize) -> Plan {
    let mut plan = Plan::new("layered");
    let mut ids = Vec::with_capacity(tasks);
    for index in 0..tasks {
        let task = plan.task(format!("t{index}"), |_| async { Ok(Outcome::unchanged()) });
        if index >= WIDTH {
            task.after(ids[index - WIDTH]).after(ids[index / WIDTH * WIDTH - 1]);
        }
        ids.push(task.id());
    }
    plan
}

fn print_speed(tasks: usize) {
    let runtime = runtime();
    let bare = median(|| runtime.block_on(spawn_and_join(tasks)));
    let build = median(|| timed(|| layered(tasks)).0);
    let run = median(|| {
        let plan = layered(tasks);
        let (elapsed, report) = timed(|| runtime.block_on(Runner::new().run(plan)));
        assert_eq!(report.expect("the plan is valid").tasks.len(), tasks);
        elapsed
    });
    let ratio = bare.as_secs_f64() / run.as_secs_f64();
    let whole = bare.as_secs_f64() / (run + build).as_secs_f64();
    println!("{tasks:>8} {bare:>10.1?} {build:>10.1?} {run:>10.1?} {ratio:>7.2} {whole:>12.2}");
}

async fn spawn_and_join(tasks: usize) -> Duration {
    let began = Instant::now();
    let handles: Vec<_> = (0..tasks).map(|_| tokio::spawn(async {})).collect();
    for handle in handles {
        handle.await.expect("an empty task does not panic");
    }
    began.elapsed()
}

fn timed<R>(code: impl FnOnce() -> R) -> (Duration, R) {
    let began = Instant::now();
    let result = code();
    (began.elapsed(), result)
}

fn median(mut measure: impl FnMut() -> Duration) -> Duration {
    let mut all: Vec<Duration> = std::iter::repeat_with(&mut measure).take(ROUNDS).collect();
    all.sort();
    all[ROUNDS / 2]
}

fn print_memory(tasks: usize, base: usize) {
    let grown = peak_of_child(tasks).saturating_sub(base);
    println!("{tasks:>8} {:>7} KiB {:>8} B", grown, grown * 1024 / tasks);
}

/// A process of its own per measurement: within one, freed memory would hide what the next run takes.
fn peak_of_child(tasks: usize) -> usize {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).args(["memory", &tasks.to_string()]).output().expect("it runs again");
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0)
}

fn print_peak(tasks: usize) {
    let report = runtime().block_on(Runner::new().run(layered(tasks))).expect("the plan is valid");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    println!("{}", peak.trim().trim_end_matches(" kB"));
    drop(report);
}

fn print_journal(limit: usize, tasks: usize) {
    let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory can be made");
    let path = directory.path().join("journal");
    let journal = FileJournal::create(&path).expect("a journal can be made");
    let mut plan = Plan::new("flat");
    for index in 0..tasks {
        plan.task(format!("t{index}"), |_| async { Ok(Outcome::unchanged()) });
    }
    let runner = Runner::new().limit(limit).journal(journal);
    let (elapsed, report) = timed(|| runtime().block_on(runner.run(plan)));
    assert!(report.expect("the plan is valid").is_success());

    let entries = tasks * 2;
    let rate = per_second(entries, elapsed);
    let raw = raw_rate(&path, &directory.path().join("raw"));
    println!("{limit:>8} {entries:>8} {rate:>12.0} {raw:>12.0} {:>7.2}", rate / raw);
}

/// Writes the first lines of the same file again, with one flush after each.
fn raw_rate(journal: &Path, raw: &Path) -> f64 {
    let bytes = std::fs::read(journal).expect("the journal can be read");
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').take(1_000).collect();
    let mut file = File::create(raw).expect("a file can be made");
    let (elapsed, ()) = timed(|| {
        for line in &lines {
            file.write_all(line).and_then(|()| file.sync_data()).expect("the file can be written");
        }
    });
    per_second(lines.len(), elapsed)
}

#[allow(clippy::cast_precision_loss, reason = "a rate for reading needs no more than a few digits")]
fn per_second(count: usize, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}
