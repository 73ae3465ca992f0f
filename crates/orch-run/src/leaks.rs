//! What is left on hosts: after everything of a manifest was taken down, and of manifests that nobody has any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use orch_model::{HostName, ManifestName, NodeName, SiteName};
use orch_plan::Plan;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::log::one_line;
use crate::permit::Permit;
use crate::provider::{Belonging, Owner, Places};

/// What was found when hosts were looked over for what bears our marks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// What is there.
    pub found: Vec<Belonging>,
    /// Hosts that could not be looked over, and why: what is there is not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unseen: BTreeMap<HostName, String>,
}

impl Left {
    /// Whether every host was looked over and nothing was found.
    pub fn is_nothing(&self) -> bool {
        self.found.is_empty() && self.unseen.is_empty()
    }

    /// Looks over every host for what bears the marks of a site, or of one manifest of it, all at once and each for at most
    /// `limit`.
    pub async fn look(
        places: &Places,
        site: &SiteName,
        manifest: Option<&ManifestName>,
        limit: Duration,
    ) -> Self {
        let mut looks = JoinSet::new();
        for (host, place) in places {
            let owner = Owner { host: host.clone(), site: site.clone(), manifest: manifest.cloned() };
            let provider = place.provider.clone();
            looks.spawn(async move {
                let seen = tokio::time::timeout(limit, provider.belongings(&owner)).await;
                (owner.host, seen)
            });
        }
        let mut left = Self::default();
        for (host, seen) in looks.join_all().await {
            match seen {
                Ok(Ok(found)) => left.found.extend(found),
                Ok(Err(error)) => drop(left.unseen.insert(host, error.to_string())),
                Err(_) => drop(left.unseen.insert(host, format!("nothing was shown within {limit:?}"))),
            }
        }
        left.found.sort();
        left
    }

    /// What is left of the nodes that a plan was to take down: not what belongs to other nodes of the manifest, nor what is
    /// there for all of the site.
    pub(crate) async fn after(plan: &Plan, places: &Places, limit: Duration) -> Self {
        let places = touched(plan, places);
        let mut left = Self::look(&places, &plan.site, Some(&plan.manifest), limit).await;
        let meant: BTreeSet<(&HostName, &NodeName)> =
            plan.nodes.iter().map(|node| (&node.identity.host, node.name())).collect();
        let is_meant = |thing: &Belonging| {
            thing.manifest.is_some()
                && thing.node.as_ref().is_none_or(|node| meant.contains(&(&thing.host, node)))
        };
        left.found.retain(is_meant);
        left
    }

    /// Has every host remove what was there for the nodes of a plan together, each for at most `limit`. What stays all the same
    /// is seen afterwards.
    pub(crate) async fn tidy(plan: &Plan, places: &Places, permit: &Permit, limit: Duration) {
        let mut tidying = JoinSet::new();
        for (host, place) in touched(plan, places) {
            let of = Owner { host, site: plan.site.clone(), manifest: Some(plan.manifest.clone()) };
            let permit = permit.clone();
            tidying.spawn(async move {
                let _ = tokio::time::timeout(limit, place.provider.tidy(&of, &permit)).await;
            });
        }
        tidying.join_all().await;
    }

    /// What no manifest of the site wants: things of manifests that it does not have, of nodes that these do not have, and what
    /// was made for something that is gone.
    pub fn unwanted(mut self, wanted: &BTreeMap<ManifestName, BTreeSet<NodeName>>) -> Self {
        self.found.retain(|thing| match (&thing.manifest, &thing.node) {
            (None, _) => thing.stray,
            (Some(manifest), None) => !wanted.contains_key(manifest),
            (Some(manifest), Some(node)) => !wanted.get(manifest).is_some_and(|nodes| nodes.contains(node)),
        });
        self
    }
}

/// The hosts that a plan is about.
fn touched(plan: &Plan, places: &Places) -> Places {
    let places = places.iter().filter(|(host, _)| plan.hosts.contains(*host));
    places.map(|(host, place)| (host.clone(), place.clone())).collect()
}

/// A line for each thing and for each host that could not be looked over. What providers call things is shown without what could
/// move a terminal's cursor.
impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Belonging { host, kind, id, name, manifest, node, .. } in &self.found {
            let id = if id == name { String::new() } else { format!(" ({id})") };
            let of = match (manifest, node) {
                (Some(manifest), Some(node)) => format!(", of {manifest}.{node}"),
                (Some(manifest), None) => format!(", of {manifest}"),
                (None, _) => String::new(),
            };
            writeln!(f, "  {}", one_line(&format!("{kind} `{name}`{id} on `{host}`{of}")))?;
        }
        for (host, why) in &self.unseen {
            writeln!(f, "  `{host}` could not be looked over: {}", one_line(why))?;
        }
        Ok(())
    }
}
