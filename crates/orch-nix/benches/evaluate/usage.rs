//! What children of this process used: processor time, and memory at most.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What something cost.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    /// Of all children that ended meanwhile.
    pub(crate) cpu: Duration,
    /// What all descendants had together at a moment, at most, in MiB.
    pub(crate) peak: u64,
}

/// Does something in children, and measures it.
pub(crate) fn measure<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| watch(&is_over));
        let (before, start) = (children_cpu(), Instant::now());
        let done = work();
        let (wall, cpu) = (start.elapsed(), children_cpu().saturating_sub(before));
        is_over.store(true, Ordering::Relaxed);
        (done, Cost { wall, cpu, peak: watch.join().expect("it only reads") / 1024 })
    })
}

fn watch(is_over: &AtomicBool) -> u64 {
    let mut peak = 0;
    while !is_over.load(Ordering::Relaxed) {
        peak = peak.max(descendants("self").iter().map(|pid| memory(pid)).sum());
        thread::sleep(Duration::from_millis(20));
    }
    peak
}

fn descendants(pid: &str) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<String> =
        children.flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    let further: Vec<String> = children.iter().flat_map(|child| descendants(child)).collect();
    [children, further].concat()
}

/// What a process has in memory, in KiB.
fn memory(pid: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// The processor time of all children that were waited for, and of theirs.
fn children_cpu() -> Duration {
    const TICKS: u64 = 100;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may hold anything but this.
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}
