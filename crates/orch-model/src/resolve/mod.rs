//! Catalog and request to fleet. One resolver serves push, pull, validate, plan and dry run, so that they cannot
//! differ.

mod host;
mod hosts;
mod refuse;
mod role;
mod survey;

pub use hosts::{HostRequest, resolve_hosts};
pub(crate) use role::secrets;
pub use survey::{Survey, survey};

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::catalog::Catalog;
use crate::check::Roster;
use crate::config::{Config, Role};
use crate::decode::{Decode, Located};
use crate::digest::Digest;
use crate::files::{Host as HostFile, Manifest, ManifestNode, Mode, NodeKind, ProviderKind, Site};
use crate::fleet::{Fleet, Host, Node, Settings, Size, Timeouts};
use crate::identity::Identity;
use crate::problem::{Problem, Problems};
use crate::text::Reporter;
use crate::word::{HostName, ManifestName, NodeName, SpecName};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The manifest.
    pub manifest: ManifestName,
    /// The host for nodes that name none.
    pub host: Option<HostName>,
    /// The mode of every node, whatever the files say.
    pub mode: Option<Mode>,
}

/// How many dependencies and peers a manifest may have once every count is written out.
const MAX_EDGES: usize = 4_000_000;

/// Finds out what a request means.
pub fn resolve(catalog: &Catalog<'_>, request: &Request) -> Result<Fleet, Problems> {
    let found = catalog.manifests.get(&request.manifest).zip(catalog.manifests.reporter(&request.manifest));
    let Some((manifest, cx)) = found else {
        return Err(catalog.manifests.unknown(&request.manifest, "manifest").into());
    };
    let mut resolver = Resolver { catalog, request, manifest, cx, request_problems: Vec::new() };
    let fleet = resolver.fleet();
    let problems = resolver.cx.finish().and(Problems::new(resolver.request_problems));
    if problems.has_errors() { Err(problems) } else { Ok(fleet) }
}

/// What the nodes of a spec on a host share, with its digest.
type SharedRole = (Arc<Role>, Digest);
type Roles = BTreeMap<(SpecName, HostName), SharedRole>;

struct Resolver<'c, 'a> {
    catalog: &'c Catalog<'a>,
    request: &'c Request,
    manifest: &'c Manifest,
    cx: Reporter<'a>,
    request_problems: Vec<Problem>,
}

impl Resolver<'_, '_> {
    fn fleet(&mut self) -> Fleet {
        let roster = Roster::new(&self.manifest.nodes, &mut self.cx);
        let placed = self.place(&roster);
        let hosts = self.hosts(&placed);
        let nodes = self.nodes(&roster, &placed, &hosts);
        self.refuse_shared_addresses(&roster, &nodes);
        self.refuse_shared_vmids(&roster, &nodes);
        self.refuse_lone_federation(&nodes);
        Fleet {
            site: self.site().site_name(),
            manifest: self.request.manifest.clone(),
            pattern: *self.manifest.pattern,
            settings: settings(self.manifest),
            hosts,
            nodes,
        }
    }

    fn site(&self) -> Site {
        self.catalog.site.value.clone().unwrap_or_else(Site::placeholder)
    }

    /// The host of each entry: its own, its parent's, or the request's.
    fn place(&mut self, roster: &Roster<'_>) -> Vec<Option<HostName>> {
        let mut placed: Vec<Option<HostName>> = alloc::vec![None; roster.entries.len()];
        let mut homeless = None;
        for index in roster.order().iter().copied() {
            let entry = &roster.entries[index];
            let parent = entry.parent.as_deref().and_then(|name| roster.entry_of(name));
            placed[index] = match (parent, &entry.host) {
                (Some(parent), _) => placed[parent].clone(),
                (None, Some(host)) => Some((**host).clone()),
                (None, None) => self.request.host.clone(),
            };
            if placed[index].is_none() && homeless.is_none() {
                homeless = Some(&entry.name);
            }
        }
        if let Some(name) = homeless {
            let message = format!("no host is given for node `{}`", **name);
            self.request_problems.push(
                Problem::with_request(message)
                    .hint("name a host with -H, or give the node a `host` in the manifest"),
            );
        }
        placed
    }

