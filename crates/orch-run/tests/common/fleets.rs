//! Fleets: those of the site in this repository, and small ones of a site that is made of texts.

use std::path::{Path, PathBuf};

use orch_model::{Fleet, ManifestName, Request, Scope, Source, Sources, parse, resolve};
use orch_run::load;

/// A text in a file of the sample site that stands there otherwise.
pub(crate) type Change<'c> = (&'c str, &'c str, &'c str);

/// The site in this repository.
pub(crate) fn sample_root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

/// A manifest of the sample site, on `father` where its nodes name no host.
pub(crate) fn fleet(manifest: &str) -> Fleet {
    sample_fleet(manifest, &[])
}

/// The same, with texts of its files changed: each `(path, from, to)`.
pub(crate) fn sample_fleet(manifest: &str, changes: &[Change<'_>]) -> Fleet {
    let sources = load::site(&sample_root()).expect("the sample site can be read");
    let mut count = 0;
    let edited = sources.iter().cloned().map(|mut source| {
        for (_, from, to) in changes.iter().filter(|(path, _, _)| *path == source.path) {
            source.content = source.content.map(|bytes| {
                let text = String::from_utf8(bytes).expect("the sample site is text");
                assert!(text.contains(from), "{} holds `{from}`", source.path);
                text.replacen(from, to, 1).into_bytes()
            });
            count += 1;
        }
        source
    });
    let sources = Sources::new(edited.collect::<Vec<Source>>());
    assert_eq!(count, changes.len(), "every change has its file");
    resolved(&sources, manifest)
}

/// The manifest `m` of a small site, with these settings and the list that stands under `nodes:`.
pub(crate) fn own_fleet(settings: &str, nodes: &str) -> Fleet {
    let pattern = if nodes.contains("parent:") { "tiered" } else { "flat" };
    let manifest = format!(
        "schema_version: 2\nname: m\npattern: {pattern}\nsettings: {{ {settings} }}\nnodes:\n{nodes}\n"
    );
    let texts = [
        ("site.yaml", "name: home"),
        ("hosts/father.yaml", "provider: local"),
        ("hosts/mother.yaml", "provider: local"),
        ("presets/small.yaml", "{ cores: 1, memory: 1024, disk: 10 }"),
        ("specs/base.yaml", "schema_version: 1"),
        ("specs/pve.yaml", "{ schema_version: 1, platform: { hypervisor: proxmox } }"),
        ("manifests/m.yaml", &manifest),
    ];
    resolved(&Sources::from_texts(texts), "m")
}

fn resolved(sources: &Sources, manifest: &str) -> Fleet {
    let manifest: ManifestName = manifest.parse().expect("a manifest has a name");
    let father = "father".parse().expect("a host has a name");
    let scope = Scope::Manifest { name: &manifest, host: Some(&father) };
    let catalog = parse(sources, scope).unwrap_or_else(|problems| unreachable!("{problems}"));
    let request = Request { manifest: manifest.clone(), host: Some(father.clone()), mode: None };
    resolve(&catalog, &request).unwrap_or_else(|problems| unreachable!("{problems}"))
}
