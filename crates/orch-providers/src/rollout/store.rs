//! Systems that were evaluated here, and are built in the store of this machine.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::StorePath;
use orch_nix::{Disks, DrvPath, Member, Store, StoreError};
use orch_run::Progress;
use tokio::process::Command;

use super::systems::{NoSystem, Systems};

/// How a system comes to be.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// What builds it.
    pub drv: DrvPath,
    /// What it runs on.
    pub platform: String,
    /// What lays out the disks of its node, where its modules say so.
    pub disks: Option<Disks>,
}

/// Systems that were evaluated, and the store that they are built in.
pub struct Evaluations {
    store: Store,
    known: Mutex<BTreeMap<StorePath, Recipe>>,
}

impl Evaluations {
    /// None yet, of this store.
    pub fn new(store: Store) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// The store.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// A system that was evaluated.
    pub fn know(&self, system: StorePath, recipe: Recipe) {
        self.known.lock().expect("nobody panics while holding this").insert(system, recipe);
    }

    fn known(&self, system: &StorePath) -> Option<Recipe> {
        self.known.lock().expect("nobody panics while holding this").get(system).cloned()
    }
}

#[async_trait]
impl Systems for Evaluations {
    async fn holds(&self, system: &StorePath) -> bool {
        self.store.holds(system).await
    }

    async fn ready(&self, system: &StorePath, progress: &Progress, limit: Duration) -> Result<(), NoSystem> {
        let Some(Recipe { drv, .. }) = self.known(system) else {
            let why = format!("nobody here knows how `{system}` is built");
            return Err(NoSystem { why, evidence: Vec::new(), is_late: false });
        };
        self.store
            .realise(&drv, system, &|word| progress.say(word), limit)
            .await
            .map_err(|error| told(&error))
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
        self.known(system).map(|recipe| recipe.platform)
    }

    async fn disks(
        &self,
        system: &StorePath,
        progress: &Progress,
        limit: Duration,
    ) -> Result<Option<StorePath>, NoSystem> {
        let Some(Disks { drv, script }) = self.known(system).and_then(|recipe| recipe.disks) else {
            return Ok(None);
        };
        let built = self.store.realise(&drv, &script, &|word| progress.say(word), limit).await;
        built.map_err(|error| told(&error))?;
        Ok(Some(script))
    }
}

fn told(error: &StoreError) -> NoSystem {
    NoSystem {
        why: format!("{error} ({})", error.hint()),
        evidence: error.evidence().to_vec(),
        is_late: error.is_time_limit(),
    }
}
