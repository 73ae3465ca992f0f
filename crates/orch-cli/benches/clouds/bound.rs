//! How long making and destroying must take, by what the hosts themselves take: no driver that asks the same things can be
//! quicker.
//!
//! A node's own chain of tasks and answers is done by one lane, which does as many nodes as there are for each; and of what a
//! host does only so much at once, all of it has to be done.

use std::time::Duration;

use orch_lab::{HostKind, ProxmoxTimings};

use crate::site::{LATENCY, PARALLELISM};

/// How many disks a Proxmox VE is asked to make at once, and how many tasks it does at once.
const DISKS: u32 = 4;
const WORKERS: u32 = 16;
/// How long an action of Hetzner takes.
const ACTION: Duration = Duration::from_secs(1);

/// The least time in which nodes can be made.
pub(crate) fn create(kind: HostKind, nodes: usize) -> Duration {
    match kind {
        HostKind::Proxmox => proxmox_create(nodes),
        // Making, joining a network and starting come one after the other. Beside them: whether it is there, the order, one question
        // about the first and one about the last of them, how it came out, and the look afterwards.
        HostKind::Hetzner => LATENCY + waves(nodes) * (3 * ACTION + LATENCY * 6),
    }
}

/// The least time in which nodes can be destroyed.
pub(crate) fn destroy(kind: HostKind, nodes: usize) -> Duration {
    match kind {
        HostKind::Proxmox => {
            let ProxmoxTimings { stop, destroy, .. } = ProxmoxTimings::default();
            // Its configuration, how it is; stopping and removing, each with an order and a question; and the look afterwards.
            let chain = stop + destroy + LATENCY * 7;
            LATENCY + (waves(nodes) * chain).max(share(nodes, WORKERS, stop + destroy))
        }
        HostKind::Hetzner => LATENCY + waves(nodes) * (ACTION + LATENCY * 4),
    }
}

fn proxmox_create(nodes: usize) -> Duration {
    let times = ProxmoxTimings::default();
    // An order and a question about how it came out, for each of them.
    let disk = times.create + times.allocate + LATENCY * 2;
    let grow = times.config + LATENCY * 2;
    let start = times.start + LATENCY * 2;
    // Whose machines there are, its configuration twice, its change, and whose there are; then the look afterwards.
    let chain = disk + grow + start + LATENCY * 7;
    // The first-boot disc is uploaded while the disk is made, but its task is one of those that the host does.
    let tasks = times.create + times.allocate + 2 * times.config + times.start;
    let by_disks = share(nodes, DISKS, disk + grow) + start + LATENCY * 4;
    LATENCY + (waves(nodes) * chain).max(by_disks).max(share(nodes, WORKERS, tasks))
}

/// How many nodes the lane with the most of them has to do.
fn waves(nodes: usize) -> u32 {
    u32::try_from(nodes.div_ceil(PARALLELISM)).unwrap()
}

/// What so many who work at once take for all nodes.
fn share(nodes: usize, at_once: u32, each: Duration) -> Duration {
    each * u32::try_from(nodes).unwrap() / at_once
}
