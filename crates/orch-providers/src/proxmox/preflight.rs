//! What stands in the way of making machines, found out before anything is touched, all at once.

use std::collections::BTreeSet;

use orch_plan::MachineSpec;
use serde_json::Value as Json;

use super::advice;
use super::guest::{GuestKind, Listed};
use super::image::{self, Image};
use super::maker::Maker;
use super::read::Fields;
use super::trouble::Trouble;
use crate::api::encode;
use crate::preflight::{Obstacle, Preflight};

/// What making machines takes, wherever it is granted.
const PRIVILEGES: [&str; 15] = [
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "SDN.Use",
    "VM.Allocate",
    "VM.Audit",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.PowerMgmt",
];

impl Maker {
    pub(super) async fn preflight(&self, wanted: &[MachineSpec]) -> Preflight {
        if wanted.is_empty() {
            return Preflight::default();
        }
        let node = encode(&self.setup.proxmox.node);
        let (storages, bridges) =
            (format!("/nodes/{node}/storage"), format!("/nodes/{node}/network?type=any_bridge"));
        let (version, nodes, storages, bridges, permissions, listed) = tokio::join!(
            self.caller.get("/version"),
            self.caller.get("/nodes"),
            self.caller.get(&storages),
            self.caller.get(&bridges),
            self.caller.get("/access/permissions"),
            self.list(),
        );
        let mut obstacles = Vec::new();
        if let Err(trouble) = version {
            // Where it does not even say which version it is, everything else is said by that.
            return Preflight { obstacles: vec![self.stands(trouble)], ..Preflight::default() };
        }
        obstacles.extend(self.node_stands(&nodes));
        // What is there on a node that is not there is no news.
        if obstacles.is_empty() {
            obstacles.extend(self.storage_stands(&storages, wanted));
            obstacles.extend(self.bridge_stands(&bridges));
        }
        obstacles.extend(self.privilege_stands(&permissions));
        match listed {
            Ok(listed) => obstacles.extend(self.image_stands(wanted, &listed).await),
            Err(trouble) => obstacles.push(self.stands(trouble)),
        }
        Preflight { obstacles, ..Preflight::default() }
    }

    fn stands(&self, trouble: Trouble) -> Obstacle {
        let error = trouble.told(&self.setup.host);
        Obstacle { what: error.to_string(), hint: error.hint() }
    }

    fn node_stands(&self, answer: &Result<Json, Trouble>) -> Option<Obstacle> {
        let names = named("GET /nodes", answer, "node");
        let node = &self.setup.proxmox.node;
        match names {
            Err(trouble) => Some(self.stands(trouble)),
            Ok(names) if names.contains(node) => None,
            Ok(names) => {
                let shown: Vec<_> = names.into_iter().collect();
                let what = format!("`{}` has no node `{node}`", self.setup.host);
                let hint =
                    format!("write one of its nodes as `node` into the host's file: {}", shown.join(", "));
                Some(Obstacle { what, hint })
            }
        }
    }

    fn storage_stands(&self, answer: &Result<Json, Trouble>, wanted: &[MachineSpec]) -> Vec<Obstacle> {
        let (host, datastore) = (&self.setup.host, &self.setup.proxmox.datastore);
        let answer = match answer {
            Ok(answer) => answer,
            Err(trouble) => return vec![self.stands(trouble.clone())],
        };
        let entries = match Fields::each("GET /nodes/storage", answer) {
            Ok(entries) => entries,
            Err(trouble) => return vec![self.stands(trouble)],
        };
        let mut obstacles = Vec::new();
        match entries.iter().find(|entry| entry.text("storage").as_ref() == Some(datastore)) {
            None => obstacles.push(Obstacle {
                what: format!("`{host}` has no storage `{datastore}`, or shows none to this token"),
                hint: format!(
                    "see `pvesm status`, and grant `Datastore.AllocateSpace` at /storage/{datastore}"
                ),
            }),
            Some(entry) => {
                let disks: u64 = wanted.iter().map(|spec| u64::from(spec.size.disk) << 30).sum();
                let largest =
                    wanted.iter().map(|spec| u64::from(spec.size.disk) << 30).max().unwrap_or_default();
                // Disks are filled only as they are written to, so all together may be more than there is.
                if let Some(free) = entry.number("avail").filter(|free| *free < largest) {
                    let (free, disks) = (free >> 30, disks >> 30);
                    let what = format!(
                        "storage `{datastore}` of `{host}` has {free} GB left, and {disks} GB are to be made"
                    );
                    obstacles.push(Obstacle { what, hint: advice::hint("no space left") });
                }
            }
        }
        let takes_discs = entries.iter().any(|entry| {
            entry.text("content").is_some_and(|content| content.split(',').any(|kind| kind.trim() == "iso"))
        });
        let has_machines = wanted.iter().any(|spec| image::kind(spec) == GuestKind::Qemu);
        if has_machines && !takes_discs && self.snippets().is_none() {
            obstacles.push(Obstacle {
                what: format!("no storage of `{host}` takes discs for first boots"),
                hint: "allow the content `iso` on one (`pvesm set local --content iso,vztmpl,import`), and grant `Datastore.AllocateTemplate` there".into(),
            });
        }
        obstacles
    }

