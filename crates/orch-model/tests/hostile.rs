//! Input that wants to harm: it is refused in bounded time and space, and never drives a terminal.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use std::fmt::Write;
use std::time::{Duration, Instant};

use common::{check, request, site, site_with_bytes, told};
use expect_test::expect;
use orch_model::{FileKind, Format, Place, Problems, Scope, Source, Sources, parse, resolve};

/// Far more than any of these needs, and far less than what grows with the square of the input.
const LIMIT: Duration = Duration::from_mins(1);
const FORMATS: [&str; 3] = ["manifests/m.yaml", "manifests/m.json", "manifests/m.toml"];

/// What is told about one file, which must be little and soon.
fn told_soon(path: &str, content: impl Into<Vec<u8>>) -> Problems {
    let start = Instant::now();
    let told = told(&site_with_bytes(path, content.into()));
    let text = told.to_string();
    assert!(start.elapsed() < LIMIT, "{path} took {:?}", start.elapsed());
    assert!(text.len() < 300_000, "{path}: {} bytes are told", text.len());
    told
}

fn refused_soon(path: &str, content: impl Into<Vec<u8>>, reason: &str) {
    let told = told_soon(path, content);
    assert!(told.has_errors(), "{path} is taken");
    assert!(told.to_string().contains(reason), "{path}: {told}");
}

fn repeated(count: usize, part: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for at in 0..count {
        text.push_str(&part(at));
    }
    text
}

/// A manifest of many nodes, each from its number.
fn manifest(nodes: usize, node: impl Fn(usize) -> String) -> String {
    let nodes = repeated(nodes, |at| format!("- {{ {} }}\n", node(at)));
    format!("schema_version: 2\nname: m\nnodes:\n{nodes}")
}

#[test]
fn aliases_cannot_expand_without_bound() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let uses = format!("*a{},", level - 1).repeat(10);
        writeln!(bomb, "a{level}: &a{level} [{uses}]").expect("a string takes it");
    }
    refused_soon("manifests/m.yaml", bomb, "aliases expand to more than 100000 values");
}

#[test]
fn aliases_of_a_long_text_cannot_expand_without_bound() {
    let text = format!("a: &a \"\\x41{}\"\nb: [{}]\n", "x".repeat(1_000_000), "*a,".repeat(50_000));
    refused_soon("manifests/m.yaml", text, "bytes of text");
}

#[test]
fn anchors_inside_anchors_cannot_hold_values_without_bound() {
    let nested: String = repeated(60, |level| format!("&a{level} ["));
    let text = format!("a: {nested}{}{}\n", "1,".repeat(100_000), "]".repeat(60));
    refused_soon("manifests/m.yaml", text, "anchors inside anchors hold too much");
    let text = format!("a: {nested}\"\\x41{}\"{}\n", "x".repeat(2_000_000), "]".repeat(60));
    refused_soon("manifests/m.yaml", text, "anchors inside anchors hold too much");
}

#[test]
fn aliases_cannot_nest_deeper_than_a_file_may() {
    let mut chain = String::from("schema_version: 1\nconfig:\n  a0: &a0 [x]\n");
    for level in 1..50 {
        let (open, close) = ("[".repeat(50), "]".repeat(50));
        writeln!(chain, "  a{level}: &a{level} {open}*a{}{close}", level - 1).expect("a string takes it");
    }
    refused_soon("specs/s.yaml", chain, "lists and maps may nest 64 deep, aliases written out");
}

#[test]
fn merge_keys_cannot_expand_without_bound() {
    let mut chain = String::from("a0: &a0 { k0: 1 }\n");
    for level in 1..1000 {
        writeln!(chain, "a{level}: &a{level} {{ <<: *a{}, k{level}: 1 }}", level - 1)
            .expect("a string takes it");
    }
    refused_soon("manifests/m.yaml", chain, "aliases expand to more than");
    let nested = format!("a: {}{}", "{ <<: ".repeat(50), "}".repeat(50));
    refused_soon("manifests/m.yaml", nested, "`<<` takes a map, or a list of maps");
    refused_soon("manifests/m.yaml", "a: &a { <<: *a }\n", "an alias repeats a whole value");
}

