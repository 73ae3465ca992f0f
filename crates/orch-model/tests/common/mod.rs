//! A small sound site, and ways to say what is wrong with one that is not.

// Every test binary compiles this file for itself and uses a part of it.
#![allow(dead_code)]

use expect_test::Expect;
use orch_model::{Fleet, Mode, Place, Problems, Request, Scope, Source, Sources, parse, resolve};

/// Files that every site of these tests has, unless it brings its own of the same path.
pub(crate) const BASE: [(&str, &str); 9] = [
    (
        "site.yaml",
        "domain: home.example\nssh_keys:\n  alice@laptop: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA alice\n  \
         bob@desk: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB bob\n",
    ),
    ("hosts/father.yaml", "provider: local\n"),
    (
        "hosts/mother.yaml",
        "provider: proxmox\napi_endpoint: https://mother:8006\napi_token: secret:mother\ndatastore: local-zfs\n",
    ),
    ("hosts/cloud.yaml", "provider: hetzner\ntoken: secret:hcloud\nlocation: nbg1\n"),
    ("hosts/flock.yaml", "provider: k3s\nkubeconfig: secret:flock\n"),
    ("specs/base.yaml", "schema_version: 1\n"),
    ("specs/pve.yaml", "schema_version: 1\nplatform: { hypervisor: proxmox }\n"),
    ("presets/vm-small.yaml", "cores: 1\nmemory: 1024\ndisk: 10\n"),
    ("postures/dev.yaml", "sudo: { nopasswd: true }\n"),
];

/// The base site with `files` added or in its place.
pub(crate) fn site<'a>(files: &[(&'a str, &'a str)]) -> Sources {
    let is_given = |path: &str| files.iter().any(|(given, _)| *given == path);
    let base = BASE.into_iter().filter(|(path, _)| !is_given(path));
    Sources::from_texts(base.chain(files.iter().copied()))
}

/// The base site with one file whose content need not be text.
pub(crate) fn site_with_bytes(path: &str, content: Vec<u8>) -> Sources {
    let place = Place::of(path).expect("the path belongs to a site");
    let base = site(&[]);
    let others = base.iter().filter(|source| source.path != path).cloned();
    let file = Source { path: path.to_owned(), place, content: Ok(content) };
    Sources::new(others.chain([file]).collect())
}

/// Everything that is told about a whole site: its problems, or its warnings where it is sound.
pub(crate) fn told(sources: &Sources) -> Problems {
    match parse(sources, Scope::Site) {
        Ok(catalog) => catalog.warnings().clone(),
        Err(problems) => problems,
    }
}

/// Compares what is told about the base site with `files` in it.
pub(crate) fn check(files: &[(&str, &str)], expected: &Expect) {
    expected.assert_eq(&told(&site(files)).to_string());
}

/// The same for one manifest, `manifests/m.yaml`, of which the lines after `schema_version` and `name` are given.
pub(crate) fn check_manifest(rest: &str, expected: &Expect) {
    let text = format!("schema_version: 2\nname: m\n{rest}");
    check(&[("manifests/m.yaml", &text)], expected);
}

/// The same for one spec, `specs/s.yaml`, of which the lines after `schema_version` are given.
pub(crate) fn check_spec(rest: &str, expected: &Expect) {
    let text = format!("schema_version: 1\n{rest}");
    check(&[("specs/s.yaml", &text)], expected);
}

/// A request for the manifest `m`.
pub(crate) fn request(host: Option<&str>, mode: Option<Mode>) -> Request {
    let host = host.map(|host| host.parse().expect("a host name"));
    Request { manifest: "m".parse().expect("a manifest name"), host, mode }
}

/// Parses the whole site and resolves the manifest `m`.
pub(crate) fn fleet(files: &[(&str, &str)], request: &Request) -> Result<Fleet, Problems> {
    let sources = site(files);
    let catalog = parse(&sources, Scope::Site)?;
    resolve(&catalog, request)
}

/// Compares what is told when the manifest `m` of the given lines is resolved on a host.
pub(crate) fn check_resolving(rest: &str, files: &[(&str, &str)], host: Option<&str>, expected: &Expect) {
    let text = format!("schema_version: 2\nname: m\n{rest}");
    let mut all = vec![("manifests/m.yaml", text.as_str())];
    all.extend_from_slice(files);
    let told = fleet(&all, &request(host, None)).err().map(|problems| problems.to_string());
    expected.assert_eq(&told.unwrap_or_default());
}
