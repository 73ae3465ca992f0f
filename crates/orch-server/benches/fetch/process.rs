//! A process that is measured from outside. Killed when this goes.

use std::fs;
use std::process::Child;
use std::time::Duration;

pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// What it and its children have used of the processors.
    pub(crate) fn cpu(&self) -> Duration {
        let own = self.0.id();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let all = children.split_whitespace().filter_map(|child| child.parse().ok());
        // A hundredth of a second is a tick, wherever this runs.
        Duration::from_millis(all.chain([own]).map(ticks).sum::<u64>() * 10)
    }

    /// What it has in memory, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// What it ever had, in KiB.
    pub(crate) fn most_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

fn ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
