//! Text to a tree of values with their places, the same for YAML, JSON and TOML.
//!
//! Nothing here knows what a manifest is. Every limit that keeps hostile input from taking time or memory
//! without bound lives here: size, depth, number of values, alias expansion.

mod json;
mod report;
mod simple;
mod toml;
mod yaml;

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

pub(crate) use report::{Finding, Reporter};

use crate::source::{Format, MAX_FILE_BYTES, Source};
use crate::word::shorten;

/// How deep lists and maps may nest.
const MAX_DEPTH: usize = 64;
/// How many values one file may hold: twice what a manifest of 100,000 well-described nodes needs.
const MAX_VALUES: usize = 4_000_000;

/// A part of a file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// A span of byte offsets; files are small enough for 32 bits, see [`MAX_FILE_BYTES`].
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(end.max(start)) }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value<'a> {
    pub(crate) span: Span,
    pub(crate) data: Data<'a>,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Value<'a>>),
    Map(Vec<Entry<'a>>),
}

impl Data<'_> {
    /// The kind of value, as a person would say it.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

/// One key of a map with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_span: Span,
    pub(crate) value: Value<'a>,
}

/// The text of a source, or a report of why there is none.
pub(crate) fn decode_utf8<'a>(source: &'a Source, problems: &mut Reporter<'a>) -> Option<&'a str> {
    let bytes = match &source.content {
        Ok(bytes) => bytes,
        Err(why) => {
            problems.report(Finding::about_file(format!("this file cannot be read: {why}")));
            return None;
        }
    };
    if bytes.len() > MAX_FILE_BYTES {
        let mib = MAX_FILE_BYTES / 1024 / 1024;
        problems.report(Finding::about_file(format!("this file is larger than {mib} MiB")));
        return None;
    }
    let text = match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let (valid, _) = bytes.split_at(error.valid_up_to());
            problems.set_text(core::str::from_utf8(valid).unwrap_or_default());
            let span = Span::new(valid.len(), valid.len());
            problems.report(Finding::new(span, "this file is not valid UTF-8 from here on"));
            return None;
        }
    };
    // Some editors put a byte order mark in front of every file; it says nothing, and columns do not count it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    problems.set_text(text);
    if let Some(offset) = text.find('\0') {
        problems
            .report(Finding::new(Span::new(offset, offset + 1), "a NUL byte cannot be part of a site file"));
        return None;
    }
    Some(text)
}

/// Reads `text` into a tree; what is wrong with it goes to `problems`.
pub(crate) fn read<'a>(format: Format, text: &'a str, problems: &mut Reporter<'a>) -> Option<Value<'a>> {
    match format {
        Format::Yaml => simple::read(text).or_else(|| yaml::read(text, problems)),
        Format::Json => json::read(text, problems),
        Format::Toml => toml::read(text, problems),
        Format::Nix => {
            problems.report(
                Finding::about_file("a manifest in Nix is not evaluated here").hint(
                    "verbs about one manifest evaluate it; for a server, write it in YAML, JSON or TOML",
                ),
            );
            None
        }
    }
}

