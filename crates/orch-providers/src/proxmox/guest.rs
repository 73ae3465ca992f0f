//! Machines as Proxmox lists them.

use std::fmt;
use std::str::FromStr;

use orch_model::NodeKind;
use serde_json::Value as Json;

use super::mark;
use super::read::Fields;
use super::trouble::Trouble;
use crate::api::encode;

/// The question for all machines of a cluster.
pub(super) const LIST: &str = "/cluster/resources?type=vm";
const CALL: &str = "GET /cluster/resources";

/// What kind of machine it is to Proxmox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GuestKind {
    /// A virtual machine.
    Qemu,
    /// A container.
    Lxc,
}

impl GuestKind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::Qemu, Self::Lxc].into_iter().find(|kind| kind.as_str() == word)
    }

    /// What it is to a manifest.
    pub(super) const fn node_kind(self) -> NodeKind {
        match self {
            Self::Qemu => NodeKind::Vm,
            Self::Lxc => NodeKind::Ct,
        }
    }
}

/// Which machine: its kind and number, `qemu/101`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GuestId {
    pub(super) kind: GuestKind,
    pub(super) vmid: u32,
}

impl fmt::Display for GuestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.as_str(), self.vmid)
    }
}

impl FromStr for GuestId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, vmid) = text.split_once('/').ok_or(())?;
        Ok(Self { kind: GuestKind::of(kind).ok_or(())?, vmid: vmid.parse().map_err(|_| ())? })
    }
}

/// Which machine on which node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) node: String,
    pub(super) id: GuestId,
}

impl Spot {
    /// The path of something of it.
    pub(super) fn path(&self, what: &str) -> String {
        format!("/nodes/{}/{}{what}", encode(&self.node), self.id)
    }
}

/// Whether a machine runs, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Running,
    Stopped,
    Unknown,
}

impl Status {
    pub(super) fn of(word: Option<&str>) -> Self {
        match word {
            Some("running") => Self::Running,
            Some("stopped") => Self::Stopped,
            _ => Self::Unknown,
        }
    }
}

/// How large a machine is, as far as that is known: cores, memory in MiB, disk in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) cores: Option<u64>,
    pub(super) memory: Option<u64>,
    pub(super) disk: Option<u64>,
}

/// A machine of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) spot: Spot,
    /// Nothing until it was reported for the first time, nor while it is made and has none.
    pub(super) name: Option<String>,
    pub(super) status: Status,
    pub(super) tags: Vec<String>,
    pub(super) lock: Option<String>,
    pub(super) extent: Extent,
    pub(super) is_template: bool,
}

impl Listed {
    /// Whether it is being made at this moment.
    pub(super) fn is_being_made(&self) -> bool {
        matches!(self.lock.as_deref(), Some("clone" | "create"))
    }

    /// As people know it.
    pub(super) fn called(&self) -> String {
        self.name
            .as_ref()
            .map_or_else(|| self.spot.id.to_string(), |name| format!("{} ({name})", self.spot.id))
    }
}

/// The machines in an answer. What is neither a machine nor a container is passed over.
pub(super) fn list(answer: &Json) -> Result<Vec<Listed>, Trouble> {
    let entries = Fields::each(CALL, answer)?;
    let mut listed = Vec::with_capacity(entries.len());
    for entry in entries {
        let kind = entry.needs_text("type")?;
        let Some(kind) = GuestKind::of(&kind) else { continue };
        listed.push(one(kind, entry)?);
    }
    listed.sort_by_key(|listed: &Listed| listed.spot.id.vmid);
    Ok(listed)
}

