//! One virtual machine or container, as its configuration file describes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::card::fresh_mac;
use super::drive::{self, Drive};
use super::settings::{ProxmoxSettings, ProxmoxTemplate};
use super::state::{State, Volume, now, seconds};
use crate::machines::{Size, Wanted};

/// What a guest is.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Qemu,
    Lxc,
}

impl Kind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }

    /// What its tasks are called: `start` is `qmstart` or `vzstart`.
    pub(super) fn task(self, verb: &str) -> String {
        format!("{}{verb}", if self == Self::Qemu { "qm" } else { "vz" })
    }

    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Qemu => "VM",
            Self::Lxc => "CT",
        }
    }

    /// The file that is locked while something is done to it.
    pub(super) fn lock_file(self, vmid: u32) -> String {
        match self {
            Self::Qemu => format!("/var/lock/qemu-server/lock-{vmid}.conf"),
            Self::Lxc => format!("/run/lock/lxc/pve-config-{vmid}.lock"),
        }
    }

    pub(super) fn config_file(self, node: &str, vmid: u32) -> String {
        let folder = if self == Self::Qemu { "qemu-server" } else { "lxc" };
        format!("nodes/{node}/{folder}/{vmid}.conf")
    }
}

/// One guest.
#[derive(Serialize, Deserialize, Clone)]
pub(super) struct Guest {
    pub(super) kind: Kind,
    pub(super) config: BTreeMap<String, String>,
    /// What a running one becomes at its next start; `None` is gone by then.
    #[serde(default)]
    pub(super) pending: BTreeMap<String, Option<String>>,
    pub(super) is_running: bool,
    #[serde(default)]
    pub(super) is_paused: bool,
    /// In milliseconds.
    pub(super) started: u64,
    pub(super) made: u64,
    /// The task that made it.
    pub(super) made_by: String,
    /// What machines are told that it is made from.
    pub(super) image: String,
    #[serde(default)]
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    /// The keys that a container was made with.
    #[serde(default)]
    pub(super) keys: Vec<String>,
}

/// How a guest once was.
#[derive(Serialize, Deserialize, Clone)]
pub(super) struct Snapshot {
    pub(super) description: String,
    pub(super) made: u64,
    pub(super) config: BTreeMap<String, String>,
}

/// What the real one shows as numbers; everything else is text, memory of virtual machines among it.
const NUMBERS: &[&str] = &[
    "acpi",
    "autostart",
    "balloon",
    "ciupgrade",
    "console",
    "cores",
    "cpuunits",
    "debug",
    "freeze",
    "kvm",
    "localtime",
    "numa",
    "onboot",
    "protection",
    "reboot",
    "shares",
    "sockets",
    "swap",
    "tablet",
    "template",
    "tty",
    "unprivileged",
    "vcpus",
];

impl Guest {
    pub(super) fn new(kind: Kind, config: BTreeMap<String, String>, made_by: &str) -> Self {
        Self {
            kind,
            config,
            pending: BTreeMap::new(),
            is_running: false,
            is_paused: false,
            started: 0,
            made: now(),
            made_by: made_by.to_owned(),
            image: String::new(),
            snapshots: BTreeMap::new(),
            keys: Vec::new(),
        }
    }

    /// Puts a template there with its disk.
    pub(super) fn plant(state: &mut State, settings: &ProxmoxSettings, template: &ProxmoxTemplate) {
        let files =
            settings.storage(&template.storage).is_some_and(super::settings::ProxmoxStorage::has_files);
        let id = template.vmid;
        let disk = if files { format!("{id}/base-{id}-disk-0.qcow2") } else { format!("base-{id}-disk-0") };
        let disk = format!("{}:{disk}", template.storage);
        let volume = Volume {
            content: "images".into(),
            format: if files { "qcow2" } else { "raw" }.into(),
            bytes: u64::from(template.disk) << 30,
            owner: Some(id),
            parent: None,
            made: seconds(),
        };
        let pairs = [
            ("name", template.name.clone()),
            ("template", "1".into()),
            ("memory", template.memory.to_string()),
            ("cores", template.cores.to_string()),
            ("scsihw", "virtio-scsi-pci".into()),
            ("scsi0", format!("{disk},size={}G", template.disk)),
            ("ide2", format!("{}:vm-{id}-cloudinit,media=cdrom", template.storage)),
            ("net0", format!("virtio={},bridge=vmbr0", fresh_mac())),
            ("boot", "order=scsi0".into()),
            ("agent", "1".into()),
            ("serial0", "socket".into()),
        ];
        let config = pairs.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        let seed = Volume { bytes: 4 << 20, format: "raw".into(), ..volume.clone() };
        state.volumes.insert(disk, volume);
        state.volumes.insert(format!("{}:vm-{id}-cloudinit", template.storage), seed);
        let mut guest = Self::new(Kind::Qemu, config, "");
        guest.image.clone_from(&template.image);
        guest.made = 0;
        state.guests.insert(id, guest);
    }

    pub(super) fn is_template(&self) -> bool {
        self.is_set("template")
    }

