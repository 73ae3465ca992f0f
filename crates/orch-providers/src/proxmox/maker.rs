//! What everything that is done on a Proxmox VE needs: questions about one machine, and what is remembered of machines.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Mutex;

use orch_model::PublicKey;
use orch_plan::Marks;
use serde_json::Value as Json;
use tokio::sync::{OnceCell, Semaphore};
use uuid::Uuid;

use super::call::Caller;
use super::config::Config;
use super::guest::{self, Extent, GuestId, Listed, Spot, Status};
use super::mark::Bears;
use super::pace::Pace;
use super::read::Fields;
use super::setup::ProxmoxSetup;
use super::task;
use super::trouble::Trouble;
use crate::cloud::Written;
use crate::ssh::ensure_identity;

/// Carries out orders on a Proxmox VE.
pub(super) struct Maker {
    pub(super) setup: ProxmoxSetup,
    pub(super) caller: Caller,
    /// Disks that are made or grown at once.
    pub(super) lanes: Semaphore,
    usual: task::Usual,
    /// The storage that takes discs, once it was looked for.
    pub(super) disc_store: OnceCell<String>,
    access: OnceCell<PublicKey>,
    known: Mutex<BTreeMap<Uuid, Known>>,
    /// The numbers that are being made here at this moment.
    making: Mutex<BTreeSet<u32>>,
    /// The machines that were destroyed here, by their numbers.
    pub(super) destroyed: Mutex<BTreeMap<u32, Marks>>,
}

/// What is remembered of a machine, so that it need not be asked for again.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) spot: Spot,
    pub(super) written: Option<Written>,
    pub(super) address: Option<IpAddr>,
}

/// How a machine is at this moment.
pub(super) struct Current {
    pub(super) status: Status,
    pub(super) extent: Extent,
}

impl Maker {
    pub(super) fn new(setup: ProxmoxSetup) -> Self {
        let caller = Caller::new(setup.client.clone(), setup.pace.clone());
        let lanes = Semaphore::new(setup.pace.lanes.max(1));
        Self {
            setup,
            caller,
            lanes,
            usual: task::Usual::default(),
            disc_store: OnceCell::new(),
            access: OnceCell::new(),
            known: Mutex::default(),
            making: Mutex::default(),
            destroyed: Mutex::default(),
        }
    }

    pub(super) const fn pace(&self) -> &Pace {
        &self.setup.pace
    }

    /// Every machine of the cluster.
    pub(super) async fn list(&self) -> Result<Vec<Listed>, Trouble> {
        guest::list(&self.caller.get(guest::LIST).await?)
    }