    fn hosts(&mut self, placed: &[Option<HostName>]) -> BTreeMap<HostName, Host> {
        let names: BTreeSet<&HostName> = placed.iter().flatten().collect();
        let site = self.site();
        let mut hosts = BTreeMap::new();
        for name in names {
            match self.catalog.hosts.get(name).map(|file| host::resolve(name, file, &site)) {
                Some(Ok(host)) => {
                    hosts.insert(name.clone(), host);
                }
                Some(Err(why)) => self.request_problems.push(Problem::with_request(why)),
                None => self.request_problems.push(self.catalog.hosts.unknown(name, "host")),
            }
        }
        hosts
    }

    fn nodes(
        &mut self,
        roster: &Roster<'_>,
        placed: &[Option<HostName>],
        hosts: &BTreeMap<HostName, Host>,
    ) -> Vec<Node> {
        let mut nodes = Vec::with_capacity(roster.members.len());
        let mut depths = alloc::vec![0_usize; roster.entries.len()];
        let mut roles: Roles = BTreeMap::new();
        let mut edges = 0_usize;
        for index in roster.order().iter().copied() {
            let entry = &roster.entries[index];
            let Some(host) = placed[index].as_ref().and_then(|name| hosts.get(name)) else {
                continue;
            };
            let parent = entry.parent.as_deref().and_then(|name| roster.entry_of(name));
            depths[index] = parent.map_or(0, |parent| depths[parent] + 1);
            let depends_on: Arc<[NodeName]> = named(&entry.depends_on, roster).collect();
            let members = roster.members_of(index);
            let peers: Vec<NodeName> = named(&entry.peers, roster).collect();
            edges = edges.saturating_add((depends_on.len() + peers.len()).saturating_mul(members.len()));
            if edges > MAX_EDGES {
                self.refuse_edges(entry);
                return nodes;
            }
            let role = entry.spec.as_deref().and_then(|spec| self.role(spec, &host.name, &mut roles));
            self.refuse_unsold_size(entry, host);
            let template = self.template(entry, host, depths[index], depends_on);
            let names = members.map(|at| &roster.members[at].name);
            nodes.extend(names.map(|name| member(name, &template, role.as_ref(), &peers)));
        }
        nodes
    }

    /// What all members of an entry have in common; identity, peers and configuration are filled in for each.
    fn template(
        &mut self,
        entry: &ManifestNode,
        host: &Host,
        depth: usize,
        depends_on: Arc<[NodeName]>,
    ) -> Node {
        let preset = entry.preset.as_deref();
        let sized = preset.and_then(|name| self.catalog.presets.get(name)).cloned().unwrap_or_default();
        let size = Size {
            cores: sized.cores.get(),
            memory: sized.memory.get(),
            disk: entry.disk.unwrap_or(sized.disk).get(),
        };
        let hypervisor = entry.spec.as_deref().and_then(|name| self.catalog.specs.get(name));
        let hypervisor = hypervisor.is_some_and(|spec| spec.platform.hypervisor.is_some());
        Node {
            identity: Identity {
                manifest: self.request.manifest.clone(),
                node: (*entry.name).clone(),
                host: host.name.clone(),
            },
            entry: (*entry.name).clone(),
            kind: *entry.kind,
            image: self.image(entry, host),
            size,
            preset: preset.cloned(),
            vmid: entry.vmid.as_ref().map(|vmid| vmid.get()),
            parent: entry.parent.as_deref().cloned(),
            depth,
            depends_on,
            peers: Vec::new(),
            tags: Arc::new(entry.tags.iter().cloned().collect()),
            can_host: *entry.kind == NodeKind::Pve || hypervisor,
            mode: self.request.mode.or(entry.execution.mode).unwrap_or(self.manifest.execution.default_mode),
            config: None,
            unfit: None,
        }
    }