/// Reports keys that a map gives twice; the first one counts.
fn refuse_duplicate_keys(entries: &[Entry<'_>], problems: &mut Reporter<'_>) {
    // Almost every map is small and free of them; comparing its keys is cheaper than sorting them.
    let repeats =
        |(at, entry): (usize, &Entry<'_>)| entries[..at].iter().any(|before| before.key == entry.key);
    if entries.len() <= 16 && !entries.iter().enumerate().any(repeats) {
        return;
    }
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    for entry in entries {
        if let Some(first) = seen.insert(&entry.key, entry.key_span) {
            let line = problems.line_of(first);
            let message = format!("key `{}` is given twice", shorten(&entry.key));
            problems.report(
                Finding::new(entry.key_span, message).hint(format!("it stands first in line {line}")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use core::fmt::Write;

    use expect_test::{Expect, expect};

    use super::*;

    /// Shows a tree in one line: values as JSON would write them, with their place for scalars.
    fn show(value: &Value<'_>) -> String {
        match &value.data {
            Data::Null => "null".to_string(),
            Data::Bool(b) => b.to_string(),
            Data::Int(i) => i.to_string(),
            Data::Float(f) => format!("{f:?}"),
            Data::Text(t) => format!("{t:?}@{}..{}", value.span.start, value.span.end),
            Data::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
            Data::Map(entries) => {
                let shown: Vec<_> =
                    entries.iter().map(|e| format!("{}: {}", e.key, show(&e.value))).collect();
                format!("{{{}}}", shown.join(", "))
            }
        }
    }

    fn check(format: Format, text: &str, expected: &Expect) {
        let mut problems = Reporter::new("f");
        problems.set_text(text);
        let value = read(format, text, &mut problems);
        let found = problems.finish();
        let shown = value.map_or_else(String::new, |v| show(&v));
        expected.assert_eq(format!("{shown}\n{found}").trim());
    }

    #[test]
    fn yaml_scalars_follow_yaml_1_2_and_leading_zeros_stay_text() {
        check(
            Format::Yaml,
            "[no, yes, true, 12, 0x1f, 0644, 1.5, ~, '7', 1e3, -4]",
            &expect![[
                r#"["no"@1..3, "yes"@5..8, true, 12, 31, "0644"@26..30, 1.5, null, "7"@40..43, 1000.0, -4]"#
            ]],
        );
    }

    #[test]
    fn yaml_anchors_and_merge_keys_expand() {
        check(
            Format::Yaml,
            "a: &x {k: 1, l: 2}\nb: *x\nc: {<<: *x, l: 3}\n",
            &expect!["{a: {k: 1, l: 2}, b: {k: 1, l: 2}, c: {l: 3, k: 1}}"],
        );
    }

    #[test]
    fn yaml_keys_given_twice_are_refused_with_both_places() {
        check(
            Format::Yaml,
            "a: 1\nb: 2\na: 3\n",
            &expect![[r"
                {a: 1, b: 2, a: 3}
                error: f:3:1: key `a` is given twice
                  |
                3 | a: 3
                  | ^
                hint: it stands first in line 1"]],
        );
    }

    #[test]
    fn a_second_document_and_custom_tags_are_refused() {
        check(
            Format::Yaml,
            "a: !secret x\n",
            &expect![[r"
                {a: null}
                error: f:1:4: the tag `!secret` has no meaning here
                  |
                1 | a: !secret x
                  |    ^^^^^^^"]],
        );
        check(
            Format::Yaml,
            "a: 1\n---\nb: 2\n",
            &expect![[r"
                error: f:2:1: a site file holds one document, and a second one starts here
                  |
                2 | ---
                  | ^^^"]],
        );
    }

    #[test]
    fn an_alias_bomb_is_refused_in_bounded_time() {
        let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let uses = format!("*a{},", level - 1).repeat(10);
            writeln!(text, "a{level}: &a{level} [{uses}]").expect("a string takes it");
        }
        let mut problems = Reporter::new("f");
        problems.set_text(&text);
        assert!(read(Format::Yaml, &text, &mut problems).is_none());
        assert!(problems.finish().to_string().contains("aliases expand to more than"));
    }

    #[test]
    fn a_hundred_thousand_levels_are_refused_at_once() {
        for (format, text) in [
            (Format::Yaml, "[".repeat(100_000)),
            (Format::Yaml, "- ".repeat(100_000)),
            (Format::Yaml, "{a: ".repeat(100_000)),
            (Format::Json, "[".repeat(100_000)),
            (Format::Json, "{\"a\":".repeat(100_000)),
            (Format::Toml, format!("a = {}", "[".repeat(100_000))),
            (Format::Toml, format!("a = {}", "{a=".repeat(100_000))),
            (Format::Toml, format!("{}a = 1", "a.".repeat(100_000))),
        ] {
            let mut problems = Reporter::new("f");
            problems.set_text(&text);
            assert!(read(format, &text, &mut problems).is_none(), "{format:?}");
            assert!(problems.finish().has_errors());
        }
    }

    #[test]
    fn json_is_read_with_places_and_escapes() {
        check(
            Format::Json,
            "{\"a\": [1, -2.5, true, null], \"b\": \"x\\u00e9\\ud83d\\ude00\\n\"}",
            &expect![[r#"{a: [1, -2.5, true, null], b: "xé😀\n"@34..57}"#]],
        );
    }

    #[test]
    fn broken_json_is_named_where_it_breaks() {
        check(
            Format::Json,
            "{\n  \"a\": 1,\n}",
            &expect![[r"
                error: f:3:1: expected a key in double quotes
                  |
                3 | }
                  | ^"]],
        );
        check(
            Format::Json,
            "[1 2]",
            &expect![[r"
                error: f:1:4: expected `,` or `]`
                  |
                1 | [1 2]
                  |    ^"]],
        );
    }

    #[test]
    fn toml_is_read_with_places() {
        check(
            Format::Toml,
            "a = 1\n[b]\nc = [\"x\", true]\n[[n]]\nd = 1.5\n[[n]]\nd = 0x10\n",
            &expect![[r#"{a: 1, b: {c: ["x"@15..18, true]}, n: [{d: 1.5}, {d: 16}]}"#]],
        );
    }

    #[test]
    fn every_slip_of_a_toml_file_is_named() {
        check(
            Format::Toml,
            "a = \nb = 2\na = 3\n",
            &expect![[r"
                error: f:1:5: string values must be quoted, expected literal string
                  |
                1 | a = 
                  |     ^

                error: f:3:1: duplicate key
                  |
                3 | a = 3
                  | ^"]],
        );
    }
}
