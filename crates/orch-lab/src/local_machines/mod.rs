//! Machines that are nodes on this computer: each is a set of namespaces with a root of its own, as the local provider makes
//! them, and answers at an address of loopback.
//!
//! An address answers once the first boot is done and not before: whoever connects remembers what he is shown first.

mod door;
mod kept;
mod naming;
mod orders;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, TcpListener};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use orch_model::UserName;
use orch_providers::local::{Local, Setup};
use orch_run::{HostLocks, Permit, RunId, StateDir};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use crate::machines::{FirstBoot, Machines, Power, Size, Trouble, Wanted};
use crate::state;
use crate::told::told;
use door::Doors;
use kept::{Book, Kept};
use naming::{Key, site};
pub use settings::LocalMachinesSettings;

/// Machines on this computer. Copies are the same ones.
#[derive(Clone)]
pub struct LocalMachines {
    shared: Arc<Shared>,
    /// The machine that these live inside of; nothing where they are the host's own.
    around: Option<Key>,
}

struct Shared {
    settings: LocalMachinesSettings,
    local: Local,
    permit: Permit,
    book: Book,
    doors: Doors,
    /// One order after the other for each machine.
    turns: Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>>,
}

impl LocalMachines {
    /// The machines that are kept in a folder, which nobody else may use meanwhile. No door is opened.
    pub fn open(settings: LocalMachinesSettings) -> Result<Self, Trouble> {
        let failed = |error: &dyn std::error::Error| Trouble(told(error));
        state::make_folder(&settings.folder).map_err(|error| failed(&error))?;
        let state = StateDir::locate(Some(&settings.folder)).map_err(|error| failed(&error))?;
        let hosts = BTreeSet::from([settings.host.clone()]);
        let locks = HostLocks::take(&state, &site(), &hosts, &RunId::new(), "the lab");
        let permit = Permit::under(locks.map_err(|error| failed(&error))?);
        let book = Book::open(settings.folder.join("machines.json")).map_err(|error| failed(&error))?;
        let local = Local::new(Setup {
            host: settings.host.clone(),
            state,
            site: settings.site.clone(),
            user: UserName::root(),
            program: settings.program.clone(),
            reach: Some(settings.reach),
        });
        let (doors, turns) = (Doors::default(), Mutex::default());
        let shared = Arc::new(Shared { settings, local, permit, book, doors, turns });
        Ok(Self { shared, around: None })
    }

    /// Opens the doors of the machines that run, as after a restart of whoever opened them before.
    pub async fn reopen(&self) -> Result<(), Trouble> {
        for key in self.shared.book.keys() {
            let _turn = self.shared.turn(&key).await;
            let is_booted = self.shared.book.find(&key).is_some_and(|kept| kept.booted.is_some());
            if is_booted && self.shared.runs(&key).await {
                self.shared.open_door(&key).await?;
            }
        }
        Ok(())
    }

    /// Closes every door. What runs goes on.
    pub async fn close(&self) {
        self.shared.doors.close_all().await;
    }

    /// Removes all machines, and what interrupted orders left.
    pub async fn remove_all(&self) -> Result<(), Trouble> {
        for key in self.shared.book.keys() {
            // Those inside of it go with it, so it may be gone already.
            if key.around().is_none() {
                self.shared.remove(&key).await?;
            }
        }
        self.shared.local.tidy(&self.shared.permit).await.map_err(|error| Trouble(error.to_string()))
    }

    /// The machines inside of one of these: they are told apart by ids of their own, and answer on the bridge of the machine
    /// that they live in and nowhere else.
    pub fn inside(&self, id: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), around: Some(self.key(id)) }
    }

    /// Listens at a port of `127.0.0.1` inside of a machine, which must run.
    pub async fn listen_inside(&self, id: &str, port: u16) -> Result<TcpListener, Trouble> {
        let listened = self.shared.local.listen_inside(self.shared.uuid(&self.key(id)), port).await;
        listened.map_err(|error| Trouble(format!("nobody can listen inside of machine `{id}`: {error}")))
    }

    /// What a machine is made from, as the API calls it.
    pub(crate) fn image(&self, id: &str) -> Option<String> {
        self.shared.book.find(&self.key(id)).map(|kept| kept.image)
    }

    /// The machines that are here, and not inside of others here.
    pub(crate) fn ids(&self) -> Vec<String> {
        let here = self.shared.book.keys().into_iter().filter(|key| key.around() == self.around);
        here.filter_map(|key| key.as_str().rsplit('/').next().map(str::to_owned)).collect()
    }

    fn key(&self, id: &str) -> Key {
        Key::of(self.around.as_ref(), id)
    }

    /// Does something to its end, also where whoever asked for it goes away meanwhile.
    async fn surely<T: Send + 'static>(
        work: impl Future<Output = Result<T, Trouble>> + Send + 'static,
    ) -> Result<T, Trouble> {
        tokio::spawn(work).await.map_err(|error| Trouble(error.to_string()))?
    }
}

