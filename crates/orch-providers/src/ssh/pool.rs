//! The connections that are there: one for each hop, shared by everybody.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use orch_run::Progress;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::master::Master;
use super::refusal::{Kind, Refusal};
use super::roster::Roster;
use super::settings::SshSettings;
use super::way::Hop;

/// Where the connection of one hop is, or is being made.
type Slot = Arc<AsyncMutex<Option<Arc<Master>>>>;

/// The connections that are there.
pub(super) struct Pool {
    settings: SshSettings,
    slots: Mutex<HashMap<String, Slot>>,
    connects: Semaphore,
    roster: Mutex<Option<Arc<Roster>>>,
}

impl Pool {
    pub(super) fn new(settings: SshSettings) -> Self {
        let connects = Semaphore::new(settings.connects.max(1));
        Self { settings, slots: Mutex::default(), connects, roster: Mutex::default() }
    }

    pub(super) const fn settings(&self) -> &SshSettings {
        &self.settings
    }

    /// The connection to the last of these hops, made hop by hop where it is not there. A hop that does not answer yet
    /// is asked again until its time is over.
    pub(super) async fn reach(&self, hops: &[Hop], progress: &Progress) -> Result<Arc<Master>, Refusal> {
        let roster = self.roster()?;
        roster.know(hops)?;
        let deadline = Instant::now() + self.settings.reach;
        // A hop that a program leads to needs none of those before it.
        let first = hops.iter().rposition(|hop| hop.proxy.is_some()).unwrap_or(0);
        let (node, before) = hops[first..].split_last().expect("the roster knows no way without a hop");
        for hop in before {
            let there = self.shared(&roster, hop, deadline, progress).await;
            there.map_err(|refusal| refusal.at_hop(&hop.alias))?;
        }
        self.shared(&roster, node, deadline, progress).await
    }

    /// The configuration that knows these hops, for an `ssh` that shares nothing with the connections here.
    pub(super) fn known(&self, hops: &[Hop]) -> Result<PathBuf, Refusal> {
        let roster = self.roster()?;
        roster.know(hops)?;
        let alias = &hops.last().expect("the roster knows no way without a hop").alias;
        let files =
            roster.files(alias).ok_or_else(|| Refusal::unusable(format!("`{alias}` is not known")))?;
        Ok(files.config)
    }

    /// Lets go of every connection and removes every file of this run, whoever still uses them.
    pub(super) async fn close(&self) {
        let slots: Vec<Slot> = {
            let mut slots = self.slots.lock().expect("nobody panics while holding this");
            slots.drain().map(|(_, slot)| slot).collect()
        };
        for slot in slots {
            if let Some(master) = slot.lock().await.take() {
                master.let_go();
            }
        }
        self.roster.lock().expect("nobody panics while holding this").take();
    }

    /// The connection to one hop. Those who ask at the same time wait for the same one.
    async fn shared(
        &self,
        roster: &Arc<Roster>,
        hop: &Hop,
        deadline: Instant,
        progress: &Progress,
    ) -> Result<Arc<Master>, Refusal> {
        let slot = self.slot(&hop.alias);
        let Ok(mut place) = timeout_at(deadline, slot.lock()).await else {
            let busy = Refusal::passing("somebody else is connecting to it all the time", "");
            return Err(busy.for_good(self.settings.reach));
        };
        if let Some(master) = place.as_ref()
            && master.hop.is_same_machine(hop)
            && master.is_alive().await
        {
            return Ok(Arc::clone(master));
        }
        // What is no longer there, or leads to a machine that this one has replaced.
        if let Some(gone) = place.take() {
            gone.end();
        }
        let master = Arc::new(self.connect(roster, hop, deadline, progress).await?);
        *place = Some(Arc::clone(&master));
        Ok(master)
    }

    /// Connects, again and again until it is known that it cannot help or the time is over.
    async fn connect(
        &self,
        roster: &Arc<Roster>,
        hop: &Hop,
        deadline: Instant,
        progress: &Progress,
    ) -> Result<Master, Refusal> {
        let mut wait = self.settings.first_wait;
        let mut telling: Option<Refusal> = None;
        progress.say("connecting");
        loop {
            let refusal = match self.attempt(roster, hop, deadline).await {
                Ok(master) => return Ok(master),
                Err(refusal) if refusal.kind != Kind::Passing => return Err(refusal),
                // A try that was cut short tells less than the one before it.
                Err(refusal) => telling.take().filter(|_| refusal.evidence.is_empty()).unwrap_or(refusal),
            };
            if Instant::now() + wait >= deadline {
                return Err(refusal.for_good(self.settings.reach));
            }
            telling = Some(refusal);
            progress.say("waiting for ssh");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(self.settings.longest_wait);
        }
    }

    async fn attempt(&self, roster: &Arc<Roster>, hop: &Hop, deadline: Instant) -> Result<Master, Refusal> {
        let Ok(permit) = timeout_at(deadline, self.connects.acquire()).await else {
            return Err(Refusal::passing("too many others were connecting at the same time", ""));
        };
        let _permit = permit.expect("the semaphore is never closed");
        // `ssh` watches over its own time and says more when it ends by itself, so it is given a little longer.
        let limit = self.settings.connect * 2 + Duration::from_secs(1);
        let limit = limit.min(deadline.saturating_duration_since(Instant::now()));
        Master::connect(roster, hop, &self.settings, limit).await
    }

    fn slot(&self, alias: &str) -> Slot {
        let mut slots = self.slots.lock().expect("nobody panics while holding this");
        Arc::clone(slots.entry(alias.to_owned()).or_default())
    }

    /// The files, made when they are first needed.
    fn roster(&self) -> Result<Arc<Roster>, Refusal> {
        let mut place = self.roster.lock().expect("nobody panics while holding this");
        if let Some(roster) = place.as_ref() {
            return Ok(Arc::clone(roster));
        }
        let folder = self.settings.folder.display();
        let unmade = |error| Refusal::unusable(format!("the folder `{folder}` cannot be used: {error}"));
        let roster = Arc::new(Roster::new(&self.settings).map_err(unmade)?);
        *place = Some(Arc::clone(&roster));
        Ok(roster)
    }
}
