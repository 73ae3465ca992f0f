//! How many nodes are evaluated at once, by the memory that evaluations were seen to need.
//!
//! Nodes that are evaluated together share one nixpkgs, which costs less work and less memory than one for each of
//! them; but together they need more memory than one process may be given.

use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;

/// What an evaluation needs: so much with one node, and so much more with each other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Need {
    alone: u64,
    more: u64,
}

impl Default for Need {
    /// What NixOS was seen to need, before anything is known of this site.
    fn default() -> Self {
        Self { alone: 900 * MIB, more: 500 * MIB }
    }
}

impl Need {
    /// What so many nodes need in one process.
    pub(super) const fn of(self, nodes: usize) -> u64 {
        self.alone.saturating_add(self.more.saturating_mul((nodes as u64).saturating_sub(1)))
    }

    /// Takes into account what a process with so many nodes was seen to need: half what was thought, half what was seen.
    pub(super) fn learn(&mut self, nodes: usize, peak: u64) {
        let average = |thought: u64, seen: u64| (thought / 2 + seen / 2).max(MIB);
        if nodes == 1 {
            self.alone = average(self.alone, peak);
        } else if nodes > 1 {
            let others = nodes as u64 - 1;
            // What one alone needs may be thought too much of; then it is not more than a share.
            self.alone = self.alone.min(peak);
            self.more = average(self.more, peak.saturating_sub(self.alone) / others);
        }
    }

    /// How the nodes are split. `apart` has them evaluated one process after the other, in two at least, so that what
    /// each part reads is seen apart from what the others do.
    pub(super) fn split(self, nodes: usize, budget: u64, parallel: usize, apart: bool) -> Split {
        let fits = usize::try_from(budget / self.alone.max(1)).unwrap_or(usize::MAX);
        let at_once = if apart { 1 } else { parallel.min(fits).max(1) };
        let share = budget / at_once as u64;
        let others = share.saturating_sub(self.alone) / self.more.max(1);
        let most = usize::try_from(others).unwrap_or(usize::MAX).saturating_add(1);
        let wished = if apart { 2 } else { at_once };
        let parts = nodes.div_ceil(most).max(wished.min(nodes)).max(1);
        Split { at_once, size: nodes.div_ceil(parts).max(1), share }
    }
}

/// How nodes are split among processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split {
    /// How many processes at once.
    pub(super) at_once: usize,
    /// How many nodes in each.
    pub(super) size: usize,
    /// How much memory each of them has.
    pub(super) share: u64,
}

/// What may be used where nobody says: most of what is free now.
pub(super) fn available() -> u64 {
    let known = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    field(&known, "MemAvailable:").map_or(2048 * MIB, |free| free / 10 * 6)
}

/// The most memory that a process ever had, as long as it runs.
pub(super) fn peak(pid: u32) -> Option<u64> {
    field(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:")
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1024 * MIB;

    #[test]
    fn nodes_are_split_by_memory_first_and_then_among_processes() {
        let need = Need { alone: GIB, more: GIB / 2 };
        let split = |nodes, budget, parallel, apart| {
            let split = need.split(nodes, budget, parallel, apart);
            (split.at_once, split.size)
        };
        assert_eq!(split(1, 16 * GIB, 4, false), (4, 1));
        assert_eq!(split(16, 16 * GIB, 2, false), (2, 8), "they share nixpkgs as far as there are processes");
        assert_eq!(split(16, 4 * GIB, 2, false), (2, 3), "two gigabytes hold three nodes");
        assert_eq!(split(16, GIB, 4, false), (1, 1), "too little for two at once");
        assert_eq!(split(16, 1, 4, false), (1, 1), "one is always tried");
        assert_eq!(split(16, 16 * GIB, 4, true), (1, 8), "apart: halves, one after the other");
        assert_eq!(split(1, 16 * GIB, 4, true), (1, 1));
    }

    #[test]
    fn what_is_needed_follows_what_was_seen() {
        let mut need = Need::default();
        for _ in 0..20 {
            need.learn(1, 100 * MIB);
            need.learn(5, 180 * MIB);
        }
        assert!(need.of(1).abs_diff(100 * MIB) < 2 * MIB, "{need:?}");
        assert!(need.of(5).abs_diff(180 * MIB) < 6 * MIB, "{need:?}");
        need.learn(0, GIB);
        need.learn(3, 0);
        assert!(need.of(2) >= MIB, "nothing needs nothing");
    }

    #[test]
    fn this_machine_says_what_is_free_and_what_a_process_had() {
        assert!(available() > MIB);
        assert!(peak(std::process::id()).is_some_and(|peak| peak > MIB / 4));
        assert_eq!(peak(u32::MAX), None);
    }
}
