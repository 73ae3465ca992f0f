//! Everything in a project that bears the marks of a site.

use orch_run::{Belonging, Owner};
use tokio::time::Instant;

use super::Hetzner;
use super::answer::Thing;
use super::ensure::{MANIFEST, SITE};
use super::trouble::CallError;
use crate::api::encode;

/// What can be marked, and what people call it.
const KINDS: [(&str, &str); 8] = [
    ("servers", "machine"),
    ("ssh_keys", "ssh key"),
    ("networks", "network"),
    ("firewalls", "firewall"),
    ("placement_groups", "placement group"),
    ("volumes", "volume"),
    ("primary_ips", "address"),
    ("images", "image"),
];

impl Hetzner {
    pub(super) async fn possessions(&self, of: &Owner) -> Result<Vec<Belonging>, CallError> {
        let until = Instant::now() + self.inner.caller.pace.look;
        let manifest = of.manifest.as_ref().map(|manifest| format!(",{MANIFEST}={manifest}"));
        let selector = format!("{SITE}={}{}", of.site, manifest.unwrap_or_default());
        let query = format!("label_selector={}", encode(&selector));
        let mut all = Vec::new();
        for (list, kind) in KINDS {
            let path = format!("/{list}");
            let things: Vec<Thing> = self.inner.caller.list(&path, list, &query, until).await?;
            all.extend(things.into_iter().filter_map(|thing| belonging(of, kind, thing)));
        }
        Ok(all)
    }
}

/// A thing as one of its owner's; what says that it is another host's is not of this one.
fn belonging(of: &Owner, kind: &str, thing: Thing) -> Option<Belonging> {
    let label = |name: &str| thing.labels.get(name);
    if label("orch-host").is_some_and(|host| host != of.host.as_str()) {
        return None;
    }
    Some(Belonging {
        stray: false,
        host: of.host.clone(),
        kind: kind.into(),
        id: thing.id.to_string(),
        manifest: label(MANIFEST).and_then(|manifest| manifest.parse().ok()),
        node: label("orch-node").and_then(|node| node.parse().ok()),
        // Images have no name, but something that is said of them.
        name: if thing.name.is_empty() { thing.description } else { thing.name },
    })
}
