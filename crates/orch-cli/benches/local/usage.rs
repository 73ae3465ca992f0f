//! How long something took, and how much processor time this whole computer spent meanwhile beyond what it spends idle.

use std::fs;
use std::time::{Duration, Instant};

/// What something cost.
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
}

/// Does something and measures it.
pub(crate) fn measure(work: impl FnOnce()) -> Cost {
    let (cpu, start) = (busy(), Instant::now());
    work();
    Cost { wall: start.elapsed(), cpu: busy().saturating_sub(cpu) }
}

/// How long all processors have been busy since the computer was started. Nodes and helpers are not our children, so
/// only this counts everything that is done for them; other work on the computer counts too.
fn busy() -> Duration {
    const TICKS: u64 = 100;
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<u64> =
        stat.lines().next().unwrap().split_whitespace().skip(1).map(|field| field.parse().unwrap()).collect();
    let (user, nice, system, irq, softirq) = (ticks[0], ticks[1], ticks[2], ticks[5], ticks[6]);
    Duration::from_millis((user + nice + system + irq + softirq) * 1000 / TICKS)
}
