//! A whole site at a glance: its hosts, and the nodes that any of its manifests describes. What bears the site's marks on a
//! host and is none of these is wanted by nobody.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use super::{host, settings};
use crate::catalog::Catalog;
use crate::check::Roster;
use crate::decode::Decode;
use crate::files::Site;
use crate::fleet::{Host, Settings};
use crate::word::{HostName, ManifestName, NodeName, SiteName};

/// A whole site at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// The mark of everything that it owns.
    pub site: SiteName,
    /// Its hosts that take nodes.
    pub hosts: BTreeMap<HostName, Host>,
    /// The nodes of each manifest, wherever they are placed.
    pub wanted: BTreeMap<ManifestName, BTreeSet<NodeName>>,
    /// Who lives inside of whom, in each manifest.
    pub parents: BTreeMap<(ManifestName, NodeName), NodeName>,
    /// What nodes of each host can be made from, as that host calls it.
    pub images: BTreeMap<HostName, BTreeSet<String>>,
    /// How long things are waited for.
    pub settings: Settings,
}

/// Looks over a site of which every file was read.
pub fn survey(catalog: &Catalog<'_>) -> Survey {
    let site = catalog.site.value.clone().unwrap_or_else(Site::placeholder);
    let hosts = catalog.hosts().filter_map(|name| {
        let host = host::resolve(name, catalog.hosts.get(name)?, &site).ok()?;
        Some((name.clone(), host))
    });
    let (mut wanted, mut parents) = (BTreeMap::new(), BTreeMap::new());
    for name in catalog.manifests() {
        let found = catalog.manifests.get(name).zip(catalog.manifests.reporter(name));
        let Some((manifest, mut cx)) = found else { continue };
        let roster = Roster::new(&manifest.nodes, &mut cx);
        for member in &roster.members {
            let parent = roster.entries[member.entry].parent.as_deref();
            parents.extend(parent.map(|parent| ((name.clone(), member.name.clone()), parent.clone())));
        }
        wanted.insert(name.clone(), roster.members.iter().map(|member| member.name.clone()).collect());
    }
    let images = catalog.hosts().filter_map(|name| {
        let images = catalog.hosts.get(name)?.images()?;
        Some((name.clone(), images.values().cloned().collect()))
    });
    Survey {
        images: images.collect(),
        site: site.site_name(),
        hosts: hosts.collect(),
        wanted,
        parents,
        settings: settings(&crate::files::Manifest::placeholder()),
    }
}
