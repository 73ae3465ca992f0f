//! Calls about the configuration of a guest: to read it, and to change it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::call::Call;
use super::card::with_mac;
use super::drive::{self, Drive, Stock, numbered};
use super::formats::truth;
use super::guest::{Guest, Kind};
use super::reply::{Outcome, Refusal, Reply};
use super::state::State;

/// Parameters that say how something is to be done, and are no part of a configuration.
const MANNERS: &[&str] = &[
    "archive",
    "background_delay",
    "bwlimit",
    "delete",
    "digest",
    "force",
    "ignore-unpack-errors",
    "import-working-storage",
    "live-restore",
    "node",
    "ostemplate",
    "password",
    "pool",
    "restore",
    "revert",
    "skiplock",
    "ssh-public-keys",
    "start",
    "storage",
    "unique",
    "vmid",
];
/// What a running machine takes only at its next start.
const AT_START: &[&str] = &[
    "balloon", "bios", "cores", "cpu", "kvm", "machine", "memory", "numa", "ostype", "scsihw", "sockets",
    "vga",
];
const SWITCHES: &[&str] = &[
    "acpi",
    "autostart",
    "ciupgrade",
    "console",
    "debug",
    "freeze",
    "kvm",
    "localtime",
    "numa",
    "onboot",
    "protection",
    "reboot",
    "tablet",
    "template",
    "unprivileged",
];
const ANY_CONFIG: &[&str] = &[
    "VM.Config.Disk",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.HWType",
    "VM.Config.Options",
    "VM.Config.Cloudinit",
];

pub(super) fn show(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Audit"])?;
    let guest = call.guest(state, vmid)?;
    let Some(name) = call.params.get("snapshot") else {
        return Ok(guest.show_config(call.params.is_on("current")).into());
    };
    let snapshot = guest.snapshots.get(name);
    let snapshot = snapshot.ok_or_else(|| Refusal::died(format!("snapshot '{name}' does not exist")))?;
    Ok(json!(snapshot.config).into())
}

pub(super) fn pending(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Audit"])?;
    let guest = call.guest(state, vmid)?;
    let mut shown: BTreeMap<&str, Json> = BTreeMap::new();
    for (key, value) in &guest.config {
        shown.insert(key, json!({ "key": key, "value": guest.show_value(key, value.clone()) }));
    }
    for (key, value) in &guest.pending {
        let entry = shown.entry(key).or_insert_with(|| json!({ "key": key }));
        match value {
            Some(value) => entry["pending"] = guest.show_value(key, value.clone()),
            None => entry["delete"] = 1.into(),
        }
    }
    Ok(shown.into_values().collect::<Json>().into())
}

/// Changes a configuration at once.
pub(super) fn change(call: &Call, state: &mut State) -> Outcome {
    let (vmid, order) = check(call, state)?;
    let stock = &mut Stock { state, settings: &call.lab.settings };
    order.carry_out(stock, vmid).map_err(Refusal::died)?;
    Ok(Reply::null())
}

/// Changes a configuration in a task.
pub(super) fn change_in_task(call: &Call, state: &mut State) -> Outcome {
    let (vmid, order) = check(call, state)?;
    let work = move |lab: std::sync::Arc<super::lab::Lab>, _| async move {
        let _held = lab.hold(&order.kind.lock_file(vmid), lab.settings.timings.lock).await?;
        tokio::time::sleep(lab.settings.timings.config).await;
        lab.change(|stock| order.carry_out(stock, vmid))
    };
    Ok(call.fork(state, "qmconfig", &vmid.to_string(), work, None).into())
}

/// Lets go of disks.
pub(super) fn unlink(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Config.Disk"])?;
    let deletes = list(call.params.get("idlist"));
    let order =
        Order { kind: Kind::Qemu, sets: BTreeMap::new(), deletes, is_forced: call.params.is_on("force") };
    order.carry_out(&mut Stock { state, settings: &call.lab.settings }, vmid).map_err(Refusal::died)?;
    Ok(Reply::null())
}

fn list(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default().split([',', ';', ' ']).filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

/// What is said where a digest is not that of the configuration any more.
pub(super) const fn changed_meanwhile(kind: Kind) -> &'static str {
    match kind {
        Kind::Qemu => "checksum mismatch (file change by other user?)",
        Kind::Lxc => "detected modified configuration - file changed by other user? Try again.",
    }
}

