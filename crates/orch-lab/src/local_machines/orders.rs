//! What becomes of orders. Whoever gives one has the machine's turn.

use std::net::IpAddr;

use orch_model::{Mode, NodeKind, Size as NodeSize};
use orch_plan::{Action, MachineRef, MachineSpec};
use orch_run::{Order, Progress, Provider, ProviderError, Target};
use serde_json::json;

use super::Shared;
use super::kept::Kept;
use super::naming::{Key, site};
use crate::machines::{FirstBoot, Size, Trouble};
use crate::told::told;

/// What a machine is made from where nothing else is said.
const THIS_MACHINE: &str = "this-machine";
/// In MiB: what an SSH server and a session need.
const LEAST_MEMORY: u32 = 128;

impl Shared {
    pub(super) async fn start(&self, key: &Key, first: &FirstBoot) -> Result<(), Trouble> {
        let kept = self.kept(key)?;
        if !self.runs(key).await {
            self.doors.close(self.uuid(key)).await;
            self.order(key, Action::Create { machine: self.spec(key, &kept) }).await?;
        }
        // A machine that had its first boot and is given nothing goes on as it is: nobody is there who would begin anew.
        let goes_on = kept.booted.is_some() && first.gives_nothing();
        if !goes_on && kept.booted.as_ref() != Some(&first.instance) {
            self.doors.close(self.uuid(key)).await;
            self.boot_first(key, first).await?;
            let noted = self.book.note(key, || kept, |kept| kept.booted = Some(first.instance.clone()));
            noted.map_err(|error| Trouble(error.to_string()))?;
        }
        self.open_door(key).await
    }

    pub(super) async fn stop(&self, key: &Key) -> Result<(), Trouble> {
        for inner in self.book.keys().iter().filter(|inner| inner.is_inside(key)) {
            self.doors.close(self.uuid(inner)).await;
        }
        self.doors.close(self.uuid(key)).await;
        if !self.exists(key).await? {
            return Ok(());
        }
        let off = self.local.switch_off(&self.machine(key), &self.permit).await;
        off.map(drop).map_err(|error| trouble(&error))
    }

    pub(super) async fn resize(&self, key: &Key, size: Size) -> Result<(), Trouble> {
        let kept = self.kept(key)?;
        // A disk only grows.
        let size = Size { disk: size.disk.max(kept.size.disk), ..size };
        if size == kept.size {
            return Ok(());
        }
        if self.exists(key).await? {
            let (from, to) = (node_size(kept.size), node_size(size));
            self.order(key, Action::Resize { machine: self.machine(key), from, to }).await?;
        }
        let noted = self.book.note(key, || kept, |kept| kept.size = size);
        noted.map_err(|error| Trouble(error.to_string()))
    }

    /// Innermost first: nothing is removed while something lives inside of it.
    pub(super) async fn remove(&self, key: &Key) -> Result<(), Trouble> {
        let mut all: Vec<Key> = self.book.keys();
        all.retain(|other| other.is_inside(key) || other == key);
        all.sort_by_key(|key| std::cmp::Reverse(key.as_str().matches('/').count()));
        for key in all {
            let _turn = self.turn(&key).await;
            self.stop(&key).await?;
            if self.exists(&key).await? {
                self.order(&key, Action::Destroy { machine: self.machine(&key) }).await?;
            }
            self.settings.addresses.take_back(&self.holder(&key)).map_err(|error| Trouble(told(&error)))?;
            self.book.forget(&key).map_err(|error| Trouble(error.to_string()))?;
        }
        Ok(())
    }

    pub(super) async fn address(&self, key: &Key) -> Option<IpAddr> {
        if !self.runs(key).await {
            return None;
        }
        if key.around().is_some() {
            return self.local.address(self.uuid(key)).await.ok()?.map(IpAddr::V4);
        }
        let is_open = self.doors.is_open(self.uuid(key)).await;
        if is_open { self.settings.addresses.give(&self.holder(key)).ok().map(IpAddr::V4) } else { None }
    }

    /// Opens the door of a machine of the host; those inside of others have none.
    pub(super) async fn open_door(&self, key: &Key) -> Result<(), Trouble> {
        if key.around().is_some() {
            return Ok(());
        }
        let at = self.settings.addresses.give(&self.holder(key)).map_err(|error| Trouble(told(&error)))?;
        let opened = self.doors.open(&self.local, self.uuid(key), at, &self.settings.ports).await;
        opened.map_err(|error| Trouble(format!("a machine cannot answer at its address: {error}")))
    }

    async fn boot_first(&self, key: &Key, first: &FirstBoot) -> Result<(), Trouble> {
        let given = json!({
            "instance": first.instance,
            "hostname": first.hostname,
            "user": first.user,
            "keys": first.keys,
            "vendor_data": String::from_utf8_lossy(&first.vendor_data),
            "user_data": String::from_utf8_lossy(&first.user_data),
        });
        let target = Target {
            identity: key.identity(&self.settings.host),
            uuid: self.uuid(key),
            mode: Mode::Push,
            progress: Progress::to_nobody(),
        };
        let input = given.to_string().into_bytes();
        let ended = self.local.run_inside(&target, &["first-boot"], &input, self.settings.first_boot).await;
        let ended = ended.map_err(|error| Trouble(format!("its first boot failed: {}", told(&error))))?;
        if ended.code == Some(0) {
            return Ok(());
        }
        Err(Trouble(format!("its first boot failed: {}", String::from_utf8_lossy(&ended.stderr).trim())))
    }

    async fn order(&self, key: &Key, action: Action) -> Result<(), Trouble> {
        let order = Order {
            site: site(),
            identity: key.identity(&self.settings.host),
            uuid: self.uuid(key),
            action,
            enrolment: None,
            progress: Progress::to_nobody(),
        };
        self.local.apply(&order, &self.permit).await.map(drop).map_err(|error| trouble(&error))
    }

    fn kept(&self, key: &Key) -> Result<Kept, Trouble> {
        self.book.find(key).ok_or_else(|| Trouble(format!("there is no machine `{}`", key.as_str())))
    }

    pub(super) async fn exists(&self, key: &Key) -> Result<bool, Trouble> {
        let found = self.local.address(self.uuid(key)).await;
        found.map(|address| address.is_some()).map_err(|error| Trouble(error.to_string()))
    }

    fn spec(&self, key: &Key, kept: &Kept) -> MachineSpec {
        let image = self.settings.images.get(&kept.image).map_or(THIS_MACHINE, String::as_str);
        MachineSpec {
            name: key.node().to_string(),
            kind: if kept.is_container { NodeKind::Ct } else { NodeKind::Vm },
            image: image.to_owned(),
            size: node_size(kept.size),
            vmid: None,
            parent: key.around().map(|around| around.node()),
        }
    }

    fn machine(&self, key: &Key) -> MachineRef {
        let name = key.node().to_string();
        MachineRef { id: name.clone(), name, uuid: self.uuid(key) }
    }

    /// What a machine is called among those that have addresses.
    fn holder(&self, key: &Key) -> String {
        format!("{}/{}", self.settings.host, key.as_str())
    }
}

/// What is asked for, and no less than a machine needs to come up: an API may take any size.
fn node_size(size: Size) -> NodeSize {
    NodeSize { cores: size.cores.max(1), memory: size.memory.max(LEAST_MEMORY), disk: size.disk.max(1) }
}

fn trouble(error: &ProviderError) -> Trouble {
    Trouble(told(error))
}
