//! What the keys and values of a manifest may not be, and what is told when they are.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use common::{check, check_manifest};
use expect_test::expect;

#[test]
fn a_sound_manifest_is_not_talked_about() {
    check_manifest("nodes: [{ name: a, type: vm, spec: base, preset: vm-small }]\n", &expect![""]);
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_one() {
    check_manifest(
        "patern: flat\nsettings: { on_eror: stop, timeouts: { creat: 5m } }\nexecution: { mode: pull }\nnodes:\n  - { name: a, type: vm, preest: vm-small, execution: { default_mode: pull } }\n",
        &expect![[r#"
            error: manifests/m.yaml:3:1: a manifest has no key `patern`
              |
            3 | patern: flat
              | ^^^^^^
            hint: did you mean `pattern`?

            error: manifests/m.yaml:4:13: a settings section has no key `on_eror`
              |
            4 | settings: { on_eror: stop, timeouts: { creat: 5m } }
              |             ^^^^^^^
            hint: did you mean `on_error`?

            error: manifests/m.yaml:4:40: a timeouts section has no key `creat`
              |
            4 | settings: { on_eror: stop, timeouts: { creat: 5m } }
              |                                        ^^^^^
            hint: did you mean `create`?

            error: manifests/m.yaml:5:14: an execution section has no key `mode`
              |
            5 | execution: { mode: pull }
              |              ^^^^
            hint: choose from `default_mode`

            error: manifests/m.yaml:7:26: a node has no key `preest`
              |
            7 |   - { name: a, type: vm, preest: vm-small, execution: { default_mode: pull } }
              |                          ^^^^^^
            hint: did you mean `preset`?

            error: manifests/m.yaml:7:57: an execution section of a node has no key `default_mode`
              |
            7 |   - { name: a, type: vm, preest: vm-small, execution: { default_mode: pull } }
              |                                                         ^^^^^^^^^^^^
            hint: choose from `mode`"#]],
    );
}

#[test]
fn a_value_of_the_wrong_type_is_shown_with_what_was_expected() {
    check_manifest(
        "description: [a]\npattern: 3\nexecution: push\nsettings: { on_error: true, verify_ssh: maybe, parallelism: many, timeouts: { boot: 5 } }\nnodes:\n  - name: 7\n    type: {}\n    count: 1.5\n    spec: true\n    image: 13\n    vmid: \"100\"\n    tags: web\n    depends_on: dns\n    peers: { a: b }\n  - just-a-name\n",
        &expect![[r#"
            error: manifests/m.yaml:3:14: expected text, found a list
              |
            3 | description: [a]
              |              ^

            error: manifests/m.yaml:4:10: expected a pattern, found a number `3`
              |
            4 | pattern: 3
              |          ^
            hint: choose from `flat`, `tiered`, `mesh`, `hub-spoke`, `federated`

            error: manifests/m.yaml:5:12: expected the keys of an execution section, found text `push`
              |
            5 | execution: push
              |            ^^^^

            error: manifests/m.yaml:6:23: expected a value of on_error, found a boolean `true`
              |
            6 | settings: { on_error: true, verify_ssh: maybe, parallelism: many, timeouts: { boot: 5 } }
              |                       ^^^^
            hint: choose from `stop`, `rollback`, `continue`

            error: manifests/m.yaml:6:41: expected true or false, found text `maybe`
              |
            6 | settings: { on_error: true, verify_ssh: maybe, parallelism: many, timeouts: { boot: 5 } }
              |                                         ^^^^^

            error: manifests/m.yaml:6:61: expected a whole number, found text `many`
              |
            6 | settings: { on_error: true, verify_ssh: maybe, parallelism: many, timeouts: { boot: 5 } }
              |                                                             ^^^^

            error: manifests/m.yaml:6:85: `5` is not a length of time: write it as `90s`, `10m`, `2h` or `1d`
              |
            6 | settings: { on_error: true, verify_ssh: maybe, parallelism: many, timeouts: { boot: 5 } }
              |                                                                                     ^

            error: manifests/m.yaml:8:11: `7` is not a node name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            8 |   - name: 7
              |           ^

            error: manifests/m.yaml:9:11: expected a type, found a map
              |
            9 |     type: {}
              |           ^
            hint: choose from `vm`, `ct`, `pve`

            error: manifests/m.yaml:10:12: expected a whole number, found a number `1.5`
               |
            10 |     count: 1.5
               |            ^^^

            error: manifests/m.yaml:11:11: expected text, found a boolean `true`
               |
            11 |     spec: true
               |           ^^^^
            hint: write it in quotes

            error: manifests/m.yaml:12:12: expected text, found a number `13`
               |
            12 |     image: 13
               |            ^^
            hint: write it in quotes

            error: manifests/m.yaml:13:11: expected a whole number, found text `"100"`
               |
            13 |     vmid: "100"
               |           ^^^^^

            error: manifests/m.yaml:14:11: expected a list, found text `web`
               |
            14 |     tags: web
               |           ^^^

            error: manifests/m.yaml:15:17: expected a list, found text `dns`
               |
            15 |     depends_on: dns
               |                 ^^^

            error: manifests/m.yaml:16:12: expected a list, found a map
               |
            16 |     peers: { a: b }
               |            ^

            error: manifests/m.yaml:17:5: expected the keys of a node, found text `just-a-name`
               |
            17 |   - just-a-name
               |     ^^^^^^^^^^^"#]],
    );
}

#[test]
fn a_word_that_is_none_of_a_choice_is_named_with_the_nearest_one() {
    check_manifest(
        "pattern: nested\nexecution: { default_mode: pul }\nsettings: { on_error: explode }\nnodes: [{ name: a, type: lxc }]\n",
        &expect![[r#"
            error: manifests/m.yaml:3:10: `nested` is not a pattern
              |
            3 | pattern: nested
              |          ^^^^^^
            hint: choose from `flat`, `tiered`, `mesh`, `hub-spoke`, `federated`

            error: manifests/m.yaml:4:28: `pul` is not a mode
              |
            4 | execution: { default_mode: pul }
              |                            ^^^
            hint: did you mean `pull`?

            error: manifests/m.yaml:5:23: `explode` is not a value of on_error
              |
            5 | settings: { on_error: explode }
              |                       ^^^^^^^
            hint: choose from `stop`, `rollback`, `continue`

            error: manifests/m.yaml:6:26: `lxc` is not a type
              |
            6 | nodes: [{ name: a, type: lxc }]
              |                          ^^^
            hint: choose from `vm`, `ct`, `pve`"#]],
    );
}

#[test]
fn a_required_key_that_is_missing_is_named() {
    check(
        &[("manifests/m.yaml", "description: nothing else\n")],
        &expect![[r#"
        error: manifests/m.yaml:1:1: this manifest has no `schema_version`, which is required
          |
        1 | description: nothing else
          | ^

        error: manifests/m.yaml:1:1: this manifest has no `name`, which is required
          |
        1 | description: nothing else
          | ^

        error: manifests/m.yaml:1:1: this manifest has no `nodes`, which is required
          |
        1 | description: nothing else
          | ^"#]],
    );
    check_manifest(
        "nodes: [{ spec: base }]\n",
        &expect![[r#"
        error: manifests/m.yaml:3:9: this node has no `name`, which is required
          |
        3 | nodes: [{ spec: base }]
          |         ^

        error: manifests/m.yaml:3:9: this node has no `type`, which is required
          |
        3 | nodes: [{ spec: base }]
          |         ^"#]],
    );
}

#[test]
fn a_manifest_without_nodes_is_refused_also_beside_a_warning() {
    check_manifest(
        "nodes: []\n",
        &expect![[r#"
            error: manifests/m.yaml:3:8: expected at least one entry, found an empty list
              |
            3 | nodes: []
              |        ^"#]],
    );
    check_manifest(
        "nodes:\n",
        &expect![[r#"
        error: manifests/m.yaml:3:6: expected a list, found nothing
          |
        3 | nodes:
          |      ^"#]],
    );
    check_manifest(
        "settings: { timeout_buffer: 10 }\nnodes: []\n",
        &expect![[r#"
            warning: manifests/m.yaml:3:13: `timeout_buffer` has no effect any more
              |
            3 | settings: { timeout_buffer: 10 }
              |             ^^^^^^^^^^^^^^
            hint: remove it

            error: manifests/m.yaml:4:8: expected at least one entry, found an empty list
              |
            4 | nodes: []
              |        ^"#]],
    );
}

#[test]
fn a_key_that_is_given_twice_is_named_with_its_first_line() {
    check_manifest(
        "nodes:\n  - name: a\n    type: vm\n    type: ct\n",
        &expect![[r#"
        error: manifests/m.yaml:6:5: key `type` is given twice
          |
        6 |     type: ct
          |     ^^^^
        hint: it stands first in line 5"#]],
    );
}

#[test]
fn the_name_in_a_manifest_is_the_name_of_its_file() {
    check(
        &[("manifests/edge.yaml", "schema_version: 2\nname: egde\nnodes: [{ name: a, type: vm }]\n")],
        &expect![[r#"
            error: manifests/edge.yaml:2:7: the manifest calls itself `egde`, but its file is named `edge`
              |
            2 | name: egde
              |       ^^^^
            hint: give both the same name"#]],
    );
}

#[test]
fn a_length_of_time_needs_a_unit_and_is_longer_than_nothing() {
    check_manifest(
        "settings: { timeouts: { create: 10 minutes, boot: 0s, config: '5', destroy: -1m } }\nnodes: [{ name: a, type: vm }]\n",
        &expect![[r#"
            error: manifests/m.yaml:3:33: `10 minutes` is not a length of time: write it as `90s`, `10m`, `2h` or `1d`
              |
            3 | settings: { timeouts: { create: 10 minutes, boot: 0s, config: '5', destroy: -1m } }
              |                                 ^^^^^^^^^^

            error: manifests/m.yaml:3:51: `0s` is not a length of time: it must be longer than nothing
              |
            3 | settings: { timeouts: { create: 10 minutes, boot: 0s, config: '5', destroy: -1m } }
              |                                                   ^^

            error: manifests/m.yaml:3:63: `5` is not a length of time: write it as `90s`, `10m`, `2h` or `1d`
              |
            3 | settings: { timeouts: { create: 10 minutes, boot: 0s, config: '5', destroy: -1m } }
              |                                                               ^^^

            error: manifests/m.yaml:3:77: `-1m` is not a length of time: write it as `90s`, `10m`, `2h` or `1d`
              |
            3 | settings: { timeouts: { create: 10 minutes, boot: 0s, config: '5', destroy: -1m } }
              |                                                                             ^^^"#]],
    );
}
