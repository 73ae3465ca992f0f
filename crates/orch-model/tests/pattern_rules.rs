//! The shape that a manifest claims, and nodes that contradict it.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use common::check_manifest;
use expect_test::expect;

#[test]
fn a_flat_manifest_has_no_parents() {
    check_manifest(
        "nodes:\n  - { name: a, type: pve }\n  - { name: b, type: vm, parent: a }\n",
        &expect![[r#"
            error: manifests/m.yaml:5:34: the pattern is flat, and node `b` lives on `a`
              |
            5 |   - { name: b, type: vm, parent: a }
              |                                  ^
            hint: set `pattern: tiered`"#]],
    );
}

#[test]
fn a_tiered_manifest_has_some_parent() {
    check_manifest(
        "pattern: tiered\nnodes: [{ name: a, type: vm }]\n",
        &expect![[r#"
        error: manifests/m.yaml:3:10: the pattern is tiered, and no node has a parent
          |
        3 | pattern: tiered
          |          ^^^^^^
        hint: set `pattern: flat`"#]],
    );
}

#[test]
fn a_mesh_has_two_nodes_and_every_one_has_peers() {
    check_manifest(
        "pattern: mesh\nnodes: [{ name: a, type: vm }]\n",
        &expect![[r#"
        error: manifests/m.yaml:3:10: the pattern is mesh, and a mesh has two nodes or more
          |
        3 | pattern: mesh
          |          ^^^^
        hint: set `pattern: flat`

        error: manifests/m.yaml:4:17: the pattern is mesh, and node `a` has no peers
          |
        4 | nodes: [{ name: a, type: vm }]
          |                 ^
        hint: name the other nodes under `peers`"#]],
    );
    check_manifest(
        "pattern: mesh\nnodes:\n  - { name: a, type: vm, peers: [b] }\n  - { name: b, type: vm, peers: [a] }\n  - { name: c, type: vm }\n",
        &expect![[r#"
            error: manifests/m.yaml:7:13: the pattern is mesh, and node `c` has no peers
              |
            7 |   - { name: c, type: vm }
              |             ^
            hint: name the other nodes under `peers`"#]],
    );
}

#[test]
fn a_hub_spoke_has_one_root_and_every_other_node_is_its_spoke() {
    check_manifest(
        "pattern: hub-spoke\nnodes:\n  - { name: a, type: vm }\n  - { name: b, type: vm }\n",
        &expect![[r#"
            error: manifests/m.yaml:3:10: the pattern is hub-spoke, and 2 nodes are roots: `a`, `b`
              |
            3 | pattern: hub-spoke
              |          ^^^^^^^^^
            hint: a hub-spoke has one root; every other node is its child or depends on it"#]],
    );
    check_manifest(
        "pattern: hub-spoke\nnodes:\n  - { name: hub, type: vm }\n  - { name: a, type: vm, depends_on: [hub] }\n  - { name: b, type: vm, depends_on: [a] }\n",
        &expect![[r#"
            error: manifests/m.yaml:7:13: node `b` is no spoke of `hub`
              |
            7 |   - { name: b, type: vm, depends_on: [a] }
              |             ^
            hint: add `parent: hub` or `depends_on: [hub]`"#]],
    );
}

#[test]
fn a_federation_has_two_roots_on_two_hosts() {
    check_manifest(
        "pattern: federated\nnodes: [{ name: a, type: vm }]\n",
        &expect![[r#"
        error: manifests/m.yaml:3:10: the pattern is federated, and it has 1 root on 1 host
          |
        3 | pattern: federated
          |          ^^^^^^^^^
        hint: a federation has two roots or more on two hosts or more: give roots a `host`"#]],
    );
    check_manifest(
        "pattern: federated\nnodes:\n  - { name: a, type: vm, host: father }\n  - { name: b, type: vm, host: father }\n",
        &expect![[r#"
            error: manifests/m.yaml:3:10: the pattern is federated, and it has 2 roots on 1 host
              |
            3 | pattern: federated
              |          ^^^^^^^^^
            hint: a federation has two roots or more on two hosts or more: give roots a `host`"#]],
    );
    check_manifest(
        "pattern: federated\nnodes:\n  - { name: a, type: vm, host: father }\n  - { name: b, type: vm, host: mother }\n",
        &expect![""],
    );
}

#[test]
fn a_reference_that_cannot_be_read_does_not_make_the_shape_look_wrong() {
    check_manifest(
        "pattern: tiered\nnodes: [{ name: a, type: pve }, { name: b, type: vm, parent: A }]\n",
        &expect![[r#"
            error: manifests/m.yaml:4:62: `A` is not a node name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            4 | nodes: [{ name: a, type: pve }, { name: b, type: vm, parent: A }]
              |                                                              ^"#]],
    );
    check_manifest(
        "pattern: mesh\nnodes: [{ name: a, type: vm, peers: [B] }, { name: b, type: vm, peers: [A] }]\n",
        &expect![[r#"
            error: manifests/m.yaml:4:38: `B` is not a node name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            4 | nodes: [{ name: a, type: vm, peers: [B] }, { name: b, type: vm, peers: [A] }]
              |                                      ^

            error: manifests/m.yaml:4:73: `A` is not a node name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            4 | nodes: [{ name: a, type: vm, peers: [B] }, { name: b, type: vm, peers: [A] }]
              |                                                                         ^"#]],
    );
    check_manifest(
        "pattern: hub-spoke\nnodes: [{ name: hub, type: vm }, { name: a, type: vm, depends_on: [hbu] }]\n",
        &expect![[r#"
            error: manifests/m.yaml:4:68: node `a` depends on `hbu`, which this manifest does not define
              |
            4 | nodes: [{ name: hub, type: vm }, { name: a, type: vm, depends_on: [hbu] }]
              |                                                                    ^^^
            hint: did you mean `hub`?"#]],
    );
}
