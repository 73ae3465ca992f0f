//! `presets/<name>.yaml`: how large a node is.

use crate::decode::{Within, record};

/// Processor cores of a node.
pub(crate) type Cores = Within<1, 128>;
/// Memory of a node in MB.
pub(crate) type Memory = Within<512, { u32::MAX }>;
/// Disk of a node in GB.
pub(crate) type Disk = Within<1, { u32::MAX }>;

record! {
    /// A preset: how large a node is.
    pub(crate) struct Preset as "preset" {
        /// Processor cores.
        cores: Cores,
        /// Memory in MB.
        memory: Memory,
        /// Disk in GB; a node's own `disk` wins.
        disk: Disk,
    }
}

impl Default for Preset {
    /// The size of a node that names no preset.
    fn default() -> Self {
        Self { cores: Cores::new::<1>(), memory: Memory::new::<1024>(), disk: Disk::new::<10>() }
    }
}
