//! What an API orders about: machines that are made, started, stopped and removed. The API keeps what it shows of them; here
//! is what they are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A machine could not do what it was told.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Trouble(pub String);

/// How large a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Processor cores.
    pub cores: u32,
    /// Memory in MiB.
    pub memory: u32,
    /// Disk in GiB.
    pub disk: u32,
}

/// A machine that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its id, which no other machine of this API has.
    pub id: String,
    /// The name that people see.
    pub name: String,
    /// How large it is.
    pub size: Size,
    /// What it is made from, as the API calls it.
    pub image: String,
    /// Whether it is a container.
    pub is_container: bool,
}

/// What a machine is given when it starts for the first time, as its platform would hand it over.
#[derive(Clone, PartialEq, Eq)]
pub struct FirstBoot {
    /// Names this life of the machine: what was given to it before is not given again.
    pub instance: String,
    /// The name that it gives itself.
    pub hostname: String,
    /// What the maker of its image says is to be done first, as cloud-init takes it; empty where there is nothing.
    pub vendor_data: Vec<u8>,
    /// What the user says is to be done, as cloud-init takes it; empty where there is nothing.
    pub user_data: Vec<u8>,
    /// The account that the platform prepares, where it prepares one.
    pub user: Option<String>,
    /// Keys that open that account, or root's, each as one line.
    pub keys: Vec<String>,
}

impl FirstBoot {
    /// Whether there is nothing in it but a name.
    pub fn gives_nothing(&self) -> bool {
        self.vendor_data.is_empty()
            && self.user_data.is_empty()
            && self.user.is_none()
            && self.keys.is_empty()
    }
}

/// Whether a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    /// It runs.
    On,
    /// It does not.
    Off,
}

/// The machines behind one API. Every order can be repeated.
#[async_trait]
pub trait Machines: Send + Sync {
    /// Puts a machine there that is off; one that is there is given its size.
    async fn make(&self, wanted: &Wanted) -> Result<(), Trouble>;

    /// Starts it, and returns once what it is given at its first start was done. One that runs goes on.
    async fn start(&self, id: &str, first: &FirstBoot) -> Result<(), Trouble>;

    /// Switches it off, at once.
    async fn stop(&self, id: &str) -> Result<(), Trouble>;

    /// Gives it another size; a disk only grows.
    async fn resize(&self, id: &str, size: Size) -> Result<(), Trouble>;

    /// Removes it with everything that belongs to it; one that is gone is gone.
    async fn remove(&self, id: &str) -> Result<(), Trouble>;

    /// Whether it runs. One that does not exist is off.
    async fn power(&self, id: &str) -> Power;

    /// The address at which it answers while it runs.
    async fn address(&self, id: &str) -> Option<IpAddr>;
}

/// Machines that exist on paper alone: for what is about the API and not about what runs behind it.
#[derive(Debug, Default)]
pub struct Paper {
    machines: Mutex<BTreeMap<String, (Wanted, Power)>>,
}

impl Paper {
    fn with<T>(&self, id: &str, change: impl FnOnce(&mut (Wanted, Power)) -> T) -> Result<T, Trouble> {
        let mut machines = self.machines.lock().expect("nobody panics while holding this");
        machines.get_mut(id).map(change).ok_or_else(|| Trouble(format!("there is no machine `{id}`")))
    }
}

#[async_trait]
impl Machines for Paper {
    async fn make(&self, wanted: &Wanted) -> Result<(), Trouble> {
        let mut machines = self.machines.lock().expect("nobody panics while holding this");
        let machine = machines.entry(wanted.id.clone()).or_insert_with(|| (wanted.clone(), Power::Off));
        machine.0.size = wanted.size;
        Ok(())
    }

    async fn start(&self, id: &str, _: &FirstBoot) -> Result<(), Trouble> {
        self.with(id, |(_, power)| *power = Power::On)
    }

    async fn stop(&self, id: &str) -> Result<(), Trouble> {
        self.with(id, |(_, power)| *power = Power::Off)
    }

    async fn resize(&self, id: &str, size: Size) -> Result<(), Trouble> {
        self.with(id, |(wanted, _)| wanted.size = size)
    }

    async fn remove(&self, id: &str) -> Result<(), Trouble> {
        self.machines.lock().expect("nobody panics while holding this").remove(id);
        Ok(())
    }

    async fn power(&self, id: &str) -> Power {
        self.with(id, |(_, power)| *power).unwrap_or(Power::Off)
    }

    async fn address(&self, id: &str) -> Option<IpAddr> {
        // Of this computer, so that whoever knocks there troubles nobody else; and apart from those at which labs answer.
        let machines = self.machines.lock().expect("nobody panics while holding this");
        let place = machines.keys().position(|known| known == id)?;
        let last = u8::try_from(place % 250 + 1).ok()?;
        Some(IpAddr::from([127, 0, 2, last]))
    }
}
