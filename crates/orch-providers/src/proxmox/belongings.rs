//! Everything on a host that is ours: machines, what they were given to start with, and disks that were left.

use std::collections::BTreeMap;
use std::sync::Arc;

use orch_plan::Marks;
use orch_run::{Belonging, Owner};
use uuid::Uuid;

use super::look::Interest;
use super::maker::Maker;
use super::read::Fields;
use super::seed::uuid_in;
use super::trouble::Trouble;
use crate::api::encode;

impl Maker {
    /// What an owner has here. What was made for a machine that is gone is nobody's in particular, and so shown to who asks for
    /// everything of the site.
    pub(super) async fn belongings(self: &Arc<Self>, of: &Owner) -> Result<Vec<Belonging>, Trouble> {
        let seen = self.look(Interest::Belongings).await?;
        let machines: Vec<_> = seen.iter().map(super::look::Seen::machine).collect();
        let destroyed = self.destroyed.lock().expect("nobody panics while holding this").clone();
        let there = machines.iter().filter_map(|machine| machine.marks.clone());
        let by_uuid: BTreeMap<Uuid, Marks> =
            destroyed.values().cloned().chain(there).map(|marks| (marks.uuid, marks)).collect();
        let view = orch_plan::HostView::Seen { machines, abilities: orch_plan::Abilities::COMMON };
        let mut all = Belonging::machines(&view, of);
        for volume in self.seeds().await? {
            let Some(uuid) = uuid_in(&volume) else { continue };
            let marks = by_uuid.get(&uuid);
            let is_of = marks.map_or(of.manifest.is_none(), |marks| of.owns(marks));
            if is_of {
                let kind = if volume.contains(":iso/") { "first-boot disc" } else { "snippet" };
                all.push(belonging(of, kind, &volume, marks));
            }
        }
        let taken: Vec<u32> = seen.iter().map(|seen| seen.listed.spot.id.vmid).collect();
        let gone: BTreeMap<u32, Marks> =
            destroyed.into_iter().filter(|(vmid, marks)| !taken.contains(vmid) && of.owns(marks)).collect();
        for (volume, marks) in self.left_disks(&gone).await? {
            all.push(belonging(of, "disk", &volume, Some(&marks)));
        }
        all.sort();
        Ok(all)
    }

    /// The volumes of what machines were given.
    async fn seeds(&self) -> Result<Vec<String>, Trouble> {
        let mut volumes = Vec::new();
        for storage in self.disc_stores().await? {
            volumes.extend(self.content(&storage, "iso").await?);
        }
        if let Some(storage) = &self.setup.proxmox.snippets {
            volumes.extend(self.content(storage, "snippets").await?);
        }
        Ok(volumes)
    }

    /// The disks that are left of machines that are gone.
    async fn left_disks(&self, gone: &BTreeMap<u32, Marks>) -> Result<Vec<(String, Marks)>, Trouble> {
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        let datastore = &self.setup.proxmox.datastore;
        let mut volumes = self.content(datastore, "images").await?;
        volumes.extend(self.content(datastore, "rootdir").await?);
        volumes.sort();
        volumes.dedup();
        let left = volumes.into_iter().filter_map(|volume| {
            let marks = gone.get(&number_of(&volume)?)?.clone();
            Some((volume, marks))
        });
        Ok(left.collect())
    }

    /// The volumes of one kind on a storage.
    pub(super) async fn content(&self, storage: &str, kind: &str) -> Result<Vec<String>, Trouble> {
        let node = encode(&self.setup.proxmox.node);
        let path = format!("/nodes/{node}/storage/{}/content", encode(storage));
        let answer = self.caller.get(&format!("{path}?content={kind}")).await?;
        let call = format!("GET {path}");
        Fields::each(&call, &answer)?.iter().map(|entry| entry.needs_text("volid")).collect()
    }
}

/// The number of the machine that a disk is of: `local-lvm:vm-101-disk-0`, `local-zfs:subvol-101-disk-0`.
fn number_of(volume: &str) -> Option<u32> {
    let name = volume.split_once(':')?.1.rsplit('/').next()?;
    let rest = ["vm-", "base-", "subvol-"].iter().find_map(|kind| name.strip_prefix(kind))?;
    rest.split('-').next()?.parse().ok()
}

fn belonging(of: &Owner, kind: &str, volume: &str, marks: Option<&Marks>) -> Belonging {
    Belonging {
        host: of.host.clone(),
        kind: kind.into(),
        id: volume.to_owned(),
        name: volume.rsplit(['/', ':']).next().unwrap_or(volume).to_owned(),
        manifest: marks.map(|marks| marks.manifest.clone()),
        node: marks.map(|marks| marks.node.clone()),
        stray: marks.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_says_which_machine_it_is_of() {
        assert_eq!(number_of("vm-store:vm-101-disk-0"), Some(101));
        assert_eq!(number_of("local-zfs:subvol-7-disk-0"), Some(7));
        assert_eq!(number_of("local:101/vm-101-disk-0.qcow2"), Some(101));
        assert_eq!([number_of("local:iso/debian.iso"), number_of("vm-1-disk-0")], [None, None]);
    }
}
