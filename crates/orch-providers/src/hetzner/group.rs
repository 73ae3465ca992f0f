//! The groups that keep the servers of a manifest apart. A group takes only so many, so a manifest may have several; one is
//! removed with its last server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use orch_model::ManifestName;
use serde_json::json;
use tokio::time::Instant;

use super::Hetzner;
use super::answer::Thing;
use super::ensure::{MANIFEST, SITE, Sought};
use super::trouble::CallError;
use crate::api::encode;

/// A group takes no more servers.
const FULL: usize = 10;

/// The groups of manifests, as far as they were looked for.
#[derive(Default)]
pub(super) struct Groups {
    /// Held by whoever looks for groups, makes or removes one.
    gate: tokio::sync::Mutex<()>,
    known: Arc<Mutex<Known>>,
}

type Known = BTreeMap<ManifestName, Vec<Group>>;

struct Group {
    id: u64,
    name: String,
    /// How many servers are in it, and how many are about to be.
    used: usize,
    coming: usize,
}

/// A place in a group for a server that is about to be made.
pub(super) struct Seat {
    pub(super) group: u64,
    manifest: ManifestName,
    known: Arc<Mutex<Known>>,
    is_taken: bool,
}

impl Seat {
    /// There is a server in it now.
    pub(super) fn take(mut self) {
        self.is_taken = true;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut known = self.known.lock().expect("nobody panics while holding this");
        let groups = known.get_mut(&self.manifest).into_iter().flatten();
        for group in groups.filter(|group| group.id == self.group) {
            group.coming = group.coming.saturating_sub(1);
            group.used = group.used.saturating_sub(usize::from(!self.is_taken));
        }
    }
}

impl Hetzner {
    /// A place in a group of a manifest, where its servers are to be kept apart.
    pub(super) async fn seat(
        &self,
        manifest: &ManifestName,
        until: Instant,
    ) -> Result<Option<Seat>, CallError> {
        if !self.inner.setup.hetzner.spread {
            return Ok(None);
        }
        let groups = &self.inner.groups;
        let _gate = groups.gate.lock().await;
        if !groups.lock().contains_key(manifest) {
            let found = self.groups_of(manifest, until).await?;
            let found = found.into_iter().map(|thing| Group::of(&thing));
            let found = found.collect();
            groups.lock().insert(manifest.clone(), found);
        }
        if let Some(seat) = groups.sit(manifest) {
            return Ok(Some(seat));
        }
        let name = groups.new_name(&format!("orch-{}-{manifest}", self.inner.setup.site), manifest);
        let sought = Sought {
            list: "placement_groups",
            one: "placement_group",
            query: format!("name={}", encode(&name)),
            is_it: &|group| group.name == name,
            body: json!({
                "name": name,
                "type": "spread",
                "labels": { SITE: self.inner.setup.site.to_string(), MANIFEST: manifest.to_string() },
            }),
        };
        let made = self.had(&sought, until).await?;
        groups.lock().entry(manifest.clone()).or_default().push(Group::of(&made));
        Ok(groups.sit(manifest))
    }

    /// Removes the groups of a manifest that no server is in any more, nor is about to be.
    pub(super) async fn tidy_groups(&self, manifest: &ManifestName, until: Instant) -> Result<(), CallError> {
        let groups = &self.inner.groups;
        let _gate = groups.gate.lock().await;
        for group in self.groups_of(manifest, until).await? {
            if !groups.is_free(manifest, &group) {
                continue;
            }
            match self.inner.caller.delete(&format!("/placement_groups/{}", group.id), until).await {
                Err(error) if !error.is_missing() => return Err(error),
                _ => groups.remove(manifest, group.id),
            }
        }
        Ok(())
    }

    async fn groups_of(&self, manifest: &ManifestName, until: Instant) -> Result<Vec<Thing>, CallError> {
        let selector = format!("{SITE}={},{MANIFEST}={manifest}", self.inner.setup.site);
        let query = format!("label_selector={}", encode(&selector));
        self.inner.caller.list("/placement_groups", "placement_groups", &query, until).await
    }
}

impl Group {
    fn of(thing: &Thing) -> Self {
        Self { id: thing.id, name: thing.name.clone(), used: thing.servers.len(), coming: 0 }
    }
}

impl Groups {
    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().expect("nobody panics while holding this")
    }

    fn sit(&self, manifest: &ManifestName) -> Option<Seat> {
        let mut known = self.lock();
        let group = known.get_mut(manifest)?.iter_mut().find(|group| group.used < FULL)?;
        group.used += 1;
        group.coming += 1;
        let (manifest, known) = (manifest.clone(), Arc::clone(&self.known));
        Some(Seat { group: group.id, manifest, known, is_taken: false })
    }

    /// A name that no group of the manifest has.
    fn new_name(&self, base: &str, manifest: &ManifestName) -> String {
        let known = self.lock();
        let is_taken =
            |name: &String| known.get(manifest).into_iter().flatten().any(|group| group.name == *name);
        let mut names = (1_u32..).map(|number| format!("{base}-{number}"));
        names.find(|name| !is_taken(name)).expect("there are more numbers than groups")
    }

    /// Whether nobody is in a group nor about to be; what was seen of it is noted.
    fn is_free(&self, manifest: &ManifestName, seen: &Thing) -> bool {
        let mut known = self.lock();
        let mut groups = known.get_mut(manifest).into_iter().flatten();
        match groups.find(|group| group.id == seen.id) {
            Some(group) => {
                group.used = seen.servers.len() + group.coming;
                group.used == 0
            }
            None => seen.servers.is_empty(),
        }
    }

    fn remove(&self, manifest: &ManifestName, id: u64) {
        let mut known = self.lock();
        if let Some(groups) = known.get_mut(manifest) {
            groups.retain(|group| group.id != id);
        }
    }
}
