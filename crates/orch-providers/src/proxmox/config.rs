//! The configuration of one machine, as Proxmox keeps it: a flat list of words, some of which are lists themselves.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::guest::{Extent, GuestKind};
use super::mark::{Bears, split};
use super::read::Fields;
use super::trouble::Trouble;

/// The size of a container's memory where nothing is said.
const LXC_MEMORY: u64 = 512;
/// Where disks of a machine are attached.
const BUSES: [&str; 4] = ["scsi", "virtio", "sata", "ide"];

/// The configuration of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    words: BTreeMap<String, String>,
}

impl Config {
    pub(super) fn read(call: &str, answer: &Json) -> Result<Self, Trouble> {
        Ok(Self { words: Fields::of(call, answer)?.texts().collect() })
    }

    pub(super) fn word(&self, name: &str) -> Option<&str> {
        self.words.get(name).map(String::as_str)
    }

    pub(super) fn digest(&self) -> Option<&str> {
        self.word("digest")
    }

    pub(super) fn lock(&self) -> Option<&str> {
        self.word("lock").filter(|lock| !lock.is_empty())
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.word("name").or_else(|| self.word("hostname"))
    }

    pub(super) fn tags(&self) -> Vec<String> {
        self.word("tags").map(split).unwrap_or_default()
    }

    pub(super) fn bears(&self) -> Bears {
        Bears::of(&self.tags(), self.word("description"))
    }

    /// The hardware address of its first network card, in lower case.
    pub(super) fn mac(&self) -> Option<String> {
        let words = self.word("net0")?.split(',').filter_map(|word| word.split_once('='));
        let values = words.map(|(_, value)| value);
        values.into_iter().find(|value| is_mac(value)).map(str::to_ascii_lowercase)
    }

    /// How large it is.
    pub(super) fn extent(&self, kind: GuestKind) -> Extent {
        let number = |name: &str| self.word(name).and_then(|text| text.parse::<u64>().ok());
        let memory =
            self.word("memory").and_then(|text| text.strip_prefix("current=").unwrap_or(text).parse().ok());
        let disk = self.boot_disk(kind).and_then(|(_, size)| size);
        match kind {
            GuestKind::Qemu => {
                let cores = number("cores").unwrap_or(1).saturating_mul(number("sockets").unwrap_or(1));
                Extent { cores: Some(cores), memory: memory.or(Some(512)), disk }
            }
            GuestKind::Lxc => Extent { cores: number("cores"), memory: memory.or(Some(LXC_MEMORY)), disk },
        }
    }

    /// What must be said of the least memory that it keeps where it gets no more than this: Proxmox refuses a least that is more
    /// than all, also where it is taken away with the same word.
    pub(super) fn balloon_for(&self, memory: u32) -> Option<(&'static str, String)> {
        let balloon = self.word("balloon").and_then(|balloon| balloon.parse::<u32>().ok());
        balloon.filter(|balloon| *balloon > memory).map(|_| ("balloon", memory.to_string()))
    }

    /// Where the disk is attached that it starts from, and its size in bytes where that is said.
    pub(super) fn boot_disk(&self, kind: GuestKind) -> Option<(String, Option<u64>)> {
        let key = match kind {
            GuestKind::Lxc => "rootfs".to_owned(),
            GuestKind::Qemu => self.ordered_disk().or_else(|| self.first_disk())?,
        };
        let size = self.word(&key)?.split(',').find_map(|word| bytes(word.strip_prefix("size=")?));
        Some((key, size))
    }

    /// The first disk of the order in which it tries to start.
    fn ordered_disk(&self) -> Option<String> {
        let boot = self.word("boot").unwrap_or_default();
        let order = boot.split(',').find_map(|word| word.strip_prefix("order=")).unwrap_or_default();
        let tried = order.split(';').chain(self.word("bootdisk"));
        tried.into_iter().find(|key| self.is_disk(key)).map(str::to_owned)
    }

    fn first_disk(&self) -> Option<String> {
        let of_bus = |bus: &'static str| (0..31).map(move |number| format!("{bus}{number}"));
        BUSES.into_iter().flat_map(of_bus).find(|key| self.is_disk(key))
    }

    fn is_disk(&self, key: &str) -> bool {
        let is_on_bus =
            BUSES.iter().any(|bus| key.strip_prefix(bus).is_some_and(|rest| rest.parse::<u8>().is_ok()));
        is_on_bus
            && self.word(key).is_some_and(|drive| !drive.contains("media=cdrom") && !is_cloud_init(drive))
    }

