//! References between nodes and between files: each must lead somewhere.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use common::{check, check_manifest, check_resolving, check_spec, fleet, request, site};
use expect_test::expect;
use orch_model::{HostName, ManifestName, Request, Scope, parse, resolve};

#[test]
fn a_dangling_reference_between_nodes_is_named_with_the_nearest_node() {
    check_manifest(
        "pattern: tiered\nnodes:\n  - { name: pve2, type: pve }\n  - { name: web, type: vm, parent: pve3, depends_on: [wbe], peers: [quite-another] }\n",
        &expect![[r#"
            error: manifests/m.yaml:6:36: node `web` has parent `pve3`, which this manifest does not define
              |
            6 |   - { name: web, type: vm, parent: pve3, depends_on: [wbe], peers: [quite-another] }
              |                                    ^^^^
            hint: did you mean `pve2`?

            error: manifests/m.yaml:6:55: node `web` depends on `wbe`, which this manifest does not define
              |
            6 |   - { name: web, type: vm, parent: pve3, depends_on: [wbe], peers: [quite-another] }
              |                                                       ^^^
            hint: did you mean `web`?

            error: manifests/m.yaml:6:69: node `web` has the peer `quite-another`, which this manifest does not define
              |
            6 |   - { name: web, type: vm, parent: pve3, depends_on: [wbe], peers: [quite-another] }
              |                                                                     ^^^^^^^^^^^^^
            hint: choose from `pve2`, `web`"#]],
    );
}

#[test]
fn a_dangling_reference_to_a_file_is_named_with_the_nearest_file() {
    check_manifest(
        "nodes: [{ name: a, type: vm, spec: bsae, preset: vm-smal, host: fahter }]\n",
        &expect![[r#"
            error: manifests/m.yaml:3:36: there is no spec `bsae`
              |
            3 | nodes: [{ name: a, type: vm, spec: bsae, preset: vm-smal, host: fahter }]
              |                                    ^^^^
            hint: did you mean `base`?

            error: manifests/m.yaml:3:50: there is no preset `vm-smal`
              |
            3 | nodes: [{ name: a, type: vm, spec: bsae, preset: vm-smal, host: fahter }]
              |                                                  ^^^^^^^
            hint: did you mean `vm-small`?

            error: manifests/m.yaml:3:65: there is no host `fahter`
              |
            3 | nodes: [{ name: a, type: vm, spec: bsae, preset: vm-smal, host: fahter }]
              |                                                                 ^^^^^^
            hint: did you mean `father`?"#]],
    );
    check_spec(
        "access: { posture: prod, users: [{ name: ops, ssh_keys: [alice@lapto] }] }\n",
        &expect![[r#"
            error: specs/s.yaml:2:20: there is no posture `prod`
              |
            2 | access: { posture: prod, users: [{ name: ops, ssh_keys: [alice@lapto] }] }
              |                    ^^^^
            hint: choose from `dev`

            error: specs/s.yaml:2:58: the site has no ssh key `alice@lapto`
              |
            2 | access: { posture: prod, users: [{ name: ops, ssh_keys: [alice@lapto] }] }
              |                                                          ^^^^^^^^^^^
            hint: did you mean `alice@laptop`?"#]],
    );
}

#[test]
fn a_file_that_is_broken_is_told_once_and_still_counts_as_there() {
    check(
        &[
            ("specs/base.yaml", "schema_version: 1\nacess: {}\n"),
            ("manifests/m.yaml", "schema_version: 2\nname: m\nnodes: [{ name: a, type: vm, spec: base }]\n"),
        ],
        &expect![[r#"
            error: specs/base.yaml:2:1: a spec has no key `acess`
              |
            2 | acess: {}
              | ^^^^^
            hint: did you mean `access`?"#]],
    );
}

#[test]
fn an_ssh_key_that_is_broken_is_told_once_and_still_counts_as_there() {
    check(
        &[
            ("site.yaml", "ssh_keys: { alice@laptop: not a key }\n"),
            (
                "specs/s.yaml",
                "schema_version: 1\naccess: { users: [{ name: ops, ssh_keys: [alice@laptop] }] }\n",
            ),
        ],
        &expect![[r#"
            error: site.yaml:1:27: `not a key` is not an ssh public key: a key type, the key in base64, and a comment
              |
            1 | ssh_keys: { alice@laptop: not a key }
              |                           ^^^^^^^^^"#]],
    );
}

#[test]
fn a_child_needs_a_parent_that_can_host_it() {
    check_manifest(
        "pattern: tiered\nnodes:\n  - { name: plain, type: vm, spec: base }\n  - { name: bare, type: vm }\n  - { name: by-spec, type: vm, spec: pve }\n  - { name: a, type: vm, parent: plain }\n  - { name: b, type: vm, parent: bare }\n  - { name: c, type: vm, parent: by-spec }\n",
        &expect![[r#"
            error: manifests/m.yaml:8:34: node `a` has parent `plain`, which cannot host nodes
              |
            8 |   - { name: a, type: vm, parent: plain }
              |                                  ^^^^^
            hint: make `plain` a node of `type: pve`, or give it a spec with `platform.hypervisor`

            error: manifests/m.yaml:9:34: node `b` has parent `bare`, which cannot host nodes
              |
            9 |   - { name: b, type: vm, parent: bare }
              |                                  ^^^^
            hint: make `bare` a node of `type: pve`, or give it a spec with `platform.hypervisor`"#]],
    );
}

#[test]
fn a_parent_is_one_node() {
    check_manifest(
        "pattern: tiered\nnodes:\n  - { name: pve, type: pve, count: 2 }\n  - { name: a, type: vm, parent: pve }\n  - { name: b, type: vm, parent: pve-2 }\n",
        &expect![[r#"
            error: manifests/m.yaml:6:34: parent `pve` stands for 2 nodes, and a node lives on one
              |
            6 |   - { name: a, type: vm, parent: pve }
              |                                  ^^^
            hint: name one of them, such as `pve-1`"#]],
    );
}

#[test]
fn a_child_is_where_its_parent_is() {
    check_manifest(
        "pattern: tiered\nnodes:\n  - { name: pve, type: pve, host: mother }\n  - { name: a, type: vm, parent: pve, host: father }\n  - { name: b, type: vm, parent: pve, host: mother }\n",
        &expect![[r#"
            error: manifests/m.yaml:6:45: node `a` lives on `pve` and cannot be placed on host `father` too
              |
            6 |   - { name: a, type: vm, parent: pve, host: father }
              |                                             ^^^^^^
            hint: leave `host` out: a child is where its parent is"#]],
    );
}

#[test]
fn peers_are_mutual() {
    check_manifest(
        "pattern: mesh\nnodes:\n  - { name: a, type: vm, peers: [b, c] }\n  - { name: b, type: vm, peers: [a] }\n  - { name: c, type: vm, peers: [b] }\n",
        &expect![[r#"
            error: manifests/m.yaml:5:37: node `a` has the peer `c`, which does not name `a`
              |
            5 |   - { name: a, type: vm, peers: [b, c] }
              |                                     ^
            hint: add `a` to the peers of `c`

            error: manifests/m.yaml:7:34: node `c` has the peer `b`, which does not name `c`
              |
            7 |   - { name: c, type: vm, peers: [b] }
              |                                  ^
            hint: add `c` to the peers of `b`"#]],
    );
    check_manifest(
        "pattern: mesh\nnodes:\n  - { name: a, type: vm, peers: [a, b] }\n  - { name: b, type: vm, peers: [a] }\n",
        &expect![[r#"
            error: manifests/m.yaml:5:34: node `a` names itself as a peer
              |
            5 |   - { name: a, type: vm, peers: [a, b] }
              |                                  ^
            hint: take it out"#]],
    );
}

#[test]
fn a_group_may_be_named_as_a_whole_or_one_by_one() {
    check_manifest("pattern: mesh\nnodes: [{ name: a, type: vm, count: 3, peers: [a] }]\n", &expect![""]);
    check_manifest(
        "pattern: mesh\nnodes:\n  - { name: a, type: vm, count: 3, peers: [b] }\n  - { name: b, type: vm, peers: [a-3, a-1, a-2] }\n",
        &expect![""],
    );
    check_manifest(
        "pattern: mesh\nnodes:\n  - { name: a, type: vm, count: 3, peers: [b] }\n  - { name: b, type: vm, peers: [a-1, a-3] }\n",
        &expect![[r#"
            error: manifests/m.yaml:5:44: node `a` has the peer `b`, which does not name `a-2`
              |
            5 |   - { name: a, type: vm, count: 3, peers: [b] }
              |                                            ^
            hint: add `a-2` to the peers of `b`"#]],
    );
}

#[test]
fn a_cluster_for_workloads_takes_no_nodes() {
    check_manifest(
        "nodes: [{ name: a, type: vm, host: flock }]\n",
        &expect![[r#"
        error: manifests/m.yaml:3:36: host `flock` runs workloads (k3s) and takes no nodes
          |
        3 | nodes: [{ name: a, type: vm, host: flock }]
          |                                    ^^^^^"#]],
    );
    check_resolving(
        "nodes: [{ name: a, type: vm }]\n",
        &[],
        Some("flock"),
        &expect!["error: host `flock` runs workloads (k3s) and takes no nodes"],
    );
}

#[test]
fn a_request_for_what_is_not_there_names_the_nearest() {
    let files = [("manifests/m.yaml", "schema_version: 2\nname: m\nnodes: [{ name: a, type: vm }]\n")];
    let problems = fleet(&files, &request(Some("fahter"), None)).expect_err("there is no such host");
    expect![[r#"
        error: there is no host `fahter` in hosts/
        hint: did you mean `father`?"#]]
    .assert_eq(&problems.to_string());
    let sources = site(&[("manifests/edge.yaml", "")]);
    let name: ManifestName = "egde".parse().expect("a name");
    let host: HostName = "fahter".parse().expect("a name");
    let problems =
        parse(&sources, Scope::Manifest { name: &name, host: Some(&host) }).expect_err("neither is there");
    expect![[r#"
        error: there is no manifest `egde` in manifests/
        hint: did you mean `edge`?

        error: there is no host `fahter` in hosts/
        hint: did you mean `father`?"#]]
    .assert_eq(&problems.to_string());
    let sources = site(&files);
    let catalog = parse(&sources, Scope::Site).expect("the site is sound");
    let request = Request { manifest: name, host: None, mode: None };
    expect![[r#"
        error: there is no manifest `egde` in manifests/
        hint: choose from `m`"#]]
    .assert_eq(&resolve(&catalog, &request).expect_err("there is no such manifest").to_string());
}

#[test]
fn mistakes_of_one_node_are_all_told_at_once_and_without_follow_ups() {
    check_manifest(
        "pattern: tiered\nnodes:\n  - { name: outer, type: pve }\n  - { name: inner, type: vmm, parent: outr, spec: bse, image: 3 }\n",
        &expect![[r#"
            error: manifests/m.yaml:6:26: `vmm` is not a type
              |
            6 |   - { name: inner, type: vmm, parent: outr, spec: bse, image: 3 }
              |                          ^^^
            hint: did you mean `vm`?

            error: manifests/m.yaml:6:39: node `inner` has parent `outr`, which this manifest does not define
              |
            6 |   - { name: inner, type: vmm, parent: outr, spec: bse, image: 3 }
              |                                       ^^^^
            hint: did you mean `outer`?

            error: manifests/m.yaml:6:51: there is no spec `bse`
              |
            6 |   - { name: inner, type: vmm, parent: outr, spec: bse, image: 3 }
              |                                                   ^^^
            hint: did you mean `base`?

            error: manifests/m.yaml:6:63: expected text, found a number `3`
              |
            6 |   - { name: inner, type: vmm, parent: outr, spec: bse, image: 3 }
              |                                                               ^
            hint: write it in quotes"#]],
    );
}

#[test]
fn ten_mistakes_in_three_files_are_ten_errors_of_one_run() {
    let sources = site(&[
        (
            "manifests/m.yaml",
            "schema_version: 2\nname: n\npattern: tiered\nnodes:\n  - { name: a, type: pve, preset: vm-huge }\n  - { name: b, type: vm, parent: c, vmid: 3 }\n  - { name: b, type: ct, image: x, colour: red }\n",
        ),
        ("presets/vm-small.yaml", "cores: 0\nmemory: 1024\ndisk: 10\n"),
        ("specs/s.yaml", "schema_version: 1\naccess: { posture: nowhere, users: [{ name: Root }] }\n"),
    ]);
    let problems = common::told(&sources);
    let places: Vec<String> = problems
        .iter()
        .map(|p| {
            format!("{}:{}:{}", p.file.as_deref().unwrap_or_default(), p.position.line, p.position.column)
        })
        .collect();
    expect![[r#"
        manifests/m.yaml:2:7
        manifests/m.yaml:5:35
        manifests/m.yaml:6:34
        manifests/m.yaml:6:43
        manifests/m.yaml:7:13
        manifests/m.yaml:7:33
        manifests/m.yaml:7:36
        presets/vm-small.yaml:1:8
        specs/s.yaml:2:20
        specs/s.yaml:2:45"#]]
    .assert_eq(&places.join("\n"));
    assert_eq!(problems.len(), 10);
}
