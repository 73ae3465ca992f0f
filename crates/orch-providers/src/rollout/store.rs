//! Systems that were evaluated here, and are built in the store of this machine.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use orch_model::StorePath;
use orch_nix::{BuildOn, Disks, DrvPath, Member, Store, StoreError};
use orch_run::Progress;
use tokio::process::Command;
use tokio::time::Instant;

use super::systems::{NoSystem, Systems};

/// How long nodes wait for each other where their systems are built together.
const TOGETHER: Duration = Duration::from_secs(30);

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
    build_on: BuildOn,
    known: Mutex<BTreeMap<StorePath, Recipe>>,
    /// What waits to be built.
    waiting: Mutex<BTreeMap<StorePath, DrvPath>>,
    /// Held by who builds for all that wait. Of two processes of Nix that need the same, one looks every five seconds whether
    /// the other has it.
    turn: tokio::sync::Mutex<()>,
}

impl Evaluations {
    /// None yet, of this store, to be built there.
    pub fn new(store: Store, build_on: BuildOn) -> Self {
        let store = match &build_on {
            BuildOn::Builder(builder) => store.with_builder(builder.clone()),
            BuildOn::Here | BuildOn::Target => store,
        };
        Self {
            store,
            build_on,
            known: Mutex::default(),
            waiting: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// The store.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// A system that was evaluated.
    pub fn know(&self, system: StorePath, recipe: Recipe) {
        self.known.lock().expect("nobody panics while holding this").insert(system, recipe);
    }

    /// Builds a system when it is its turn, and with it whatever waits then; so most find theirs built.
    async fn build(
        &self,
        drv: &DrvPath,
        system: &StorePath,
        progress: &Progress,
        limit: Duration,
    ) -> Result<(), StoreError> {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        self.waiting().insert(system.clone(), drv.clone());
        let turn = tokio::time::timeout(TOGETHER.min(limit), self.turn.lock()).await.ok();
        let together = std::mem::take(&mut *self.waiting());
        let is_alone = together.len() == 1 && together.contains_key(system);
        if together.len() > 1 {
            let (store, drvs) = (self.store.clone(), together.into_values().collect::<Vec<_>>());
            // One that takes long keeps the others for so long and no longer; its process goes on.
            let build = tokio::spawn(async move { store.realise_many(&drvs, limit).await });
            let _ = tokio::time::timeout(TOGETHER.min(limit), build).await;
        }
        let turn = turn.filter(|_| is_alone);
        // One that is there takes no time, and one that is not says why.
        let tell = |word: &str| progress.say(word);
        let mut building = std::pin::pin!(self.store.realise(drv, system, &tell, left()));
        tokio::select! {
            built = &mut building => return built,
            () = tokio::time::sleep(TOGETHER) => drop(turn),
        }
        building.await
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<StorePath, DrvPath>> {
        self.waiting.lock().expect("nobody panics while holding this")
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
        self.build(&drv, system, progress, limit).await.map_err(|error| told(&error))
    }

    async fn recipe(&self, system: &StorePath) -> Result<Option<(StorePath, Vec<Member>)>, NoSystem> {
        let Some(Recipe { drv, .. }) = self.known(system).filter(|_| self.build_on == BuildOn::Target) else {
            return Ok(None);
        };
        let parts = self.store.recipe(&drv).await.map_err(|error| told(&error))?;
        Ok(Some((drv.into(), parts)))
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
