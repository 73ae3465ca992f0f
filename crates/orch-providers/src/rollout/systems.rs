//! Where systems come from: a store on this machine, as far as a rollout needs it.

use std::time::Duration;

use async_trait::async_trait;
use orch_model::StorePath;
use orch_nix::Member;
use orch_run::Progress;
use tokio::process::Command;

/// Why a system cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSystem {
    /// What went wrong, and the way out.
    pub why: String,
    /// The last lines of what tells more.
    pub evidence: Vec<String>,
    /// Whether it was time that ran out.
    pub is_late: bool,
}

/// A store that systems come from.
#[async_trait]
pub trait Systems: Send + Sync {
    /// Whether the store has a system, with all that it needs.
    async fn holds(&self, system: &StorePath) -> bool;

    /// Sees to it that the store has a system, and tells how it gets on.
    async fn ready(&self, system: &StorePath, progress: &Progress, limit: Duration) -> Result<(), NoSystem>;

    /// What its node is to build a system from by itself, where it is to: the derivation, and all that it takes. Nothing where
    /// systems are built before they are sent.
    async fn recipe(&self, system: &StorePath) -> Result<Option<(StorePath, Vec<Member>)>, NoSystem>;

    /// Everything that a system needs, itself included, each after what it refers to.
    async fn closure(&self, system: &StorePath) -> Result<Vec<Member>, NoSystem>;

    /// The program that writes these paths as one stream, for `nix-store --import`. They are in the order of the closure.
    fn export(&self, paths: &[StorePath]) -> Command;

    /// What a system runs on, as Nix calls it, where that is known.
    fn platform(&self, system: &StorePath) -> Option<String>;

    /// The script that lays out the disks of a system, built, where its modules say what they are to be.
    async fn disks(
        &self,
        system: &StorePath,
        progress: &Progress,
        limit: Duration,
    ) -> Result<Option<StorePath>, NoSystem>;
}

/// Where there are none.
#[derive(Debug, Clone, Copy)]
pub struct NoSystems;

/// What is said where there are none.
fn none() -> NoSystem {
    let why = "there is no Nix here to have its system from".into();
    NoSystem { why, evidence: Vec::new(), is_late: false }
}

#[async_trait]
impl Systems for NoSystems {
    async fn holds(&self, _: &StorePath) -> bool {
        false
    }

    async fn ready(&self, _: &StorePath, _: &Progress, _: Duration) -> Result<(), NoSystem> {
        Err(none())
    }

    async fn recipe(&self, _: &StorePath) -> Result<Option<(StorePath, Vec<Member>)>, NoSystem> {
        Err(none())
    }

    async fn closure(&self, _: &StorePath) -> Result<Vec<Member>, NoSystem> {
        Err(none())
    }

    fn export(&self, _: &[StorePath]) -> Command {
        Command::new("false")
    }

    fn platform(&self, _: &StorePath) -> Option<String> {
        None
    }

    async fn disks(&self, _: &StorePath, _: &Progress, _: Duration) -> Result<Option<StorePath>, NoSystem> {
        Err(none())
    }
}
