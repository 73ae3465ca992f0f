//! Files as such: their names, their languages, and exact places in each.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use common::{check, site, told};
use expect_test::expect;
use orch_model::{ManifestName, Place, Scope, Source, Sources, parse};

#[test]
fn the_same_mistakes_are_placed_exactly_in_json_and_toml() {
    let json = r#"{
  "schema_version": 2,
  "name": "m",
  "nodes": [
    { "name": "a", "type": "vmm", "vmid": 7 },
    { "name": "b", "type": "vm", "parent": "c", "sepc": "base" },
    { "type": "vm" }
  ]
}
"#;
    check(
        &[("manifests/m.json", json)],
        &expect![[r#"
            error: manifests/m.json:5:28: `vmm` is not a type
              |
            5 |     { "name": "a", "type": "vmm", "vmid": 7 },
              |                            ^^^^^
            hint: did you mean `vm`?

            error: manifests/m.json:5:43: 7 is out of range: 100 to 999999999
              |
            5 |     { "name": "a", "type": "vmm", "vmid": 7 },
              |                                           ^

            error: manifests/m.json:6:44: node `b` has parent `c`, which this manifest does not define
              |
            6 |     { "name": "b", "type": "vm", "parent": "c", "sepc": "base" },
              |                                            ^^^
            hint: did you mean `a`?

            error: manifests/m.json:6:44: the pattern is flat, and node `b` lives on `c`
              |
            6 |     { "name": "b", "type": "vm", "parent": "c", "sepc": "base" },
              |                                            ^^^
            hint: set `pattern: tiered`

            error: manifests/m.json:6:49: a node has no key `sepc`
              |
            6 |     { "name": "b", "type": "vm", "parent": "c", "sepc": "base" },
              |                                                 ^^^^^^
            hint: did you mean `spec`?

            error: manifests/m.json:7:5: this node has no `name`, which is required
              |
            7 |     { "type": "vm" }
              |     ^^^^^^^^^^^^^^^^"#]],
    );
    let toml = r#"schema_version = 2
name = "m"

[[nodes]]
name = "a"
type = "vmm"
vmid = 7

[[nodes]]
name = "b"
type = "vm"
parent = "c"
sepc = "base"

[[nodes]]
type = "vm"
"#;
    check(
        &[("manifests/m.toml", toml)],
        &expect![[r#"
            error: manifests/m.toml:6:8: `vmm` is not a type
              |
            6 | type = "vmm"
              |        ^^^^^
            hint: did you mean `vm`?

            error: manifests/m.toml:7:8: 7 is out of range: 100 to 999999999
              |
            7 | vmid = 7
              |        ^

            error: manifests/m.toml:12:10: node `b` has parent `c`, which this manifest does not define
               |
            12 | parent = "c"
               |          ^^^
            hint: did you mean `a`?

            error: manifests/m.toml:12:10: the pattern is flat, and node `b` lives on `c`
               |
            12 | parent = "c"
               |          ^^^
            hint: set `pattern: tiered`

            error: manifests/m.toml:13:1: a node has no key `sepc`
               |
            13 | sepc = "base"
               | ^^^^
            hint: did you mean `spec`?

            error: manifests/m.toml:15:1: this node has no `name`, which is required
               |
            15 | [[nodes]]
               | ^^^^^^^^^"#]],
    );
}

#[test]
fn broken_syntax_is_placed_in_every_language() {
    check(
        &[("manifests/m.yaml", "schema_version: 2\nname: m\nnodes: [{ name: a\n")],
        &expect![[r#"
        error: manifests/m.yaml:3:9: this is not YAML: unclosed bracket '{'
          |
        3 | nodes: [{ name: a
          |         ^"#]],
    );
    check(
        &[("manifests/m.yaml", "schema_version: 2\nname: m: n\n")],
        &expect![[r#"
        error: manifests/m.yaml:2:8: this is not YAML: mapping values are not allowed in this context
          |
        2 | name: m: n
          |        ^"#]],
    );
    check(
        &[("manifests/m.json", "{ \"schema_version\": 2,\n  name: \"m\" }\n")],
        &expect![[r#"
        error: manifests/m.json:2:3: expected a key in double quotes
          |
        2 |   name: "m" }
          |   ^"#]],
    );
    check(
        &[("manifests/m.toml", "schema_version = 2\nname = m\n")],
        &expect![[r#"
        error: manifests/m.toml:2:8: string values must be quoted, expected literal string
          |
        2 | name = m
          |        ^"#]],
    );
}

#[test]
fn an_invalid_json_escape_or_number_is_refused() {
    check(
        &[("manifests/m.json", r#"{ "name": "\ud83d\u0041" }"#)],
        &expect![[r#"
        error: manifests/m.json:1:24: half of a surrogate pair stands alone
          |
        1 | { "name": "\ud83d\u0041" }
          |                        ^"#]],
    );
    check(
        &[("manifests/m.json", r#"{ "schema_version": -.5 }"#)],
        &expect![[r#"
            error: manifests/m.json:1:21: this is not a JSON number
              |
            1 | { "schema_version": -.5 }
              |                     ^"#]],
    );
    check(
        &[("manifests/m.json", r#"{ "schema_version": 1.e3 }"#)],
        &expect![[r#"
            error: manifests/m.json:1:21: this is not a JSON number
              |
            1 | { "schema_version": 1.e3 }
              |                     ^"#]],
    );
    check(
        &[("manifests/m.json", r#"{ "schema_version": 02 }"#)],
        &expect![[r#"
            error: manifests/m.json:1:21: this is not a JSON number
              |
            1 | { "schema_version": 02 }
              |                     ^"#]],
    );
}

#[test]
fn a_nix_manifest_is_known_and_not_read() {
    check(
        &[("manifests/m.nix", "{ }")],
        &expect![[r#"
        error: manifests/m.nix:1:1: a manifest in Nix is not evaluated here
        hint: verbs about one manifest evaluate it; for a server, write it in YAML, JSON or TOML"#]],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_reason() {
    let file = Source {
        path: "specs/s.yaml".into(),
        place: Place::of("specs/s.yaml").expect("a spec"),
        content: Err("permission denied".into()),
    };
    expect!["error: specs/s.yaml:1:1: this file cannot be read: permission denied"]
        .assert_eq(&told(&Sources::new(vec![file])).to_string());
}

#[test]
fn the_name_of_a_file_is_its_key_and_must_be_one() {
    check(
        &[
            ("specs/My_Spec.yaml", "schema_version: 1\n"),
            ("hosts/../host.yaml", "provider: local\n"),
            ("presets/-.yaml", ""),
        ],
        &expect![[r#"
            error: hosts/../host.yaml:1:1: the file's name `..` is not a host name: lower-case letters, digits and `-`, first a letter, at most 63 characters

            error: presets/-.yaml:1:1: the file's name `-` is not a preset name: lower-case letters, digits and `-`, first a letter, at most 63 characters

            error: specs/My_Spec.yaml:1:1: the file's name `My_Spec` is not a spec name: lower-case letters, digits and `-`, first a letter, at most 63 characters"#]],
    );
}

#[test]
fn two_files_cannot_have_one_key() {
    check(
        &[("specs/base.json", "{\"schema_version\": 1}"), ("hosts/father/host.yaml", "provider: local\n")],
        &expect![[r#"
            error: hosts/father/host.yaml:1:1: `hosts/father.yaml` has the same name: a host is one file

            error: specs/base.yaml:1:1: `specs/base.json` has the same name: a spec is one file"#]],
    );
    check(
        &[("site.json", "{}")],
        &expect!["error: site.json:1:1: `site.yaml` is a site file too, and a site has one"],
    );
}

#[test]
fn two_files_of_the_manifest_that_is_asked_for_are_refused_in_its_scope_too() {
    let text = "schema_version: 2\nname: m\nnodes: [{ name: a, type: vm }]\n";
    let json = r#"{ "schema_version": 2, "name": "m", "nodes": [{ "name": "a", "type": "vm" }] }"#;
    let sources =
        site(&[("manifests/m.yaml", text), ("manifests/m.json", json), ("presets/vm-small.json", "{}")]);
    let name: ManifestName = "m".parse().expect("a name");
    let problems =
        parse(&sources, Scope::Manifest { name: &name, host: None }).expect_err("it is open which is meant");
    expect!["error: manifests/m.yaml:1:1: `manifests/m.json` has the same name: a manifest is one file"]
        .assert_eq(&problems.to_string());
}