impl Shared {
    fn uuid(&self, key: &Key) -> Uuid {
        key.uuid(self.settings.lab, &self.settings.host)
    }

    async fn turn(&self, key: &Key) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().expect("nobody panics while holding this");
            Arc::clone(turns.entry(key.clone()).or_default())
        };
        turn.lock_owned().await
    }

    async fn runs(&self, key: &Key) -> bool {
        self.local.runs(self.uuid(key)).await.unwrap_or(false)
    }
}

#[async_trait]
impl Machines for LocalMachines {
    async fn make(&self, wanted: &Wanted) -> Result<(), Trouble> {
        let (key, shared, wanted) = (self.key(&wanted.id), Arc::clone(&self.shared), wanted.clone());
        Self::surely(async move {
            let _turn = shared.turn(&key).await;
            if shared.exists(&key).await? {
                return shared.resize(&key, wanted.size).await;
            }
            // Until it is there for the first time, what was asked for last is what it becomes.
            let noted = shared.book.note(&key, || Kept::of(&wanted), |kept| *kept = Kept::of(&wanted));
            noted.map_err(|error| Trouble(error.to_string()))
        })
        .await
    }

    async fn start(&self, id: &str, first: &FirstBoot) -> Result<(), Trouble> {
        let (key, shared, first) = (self.key(id), Arc::clone(&self.shared), first.clone());
        Self::surely(async move {
            let _turn = shared.turn(&key).await;
            shared.start(&key, &first).await
        })
        .await
    }

    async fn stop(&self, id: &str) -> Result<(), Trouble> {
        let (key, shared) = (self.key(id), Arc::clone(&self.shared));
        Self::surely(async move {
            let _turn = shared.turn(&key).await;
            shared.stop(&key).await
        })
        .await
    }

    async fn resize(&self, id: &str, size: Size) -> Result<(), Trouble> {
        let (key, shared) = (self.key(id), Arc::clone(&self.shared));
        Self::surely(async move {
            let _turn = shared.turn(&key).await;
            shared.resize(&key, size).await
        })
        .await
    }

    async fn remove(&self, id: &str) -> Result<(), Trouble> {
        let (key, shared) = (self.key(id), Arc::clone(&self.shared));
        Self::surely(async move { shared.remove(&key).await }).await
    }

    async fn power(&self, id: &str) -> Power {
        if self.shared.runs(&self.key(id)).await { Power::On } else { Power::Off }
    }

    async fn address(&self, id: &str) -> Option<IpAddr> {
        self.shared.address(&self.key(id)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses::Addresses;

    #[tokio::test]
    async fn what_was_asked_for_last_is_what_a_machine_becomes_that_is_not_there_yet() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let addresses = Addresses::hold(&folder.path().join("addresses.json")).expect("there is room");
        let host = "pve".parse().expect("a name");
        let place = folder.path().join("host");
        let settings = LocalMachinesSettings::new(place, host, Uuid::new_v4(), "orch".into(), addresses);
        let machines = LocalMachines::open(settings).expect("nobody else has it");
        for (image, disk) in [("debian-13", 8), ("template-9000", 4)] {
            let size = Size { cores: 1, memory: 512, disk };
            let (id, name, image) = ("100".into(), "a".into(), image.into());
            let wanted = Wanted { id, name, size, image, is_container: false };
            machines.make(&wanted).await.expect("it is only written down");
        }
        assert_eq!(machines.image("100").as_deref(), Some("template-9000"));
        assert_eq!((machines.power("100").await, machines.address("100").await), (Power::Off, None));
        machines.remove("100").await.expect("there is nothing to remove");
        assert_eq!(machines.image("100"), None);
    }
}