    /// Drives that Proxmox fills for cloud-init, but for the one at this place.
    pub(super) fn cloud_init_drives(&self, but: &str) -> Vec<String> {
        let drives = self.words.iter().filter(|(key, drive)| {
            let is_on_bus =
                BUSES.iter().any(|bus| key.strip_prefix(bus).is_some_and(|rest| rest.parse::<u8>().is_ok()));
            is_on_bus && *key != but && is_cloud_init(drive)
        });
        drives.map(|(key, _)| key.clone()).collect()
    }
}

fn is_cloud_init(drive: &str) -> bool {
    let volume = drive.split(',').next().unwrap_or_default();
    volume.ends_with("cloudinit") || volume.contains("-cloudinit.")
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6
        && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A size such as `10G`, `2252M` or `1073741824`.
fn bytes(text: &str) -> Option<u64> {
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = units.iter().find(|(letter, _)| text.ends_with(*letter));
    let (digits, shift) = unit.map_or((text, 0), |(letter, shift)| (text.trim_end_matches(*letter), *shift));
    let of_units = |digits: &str| digits.parse::<u64>().ok()?.checked_mul(1 << shift);
    match digits.split_once('.') {
        None => of_units(digits),
        Some((whole, fraction)) => of_units(whole)?.checked_add(of_units(fraction.get(..1)?)? / 10),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(answer: &Json) -> Config {
        Config::read("GET /x", answer).unwrap()
    }

    #[test]
    fn sizes_are_read_in_every_unit() {
        for (text, size) in [
            ("10G", Some(10 << 30)),
            ("2252M", Some(2252 << 20)),
            ("512K", Some(512 << 10)),
            ("1T", Some(1 << 40)),
            ("1073741824", Some(1 << 30)),
            ("2.5G", Some(5 << 29)),
            ("G", None),
            ("10X", None),
            ("99999999999T", None),
            ("16777215.99T", Some(u64::MAX - (1 << 40) + 1 + (9 << 40) / 10)),
        ] {
            assert_eq!(bytes(text), size, "{text}");
        }
    }

    #[test]
    fn a_machine_is_as_large_as_its_configuration_says() {
        let machine = config(&json!({
            "cores": 2, "sockets": "2", "memory": "2048", "boot": "order=ide2;scsi0;net0", "kvm": 0,
            "ide2": "local:iso/orch-1.iso,media=cdrom,size=374K", "scsi0": "local-zfs:vm-101-disk-0,discard=on,size=10G",
            "scsi1": "local-zfs:vm-101-disk-1,size=99G", "net0": "virtio=BC:24:11:AA:BB:01,bridge=vmbr0,firewall=1",
        }));
        let extent = Extent { cores: Some(4), memory: Some(2048), disk: Some(10 << 30) };
        assert_eq!(machine.extent(GuestKind::Qemu), extent);
        assert_eq!(machine.mac().as_deref(), Some("bc:24:11:aa:bb:01"));
        let container = config(&json!({
            "rootfs": "local-zfs:subvol-102-disk-0,size=8G", "memory": 1024,
            "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,ip=dhcp,type=veth",
        }));
        let extent = Extent { cores: None, memory: Some(1024), disk: Some(8 << 30) };
        assert_eq!(container.extent(GuestKind::Lxc), extent);
        assert_eq!(container.mac().as_deref(), Some("bc:24:11:00:00:02"));
    }

    #[test]
    fn a_machine_that_is_larger_than_any_number_is_read_too() {
        let most = u64::MAX.to_string();
        let machine = config(&json!({ "cores": most, "sockets": "2", "scsi0": "x,size=99999999999T" }));
        let extent = machine.extent(GuestKind::Qemu);
        assert_eq!((extent.cores, extent.disk), (Some(u64::MAX), None));
    }

    #[test]
    fn a_disk_is_found_without_an_order_and_a_drive_for_cloud_init_is_none() {
        let machine = config(&json!({
            "memory": "current=1024", "ide0": "local-zfs:vm-101-cloudinit,media=cdrom",
            "sata1": "local:101/vm-101-cloudinit.qcow2", "virtio0": "local:101/vm-101-disk-0.qcow2,size=3G",
        }));
        assert_eq!(machine.boot_disk(GuestKind::Qemu), Some(("virtio0".into(), Some(3 << 30))));
        assert_eq!(machine.cloud_init_drives("ide2"), ["ide0", "sata1"]);
        assert_eq!(machine.extent(GuestKind::Qemu).memory, Some(1024));
        assert_eq!(machine.mac(), None);
    }
}
