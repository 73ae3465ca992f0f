//! Changes to the text of a file, by the places of what is changed, so that everything else stays as it is.

use std::ops::Range;

use super::cipher::DataKey;
use super::emit;
use super::encrypt::same;
use super::error::SopsError;
use super::metadata::Wrapped;
use super::node::{Data, Entry, Value};
use super::opened::Opened;
use super::{Format, SopsFile, dotenv, ini, plain};

/// Parts of a text, and what takes their place.
#[derive(Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.0.push((range, text.into()));
    }

    /// Makes the changes. Nothing where two of them are about the same place.
    pub(crate) fn apply(mut self, text: &[u8]) -> Option<Vec<u8>> {
        self.0.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = Vec::with_capacity(text.len() + 1024);
        let mut at = 0;
        for (range, new) in &self.0 {
            out.extend(text.get(at..range.start)?);
            out.extend(new.as_bytes());
            at = range.end;
        }
        out.extend(text.get(at..)?);
        Some(out)
    }
}

impl SopsFile {
    /// The metadata with another MAC.
    pub(super) fn edit_mac(
        &self,
        edits: &mut Edits,
        last_modified: &str,
        mac: &str,
    ) -> Result<(), SopsError> {
        for (name, text) in [("lastmodified", last_modified), ("mac", mac)] {
            if self.is_flat() {
                let entry = self.flat_fields()?.into_iter().find(|(key, _)| key == name);
                let (_, entry) = entry.ok_or_else(|| self.spoiled("its metadata cannot be found"))?;
                edits.replace(entry.value.span, text);
                continue;
            }
            for place in self.places.iter().flatten() {
                let Some(field) = place.value.field(name) else { continue };
                edits.replace(
                    self.tight(&field.span),
                    self.restyled(&field.span, text, name == "lastmodified"),
                );
            }
        }
        Ok(())
    }

    /// The metadata with other recipients.
    pub(super) fn edit_recipients(&self, edits: &mut Edits, group: &[Wrapped]) -> Result<(), SopsError> {
        if self.is_flat() {
            return self.edit_flat_recipients(edits, group);
        }
        let list = emit::recipients(group);
        for place in self.places.iter().flatten() {
            let is_flow = self.starts_with(&place.value.span, b"{");
            let first =
                place.value.entries().first().ok_or_else(|| self.spoiled("its metadata are empty"))?;
            let old = place.value.entry("age");
            let at = old.map_or(first.key_span.start, |entry| entry.key_span.start);
            let written = if is_flow { self.flow_list(&list) } else { self.block_list(&list, at) };
            let written = written.ok_or_else(|| self.spoiled("its recipients cannot be written"))?;
            match old {
                Some(entry) if is_flow => edits.replace(entry.value.span.clone(), written),
                Some(entry) => edits.replace(entry.key_span.end..self.end_of(entry), format!(":{written}")),
                None if is_flow => edits.replace(at..at, format!("\"age\": {written},{}", self.margin(at))),
                None => edits.replace(at..at, format!("age:{written}{}", self.margin(at))),
            }
        }
        Ok(())
    }

    fn flow_list(&self, list: &Value) -> Option<String> {
        let mut out = String::new();
        plain::write(list, 2, &mut out)?;
        // Tabs are no indentation in YAML, and need not be anything there.
        Some(if self.format == Format::Yaml { out.replace(['\n', '\t'], "") } else { out })
    }

    /// The list, from behind its colon to where its last line ends.
    fn block_list(&self, list: &Value, at: usize) -> Option<String> {
        let mut out = String::from("\n");
        emit::block(list, self.column(at) + 4, &mut out)?;
        out.truncate(out.trim_end().len());
        Some(out)
    }

    fn edit_flat_recipients(&self, edits: &mut Edits, group: &[Wrapped]) -> Result<(), SopsError> {
        let fields = self.flat_fields()?;
        let old: Vec<&Entry> =
            fields.iter().filter(|(key, _)| key.starts_with("age__list_")).map(|(_, entry)| entry).collect();
        let first = old.first().copied().or(fields.first().map(|(_, entry)| entry));
        let at = first.ok_or_else(|| self.spoiled("its metadata are empty"))?.key_span.start;
        let mut lines = Vec::new();
        emit::flatten_into("age", &emit::recipients(group), &mut lines);
        let mut written = String::new();
        for (key, value) in lines {
            if self.format == Format::Ini {
                let value =
                    ini::quote(&value).ok_or_else(|| self.spoiled("its recipients cannot be written"))?;
                written.push_str(&format!("{key} = {value}\n"));
            } else {
                written.push_str(&format!("{}{key}={value}\n", dotenv::PREFIX));
            }
        }
        edits.replace(at..at, written);
        for entry in old {
            let end = self.line_end(entry.value.span.end);
            edits.replace(entry.key_span.start..(end + 1).min(self.text.len()), "");
        }
        Ok(())
    }

