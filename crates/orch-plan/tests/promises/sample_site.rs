//! Every manifest of the site in this repository can be planned wherever it can be placed.

use std::collections::BTreeSet;
use std::path::Path;

use orch_model::{Catalog, FileKind, Fleet, HostName, ManifestName, Request, Scope, Sources, parse, resolve};
use orch_plan::{HostView, Observed, Plan, Verb};

use crate::simulate::{FIRST, World};
use crate::site::planned;

#[test]
fn every_manifest_is_created_once_then_unchanged_and_destroyed_without_a_trace() {
    let texts = texts();
    let sources = Sources::from_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let catalog = parse(&sources, Scope::Site).unwrap_or_else(|problems| unreachable!("{problems}"));
    let manifests: BTreeSet<ManifestName> = catalog.manifests().cloned().collect();
    let mut placed = BTreeSet::new();
    for (manifest, host) in placements(&catalog) {
        let request = Request { manifest: manifest.clone(), host, mode: None };
        if let Ok(fleet) = resolve(&catalog, &request) {
            check_life(&fleet);
            placed.insert(manifest);
        }
    }
    assert!(manifests.len() >= 5, "the site has manifests");
    assert_eq!(placed, manifests, "every manifest can be placed somewhere");
}

fn check_life(fleet: &Fleet) {
    let empty =
        Observed { hosts: fleet.hosts.keys().map(|host| (host.clone(), HostView::empty())).collect() };
    let count = fleet.nodes.len();
    assert_eq!(planned("config", fleet, &empty).counts().refused, count, "{}", fleet.manifest);
    assert_eq!(unchanged(&planned("destroy", fleet, &empty)), count, "{}", fleet.manifest);
    let mut world = World::new(fleet, empty.clone());
    let create = planned("create", fleet, &world.observed);
    assert_eq!((create.verb, create.counts().create), (Verb::Create, count), "{create}");
    world.run(&create, &mut FIRST.clone());
    for goal in ["create", "create --replace", "config"] {
        let again = planned(goal, fleet, &world.observed);
        assert!(again.is_noop() && unchanged(&again) == count, "{again}");
    }
    let destroy = planned("destroy", fleet, &world.observed);
    assert_eq!(destroy.counts().destroy, count, "{destroy}");
    world.run(&destroy, &mut FIRST.clone());
    assert_eq!(world.observed, empty);
}

fn unchanged(plan: &Plan) -> usize {
    plan.counts().unchanged
}

/// Each manifest without a host, and on each host.
fn placements(catalog: &Catalog<'_>) -> Vec<(ManifestName, Option<HostName>)> {
    let hosts: Vec<Option<HostName>> = [None].into_iter().chain(catalog.hosts().cloned().map(Some)).collect();
    let pairs =
        catalog.manifests().flat_map(|manifest| hosts.iter().map(|host| (manifest.clone(), host.clone())));
    pairs.collect()
}

/// The files of the site, by their paths in it.
fn texts() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = vec![("site.yaml".to_owned(), read(&root.join("site.yaml")))];
    for folder in FileKind::ALL.map(FileKind::folder).into_iter().filter(|folder| !folder.is_empty()) {
        for entry in std::fs::read_dir(root.join(folder)).expect("the site has the folder") {
            let path = entry.expect("a folder lists its files").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("names are text").to_owned();
            if path.is_file() {
                texts.push((format!("{folder}/{name}"), read(&path)));
            } else if path.join("host.yaml").is_file() {
                texts.push((format!("{folder}/{name}/host.yaml"), read(&path.join("host.yaml"))));
            }
        }
    }
    texts
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| unreachable!("{}: {error}", path.display()))
}