    /// The configuration of a machine, as it is in force; nothing where there is no machine.
    pub(super) async fn config(&self, spot: &Spot) -> Result<Option<Config>, Trouble> {
        let path = spot.path("/config?current=1");
        match self.caller.get(&path).await {
            Ok(answer) => Config::read(&format!("GET {}", spot.path("/config")), &answer).map(Some),
            Err(trouble) if trouble.is_gone() => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// How a machine is at this moment; nothing where there is no machine.
    pub(super) async fn current(&self, spot: &Spot) -> Result<Option<Current>, Trouble> {
        let path = spot.path("/status/current");
        let answer = match self.caller.get(&path).await {
            Ok(answer) => answer,
            Err(trouble) if trouble.is_gone() => return Ok(None),
            Err(trouble) => return Err(trouble),
        };
        let call = format!("GET {path}");
        let fields = Fields::of(&call, &answer)?;
        let extent = Extent {
            cores: fields.number("cpus"),
            memory: fields.number("maxmem").map(|bytes| bytes >> 20),
            disk: fields.number("maxdisk").filter(|bytes| *bytes > 0),
        };
        Ok(Some(Current { status: Status::of(fields.text("status").as_deref()), extent }))
    }

    /// Waits for what an answer says was begun.
    pub(super) async fn done(&self, answer: &Json, what: &str) -> Result<(), Trouble> {
        task::done(&self.caller, self.pace(), &self.usual, answer, what).await
    }

    /// The same for what leaves nothing behind where it is stopped: one that takes too long is, so that the next try finds
    /// nothing in its way.
    pub(super) async fn done_or_stopped(&self, answer: &Json, what: &str) -> Result<(), Trouble> {
        let done = self.done(answer, what).await;
        if let Err(Trouble::Late { .. }) = &done {
            task::stop(&self.caller, answer).await;
        }
        done
    }

    /// The machine of this id wherever in the cluster it is, and its configuration.
    pub(super) async fn locate(&self, id: &str, uuid: Uuid) -> Result<Option<(Spot, Config)>, Trouble> {
        let id: GuestId =
            id.parse().map_err(|()| Trouble::NotOurs { machine: id.to_owned(), expected: uuid })?;
        let spot = self.known(uuid).map(|known| known.spot).filter(|spot| spot.id == id);
        let spot = spot.unwrap_or_else(|| self.here(id));
        if let Some(config) = self.config(&spot).await? {
            return Ok(Some((spot, config)));
        }
        // It may have moved to another node of the cluster.
        let moved = self.list().await?.into_iter().map(|listed| listed.spot).find(|other| other.id == id);
        let Some(moved) = moved.filter(|moved| moved.node != spot.node) else { return Ok(None) };
        Ok(self.config(&moved).await?.map(|config| (moved, config)))
    }

    /// The same machine, which must be there and bear the mark at this moment.
    pub(super) async fn verified(&self, id: &str, uuid: Uuid) -> Result<(Spot, Config), Trouble> {
        let not_ours = || Trouble::NotOurs { machine: id.to_owned(), expected: uuid };
        let (spot, config) = self.locate(id, uuid).await?.ok_or_else(not_ours)?;
        if config.bears().uuid() == Some(uuid) { Ok((spot, config)) } else { Err(not_ours()) }
    }

    /// A machine of this id on the host's own node.
    pub(super) fn here(&self, id: GuestId) -> Spot {
        Spot { node: self.setup.proxmox.node.clone(), id }
    }

    /// The key that opens machines.
    pub(super) async fn access(&self) -> Result<PublicKey, Trouble> {
        let had = self.access.get_or_try_init(|| async {
            let path = self.setup.identity.clone();
            let here = |what: String, hint: String| Trouble::Here { what, hint };
            let key = tokio::task::spawn_blocking(move || ensure_identity(&path)).await;
            let key = key.map_err(|error| here(error.to_string(), "run again".into()))?;
            key.map_err(|error| here(crate::ssh::chain(&error), error.hint()))
        });
        had.await.cloned()
    }

    pub(super) fn known(&self, uuid: Uuid) -> Option<Known> {
        self.known.lock().expect("nobody panics while holding this").get(&uuid).cloned()
    }

    /// Remembers where a machine is and what is written on it. Its address stays known.
    pub(super) fn remember(&self, spot: &Spot, bears: &Bears) {
        let Some(uuid) = bears.uuid() else { return };
        let written = if let Bears::Made(written) = bears { Some((**written).clone()) } else { None };
        let mut known = self.known.lock().expect("nobody panics while holding this");
        let address = known.get(&uuid).filter(|known| known.spot == *spot).and_then(|known| known.address);
        known.insert(uuid, Known { spot: spot.clone(), written, address });
    }

    pub(super) fn remember_address(&self, uuid: Uuid, address: Option<IpAddr>) {
        if let Some(known) = self.known.lock().expect("nobody panics while holding this").get_mut(&uuid) {
            known.address = address;
        }
    }

    pub(super) fn forget(&self, uuid: Uuid) {
        self.known.lock().expect("nobody panics while holding this").remove(&uuid);
    }

    /// Says that a number is being made here, until what is returned is dropped.
    pub(super) fn making(&self, vmid: u32) -> Making<'_> {
        self.making.lock().expect("nobody panics while holding this").insert(vmid);
        Making { maker: self, vmid }
    }

    pub(super) fn is_making(&self, vmid: u32) -> bool {
        self.making.lock().expect("nobody panics while holding this").contains(&vmid)
    }

    /// Begins to count how often something is tried.
    pub(super) const fn tries(&self) -> Tries<'_> {
        Tries { pace: &self.setup.pace, locked: 0, lost: 0 }
    }
}

/// A number that is being made here.
pub(super) struct Making<'m> {
    maker: &'m Maker,
    vmid: u32,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.maker.making.lock().expect("nobody panics while holding this").remove(&self.vmid);
    }
}

/// How often something was tried that can be repeated.
pub(super) struct Tries<'p> {
    pace: &'p Pace,
    locked: u32,
    lost: u32,
}

impl Tries<'_> {
    /// Pauses where trying once more may help; else gives the trouble back.
    pub(super) async fn again(&mut self, trouble: Trouble) -> Result<(), Trouble> {
        if (trouble.is_locked() || trouble.is_outdated()) && self.locked + 1 < self.pace.lock_tries {
            self.locked += 1;
            self.pace.yield_to_others().await;
        } else if (trouble.is_uncertain() || trouble.was_not_begun()) && self.lost + 1 < self.pace.tries {
            self.lost += 1;
            self.pace.breathe(self.lost).await;
        } else {
            return Err(trouble);
        }
        Ok(())
    }
}
