//! What makes no sense only once the hosts are known.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use orch_model::{Request, Scope, Sources, parse, resolve};

#[test]
fn a_server_that_the_cloud_does_not_sell_is_refused() {
    let files = [
        (
            "hosts/cloud.yaml",
            "provider: hetzner\ntoken: secret:t\nlocation: nbg1\nserver_types: { big: cx42 }\nimages: { \"*\": debian-13 }\n",
        ),
        ("presets/big.yaml", "cores: 4\nmemory: 8192\ndisk: 64\n"),
        ("presets/tiny.yaml", "cores: 1\nmemory: 512\ndisk: 1\n"),
        (
            "manifests/m.yaml",
            "schema_version: 2\nname: m\nnodes:\n  - { name: a, type: vm, preset: big }\n  - { name: b, type: vm, preset: tiny }\n  - { name: c, type: vm }\n",
        ),
    ];
    let problems = unresolved(&files, "cloud");
    assert!(
        problems.contains("m.yaml:5:34: host `cloud` has no server type for the preset `tiny` of node `b`"),
        "{problems}"
    );
    assert!(problems.contains("m.yaml:6:13: node `c` names no preset"), "{problems}");
    assert!(!problems.contains("node `a`"), "{problems}");
}

#[test]
fn a_federation_that_the_request_puts_on_one_host_is_refused() {
    let files = [
        ("hosts/one.yaml", "provider: local\n"),
        ("hosts/two.yaml", "provider: local\n"),
        (
            "manifests/m.yaml",
            "schema_version: 2\nname: m\npattern: federated\nnodes:\n  - { name: a, type: vm, host: one }\n  - { name: b, type: vm }\n",
        ),
    ];
    let problems = unresolved(&files, "one");
    assert!(
        problems.contains("m.yaml:3:10: the pattern is federated, and all roots are on one host"),
        "{problems}"
    );
    assert_eq!(unresolved(&files, "two"), "");
}

#[test]
fn a_grandchild_may_name_the_host_of_its_root_and_no_other() {
    let manifest = |host: &str| {
        format!(
            "schema_version: 2\nname: m\npattern: tiered\nnodes:\n  - {{ name: a, type: pve, host: one }}\n  - {{ name: b, type: pve, parent: a }}\n  - {{ name: c, type: vm, parent: b, host: {host} }}\n"
        )
    };
    for (host, expected) in [("one", ""), ("two", "cannot be placed on host `two` too")] {
        let manifest = manifest(host);
        let files = [
            ("hosts/one.yaml", "provider: local\n"),
            ("hosts/two.yaml", "provider: local\n"),
            ("manifests/m.yaml", manifest.as_str()),
        ];
        let problems = unresolved(&files, "one");
        assert!(
            problems.contains(expected) && expected.is_empty() == problems.is_empty(),
            "{host}: {problems}"
        );
    }
}

/// What is wrong with the manifest `m` of a site on a host; nothing where it resolves.
fn unresolved(files: &[(&str, &str)], host: &str) -> String {
    let sources = Sources::from_texts(files.iter().copied());
    let (manifest, host) = ("m".parse().unwrap(), host.parse().unwrap());
    let scope = Scope::Manifest { name: &manifest, host: Some(&host) };
    let request = Request { manifest: manifest.clone(), host: Some(host.clone()), mode: None };
    let fleet = parse(&sources, scope).and_then(|catalog| resolve(&catalog, &request));
    fleet.map_or_else(|problems| problems.to_string(), |_| String::new())
}
