//! Whatever a file holds, reading it ends, does not panic, and points into the file.

mod common;

use std::fs;
use std::path::Path;

use common::{site_with_bytes, told};
use proptest::prelude::*;

const PATHS: [&str; 9] = [
    "site.yaml",
    "hosts/father.yaml",
    "manifests/m.yaml",
    "manifests/m.json",
    "manifests/m.toml",
    "specs/base.yaml",
    "specs/base.json",
    "presets/vm-small.toml",
    "postures/dev.yaml",
];

/// Reads a file and checks that everything that is told about it lies within it.
fn check_positions(path: &str, content: &[u8]) {
    let problems = told(&site_with_bytes(path, content.to_vec()));
    let text = String::from_utf8_lossy(content);
    let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(&text).split('\n').collect();
    for problem in problems.iter().filter(|problem| problem.file.as_deref() == Some(path)) {
        let (line, column) = (problem.position.line, problem.position.column);
        assert!((1..=lines.len()).contains(&line), "{problem}");
        assert!((1..=lines[line - 1].chars().count() + 1).contains(&column), "{problem}");
        if let Some(excerpt) = &problem.excerpt {
            assert!(excerpt.width >= 1 && excerpt.indent <= excerpt.line.chars().count(), "{problem}");
        }
    }
    let shown = problems.to_string();
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
}

/// Text made of the pieces that the three languages are made of, which random characters hardly ever form.
fn pieces() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "schema_version",
        "name",
        "nodes",
        "type",
        "vm",
        "parent",
        "count",
        "2",
        "true",
        "~",
        "null",
        "secret:x",
        ": ",
        "- ",
        "\n",
        "\n  ",
        "\n    ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "\"",
        "'",
        "&a ",
        "*a",
        "<<: ",
        "!t ",
        "|\n",
        ">\n ",
        "#",
        "=",
        "[[",
        "]]",
        "\\u00e9",
        "\\",
        "é",
        "\u{1b}",
        "\t",
        "\r\n",
        "---\n",
        "...",
        "? ",
        "%",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|words| words.concat())
}

fn sample_files() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![("site.yaml".to_owned(), fs::read(root.join("site.yaml")).expect("the site file"))];
    for folder in ["hosts", "manifests", "specs", "presets", "postures"] {
        for entry in fs::read_dir(root.join(folder)).expect("the folder").flatten() {
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if orch_model::Place::of(&name).is_some() {
                files.push((name, fs::read(entry.path()).expect("a sample file")));
            }
        }
    }
    files.sort();
    files
}

/// One change to a file: some bytes at a place are replaced by others.
fn mutations() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, Vec<u8>)>> {
    let inserted = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4),
        prop::sample::select(vec!["\n", ": ", "- ", "}", "\"", "\u{202e}", "*a", "[", "0", "\t"])
            .prop_map(|text: &str| text.as_bytes().to_vec()),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0_u8..6, inserted), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_read_or_refused_within_the_file(text in "\\PC{0,60}(\n\\PC{0,30}){0,4}", path in prop::sample::select(PATHS.to_vec())) {
        check_positions(path, text.as_bytes());
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused_within_the_file(bytes in prop::collection::vec(any::<u8>(), 0..80), path in prop::sample::select(PATHS.to_vec())) {
        check_positions(path, &bytes);
    }

    #[test]
    fn text_of_known_pieces_is_read_or_refused_within_the_file(text in pieces(), path in prop::sample::select(PATHS.to_vec())) {
        check_positions(path, text.as_bytes());
    }

    #[test]
    fn a_changed_sample_file_is_read_or_refused_within_the_file(file in prop::sample::select(sample_files()), changes in mutations()) {
        let (path, mut content) = file;
        for (at, removed, inserted) in changes {
            let start = at.index(content.len() + 1);
            let end = (start + usize::from(removed)).min(content.len());
            content.splice(start..end, inserted);
        }
        check_positions(&path, &content);
    }
}