fn check(call: &Call, state: &State) -> Result<(u32, Order), Refusal> {
    let vmid = call.guest_id(state, ANY_CONFIG)?;
    let skips_lock = call.skips_lock()?;
    let guest = call.guest(state, vmid)?;
    if call.params.get("digest").is_some_and(|digest| digest != guest.digest()) {
        return Err(Refusal::died(changed_meanwhile(call.kind())));
    }
    if !skips_lock {
        not_locked(guest).map_err(Refusal::died)?;
    }
    let order = Order::of(call);
    if order.sets.is_empty() && order.deletes.is_empty() && call.params.get("revert").is_none() {
        return Err(Refusal::parameter("config", "no options specified"));
    }
    order.check(call, state, vmid)?;
    guest.balloon_fits(&order.sets).map_err(Refusal::died)?;
    Ok((vmid, order))
}

/// A guest in whose configuration a lock stands is left alone.
pub(super) fn not_locked(guest: &Guest) -> Result<(), String> {
    match guest.lock() {
        Some(lock) => Err(format!("{} is locked ({lock})", guest.kind.noun())),
        None => Ok(()),
    }
}

/// What is to be changed.
pub(super) struct Order {
    pub(super) kind: Kind,
    pub(super) sets: BTreeMap<String, String>,
    deletes: Vec<String>,
    is_forced: bool,
}

impl Order {
    pub(super) fn of(call: &Call) -> Self {
        let own = call.params.all().iter().filter(|(key, _)| !MANNERS.contains(&key.as_str()));
        let sets = own.map(|(key, value)| {
            let truth = SWITCHES.contains(&key.as_str()).then(|| truth(value)).flatten();
            let key = if key == "cdrom" { "ide2".to_owned() } else { key.clone() };
            let value = if key == "tags" { sorted(value) } else { value.clone() };
            (key, truth.map_or(value, |truth| u8::from(truth).to_string()))
        });
        let (deletes, is_forced) = (list(call.params.get("delete")), call.params.is_on("force"));
        Self { kind: call.kind(), sets: sets.collect(), deletes, is_forced }
    }

    /// Whether the caller may set all this, and whether the storages and bridges are there.
    pub(super) fn check(&self, call: &Call, state: &State, vmid: u32) -> Result<(), Refusal> {
        let path = format!("/vms/{vmid}");
        for (key, value) in &self.sets {
            if ["args", "hookscript", "lock"].contains(&key.as_str()) && !call.who.is_root() {
                return Err(Refusal::died(format!("only root can set '{key}' config")));
            }
            call.need_any(state, &path, privileges(self.kind, key, value))?;
            if drive::is_drive(key) {
                check_drive(call, state, value)?;
            }
            if numbered(key, "net") {
                let bridge = value.split(',').find_map(|part| part.strip_prefix("bridge="));
                if let Some(bridge) = bridge {
                    call.need(state, &format!("/sdn/zones/localnetwork/{bridge}"), &["SDN.Use"])?;
                }
            }
        }
        for key in &self.deletes {
            call.need_any(state, &path, privileges(self.kind, key, ""))?;
        }
        Ok(())
    }

    /// Changes the configuration.
    pub(super) fn carry_out(&self, stock: &mut Stock<'_>, vmid: u32) -> Result<(), String> {
        let gone = || format!("{} {vmid} does not exist", self.kind.noun());
        for key in &self.deletes {
            let guest = stock.state.guests.get_mut(&vmid).ok_or_else(gone)?;
            if waits_for_start(guest, key) {
                guest.pending.insert(key.clone(), None);
            } else if let Some(old) = guest.config.remove(key).filter(|_| drive::is_drive(key)) {
                release(stock, vmid, key, &old, self.is_forced);
            }
        }
        for (key, value) in &self.sets {
            let value = if drive::is_drive(key) {
                stock.place(self.kind, vmid, value)?
            } else if numbered(key, "net") {
                with_mac(self.kind, value, false)
            } else {
                value.clone()
            };
            let guest = stock.state.guests.get_mut(&vmid).ok_or_else(gone)?;
            guest.pending.remove(key);
            if waits_for_start(guest, key) {
                guest.pending.insert(key.clone(), Some(value));
                continue;
            }
            let old = guest.config.insert(key.clone(), value.clone());
            let old = old.filter(|old| Drive::parse(old).source != Drive::parse(&value).source);
            if let Some(old) = old.filter(|_| drive::is_drive(key)) {
                release(stock, vmid, key, &old, self.is_forced);
            }
        }
        Ok(())
    }
}

