//! Nodes that wait for each other, and so forever.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use common::check_manifest;
use expect_test::expect;

#[test]
fn nodes_that_wait_for_each_other_are_shown_as_a_path() {
    check_manifest(
        "pattern: tiered\nnodes:\n  - { name: a, type: pve, depends_on: [c] }\n  - { name: b, type: pve, parent: a }\n  - { name: c, type: vm, parent: b }\n",
        &expect![[r#"
            error: manifests/m.yaml:5:13: these nodes wait for each other: `a` -> `c` -> `b` -> `a`
              |
            5 |   - { name: a, type: pve, depends_on: [c] }
              |             ^
            hint: each arrow is a `parent` or a `depends_on`: take one out"#]],
    );
}

#[test]
fn a_node_that_waits_for_itself_is_named() {
    check_manifest(
        "nodes: [{ name: a, type: vm, depends_on: [a] }]\n",
        &expect![[r#"
        error: manifests/m.yaml:3:17: node `a` waits for itself
          |
        3 | nodes: [{ name: a, type: vm, depends_on: [a] }]
          |                 ^
        hint: take its name out of its `parent` or `depends_on`"#]],
    );
    check_manifest(
        "pattern: tiered\nnodes: [{ name: a, type: pve, parent: a }]\n",
        &expect![[r#"
        error: manifests/m.yaml:4:17: node `a` waits for itself
          |
        4 | nodes: [{ name: a, type: pve, parent: a }]
          |                 ^
        hint: take its name out of its `parent` or `depends_on`"#]],
    );
    check_manifest(
        "nodes: [{ name: a, type: vm, count: 2, depends_on: [a-1] }]\n",
        &expect![[r#"
        error: manifests/m.yaml:3:17: node `a` waits for itself
          |
        3 | nodes: [{ name: a, type: vm, count: 2, depends_on: [a-1] }]
          |                 ^
        hint: take its name out of its `parent` or `depends_on`"#]],
    );
}

#[test]
fn two_knots_are_two_reports() {
    check_manifest(
        "nodes:\n  - { name: a, type: vm, depends_on: [b] }\n  - { name: b, type: vm, depends_on: [a] }\n  - { name: c, type: vm, depends_on: [d] }\n  - { name: d, type: vm, depends_on: [c] }\n",
        &expect![[r#"
            error: manifests/m.yaml:4:13: these nodes wait for each other: `a` -> `b` -> `a`
              |
            4 |   - { name: a, type: vm, depends_on: [b] }
              |             ^
            hint: each arrow is a `parent` or a `depends_on`: take one out

            error: manifests/m.yaml:6:13: these nodes wait for each other: `c` -> `d` -> `c`
              |
            6 |   - { name: c, type: vm, depends_on: [d] }
              |             ^
            hint: each arrow is a `parent` or a `depends_on`: take one out"#]],
    );
}

#[test]
fn a_knot_behind_a_node_that_leads_to_another_knot_is_told_too() {
    check_manifest(
        "nodes:\n  - { name: x, type: vm, depends_on: [y] }\n  - { name: y, type: vm, depends_on: [x] }\n  - { name: s, type: vm, depends_on: [u, t] }\n  - { name: t, type: vm, depends_on: [s] }\n  - { name: u, type: vm, depends_on: [x] }\n",
        &expect![[r#"
            error: manifests/m.yaml:4:13: these nodes wait for each other: `x` -> `y` -> `x`
              |
            4 |   - { name: x, type: vm, depends_on: [y] }
              |             ^
            hint: each arrow is a `parent` or a `depends_on`: take one out

            error: manifests/m.yaml:6:13: these nodes wait for each other: `s` -> `t` -> `s`
              |
            6 |   - { name: s, type: vm, depends_on: [u, t] }
              |             ^
            hint: each arrow is a `parent` or a `depends_on`: take one out"#]],
    );
}

#[test]
fn a_long_cycle_is_told_by_its_ends() {
    use std::fmt::Write;
    let mut nodes = String::from("nodes:\n");
    for at in 0..20 {
        writeln!(nodes, "  - {{ name: n{at}, type: vm, depends_on: [n{}] }}", (at + 1) % 20)
            .expect("a string takes it");
    }
    check_manifest(
        &nodes,
        &expect![[r#"
        error: manifests/m.yaml:4:13: these nodes wait for each other: `n0` -> `n1` -> `n2` -> `n3` -> `n4` -> `n5` -> … 8 more … -> `n14` -> `n15` -> `n16` -> `n17` -> `n18` -> `n19` -> `n0`
          |
        4 |   - { name: n0, type: vm, depends_on: [n1] }
          |             ^^
        hint: each arrow is a `parent` or a `depends_on`: take one out"#]],
    );
}
