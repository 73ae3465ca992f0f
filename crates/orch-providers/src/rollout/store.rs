//! Systems that were evaluated here, and are built in the store of this machine.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::StorePath;
use orch_nix::{DrvPath, Member, Store, StoreError};
use orch_run::Progress;
use tokio::process::Command;
use tokio::time::Instant;

use super::systems::{NoSystem, Systems};

/// Systems that were evaluated, and the store that they are built in.
pub struct Evaluations {
    store: Store,
    /// How each is built, and what it runs on.
    known: Mutex<BTreeMap<StorePath, (DrvPath, String)>>,
    /// What waits to be built.
    waiting: Mutex<BTreeMap<StorePath, DrvPath>>,
    /// Held by who builds. Of two processes of Nix that need the same, one looks every five seconds whether the other has it.
    turn: tokio::sync::Mutex<()>,
}

impl Evaluations {
    /// None yet, of this store.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            known: Mutex::default(),
            waiting: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// The store.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// A system that was evaluated: how it is built, and what it runs on.
    pub fn know(&self, system: StorePath, drv: DrvPath, platform: String) {
        self.known.lock().expect("nobody panics while holding this").insert(system, (drv, platform));
    }

    /// Builds a system when it is its turn, and with it whatever waits then; so most find theirs built.
    async fn build(
        &self,
        drv: &DrvPath,
        system: &StorePath,
        progress: &Progress,
        deadline: Instant,
    ) -> Result<(), StoreError> {
        let waiting = || self.waiting.lock().expect("nobody panics while holding this");
        let left = || deadline.saturating_duration_since(Instant::now());
        let tell = |word: &str| progress.say(word);
        waiting().insert(system.clone(), drv.clone());
        let limit = left();
        let late = |_| StoreError::TimeLimit { drv: drv.clone(), limit };
        let _turn = tokio::time::timeout(limit, self.turn.lock()).await.map_err(late)?;
        let together = std::mem::take(&mut *waiting());
        if together.len() > 1 {
            let drvs: Vec<DrvPath> = together.into_values().collect();
            self.store.realise_many(&drvs, &tell, left()).await;
        }
        // One that is there takes no time, and one that is not says why.
        self.store.realise(drv, system, &tell, left()).await
    }

    fn known(&self, system: &StorePath) -> Option<(DrvPath, String)> {
        self.known.lock().expect("nobody panics while holding this").get(system).cloned()
    }
}

#[async_trait]
impl Systems for Evaluations {
    async fn holds(&self, system: &StorePath) -> bool {
        self.store.holds(system).await
    }

    async fn ready(&self, system: &StorePath, progress: &Progress, limit: Duration) -> Result<(), NoSystem> {
        let Some((drv, _)) = self.known(system) else {
            let why = format!("nobody here knows how `{system}` is built");
            return Err(NoSystem { why, evidence: Vec::new(), is_late: false });
        };
        self.build(&drv, system, progress, Instant::now() + limit).await.map_err(|error| told(&error))
    }

    async fn closure(&self, system: &StorePath) -> Result<Vec<Member>, NoSystem> {
        let closure = self.store.closure(system).await.map_err(|error| told(&error))?;
        let paths: Vec<StorePath> = closure.iter().map(|member| member.path.clone()).collect();
        Store::can_export(&paths).map_err(|error| told(&error))?;
        Ok(closure)
    }

    fn export(&self, paths: &[StorePath]) -> Command {
        self.store.export(paths)
    }

    fn platform(&self, system: &StorePath) -> Option<String> {
        self.known(system).map(|(_, platform)| platform)
    }

    /// Evaluations do not tell yet.
    fn disks(&self, _: &StorePath) -> Option<StorePath> {
        None
    }
}

fn told(error: &StoreError) -> NoSystem {
    NoSystem {
        why: format!("{error} ({})", error.hint()),
        evidence: error.evidence().to_vec(),
        is_late: error.is_time_limit(),
    }
}
