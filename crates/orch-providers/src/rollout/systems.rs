//! Where systems come from: a store on this machine, as far as a rollout needs it.

use std::time::Duration;

use async_trait::async_trait;
use orch_model::StorePath;
use tokio::process::Command;

/// One path of a closure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The path.
    pub path: StorePath,
    /// How much room it takes.
    pub bytes: u64,
}

/// A store that systems come from.
#[async_trait]
pub trait Systems: Send + Sync {
    /// Whether the store has a system, with all that it needs.
    async fn holds(&self, system: &StorePath) -> bool;

    /// Sees to it that the store has a system, and tells how it gets on. In words, why it cannot.
    async fn ready(
        &self,
        system: &StorePath,
        tell: &(dyn Fn(&str) + Send + Sync),
        limit: Duration,
    ) -> Result<(), String>;

    /// Everything that a system needs, itself included, each after what it refers to.
    async fn closure(&self, system: &StorePath) -> Result<Vec<Member>, String>;

    /// The program that writes these paths as one stream, for `nix-store --import`. They are in the order of the closure.
    fn export(&self, paths: &[StorePath]) -> Command;

    /// What a system runs on, as Nix calls it, where that is known.
    fn platform(&self, system: &StorePath) -> Option<String>;
}

/// Where there are none.
#[derive(Debug, Clone, Copy)]
pub struct NoSystems;

/// What is said where there are none.
const NONE: &str = "there is no Nix here to have its system from";

#[async_trait]
impl Systems for NoSystems {
    async fn holds(&self, _: &StorePath) -> bool {
        false
    }

    async fn ready(
        &self,
        _: &StorePath,
        _: &(dyn Fn(&str) + Send + Sync),
        _: Duration,
    ) -> Result<(), String> {
        Err(NONE.into())
    }

    async fn closure(&self, _: &StorePath) -> Result<Vec<Member>, String> {
        Err(NONE.into())
    }

    fn export(&self, _: &[StorePath]) -> Command {
        Command::new("false")
    }

    fn platform(&self, _: &StorePath) -> Option<String> {
        None
    }
}