#[test]
fn a_hundred_thousand_levels_are_refused_in_every_language() {
    let deep = |part: &str| part.repeat(100_000);
    for (path, text) in [
        (FORMATS[0], deep("[")),
        (FORMATS[0], deep("- ")),
        (FORMATS[0], deep("{a: ")),
        (FORMATS[0], deep("? ")),
        (FORMATS[1], deep("[")),
        (FORMATS[1], deep("{\"a\":")),
        (FORMATS[2], format!("a = {}", deep("["))),
        (FORMATS[2], format!("a = {}", deep("{a="))),
        (FORMATS[2], format!("{}a = 1", deep("a."))),
        (FORMATS[2], format!("[{}a]", deep("a."))),
        (FORMATS[2], format!("[[{}a]]", deep("a."))),
    ] {
        refused_soon(path, text, path);
    }
}

#[test]
fn a_block_of_growing_indentation_is_refused() {
    let mut text = String::new();
    for level in 0..2000 {
        writeln!(text, "{}a:", " ".repeat(level)).expect("a string takes it");
    }
    refused_soon("manifests/m.yaml", text, "manifests/m.yaml");
}

#[test]
fn a_file_of_a_hundred_megabytes_is_refused_unread() {
    for path in FORMATS {
        refused_soon(path, vec![b' '; 100_000_000], "this file is larger than 32 MiB");
    }
}

#[test]
fn one_line_of_thirty_megabytes_is_cut() {
    let long = "x".repeat(30_000_000);
    let key = told_soon("manifests/m.json", format!("{{\"{long}\": 1, \"nmae\": 2}}"));
    let long = &long[..4_000_000];
    assert!(key.to_string().contains("did you mean `name`?"), "{key}");
    refused_soon("manifests/m.json", format!("{{\"a\": \"{long}\" x}}"), "expected `,` or `}`");
    let many: String = repeated(200, |at| format!("\"k{at}\": 1, "));
    refused_soon("manifests/m.json", format!("{{{many} \"z\": \"{long}\"}}"), "no key `k0`");
    refused_soon("manifests/m.toml", format!("a = \"{long}\"\n"), "a manifest has no key `a`");
}

#[test]
fn a_hundred_thousand_problems_of_one_line_stay_bounded() {
    let duplicates = format!("{{{}\"a\": 1}}", "\"a\": 1, ".repeat(100_000));
    let told = told_soon("manifests/m.json", duplicates);
    assert_eq!(told.len(), 101);
    let unknown: String = repeated(100_000, |at| format!("k{at}: 1, "));
    let told = told_soon("manifests/m.yaml", format!("{{ {unknown} }}"));
    assert_eq!(told.len(), 101);
}

#[test]
fn a_hundred_thousand_problems_of_one_file_are_counted() {
    let told = told_soon("manifests/m.yaml", manifest(50_000, |_| "typ: vm".to_owned()));
    let last = told.iter().last().map(ToString::to_string);
    // Each node has an unknown key, and no name.
    assert_eq!(
        last.as_deref(),
        Some("error: manifests/m.yaml:50004:1: 99900 more problems of this file are not shown")
    );
}

#[test]
fn many_keys_and_tables_of_toml_are_read_in_time() {
    let tables: String = repeated(20_000, |at| format!("[a.b{at}.c]\nd = 1\n"));
    refused_soon("manifests/m.toml", tables, "a manifest has no key `a`");
    let entries: String = "[[nodes]]\n".repeat(20_000);
    refused_soon("manifests/m.toml", entries, "this node has no `name`");
    refused_soon("manifests/m.toml", "a = 1\n".repeat(20_000), "duplicate key");
    refused_soon("manifests/m.toml", "=\n".repeat(20_000), "manifests/m.toml");
}

