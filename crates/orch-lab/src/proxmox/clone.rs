//! Copying a guest, and turning one into a template.
//!
//! The id of a copy is looked at when the call comes and taken when the task begins: two calls for one free id are both
//! answered with a task, and one of the tasks fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call::Call;
use super::card::with_mac;
use super::config::not_locked;
use super::create::{forget, let_stranger_in, may_allocate};
use super::drive::{self, Drive, Stock, numbered};
use super::guest::{Guest, Kind};
use super::lab::Lab;
use super::reply::{Outcome, Refusal, Reply};
use super::state::{State, storage_of};

/// A copy that is wanted.
struct Copy {
    kind: Kind,
    source: u32,
    target: u32,
    is_full: bool,
    storage: Option<String>,
    pool: Option<String>,
    /// The name and the description.
    words: BTreeMap<String, String>,
}

pub(super) fn clone(call: &Call, state: &mut State) -> Outcome {
    let (kind, params) = (call.kind(), &call.params);
    let (source, target) = (params.id("vmid")?, params.id("newid")?);
    call.need(state, &format!("/vms/{source}"), &["VM.Clone"])?;
    may_allocate(call, state, target)?;
    let guest = state.guests.get(&source).filter(|guest| guest.kind == kind);
    let node = &call.lab.settings.node;
    let missing =
        || Refusal::died(format!("unable to find configuration file for VM {source} on node '{node}'"));
    let guest = guest.ok_or_else(missing)?;
    not_locked(guest).map_err(Refusal::died)?;
    let is_full = if params.get("full").is_some() { params.is_on("full") } else { !guest.is_template() };
    for name in ["storage", "format"] {
        if !is_full && params.get(name).is_some() {
            return Err(Refusal::died(format!("parameter '{name}' not allowed for linked clones")));
        }
    }
    if !is_full && !guest.is_template() {
        return Err(Refusal::died("Linked clone feature is not supported for drive 'scsi0'"));
    }
    check_storages(call, state, guest, params.get("storage"))?;
    let text = |name: &str| params.get(name).map(str::to_owned);
    let name = if kind == Kind::Qemu { "name" } else { "hostname" };
    let copied = format!("Copy-of-{}-{}", kind.noun(), guest.name(source).replace(' ', "-"));
    let mut words = BTreeMap::from([(name.to_owned(), text(name).unwrap_or(copied))]);
    words.extend(text("description").map(|description| ("description".to_owned(), description)));
    let copy = Copy { kind, source, target, is_full, storage: text("storage"), pool: text("pool"), words };
    let_stranger_in(call, state, target);
    not_taken(state, target, kind).map_err(Refusal::died)?;
    let is_running = guest_runs(state, source);
    let work =
        move |lab: Arc<Lab>, upid: String| async move { copy.carry_out(&lab, &upid, is_running).await };
    let undo = Box::new(move |stock: &mut Stock<'_>, upid: &str| forget(stock, target, upid));
    Ok(call.fork(state, &kind.task("clone"), &source.to_string(), work, Some(undo)).into())
}

fn guest_runs(state: &State, vmid: u32) -> bool {
    state.guests.get(&vmid).is_some_and(|guest| guest.is_running)
}

fn not_taken(state: &State, vmid: u32, kind: Kind) -> Result<(), String> {
    if state.guests.contains_key(&vmid) {
        return Err(format!("unable to create {} {vmid}: config file already exists", kind.noun()));
    }
    Ok(())
}

fn check_storages(call: &Call, state: &State, guest: &Guest, to: Option<&str>) -> Result<(), Refusal> {
    let own = guest.drives().filter(|(_, drive)| !drive.is_cdrom() || drive.is_cloud_init());
    let storages = own.map(|(_, drive)| to.unwrap_or_else(|| storage_of(drive.source)).to_owned());
    for storage in storages.filter(|storage| !storage.is_empty()) {
        if call.lab.settings.storage(&storage).is_none() {
            return Err(Refusal::died(format!("storage '{storage}' does not exist")));
        }
        call.need(state, &format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    }
    let nets = guest.config.iter().filter(|(key, _)| numbered(key, "net"));
    let bridges = nets.filter_map(|(_, net)| net.split(',').find_map(|part| part.strip_prefix("bridge=")));
    for bridge in bridges {
        call.need(state, &format!("/sdn/zones/localnetwork/{bridge}"), &["SDN.Use"])?;
    }
    Ok(())
}

impl Copy {
    async fn carry_out(&self, lab: &Lab, upid: &str, source_runs: bool) -> Result<(), String> {
        let patience = lab.settings.timings.clone_lock;
        let file = self.kind.lock_file(self.source);
        // One that is off is only read, so that many can be made from it at once.
        let (_alone, _together) = if source_runs {
            (Some(lab.hold(&file, patience).await?), None)
        } else {
            (None, Some(lab.share(&file, patience).await?))
        };
        let _target = lab.hold(&self.kind.lock_file(self.target), patience).await?;
        let source = lab.change(|stock| self.begin(stock, upid))?;
        let storage = self.storage.clone().or_else(|| first_storage(&source)).unwrap_or_default();
        let failed = |why: String| format!("clone failed: {why}");
        let config =
            lab.allocate(&storage, |stock| self.copy_config(stock, &source)).await.map_err(failed)?;
        tokio::time::sleep(lab.settings.timings.clone).await;
        let wanted = lab.change(|stock| self.end(stock, config))?;
        lab.settings.machines.make(&wanted).await.map_err(|trouble| failed(trouble.0))
    }

    /// Takes the id, with nothing in the configuration but a lock.
    fn begin(&self, stock: &mut Stock<'_>, upid: &str) -> Result<Guest, String> {
        let source = stock.state.guests.get(&self.source).cloned();
        let source = source.ok_or_else(|| {
            format!(
                "unable to find configuration file for VM {} on node '{}'",
                self.source, stock.settings.node
            )
        })?;
        not_taken(stock.state, self.target, self.kind)?;
        let mut guest = Guest::new(self.kind, BTreeMap::from([("lock".into(), "clone".into())]), upid);
        guest.image.clone_from(&source.image);
        stock.state.guests.insert(self.target, guest);
        Ok(source)
    }

    fn copy_config(&self, stock: &mut Stock<'_>, source: &Guest) -> Result<BTreeMap<String, String>, String> {
        let mut config = BTreeMap::new();
        for (key, value) in &source.config {
            let value = match key.as_str() {
                "template" | "lock" | "parent" | "name" | "hostname" => continue,
                unused if numbered(unused, "unused") => continue,
                "smbios1" => format!("uuid={}", uuid::Uuid::new_v4()),
                "vmgenid" => uuid::Uuid::new_v4().to_string(),
                net if numbered(net, "net") => with_mac(self.kind, value, true),
                key if drive::is_drive(key) => {
                    let is_medium = Drive::parse(value).is_cdrom() && !Drive::parse(value).is_cloud_init();
                    if is_medium {
                        value.clone()
                    } else {
                        stock.copy(self.kind, self.target, value, self.storage.as_deref(), self.is_full)?
                    }
                }
                _ => value.clone(),
            };
            config.insert(key.clone(), value);
        }
        config.extend(self.words.clone());
        Ok(config)
    }

    fn end(
        &self,
        stock: &mut Stock<'_>,
        config: BTreeMap<String, String>,
    ) -> Result<crate::machines::Wanted, String> {
        if let Some(pool) = self.pool.as_ref().and_then(|pool| stock.state.pools.get_mut(pool)) {
            pool.guests.insert(self.target);
        }
        let guest =
            stock.state.guests.get_mut(&self.target).ok_or("clone failed: the configuration is gone")?;
        guest.config = config;
        Ok(guest.wanted(self.target))
    }
}

fn first_storage(guest: &Guest) -> Option<String> {
    let mut storages = guest.drives().map(|(_, drive)| storage_of(drive.source).to_owned());
    storages.find(|storage| !storage.is_empty())
}

/// Turns a guest into a template: its disks become ones that others are made above.
pub(super) fn template(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Allocate"])?;
    let guest = call.guest(state, vmid)?;
    not_locked(guest).map_err(Refusal::died)?;
    if guest.is_running {
        return Err(Refusal::died(format!(
            "you can't convert a {} to template if the {0} is running",
            guest.kind.noun()
        )));
    }
    if guest.is_template() {
        return Err(Refusal::died("you can't convert a template to a template"));
    }
    if call.kind() == Kind::Lxc {
        become_template(&mut Stock { state, settings: &call.lab.settings }, vmid);
        return Ok(Reply::null());
    }
    let work = move |lab: Arc<Lab>, _| async move {
        let _held = lab.hold(&Kind::Qemu.lock_file(vmid), lab.settings.timings.lock).await?;
        tokio::time::sleep(lab.settings.timings.config).await;
        lab.change(|stock| {
            become_template(stock, vmid);
            Ok(())
        })?;
        lab.settings.machines.remove(&vmid.to_string()).await.map_err(|trouble| trouble.0)
    };
    Ok(call.fork(state, "qmtemplate", &vmid.to_string(), work, None).into())
}

fn become_template(stock: &mut Stock<'_>, vmid: u32) {
    let Some(guest) = stock.state.guests.get_mut(&vmid) else { return };
    guest.config.insert("template".into(), "1".into());
    for value in guest.config.iter_mut().filter(|(key, _)| drive::is_drive(key)).map(|(_, value)| value) {
        let name = Drive::parse(value).source.to_owned();
        let base = name.replace(&format!("/vm-{vmid}-disk"), &format!("/base-{vmid}-disk"));
        let base = base.replace(&format!(":vm-{vmid}-disk"), &format!(":base-{vmid}-disk"));
        let base = base.replace(&format!(":subvol-{vmid}-disk"), &format!(":basevol-{vmid}-disk"));
        if let Some(volume) = stock.state.volumes.remove(&name) {
            stock.state.volumes.insert(base.clone(), volume);
            *value = value.replace(&name, &base);
        }
    }
}
