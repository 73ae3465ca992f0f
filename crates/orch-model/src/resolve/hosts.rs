//! Hosts themselves as a fleet: each that is NixOS is a node of its own, reached as its file says.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{host, role, settings};
use crate::catalog::Catalog;
use crate::config::{Config, Nixos, Role};
use crate::decode::Decode;
use crate::files::{Manifest, Mode, NodeKind, Pattern, Posture, Rollout, Site, Spec};
use crate::fleet::{Fleet, Host, Node, Size};
use crate::identity::Identity;
use crate::problem::{Problem, Problems};
use crate::word::{HostName, ManifestName, NodeName, SpecName};

/// Which hosts are meant.
#[derive(Debug, Clone, Default)]
pub struct HostRequest {
    /// The hosts.
    pub hosts: BTreeSet<HostName>,
    /// Those of them that have a NixOS module beside their file, `hosts/<name>/default.nix`.
    pub with_module: BTreeSet<HostName>,
}

/// Finds out what a request for hosts means. A host that is reached through another one that is meant too comes after it.
pub fn resolve_hosts(catalog: &Catalog<'_>, request: &HostRequest) -> Result<Fleet, Problems> {
    let site = catalog.site.value.clone().unwrap_or_else(Site::placeholder);
    let (hosts, mut problems) = reached(catalog, request, &site);
    for name in &request.hosts {
        problems.extend(hosts.get(name).and_then(|host| refusal(name, host, request)));
    }
    if !problems.is_empty() {
        return Err(Problems::new(problems));
    }
    let mut nodes = Vec::new();
    for name in in_order(&hosts, &request.hosts) {
        let defaults = catalog.hosts.get(name).map(|file| file.defaults().or(&site.defaults()));
        let role = minimal(name, &site, &defaults.unwrap_or_else(|| site.defaults()));
        nodes.push(node(name, before(name, &hosts, &request.hosts), role));
    }
    Ok(Fleet {
        site: site.site_name(),
        manifest: manifest(),
        pattern: Pattern::Flat,
        settings: settings(&usual()),
        hosts,
        nodes,
    })
}

/// A manifest whose settings are the usual ones: hosts have none that would say something else.
fn usual() -> Manifest {
    let settings = Decode::absent().expect("every setting has a usual value");
    Manifest { settings, ..Manifest::placeholder() }
}

/// The hosts that are meant, and those on the way to them.
fn reached(
    catalog: &Catalog<'_>,
    request: &HostRequest,
    site: &Site,
) -> (BTreeMap<HostName, Host>, Vec<Problem>) {
    let (mut hosts, mut problems) = (BTreeMap::new(), Vec::new());
    let mut open: Vec<HostName> = request.hosts.iter().cloned().collect();
    while let Some(name) = open.pop() {
        match catalog.hosts.get(&name).map(|file| host::resolve(&name, file, site)) {
            _ if hosts.contains_key(&name) => {}
            Some(Ok(host)) => {
                open.extend(jump(&host).cloned());
                hosts.insert(name, host);
            }
            Some(Err(why)) => problems.push(Problem::with_request(why)),
            None => problems.push(catalog.hosts.unknown(&name, "host")),
        }
    }
    (hosts, problems)
}

fn jump(host: &Host) -> Option<&HostName> {
    host.ssh.as_ref()?.jump.as_ref()
}

/// Why a host is not given a system, if it is not.
fn refusal(name: &HostName, host: &Host, request: &HostRequest) -> Option<Problem> {
    if !request.with_module.contains(name) {
        let problem = Problem::with_request(format!("host `{name}` has no NixOS module of its own"));
        return Some(problem.hint(format!("write one at hosts/{name}/default.nix")));
    }
    let is_known = host.ssh.as_ref().is_some_and(|ssh| !ssh.host_keys.is_empty());
    (!is_known).then(|| {
        let why = format!("host `{name}` has no `ssh.host_keys`, so nobody can tell that it is the one who answers");
        Problem::with_request(why).hint(format!(
            "put its public host keys (`ssh-keyscan` shows them; compare them on the host) into the file of `{name}`"
        ))
    })
}

/// The nearest host on the way to this one that is meant too.
fn before<'h>(
    name: &HostName,
    hosts: &'h BTreeMap<HostName, Host>,
    meant: &BTreeSet<HostName>,
) -> Option<&'h HostName> {
    let mut way =
        core::iter::successors(hosts.get(name).and_then(jump), |name| hosts.get(*name).and_then(jump));
    way.find(|name| meant.contains(*name))
}

/// Those that are meant, each after what is on the way to it. Files in which ways go round in circles were refused before.
fn in_order<'h>(hosts: &'h BTreeMap<HostName, Host>, meant: &'h BTreeSet<HostName>) -> Vec<&'h HostName> {
    let depth = |name: &HostName| {
        core::iter::successors(hosts.get(name).and_then(jump), |name| hosts.get(*name).and_then(jump)).count()
    };
    let mut ordered: Vec<&HostName> = meant.iter().collect();
    ordered.sort_by_key(|name| depth(name));
    ordered
}

/// What a host becomes: what its module says, and nothing of a spec.
fn minimal(name: &HostName, site: &Site, defaults: &crate::files::Defaults) -> Role {
    let role = role::resolve(&Spec::placeholder(), &Posture::default(), site, defaults);
    let module = format!("hosts/{name}");
    let nixos = Nixos { modules: Vec::from([module]), rollout: Rollout::Closure, install: None };
    Role { nixos: Some(nixos), packages: Vec::new(), users: Vec::new(), ..role }
}

fn node(name: &HostName, after: Option<&HostName>, role: Role) -> Node {
    let own: NodeName = name.as_str().parse().expect("hosts and nodes are named alike");
    let identity = Identity { manifest: manifest(), node: own.clone(), host: name.clone() };
    let spec: SpecName = "nixos".parse().expect("nixos is a name");
    let digest = role.digest();
    let config = Config::new(identity.clone(), spec, own.clone(), (Arc::new(role), digest));
    let after = after.map(|name| name.as_str().parse().expect("hosts and nodes are named alike"));
    Node {
        identity,
        entry: own,
        kind: NodeKind::Vm,
        image: String::from("nixos"),
        size: Size { cores: 1, memory: 512, disk: 1 },
        preset: None,
        vmid: None,
        parent: None,
        depth: 0,
        depends_on: after.into_iter().collect(),
        peers: Vec::new(),
        tags: Arc::default(),
        can_host: false,
        mode: Mode::Push,
        config: Some(config),
        unfit: None,
    }
}

fn manifest() -> ManifestName {
    "host".to_owned().parse().expect("host is a name")
}
