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
    let wanted = catalog.manifests().filter_map(|name| {
        let (manifest, mut cx) = (catalog.manifests.get(name)?, catalog.manifests.reporter(name)?);
        let roster = Roster::new(&manifest.nodes, &mut cx);
        Some((name.clone(), roster.members.iter().map(|member| member.name.clone()).collect()))
    });
    let images = catalog.hosts().filter_map(|name| {
        let images = catalog.hosts.get(name)?.images()?;
        Some((name.clone(), images.values().cloned().collect()))
    });
    Survey {
        images: images.collect(),
        site: site.site_name(),
        hosts: hosts.collect(),
        wanted: wanted.collect(),
        settings: settings(&crate::files::Manifest::placeholder()),
    }
}
