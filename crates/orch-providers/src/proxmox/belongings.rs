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
        let by_uuid: BTreeMap<Uuid, Marks> = machines
            .iter()
            .filter_map(|machine| machine.marks.clone())
            .map(|marks| (marks.uuid, marks))
            .collect();
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
        for volume in self.left_disks(&taken).await? {
            all.push(belonging(of, "disk", &volume, None));
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

    /// Disks of machines that were destroyed here, and whose number nobody has since.
    async fn left_disks(&self, taken: &[u32]) -> Result<Vec<String>, Trouble> {
        let destroyed = self.destroyed.lock().expect("nobody panics while holding this").clone();
        if destroyed.is_empty() {
            return Ok(Vec::new());
        }
        let is_left = |volume: &String| {
            let number = volume.split_once("vm-").or_else(|| volume.split_once("subvol-"));
            let number = number.and_then(|(_, rest)| rest.split('-').next()?.parse::<u32>().ok());
            number.is_some_and(|number| destroyed.contains(&number) && !taken.contains(&number))
        };
        let volumes = self.content(&self.setup.proxmox.datastore, "images").await?;
        Ok(volumes.into_iter().filter(is_left).collect())
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

fn belonging(of: &Owner, kind: &str, volume: &str, marks: Option<&Marks>) -> Belonging {
    Belonging {
        host: of.host.clone(),
        kind: kind.into(),
        id: volume.to_owned(),
        name: volume.rsplit(['/', ':']).next().unwrap_or(volume).to_owned(),
        manifest: marks.map(|marks| marks.manifest.clone()),
        node: marks.map(|marks| marks.node.clone()),
    }
}
