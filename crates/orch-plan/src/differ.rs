//! How a machine that is there differs from the one that is wanted.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use orch_model::{Node, NodeKind};

use crate::observed::{Abilities, Machine};

/// One way in which a machine is not as wanted.
pub(crate) struct Difference {
    /// What differs, as `cores 2 -> 4`.
    pub(crate) what: String,
    /// Whether it can be mended without making the machine anew.
    pub(crate) in_place: bool,
}

/// Everything in which `machine` is not what `node` wants.
pub(crate) fn differences(node: &Node, machine: &Machine, abilities: Abilities) -> Vec<Difference> {
    let (is, wanted) = (machine.size, node.size);
    let disk = abilities.can_change_disk(is.disk, wanted.disk);
    let mut found = Vec::new();
    let mut compare = |name: &str, is: u32, wanted: u32, in_place: bool| {
        if is != wanted {
            found.push(Difference { what: format!("{name} {is} -> {wanted}"), in_place });
        }
    };
    compare("cores", is.cores, wanted.cores, abilities.cores);
    compare("memory", is.memory, wanted.memory, abilities.memory);
    compare("disk", is.disk, wanted.disk, disk);
    if let (Some(is), Some(wanted)) = (machine.vmid, node.vmid) {
        compare("vmid", is, wanted, false);
    }
    if let Some(image) = machine.image.as_ref().filter(|image| **image != node.image) {
        found.push(Difference { what: format!("image {image} -> {}", node.image), in_place: false });
    }
    // A pve is a vm to its host.
    let is_ct = |kind: NodeKind| kind == NodeKind::Ct;
    if let Some(kind) = machine.kind.filter(|kind| is_ct(*kind) != is_ct(node.kind)) {
        found.push(Difference { what: format!("type {kind} -> {}", node.kind), in_place: false });
    }
    found
}
