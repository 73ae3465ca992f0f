//! What the files of a site said at one moment. Manifests are resolved when somebody asks for one of their nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use orch_model::{HostName, Identity, ManifestName, Request, Scope, Sources, parse, resolve};
use orch_run::{TreasuryError, know_secrets};

use super::words::{Worded, Words};
use super::{SitePlace, SpecError};

/// The nodes of a manifest on a host that become something, or why one of them cannot: what is wrong with the secrets of one
/// is no reason to let another go without.
type Configs = BTreeMap<Identity, Result<Worded, SpecError>>;
type Resolved = Arc<Result<Configs, SpecError>>;

#[derive(Debug)]
pub(super) struct Snapshot {
    sources: Sources,
    place: SitePlace,
    pub(super) accepts_legacy_tokens: bool,
    trouble: Option<String>,
    resolved: Mutex<BTreeMap<(ManifestName, HostName), Resolved>>,
}

impl Snapshot {
    pub(super) fn new(sources: Sources, place: SitePlace) -> Self {
        let (accepts_legacy_tokens, trouble) = match parse(&sources, Scope::Site) {
            Ok(catalog) => (catalog.accepts_legacy_tokens(), None),
            Err(problems) => (false, Some(problems.to_string())),
        };
        Self { sources, place, accepts_legacy_tokens, trouble, resolved: Mutex::default() }
    }

    /// What is wrong with the site, where something is.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    pub(super) fn worded(&self, node: &Identity) -> Result<Worded, SpecError> {
        let resolved = self.resolved(node);
        let configs = resolved.as_ref().as_ref().map_err(Clone::clone)?;
        configs.get(node).cloned().unwrap_or(Err(SpecError::Unknown))
    }

    fn resolved(&self, node: &Identity) -> Resolved {
        let key = (node.manifest.clone(), node.host.clone());
        let mut resolved = self.resolved.lock().expect("nobody panics while holding this");
        let known = resolved.entry(key).or_insert_with(|| Arc::new(self.resolve(node)));
        Arc::clone(known)
    }

    fn resolve(&self, node: &Identity) -> Result<Configs, SpecError> {
        let (name, host) = (&node.manifest, Some(&node.host));
        if !self.sources.holds(orch_model::FileKind::Manifest, name.as_str()) {
            return Err(SpecError::Unknown);
        }
        let catalog = parse(&self.sources, Scope::Manifest { name, host }).map_err(|_| SpecError::Wrong)?;
        let request = Request { manifest: name.clone(), host: host.cloned(), mode: None };
        let mut fleet = resolve(&catalog, &request).map_err(|_| SpecError::Wrong)?;
        let (vault, mut words, mut configs) = (self.place.vault(), Words::default(), Configs::new());
        for node in std::mem::take(&mut fleet.nodes) {
            let identity = node.identity.clone();
            fleet.nodes = vec![node];
            let problems = know_secrets(&mut fleet, &vault, |_| true);
            let Some(config) = fleet.nodes.pop().and_then(|node| node.config) else { continue };
            let worded = if problems.is_empty() { Ok(words.of(config)) } else { Err(sealed(problems)) };
            configs.insert(identity, worded);
        }
        Ok(configs)
    }
}

fn sealed(problems: Vec<TreasuryError>) -> SpecError {
    let problems: Vec<String> = problems.into_iter().map(|problem| problem.what).collect();
    SpecError::Sealed(problems.join("; "))
}