    /// Whether an option is switched on.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.config.get(key).is_some_and(|value| value == "1")
    }

    /// The word of the lock that stands in its configuration.
    pub(super) fn lock(&self) -> Option<&str> {
        self.config.get("lock").map(String::as_str)
    }

    pub(super) fn name(&self, vmid: u32) -> String {
        let given = self.config.get("name").or_else(|| self.config.get("hostname"));
        given
            .cloned()
            .unwrap_or_else(|| format!("{}{vmid}", if self.kind == Kind::Qemu { "VM " } else { "CT" }))
    }

    fn number(&self, key: &str, otherwise: u32) -> u32 {
        self.config.get(key).and_then(|value| value.parse().ok()).unwrap_or(otherwise)
    }

    pub(super) fn cores(&self) -> u32 {
        self.number("cores", 1).saturating_mul(self.number("sockets", 1)).max(1)
    }

    /// In MiB.
    pub(super) fn memory(&self) -> u32 {
        let memory =
            self.config.get("memory").and_then(|memory| memory.trim_start_matches("current=").parse().ok());
        memory.unwrap_or(512)
    }

    /// Whether what is to be set lets it keep no more memory than it has. What is taken away with the same word still counts.
    pub(super) fn balloon_fits(&self, sets: &BTreeMap<String, String>) -> Result<(), String> {
        if self.kind == Kind::Lxc || !(sets.contains_key("memory") || sets.contains_key("balloon")) {
            return Ok(());
        }
        let waiting = |key: &str| self.pending.get(key).and_then(Option::as_ref);
        let number = |key: &str| {
            let value = sets.get(key).or_else(|| waiting(key)).or_else(|| self.config.get(key));
            value.and_then(|value| value.trim_start_matches("current=").parse::<u32>().ok())
        };
        if number("balloon").unwrap_or(0) > number("memory").unwrap_or(512) {
            return Err("balloon value too large (must be smaller than assigned memory)".into());
        }
        Ok(())
    }

    /// The size in bytes of the disk that it starts from.
    pub(super) fn disk_bytes(&self) -> u64 {
        let boot = self.config.get("boot").and_then(|boot| boot.strip_prefix("order=")).unwrap_or_default();
        let first = boot.split(';').chain(["rootfs", "scsi0", "virtio0", "sata0", "ide0"]);
        let disks = first.filter_map(|key| self.config.get(key)).map(|value| Drive::parse(value));
        disks
            .filter(|drive| !drive.is_cdrom())
            .find_map(|drive| drive.get("size").and_then(drive::size))
            .unwrap_or(0)
    }

    pub(super) fn size(&self) -> Size {
        let disk = u32::try_from(self.disk_bytes().div_ceil(1 << 30)).unwrap_or(u32::MAX);
        Size { cores: self.cores(), memory: self.memory(), disk }
    }

    pub(super) fn wanted(&self, vmid: u32) -> Wanted {
        Wanted {
            id: vmid.to_string(),
            name: self.name(vmid),
            size: self.size(),
            image: self.image.clone(),
            is_container: self.kind == Kind::Lxc,
        }
    }

    /// The disks and drives of its configuration.
    pub(super) fn drives(&self) -> impl Iterator<Item = (&String, Drive<'_>)> {
        self.config
            .iter()
            .filter(|(key, _)| drive::is_drive(key))
            .map(|(key, value)| (key, Drive::parse(value)))
    }

    /// The address of its first network card.
    pub(super) fn mac(&self) -> Option<String> {
        let net = self.config.get("net0")?;
        let parts = net.split(',').filter_map(|part| part.split_once('='));
        parts
            .map(|(_, value)| value)
            .find(|value| value.len() == 17 && value.contains(':'))
            .map(str::to_lowercase)
    }

    pub(super) fn digest(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.config {
            text.push_str(&format!("{key}: {value}\n"));
        }
        let mut digest = hex(&Sha256::digest(text));
        digest.truncate(40);
        digest
    }

    /// Its configuration as it is shown: the one to come, or the one that runs.
    pub(super) fn show_config(&self, is_current: bool) -> Json {
        let mut config = self.config.clone();
        if !is_current {
            for (key, value) in &self.pending {
                match value {
                    Some(value) => config.insert(key.clone(), value.clone()),
                    None => config.remove(key),
                };
            }
        }
        let mut shown: serde_json::Map<String, Json> =
            config.into_iter().map(|(key, value)| (key.clone(), self.show_value(&key, value))).collect();
        shown.insert("digest".into(), self.digest().into());
        Json::Object(shown)
    }

    pub(super) fn show_value(&self, key: &str, value: String) -> Json {
        let is_number = NUMBERS.contains(&key) || (self.kind == Kind::Lxc && key == "memory");
        match value.parse::<i64>() {
            _ if key == "cipassword" => json!("**********"),
            // A container's is kept as whole lines.
            _ if self.kind == Kind::Lxc && key == "description" => format!("{value}\n").into(),
            Ok(number) if is_number => number.into(),
            _ => value.into(),
        }
    }

    /// What waited for the machine to be off comes true.
    pub(super) fn settle(&mut self) {
        for (key, value) in std::mem::take(&mut self.pending) {
            match value {
                Some(value) => self.config.insert(key, value),
                None => self.config.remove(&key),
            };
        }
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