    fn bridge_stands(&self, answer: &Result<Json, Trouble>) -> Option<Obstacle> {
        // Who may not see the network may still use it.
        let names = named("GET /nodes/network", answer, "iface").ok().filter(|names| !names.is_empty())?;
        let bridge = self.setup.proxmox.bridge.to_string();
        if names.contains(&bridge) {
            return None;
        }
        let what =
            format!("node `{}` of `{}` has no bridge `{bridge}`", self.setup.proxmox.node, self.setup.host);
        let shown: Vec<_> = names.into_iter().collect();
        Some(Obstacle {
            what,
            hint: format!("write one that it has as `bridge` into the host's file: {}", shown.join(", ")),
        })
    }

    /// Privileges that the token has nowhere.
    fn privilege_stands(&self, answer: &Result<Json, Trouble>) -> Option<Obstacle> {
        let paths = answer.as_ref().ok()?.as_object()?;
        let has = |privilege: &str| paths.values().any(|granted| granted.get(privilege).is_some());
        let mut missing: Vec<&str> = PRIVILEGES.into_iter().filter(|privilege| !has(privilege)).collect();
        // To be told the address of a machine; the first was called otherwise before version 9.
        if !["VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted", "VM.Monitor"].into_iter().any(has) {
            missing.push("VM.GuestAgent.Audit");
        }
        if missing.is_empty() {
            return None;
        }
        let missing = missing.join(",");
        let what = format!("the token of `{}` lacks {missing}", self.setup.host);
        let hint = format!(
            "`pveum role modify Orch --append 1 --privs \"{missing}\"`, as docs/proxmox.md makes that role; a token that is privilege-separated needs it beside its user"
        );
        Some(Obstacle { what, hint })
    }

    /// Images and templates that are not there.
    async fn image_stands(&self, wanted: &[MachineSpec], listed: &[Listed]) -> Vec<Obstacle> {
        let images: BTreeSet<(&str, GuestKind)> =
            wanted.iter().map(|spec| (spec.image.as_str(), image::kind(spec))).collect();
        let mut obstacles = Vec::new();
        for (text, kind) in images {
            let found = match Image::of(text) {
                Ok(Image::Template(name)) => image::template(listed, name).map(|_| ()),
                Ok(volume) => self.volume_is_there(text, volume.storage().unwrap_or_default(), kind).await,
                Err(trouble) => Err(trouble),
            };
            obstacles.extend(found.err().map(|trouble| self.stands(trouble)));
        }
        obstacles
    }

    async fn volume_is_there(&self, volume: &str, storage: &str, kind: GuestKind) -> Result<(), Trouble> {
        let content = if kind == GuestKind::Lxc { "vztmpl" } else { "import" };
        let there = self.content(storage, content).await?;
        if there.iter().any(|known| known == volume) {
            return Ok(());
        }
        Err(Trouble::Refused(format!(
            "there is no volume `{volume}`: see `pvesm list {storage} --content {content}`"
        )))
    }
}

/// What things in an answer are called.
fn named(call: &str, answer: &Result<Json, Trouble>, name: &str) -> Result<BTreeSet<String>, Trouble> {
    let answer = answer.as_ref().map_err(Trouble::clone)?;
    Ok(Fields::each(call, answer)?.iter().filter_map(|entry| entry.text(name)).collect())
}
