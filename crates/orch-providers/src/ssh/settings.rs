//! Where an [`Ssh`](super::Ssh) keeps its files, and how patient it is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orch_run::{NoTreasury, Treasury};

use crate::push::Limits;
use crate::rollout::RolloutSettings;

/// Where an [`Ssh`](super::Ssh) keeps its files, and how patient it is.
#[derive(Clone)]
pub struct SshSettings {
    /// The folder for generated configurations, pinned keys and control sockets. Several drivers may share it.
    pub folder: PathBuf,
    /// The private key that opens the nodes.
    pub identity: PathBuf,
    /// Other private keys that may open them.
    pub more_identities: Vec<PathBuf>,
    /// The socket of an SSH agent that is asked too, where one is.
    pub agent: Option<PathBuf>,
    /// The `ssh` program.
    pub ssh: PathBuf,
    /// Where the nodes are. On this very computer nobody can record what is said, so the quick key exchange comes first:
    /// the one that is safe from computers to come costs ten times as much, on both sides.
    pub whereabouts: Whereabouts,
    /// How long a node may take until it answers at all: it may still be booting.
    pub reach: Duration,
    /// How long one try to connect may take, in whole seconds.
    pub connect: Duration,
    /// How long to wait after the first try that failed; doubled each time.
    pub first_wait: Duration,
    /// The longest wait between two tries.
    pub longest_wait: Duration,
    /// How often a silent connection is asked for a sign of life, in whole seconds.
    pub alive_interval: Duration,
    /// After how many questions without an answer it counts as broken.
    pub alive_count: u32,
    /// How long a connection that nobody uses outlives a driver that was killed, in whole seconds.
    pub idle: Duration,
    /// How long a connection that nobody uses is kept for the next run; where nothing is said, it ends with this one.
    pub keep: Option<Duration>,
    /// How many connections are made at once.
    pub connects: usize,
    /// How many programs run over one connection at once; an SSH server allows ten by default.
    pub channels: usize,
    /// Who can open the secrets that nodes say they lack.
    pub treasury: Arc<dyn Treasury>,
    /// How long configuring, checking and looking may take.
    pub limits: Limits,
    /// What is needed to give nodes another NixOS system.
    pub rollout: RolloutSettings,
}

/// Where nodes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// On this very computer.
    Here,
    /// Anywhere.
    Elsewhere,
}

impl SshSettings {
    /// The usual patience.
    pub fn new(folder: PathBuf, identity: PathBuf) -> Self {
        Self {
            folder,
            identity,
            more_identities: Vec::new(),
            agent: None,
            ssh: "ssh".into(),
            whereabouts: Whereabouts::Elsewhere,
            reach: Duration::from_mins(1),
            connect: Duration::from_secs(10),
            first_wait: Duration::from_millis(50),
            longest_wait: Duration::from_secs(1),
            alive_interval: Duration::from_secs(5),
            alive_count: 3,
            idle: Duration::from_mins(1),
            keep: None,
            connects: 32,
            channels: 8,
            treasury: NoTreasury::shared(),
            limits: Limits::default(),
            rollout: RolloutSettings::default(),
        }
    }
}