fn one(kind: GuestKind, entry: Fields<'_>) -> Result<Listed, Trouble> {
    let by_id = || Some(entry.text("id")?.parse::<GuestId>().ok()?.vmid);
    let vmid = entry.number("vmid").and_then(|vmid| u32::try_from(vmid).ok()).or_else(by_id);
    let vmid = vmid.ok_or_else(|| entry.without("vmid"))?;
    let extent = Extent {
        cores: entry.number("maxcpu").filter(|cores| *cores > 0),
        memory: entry.number("maxmem").filter(|bytes| *bytes > 0).map(|bytes| bytes >> 20),
        disk: entry.number("maxdisk").filter(|bytes| *bytes > 0),
    };
    Ok(Listed {
        spot: Spot { node: entry.needs_text("node")?, id: GuestId { kind, vmid } },
        name: entry.text("name").filter(|name| is_name(name, kind, vmid)),
        status: Status::of(entry.text("status").as_deref()),
        tags: entry.text("tags").map(|tags| mark::split(&tags)).unwrap_or_default(),
        lock: entry.text("lock").filter(|lock| !lock.is_empty()),
        extent,
        is_template: entry.is_set("template"),
    })
}

/// Whether a machine is called so, and not only shown so because it has no name. One that is being made is reported without
/// one, and the list goes on to say so when it is long made.
pub(super) fn is_name(shown: &str, kind: GuestKind, vmid: u32) -> bool {
    let stand_in = match kind {
        GuestKind::Qemu => format!("VM {vmid}"),
        GuestKind::Lxc => format!("CT{vmid}"),
    };
    !shown.is_empty() && shown != stand_in
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_read_whatever_else_is_in_it() {
        let answer = json!([
            { "type": "storage", "id": "storage/pve1/local" },
            { "type": "qemu", "vmid": "102", "node": "pve1", "name": "b", "status": "running", "maxcpu": 2,
              "maxmem": 2_147_483_648_u64, "maxdisk": "10737418240", "tags": "orch-a.b;x", "hastate": "new" },
            { "type": "lxc", "id": "lxc/101", "node": "pve2", "status": "hibernating", "lock": "create", "template": 0 },
        ]);
        let machines = list(&answer).unwrap();
        assert_eq!(machines.len(), 2);
        assert_eq!(machines[0].spot.id.to_string(), "lxc/101");
        assert_eq!((machines[0].status, machines[0].is_being_made()), (Status::Unknown, true));
        assert_eq!(machines[0].called(), "lxc/101");
        let extent = Extent { cores: Some(2), memory: Some(2048), disk: Some(10 << 30) };
        assert_eq!((machines[1].extent, machines[1].tags.len()), (extent, 2));
        assert_eq!(machines[1].spot.path("/config"), "/nodes/pve1/qemu/102/config");
    }

    #[test]
    fn what_a_machine_without_a_name_is_shown_as_is_none() {
        let answer = json!([
            { "type": "qemu", "vmid": 101, "node": "a", "name": "VM 101", "status": "stopped" },
            { "type": "lxc", "vmid": 102, "node": "a", "name": "CT102", "status": "stopped" },
            { "type": "qemu", "vmid": 103, "node": "a", "name": "CT103", "status": "stopped" },
        ]);
        let names: Vec<_> = list(&answer).unwrap().into_iter().map(|machine| machine.name).collect();
        assert_eq!(names, [None, None, Some("CT103".into())]);
    }

    #[test]
    fn what_is_missing_in_a_list_is_explained() {
        let told = |entry: Json| list(&json!([entry])).unwrap_err().to_string();
        assert_eq!(
            told(json!({ "type": "qemu", "node": "a" })),
            "GET /cluster/resources: an entry without `vmid`"
        );
        assert!(told(json!({ "type": "qemu", "vmid": 1 })).ends_with("without `node`"));
    }

    #[test]
    fn an_id_is_a_kind_and_a_number() {
        assert_eq!("qemu/101".parse(), Ok(GuestId { kind: GuestKind::Qemu, vmid: 101 }));
        for wrong in ["101", "qemu/", "qemu/x", "kvm/1", "qemu/1/2", ""] {
            assert!(wrong.parse::<GuestId>().is_err(), "{wrong}");
        }
    }
}