/// Whether an option of a guest comes true only at its next start; containers take everything as they run.
fn waits_for_start(guest: &Guest, key: &str) -> bool {
    guest.is_running && guest.kind == Kind::Qemu && AT_START.contains(&key)
}

/// Tags as they are kept: in lower case, in order, each once.
fn sorted(tags: &str) -> String {
    let tags = tags.split([';', ',', ' ']).filter(|tag| !tag.is_empty());
    let tags: BTreeSet<String> = tags.map(str::to_lowercase).collect();
    tags.into_iter().collect::<Vec<_>>().join(";")
}

/// Takes a disk out: it is kept as unused, unless it was that already or holds nothing of worth.
fn release(stock: &mut Stock<'_>, vmid: u32, key: &str, value: &str, is_forced: bool) {
    let drive = Drive::parse(value);
    let is_own = stock.state.volumes.get(drive.source).is_some_and(|volume| volume.owner == Some(vmid));
    if !is_own {
        return;
    }
    if is_forced || numbered(key, "unused") || drive.is_cloud_init() {
        stock.state.volumes.remove(drive.source);
    } else if let Some(guest) = stock.state.guests.get_mut(&vmid) {
        let mut names = (0..=u32::MAX).map(|number| format!("unused{number}"));
        let free = names.find(|key| !guest.config.contains_key(key));
        guest.config.insert(free.expect("numbers do not run out"), drive.source.to_owned());
    }
}

fn check_drive(call: &Call, state: &State, value: &str) -> Result<(), Refusal> {
    let drive = Drive::parse(value);
    let from = drive.get("import-from");
    let is_path = |text: &str| text.starts_with('/');
    if (is_path(drive.source) || from.is_some_and(is_path)) && !call.who.is_root() {
        return Err(Refusal::died("Only root can pass arbitrary filesystem paths"));
    }
    let volumes =
        [Some(drive.source), from].into_iter().flatten().filter_map(|volume| volume.split_once(':'));
    for (storage, volume) in volumes {
        if call.lab.settings.storage(storage).is_none() {
            return Err(Refusal::died(format!("storage '{storage}' does not exist")));
        }
        let is_file = volume.contains('/');
        let any: &[&str] = &["Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Datastore.Audit"];
        let needed = if is_file { any } else { &any[..1] };
        call.need_any(state, &format!("/storage/{storage}"), needed)?;
    }
    Ok(())
}

/// What one must be allowed to set an option.
fn privileges(kind: Kind, key: &str, value: &str) -> &'static [&'static str] {
    let word = key.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let drive = Drive::parse(value);
    match word {
        _ if drive::is_drive(key) && drive.is_cloud_init() => &["VM.Config.Cloudinit", "VM.Config.CDROM"],
        _ if drive::is_drive(key) && drive.is_cdrom() => &["VM.Config.CDROM"],
        _ if drive::is_drive(key) => &["VM.Config.Disk"],
        "cores" | "sockets" | "cpu" | "cpulimit" | "cpuunits" | "vcpus" | "numa" | "smp" | "affinity" => {
            &["VM.Config.CPU"]
        }
        "memory" | "balloon" | "shares" | "hugepages" | "swap" => &["VM.Config.Memory"],
        "net" => &["VM.Config.Network"],
        "hostname" | "nameserver" | "searchdomain" if kind == Kind::Lxc => &["VM.Config.Network"],
        "ipconfig" | "nameserver" | "searchdomain" | "ciuser" | "cipassword" | "cicustom" | "citype"
        | "ciupgrade" | "sshkeys" => &["VM.Config.Cloudinit", "VM.Config.Network"],
        "bios" | "machine" | "scsihw" | "serial" | "usb" | "hostpci" | "vga" | "rng" | "audio" | "tablet"
        | "keyboard" => &["VM.Config.HWType"],
        _ => &["VM.Config.Options"],
    }
}