#[test]
fn bytes_that_are_no_utf_8_are_placed() {
    for path in FORMATS {
        let told = told_soon(path, *b"a: \xc3\xa4\n  b\xff: 1\n");
        let problem = told.iter().next().expect("a problem");
        assert_eq!((problem.position.line, problem.position.column), (2, 4), "{told}");
        assert_eq!(problem.message, "this file is not valid UTF-8 from here on");
    }
}

#[test]
fn a_nul_byte_is_placed() {
    for path in FORMATS {
        let told = told_soon(path, *b"a: 1\nb: \0x\n");
        let problem = told.iter().next().expect("a problem");
        assert_eq!((problem.position.line, problem.position.column), (2, 4), "{told}");
    }
}

#[test]
fn a_byte_order_mark_says_nothing() {
    let node = "{ name: a, type: vm }";
    check(
        &[("manifests/m.yaml", &format!("\u{feff}schema_version: 2\nname: m\nnodes: [{node}]\n"))],
        &expect![""],
    );
    let json =
        "\u{feff}{\"schema_version\": 2, \"name\": \"m\", \"nodes\": [{\"name\": \"a\", \"type\": \"vm\"}]}";
    check(&[("manifests/m.json", json)], &expect![""]);
    check(
        &[(
            "manifests/m.toml",
            "\u{feff}schema_version = 2\nname = \"m\"\nnodes = [{name = \"a\", type = \"vm\"}]\n",
        )],
        &expect![""],
    );
    check(
        &[("manifests/m.yaml", "\u{feff}nmae: m\n")],
        &expect![[r#"
            error: manifests/m.yaml:1:1: this manifest has no `schema_version`, which is required
              |
            1 | nmae: m
              | ^

            error: manifests/m.yaml:1:1: a manifest has no key `nmae`
              |
            1 | nmae: m
              | ^^^^
            hint: did you mean `name`?

            error: manifests/m.yaml:1:1: this manifest has no `nodes`, which is required
              |
            1 | nmae: m
              | ^"#]],
    );
}

#[test]
fn lines_that_end_as_on_windows_are_counted_right() {
    check(
        &[("manifests/m.yaml", "schema_version: 2\r\nname: m\r\nnodes:\r\n  - name: a\r\n    type: vmm\r\n")],
        &expect![[r#"
            error: manifests/m.yaml:5:11: `vmm` is not a type
              |
            5 |     type: vmm
              |           ^^^
            hint: did you mean `vm`?"#]],
    );
    check(
        &[(
            "manifests/m.toml",
            "schema_version = 2\r\nname = \"m\"\r\n\r\n[[nodes]]\r\nname = \"A\"\r\ntype = \"vm\"\r\n",
        )],
        &expect![[r#"
            error: manifests/m.toml:5:8: `A` is not a node name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            5 | name = "A"
              |        ^^^"#]],
    );
    check(
        &[("manifests/m.json", "{\r\n  \"schema_version\": 2,\r\n  \"name\": 3\r\n}\r\n")],
        &expect![[r#"
            error: manifests/m.json:1:1: this manifest has no `nodes`, which is required
              |
            1 | {
              | ^

            error: manifests/m.json:3:11: `3` is not a manifest name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            3 |   "name": 3
              |           ^"#]],
    );
}

#[test]
fn a_tab_counts_as_one_column() {
    check(
        &[("manifests/m.json", "{\n\t\"nmae\": \"m\"\n}\n")],
        &expect![[r#"
            error: manifests/m.json:1:1: this manifest has no `schema_version`, which is required
              |
            1 | {
              | ^

            error: manifests/m.json:1:1: this manifest has no `nodes`, which is required
              |
            1 | {
              | ^

            error: manifests/m.json:2:2: a manifest has no key `nmae`
              |
            2 |  "nmae": "m"
              |  ^^^^^^
            hint: did you mean `name`?"#]],
    );
    check(
        &[("manifests/m.yaml", "schema_version: 2\nname: m\nnodes:\n\t- name: a\n")],
        &expect![[r#"
        error: manifests/m.yaml:4:2: this is not YAML: tabs disallowed within this context (block indentation)
          |
        4 |  - name: a
          |  ^"#]],
    );
}

#[test]
fn a_file_that_says_nothing_is_no_manifest() {
    for text in ["", "\n\n", "# only a comment\n", "---\n", "~\n"] {
        let told = told_soon("manifests/m.yaml", text);
        assert!(
            told.to_string().contains("expected the keys of a manifest, found nothing"),
            "{text:?}: {told}"
        );
    }
    refused_soon("manifests/m.json", "", "expected a value");
    refused_soon("manifests/m.toml", "# only a comment\n", "this manifest has no `name`");
}

#[test]
fn an_empty_site_file_or_posture_is_fine() {
    check(&[("site.yaml", ""), ("postures/p.yaml", "# nothing\n")], &expect![""]);
}

#[test]
fn a_root_that_is_no_map_is_named() {
    check(
        &[("manifests/m.yaml", "just text\n"), ("specs/s.yaml", "- a\n- b\n"), ("presets/p.json", "3")],
        &expect![[r#"
            error: manifests/m.yaml:1:1: expected the keys of a manifest, found text `just text`
              |
            1 | just text
              | ^^^^^^^^^

            error: presets/p.json:1:1: expected the keys of a preset, found a number `3`
              |
            1 | 3
              | ^

            error: specs/s.yaml:1:1: expected the keys of a spec, found a list
              |
            1 | - a
              | ^"#]],
    );
}

#[test]
fn nothing_that_drives_a_terminal_is_told() {
    let nasty = "\u{1b}[2J\u{7}\u{9b}31m\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\u{8}\r";
    let codes: Vec<u32> = nasty.chars().map(u32::from).collect();
    let escaped = repeated(codes.len(), |at| format!("\\U{:08x}", codes[at]));
    let json = repeated(codes.len(), |at| format!("\\u{:04x}", codes[at]));
    let texts = [
        (
            "manifests/m.yaml",
            format!(
                "schema_version: 2\nname: \"{escaped}\"\n\"{escaped}\": 1\nnodes:\n  - {{ name: a, type: \"{escaped}\", \"{escaped}\": 1, \"{escaped}\": 2 }}\n"
            ),
        ),
        ("manifests/m.yaml", format!("description: {nasty} x\nname: [\n")),
        ("manifests/m.yaml", "description: \u{202e} x\nname: \u{202e}\n".to_owned()),
        (
            "manifests/m.json",
            format!("{{\"{json}\": 1, \"name\": \"{json}\", \"nodes\": \"\u{202e}\u{7f}\"}}"),
        ),
        ("manifests/m.toml", format!("\"{json}\" = 1\nname = \"{json}\"\ndescription = \u{202e}\n")),
        (
            "specs/s.yaml",
            format!("schema_version: 1\naccess: {{ posture: \"{escaped}\" }}\nconfig: !{nasty} x\n"),
        ),
        ("hosts/h.yaml", format!("provider: \"{escaped}\"\n")),
    ];
    for (path, text) in texts {
        let told = told_soon(path, text.clone());
        assert!(told.has_errors(), "{text:?}");
        assert_harmless(&told.to_string());
    }
}

#[test]
fn the_name_of_a_file_cannot_drive_a_terminal() {
    let place = Place { kind: FileKind::Spec, stem: "\u{1b}[2J".into(), format: Format::Yaml };
    let path = "specs/\u{1b}[2J\u{202e}.yaml".to_owned();
    let told = told(&Sources::new(vec![Source { path, place, content: Ok(Vec::new()) }]));
    assert!(told.has_errors());
    assert_harmless(&told.to_string());
}

fn assert_harmless(told: &str) {
    let drives = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
            || matches!(c, '\u{61c}' | '\u{2028}' | '\u{2029}')
    };
    assert!(!told.contains(drives), "{told:?}");
}

#[test]
fn names_that_climb_are_refused_wherever_a_name_stands() {
    for text in [
        "name: ../m",
        "nodes: [{ name: ../a, type: vm }]",
        "nodes: [{ name: a, type: vm, spec: ../../etc/passwd }]",
        "nodes: [{ name: a, type: vm, preset: /etc/passwd }]",
        "nodes: [{ name: a, type: vm, host: '..' }]",
        "nodes: [{ name: a, type: vm, parent: a/b }]",
        "nodes: [{ name: a, type: vm, tags: [../x] }]",
    ] {
        refused_soon("manifests/m.yaml", text, "lower-case letters, digits and `-`");
    }
}

#[test]
fn two_hundred_thousand_nodes_are_taken_and_one_more_is_refused_once() {
    let two = "nodes:\n- { name: a, type: vm, count: 100000 }\n- { name: b, type: vm, count: 100000 }\n";
    let text = format!("schema_version: 2\nname: m\n{two}");
    assert!(told_soon("manifests/m.yaml", text.clone()).is_empty());
    let more = format!("{text}- {{ name: c, type: vm }}\n- {{ name: d, type: vm, depends_on: [c] }}\n");
    let told = told_soon("manifests/m.yaml", more);
    assert_eq!(told.len(), 1, "{told}");
    assert!(told.to_string().contains("a manifest describes at most 200000 nodes"), "{told}");
}

#[test]
fn groups_that_are_defined_twice_are_told_once() {
    let text = manifest(2, |_| "name: a, type: vm, count: 100000".to_owned());
    assert_eq!(told_soon("manifests/m.yaml", text).len(), 1);
}

#[test]
fn large_groups_that_need_or_know_each_other_are_refused_when_resolved() {
    for nodes in [
        "nodes:\n- { name: a, type: vm, count: 100000 }\n- { name: b, type: vm, count: 100000, depends_on: [a] }\n",
        "pattern: mesh\nnodes:\n- { name: a, type: vm, count: 100000, peers: [a] }\n",
    ] {
        let start = Instant::now();
        let text = format!("schema_version: 2\nname: m\n{nodes}");
        let sources = site(&[("manifests/m.yaml", &text)]);
        let catalog = parse(&sources, Scope::Site).expect("the files are sound");
        let problems = resolve(&catalog, &request(Some("father"), None)).expect_err("it is too much");
        assert!(problems.to_string().contains("come to more than 4000000"), "{problems}");
        assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    }
}

#[test]
fn a_cycle_of_twenty_thousand_nodes_is_told_in_time() {
    let next = |at: usize| format!("name: n{at}, type: vm, depends_on: [n{}]", (at + 1) % 20_000);
    let told = told_soon("manifests/m.yaml", manifest(20_000, next));
    assert_eq!(told.len(), 1);
    assert!(told.to_string().contains("… 19988 more …"), "{told}");
}

#[test]
fn twenty_thousand_knots_are_told_in_time() {
    let own = |at: usize| format!("name: n{at}, type: vm, depends_on: [n{at}]");
    assert_eq!(told_soon("manifests/m.yaml", manifest(20_000, own)).len(), 101);
}

#[test]
fn twenty_thousand_unknown_parents_are_told_in_time() {
    let orphan = |at: usize| format!("name: node-{at}, type: vm, parent: nodes-{at}");
    assert_eq!(told_soon("manifests/m.yaml", manifest(20_000, orphan)).len(), 101);
}

#[test]
fn a_mesh_of_three_hundred_nodes_is_checked_in_time() {
    let all: Vec<String> = (0..300).map(|at| format!("n{at}")).collect();
    let node = |at: usize| {
        let others: Vec<&str> =
            all.iter().filter(|name| **name != format!("n{at}")).map(String::as_str).collect();
        format!("name: n{at}, type: vm, peers: [{}]", others.join(", "))
    };
    let text = manifest(300, node).replace("nodes:", "pattern: mesh\nnodes:");
    assert!(told_soon("manifests/m.yaml", text).is_empty());
}