    /// What a node is made from, in the host's own words.
    fn image(&mut self, entry: &ManifestNode, host: &Host) -> String {
        let (named, key) = match *entry.kind {
            NodeKind::Ct => (&entry.template, "template"),
            NodeKind::Vm | NodeKind::Pve => (&entry.image, "image"),
        };
        let provider = host.provider.kind();
        if provider == ProviderKind::Hetzner && *entry.kind == NodeKind::Ct {
            let message = format!("node `{}` is a ct, and host `{}` has none", *entry.name, host.name);
            self.report(entry.kind.known().map(|(_, span)| span), message, "use `type: vm`");
            return String::new();
        }
        let images = self.catalog.hosts.get(&host.name).and_then(HostFile::images);
        let translated = |name: &str| images.and_then(|images| images.get(name).or_else(|| images.get("*")));
        let named = named.as_ref().map(|name| name.as_str());
        match (translated(named.unwrap_or("*")), named, provider) {
            (Some(image), ..) => image.clone(),
            (None, _, ProviderKind::Local) => String::from("this-machine"),
            (None, Some(name), _) => name.into(),
            (None, None, _) => {
                let message =
                    format!("node `{}` names no {key}, and host `{}` has no default", *entry.name, host.name);
                let hint = format!("add `{key}` to the node, or `\"*\"` to the host's `images`");
                self.report(entry.name.known().map(|(_, span)| span), message, &hint);
                String::new()
            }
        }
    }

    fn role(
        &self,
        name: &SpecName,
        host: &HostName,
        known: &mut Roles,
    ) -> Option<(SpecName, Option<NodeName>, SharedRole)> {
        let spec = self.catalog.specs.get(name)?;
        let key = (name.clone(), host.clone());
        let role = known.entry(key).or_insert_with(|| {
            let site = self.site();
            let host = self.catalog.hosts.get(host);
            let defaults = host.map_or_else(|| site.defaults(), |host| host.defaults().or(&site.defaults()));
            let posture = match spec.posture() {
                Ok(named) => self.catalog.postures.get(named),
                Err(default) => self.catalog.postures.get(&default),
            };
            let role = role::resolve(spec, &posture.cloned().unwrap_or_default(), &site, &defaults);
            let digest = role.digest();
            (Arc::new(role), digest)
        });
        Some((name.clone(), spec.identity.hostname.clone(), role.clone()))
    }
}

/// One member of an entry, after what it has in common with the others.
fn member(
    name: &NodeName,
    template: &Node,
    role: Option<&(SpecName, Option<NodeName>, SharedRole)>,
    peers: &[NodeName],
) -> Node {
    let identity = Identity { node: name.clone(), ..template.identity.clone() };
    let config = role.map(|(spec, hostname, role)| {
        let hostname = hostname.as_ref().unwrap_or(name).clone();
        Config::new(identity.clone(), spec.clone(), hostname, role.clone())
    });
    let peers = peers.iter().filter(|peer| *peer != name).cloned().collect();
    Node { identity, peers, config, ..template.clone() }
}

/// The nodes that references stand for, in the order of the references, each once.
fn named<'r>(
    references: &'r [Located<NodeName>],
    roster: &'r Roster<'_>,
) -> impl Iterator<Item = NodeName> + 'r {
    let mut seen = BTreeSet::new();
    let members = references.iter().filter_map(|reference| roster.find(reference)).flatten();
    members.filter(move |at| seen.insert(*at)).map(|at| roster.members[at].name.clone())
}

fn settings(manifest: &Manifest) -> Settings {
    let settings = &manifest.settings;
    Settings {
        on_error: settings.on_error,
        verify_ssh: settings.verify_ssh,
        cleanup_on_failure: settings.cleanup_on_failure,
        parallelism: settings.parallelism.get() as usize,
        timeouts: Timeouts {
            create: settings.timeouts.create,
            boot: settings.timeouts.boot,
            config: settings.timeouts.config,
            destroy: settings.timeouts.destroy,
        },
    }
}