    fn is_flat(&self) -> bool {
        matches!(self.format, Format::Dotenv | Format::Ini)
    }

    /// The fields of metadata that are lines, by their names.
    fn flat_fields(&self) -> Result<Vec<(String, Entry)>, SopsError> {
        let documents = super::read(&self.file, self.format, &self.text)?;
        let root = documents.roots.first().ok_or_else(|| self.spoiled("it is empty"))?;
        let own = |entry: &Entry| Some((entry.key.strip_prefix(dotenv::PREFIX)?.to_owned(), entry.clone()));
        if self.format == Format::Dotenv {
            return Ok(root.entries().iter().filter_map(own).collect());
        }
        let section = root.field("sops").map(Value::entries).unwrap_or_default();
        Ok(section.iter().map(|entry| (entry.key.clone(), entry.clone())).collect())
    }

    /// A text as the one in its place was written: in quotes or not.
    pub(super) fn restyled(&self, old: &Range<usize>, text: &str, needs_quotes: bool) -> String {
        match (self.format, self.text.get(old.start)) {
            (Format::Json | Format::Binary, _) => emit::json_text(text),
            (Format::Yaml, Some(b'"' | b'\'' | b'|' | b'>')) => emit::yaml_quoted(text),
            (Format::Yaml, _) if needs_quotes || text.is_empty() => emit::yaml_quoted(text),
            _ => text.to_owned(),
        }
    }

    /// Where a value stands, without the line breaks that end a text of several lines.
    pub(super) fn tight(&self, span: &Range<usize>) -> Range<usize> {
        let text = self.text.get(span.clone()).unwrap_or_default();
        span.start..span.start + text.trim_ascii_end().len()
    }

    pub(super) fn starts_with(&self, span: &Range<usize>, byte: &[u8]) -> bool {
        self.text.get(span.clone()).is_some_and(|text| text.starts_with(byte))
    }

    /// Where what belongs to an entry ends, without space and comments behind it.
    pub(super) fn end_of(&self, entry: &Entry) -> usize {
        self.end_of_value(&entry.value).max(entry.key_span.end)
    }

    pub(super) fn end_of_value(&self, value: &Value) -> usize {
        let is_flow = self.starts_with(&value.span, b"[") || self.starts_with(&value.span, b"{");
        match &value.data {
            Data::List(items) if !is_flow => {
                items.last().map_or(value.span.start, |item| self.end_of_value(item))
            }
            Data::Map(entries) if !is_flow => {
                entries.last().map_or(value.span.start, |entry| self.end_of(entry))
            }
            _ => self.tight(&value.span).end,
        }
    }

    /// How far from the beginning of its line something stands. Nothing that matters stands further than this looks.
    pub(super) fn column(&self, at: usize) -> usize {
        let near = &self.text[at.saturating_sub(10_000)..at];
        near.iter().rev().position(|byte| *byte == b'\n').unwrap_or(near.len())
    }

    /// The line break and the space before something that begins its line.
    pub(super) fn margin(&self, at: usize) -> String {
        let before = &self.text[at - self.column(at)..at];
        let space = before.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).copied();
        format!("\n{}", String::from_utf8_lossy(&space.collect::<Vec<u8>>()))
    }

    pub(super) fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
    }

    /// Makes the changes, and reads and opens what came of them: it is handed out only where it is what was meant.
    pub(super) fn finish(
        &self,
        edits: Edits,
        key: DataKey,
        meant: &[Value],
    ) -> Result<(Vec<u8>, Opened), SopsError> {
        let text = edits.apply(&self.text).ok_or_else(|| self.spoiled("two changes are about one place"))?;
        let again = SopsFile::parse_as(&self.file, self.format, &text)?.open_with(key)?;
        let is_meant =
            again.roots.len() == meant.len() && again.roots.iter().zip(meant).all(|(a, b)| same(a, b));
        if is_meant { Ok((text, again)) } else { Err(self.spoiled("its values would be others")) }
    }

    pub(super) fn spoiled(&self, what: &'static str) -> SopsError {
        SopsError::Spoiled { file: self.file.clone(), what }
    }

    pub(super) fn left_to_sops(&self, what: &str, instead: &'static str) -> SopsError {
        SopsError::Unsupported { file: self.file.clone(), what: what.to_owned(), instead }
    }
}
