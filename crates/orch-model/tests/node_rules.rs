//! Names, numbers, images and addresses of nodes: what each may be, and what two cannot share.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use common::{check_manifest, check_resolving};
use expect_test::expect;

#[test]
fn a_node_that_is_defined_twice_is_named_with_its_first_line() {
    check_manifest(
        "nodes:\n  - { name: a, type: vm }\n  - { name: b, type: vm }\n  - { name: a, type: ct }\n",
        &expect![[r#"
            error: manifests/m.yaml:6:13: node `a` is defined twice
              |
            6 |   - { name: a, type: ct }
              |             ^
            hint: the first one stands in line 4"#]],
    );
}

#[test]
fn a_name_that_count_makes_is_as_taken_as_one_that_is_written() {
    check_manifest(
        "nodes:\n  - { name: web, type: vm, count: 3 }\n  - { name: web-2, type: vm }\n",
        &expect![[r#"
            error: manifests/m.yaml:5:13: node `web-2` is defined twice
              |
            5 |   - { name: web-2, type: vm }
              |             ^^^^^
            hint: the first one stands in line 4"#]],
    );
    check_manifest(
        "nodes:\n  - { name: web-2, type: vm }\n  - { name: web, type: vm, count: 3 }\n",
        &expect![[r#"
            error: manifests/m.yaml:5:13: node `web-2` is defined twice
              |
            5 |   - { name: web, type: vm, count: 3 }
              |             ^^^
            hint: the first one stands in line 4"#]],
    );
    check_manifest(
        "nodes:\n  - { name: web, type: vm, count: 3 }\n  - { name: web, type: vm, count: 3 }\n",
        &expect![[r#"
            error: manifests/m.yaml:5:13: node `web` is defined twice
              |
            5 |   - { name: web, type: vm, count: 3 }
              |             ^^^
            hint: the first one stands in line 4"#]],
    );
    check_manifest(
        "nodes:\n  - { name: web, type: vm, count: 3 }\n  - { name: web, type: vm }\n",
        &expect![[r#"
            error: manifests/m.yaml:5:13: node `web` is defined twice
              |
            5 |   - { name: web, type: vm }
              |             ^^^
            hint: the first one stands in line 4"#]],
    );
}

#[test]
fn a_name_that_is_too_long_with_its_number_is_refused_without_follow_ups() {
    let long = "a".repeat(62);
    check_manifest(
        &format!(
            "nodes:\n  - {{ name: {long}, type: vm, count: 2 }}\n  - {{ name: b, type: vm, depends_on: [{long}] }}\n"
        ),
        &expect![[r#"
            error: manifests/m.yaml:4:13: with its number, `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-1` is not a node name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            4 |   - { name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, type: vm, count: 2 }
              |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"#]],
    );
}

#[test]
fn a_name_outside_its_grammar_is_refused() {
    check_manifest(
        "nodes:\n  - { name: Web_1, type: vm }\n  - { name: ../etc, type: vm }\n  - { name: '', type: vm, tags: [Web] }\n  - { name: a, type: vm, spec: ../../x }\n",
        &expect![[r#"
            error: manifests/m.yaml:4:13: `Web_1` is not a node name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            4 |   - { name: Web_1, type: vm }
              |             ^^^^^

            error: manifests/m.yaml:5:13: `../etc` is not a node name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            5 |   - { name: ../etc, type: vm }
              |             ^^^^^^

            error: manifests/m.yaml:6:13: `` is not a node name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            6 |   - { name: '', type: vm, tags: [Web] }
              |             ^^

            error: manifests/m.yaml:6:34: `Web` is not a tag: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            6 |   - { name: '', type: vm, tags: [Web] }
              |                                  ^^^

            error: manifests/m.yaml:7:32: `../../x` is not a spec name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            7 |   - { name: a, type: vm, spec: ../../x }
              |                                ^^^^^^^"#]],
    );
}

#[test]
fn count_vmid_disk_and_parallelism_have_bounds() {
    check_manifest(
        "settings: { parallelism: 0 }\nnodes:\n  - { name: a, type: vm, count: 0 }\n  - { name: b, type: vm, count: 100001 }\n  - { name: c, type: vm, vmid: 99 }\n  - { name: d, type: vm, vmid: 1000000000 }\n  - { name: e, type: vm, disk: 0 }\n  - { name: f, type: vm, disk: 5000000000 }\n  - { name: g, type: vm, vmid: 99999999999999999999 }\n",
        &expect![[r#"
            error: manifests/m.yaml:3:26: 0 is out of range: 1 to 1000
              |
            3 | settings: { parallelism: 0 }
              |                          ^

            error: manifests/m.yaml:5:33: 0 is out of range: 1 to 100000
              |
            5 |   - { name: a, type: vm, count: 0 }
              |                                 ^

            error: manifests/m.yaml:6:33: 100001 is out of range: 1 to 100000
              |
            6 |   - { name: b, type: vm, count: 100001 }
              |                                 ^^^^^^

            error: manifests/m.yaml:7:32: 99 is out of range: 100 to 999999999
              |
            7 |   - { name: c, type: vm, vmid: 99 }
              |                                ^^

            error: manifests/m.yaml:8:32: 1000000000 is out of range: 100 to 999999999
              |
            8 |   - { name: d, type: vm, vmid: 1000000000 }
              |                                ^^^^^^^^^^

            error: manifests/m.yaml:9:32: 0 is too small: at least 1
              |
            9 |   - { name: e, type: vm, disk: 0 }
              |                                ^

            error: manifests/m.yaml:10:32: 5000000000 is out of range: 1 to 4294967295
               |
            10 |   - { name: f, type: vm, disk: 5000000000 }
               |                                ^^^^^^^^^^

            error: manifests/m.yaml:11:32: expected a whole number, found a number `99999999999999999999`
               |
            11 |   - { name: g, type: vm, vmid: 99999999999999999999 }
               |                                ^^^^^^^^^^^^^^^^^^^^"#]],
    );
}

#[test]
fn a_vmid_names_one_node() {
    check_manifest(
        "nodes:\n  - { name: a, type: vm, vmid: 100, count: 2 }\n",
        &expect![[r#"
        error: manifests/m.yaml:4:32: vmid 100 cannot name the 2 nodes of `a`
          |
        4 |   - { name: a, type: vm, vmid: 100, count: 2 }
          |                                ^^^
        hint: leave it out, and each node's VMID is derived from its identity"#]],
    );
    check_manifest(
        "nodes:\n  - { name: a, type: vm, vmid: 100 }\n  - { name: b, type: ct, vmid: 100 }\n",
        &expect![[r#"
            error: manifests/m.yaml:5:32: vmid 100 is taken by node `a`
              |
            5 |   - { name: b, type: ct, vmid: 100 }
              |                                ^^^"#]],
    );
}

#[test]
fn the_same_vmid_on_two_hosts_is_fine() {
    check_manifest(
        "nodes:\n  - { name: a, type: vm, vmid: 100, host: father }\n  - { name: b, type: vm, vmid: 100, host: mother }\n",
        &expect![""],
    );
}

#[test]
fn a_vmid_that_two_nodes_share_only_by_the_host_of_the_request_is_refused_there() {
    let nodes =
        "nodes:\n  - { name: a, type: vm, vmid: 100, host: father }\n  - { name: b, type: vm, vmid: 100 }\n";
    check_manifest(nodes, &expect![""]);
    check_resolving(
        nodes,
        &[],
        Some("father"),
        &expect![[r#"
        error: manifests/m.yaml:5:32: vmid 100 is taken by node `a`, which is on host `father` too
          |
        5 |   - { name: b, type: vm, vmid: 100 }
          |                                ^^^
        hint: give each its own, or leave it out"#]],
    );
}

#[test]
fn a_container_has_a_template_and_a_machine_an_image() {
    check_manifest(
        "nodes:\n  - { name: a, type: ct, image: debian-13 }\n  - { name: b, type: vm, template: debian-12 }\n  - { name: c, type: pve, template: debian-12 }\n",
        &expect![[r#"
            error: manifests/m.yaml:4:33: node `a` is a ct and takes no `image`
              |
            4 |   - { name: a, type: ct, image: debian-13 }
              |                                 ^^^^^^^^^
            hint: a ct is made from a `template`

            error: manifests/m.yaml:5:36: node `b` is a vm and takes no `template`
              |
            5 |   - { name: b, type: vm, template: debian-12 }
              |                                    ^^^^^^^^^
            hint: a vm is made from an `image`

            error: manifests/m.yaml:6:37: node `c` is a pve and takes no `template`
              |
            6 |   - { name: c, type: pve, template: debian-12 }
              |                                     ^^^^^^^^^
            hint: a pve is made from an `image`"#]],
    );
}

#[test]
fn a_container_cannot_be_placed_in_a_cloud_that_has_none() {
    check_resolving(
        "nodes: [{ name: a, type: ct }]\n",
        &[],
        Some("cloud"),
        &expect![[r#"
            error: manifests/m.yaml:3:17: node `a` names no preset, and host `cloud` chooses server types by it
              |
            3 | nodes: [{ name: a, type: ct }]
              |                 ^
            hint: add the preset to `server_types` of the host, or choose another

            error: manifests/m.yaml:3:26: node `a` is a ct, and host `cloud` has none
              |
            3 | nodes: [{ name: a, type: ct }]
              |                          ^^
            hint: use `type: vm`"#]],
    );
}

#[test]
fn a_machine_needs_an_image_where_the_host_has_no_default() {
    check_resolving(
        "nodes:\n  - { name: a, type: vm }\n  - { name: b, type: ct }\n",
        &[],
        Some("mother"),
        &expect![[r#"
            error: manifests/m.yaml:4:13: node `a` names no image, and host `mother` has no default
              |
            4 |   - { name: a, type: vm }
              |             ^
            hint: add `image` to the node, or `"*"` to the host's `images`

            error: manifests/m.yaml:5:13: node `b` names no template, and host `mother` has no default
              |
            5 |   - { name: b, type: ct }
              |             ^
            hint: add `template` to the node, or `"*"` to the host's `images`"#]],
    );
    check_resolving("nodes: [{ name: a, type: vm, image: debian-13 }]\n", &[], Some("mother"), &expect![""]);
}

#[test]
fn a_fixed_address_belongs_to_one_node() {
    let fixed = [("specs/fixed.yaml", "schema_version: 1\nnetwork: { ip: 10.0.0.5/24 }\n")];
    check_resolving(
        "nodes: [{ name: a, type: vm, spec: fixed, count: 3 }]\n",
        &fixed,
        Some("father"),
        &expect![[r#"
            error: manifests/m.yaml:3:36: nodes `a-1` and `a-2` both get the address 10.0.0.5
              |
            3 | nodes: [{ name: a, type: vm, spec: fixed, count: 3 }]
              |                                    ^^^^^
            hint: give each its own spec, or leave `network` out and use DHCP"#]],
    );
    let two = [
        ("specs/fixed.yaml", "schema_version: 1\nnetwork: { ip: 10.0.0.5/24 }\n"),
        ("specs/same.yaml", "schema_version: 1\nnetwork: { ip: 10.0.0.5/16 }\n"),
    ];
    let nodes = "nodes:\n  - { name: a, type: vm, spec: fixed }\n  - { name: b, type: vm, spec: same }\n";
    check_resolving(
        nodes,
        &two,
        Some("father"),
        &expect![[r#"
        error: manifests/m.yaml:5:32: nodes `a` and `b` both get the address 10.0.0.5
          |
        5 |   - { name: b, type: vm, spec: same }
          |                                ^^^^
        hint: give each its own spec, or leave `network` out and use DHCP"#]],
    );
    let apart = "nodes:\n  - { name: a, type: vm, spec: fixed, host: father }\n  - { name: b, type: vm, spec: fixed, host: mother, image: x }\n";
    check_resolving(apart, &fixed, None, &expect![""]);
}

#[test]
fn a_node_without_a_place_is_named() {
    check_resolving(
        "nodes: [{ name: a, type: vm }]\n",
        &[],
        None,
        &expect![[r#"
            error: no host is given for node `a`
            hint: name a host with -H, or give the node a `host` in the manifest"#]],
    );
}
