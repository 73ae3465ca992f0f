//! YAML 1.2 to values, from parser events, so that every value knows its place.
//!
//! Scalars follow the core schema, with one exception: digits with a leading zero stay text, because `0644` is a
//! file mode to every reader and 644 to the schema. Merge keys (`<<`) are understood; tags other than the core
//! ones, and several documents in a file, are not.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span as Marks, StrInput, Tag};

use super::{Data, Entry, Finding, MAX_DEPTH, MAX_VALUES, Reporter, Span, Value, refuse_duplicate_keys};
use crate::source::MAX_FILE_BYTES;

/// How many values aliases may stand for in one file.
const MAX_ALIAS_VALUES: usize = 100_000;
/// How many bytes of text aliases may stand for in one file.
const MAX_ALIAS_BYTES: usize = 16 * 1024 * 1024;

/// How many bytes of text may be kept for aliases.
const MAX_KEPT_BYTES: usize = 2 * MAX_FILE_BYTES;

/// Reading stopped; why has been reported.
struct Stopped;

pub(super) fn read<'a>(text: &'a str, problems: &mut Reporter<'a>) -> Option<Value<'a>> {
    let mut options = Options::default();
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    options.disallow_directives = true;
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(text, options);
    let tree = Tree {
        text,
        parser,
        problems,
        anchors: BTreeMap::new(),
        read: Amount::default(),
        kept: Amount::default(),
        from_aliases: Amount::default(),
        depth: 0,
    };
    tree.document().ok()
}

/// How much a part of a file comes to once aliases are written out.
#[derive(Clone, Copy, Default)]
struct Amount {
    values: usize,
    bytes: usize,
}

impl Amount {
    fn add(&mut self, more: Self) {
        self.values = self.values.saturating_add(more.values);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

struct Tree<'a, 'p> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    problems: &'p mut Reporter<'a>,
    /// Finished values that an alias may repeat, with what is in each.
    anchors: BTreeMap<usize, (Value<'a>, Amount)>,
    /// What was read so far.
    read: Amount,
    /// What of it is kept a second time, because it has an anchor.
    kept: Amount,
    from_aliases: Amount,
    /// How many lists and maps are open.
    depth: usize,
}

impl<'a> Tree<'a, '_> {
    fn document(mut self) -> Result<Value<'a>, Stopped> {
        let mut root = None;
        loop {
            let (event, marks) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(..) if root.is_some() => {
                    let span = self.span(marks);
                    let message = "a site file holds one document, and a second one starts here";
                    return self.stop(span, message);
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => root = Some(self.value(event, marks)?),
            }
        }
        Ok(root.unwrap_or(Value { span: Span::new(0, 0), data: Data::Null }))
    }

    fn next(&mut self) -> Result<(Event<'a>, Marks), Stopped> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => {
                let at = error.marker().byte_offset().unwrap_or(self.text.len());
                let message = format!("this is not YAML: {}", error.info());
                self.stop(Span::new(at, at), message)
            }
            None => Ok((Event::StreamEnd, Marks::default())),
        }
    }

    fn value(&mut self, event: Event<'a>, marks: Marks) -> Result<Value<'a>, Stopped> {
        let span = self.span(marks);
        let before = self.read;
        self.count(span)?;
        let anchor = event.anchor_id();
        let tag = event.tag().map(Tag::original);
        let data = match event {
            Event::Scalar(text, style, _, tag) => self.scalar(text, style, tag.as_deref(), marks),
            Event::SequenceStart(..) => self.nested(Self::list)?,
            Event::MappingStart(..) => self.nested(Self::map)?,
            Event::Alias(id) => return self.alias(id, span),
            _ => return self.stop(span, "this is not YAML: a value is missing here"),
        };
        if matches!(data, Data::List(_) | Data::Map(_)) {
            self.refuse_tag(tag.as_deref(), marks);
        }
        let value = Value { span, data };
        if let Some(id) = anchor {
            self.keep(id, &value, before)?;
        }
        Ok(value)
    }

    /// Keeps a value for its aliases. Anchors inside anchors keep the innermost values once for each, so what is
    /// kept has a limit of its own.
    fn keep(&mut self, id: usize, value: &Value<'a>, before: Amount) -> Result<(), Stopped> {
        let amount =
            Amount { values: self.read.values - before.values, bytes: self.read.bytes - before.bytes };
        self.kept.add(amount);
        if self.kept.values > MAX_VALUES || self.kept.bytes > MAX_KEPT_BYTES {
            return self.stop(value.span, "anchors inside anchors hold too much");
        }
        self.anchors.insert(id, (value.clone(), amount));
        Ok(())
    }

    /// Reads a list or map one level deeper; the parser limits how deep.
    fn nested(&mut self, read: fn(&mut Self) -> Result<Data<'a>, Stopped>) -> Result<Data<'a>, Stopped> {
        self.depth += 1;
        let data = read(self)?;
        self.depth -= 1;
        Ok(data)
    }

    fn list(&mut self) -> Result<Data<'a>, Stopped> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Data::List(items)),
                (event, marks) => items.push(self.value(event, marks)?),
            }
        }
    }

    fn map(&mut self) -> Result<Data<'a>, Stopped> {
        let mut entries = Vec::new();
        let mut merged: Vec<Entry<'a>> = Vec::new();
        loop {
            let (event, marks) = self.next()?;
            let key_span = self.span(marks);
            let (key, plain) = match event {
                Event::MappingEnd => break,
                Event::Scalar(text, style, ..) => (text, style == ScalarStyle::Plain),
                _ => return self.stop(key_span, "a key must be text"),
            };
            self.count(key_span)?;
            self.read.bytes = self.read.bytes.saturating_add(key.len());
            let (event, marks) = self.next()?;
            let value = self.value(event, marks)?;
            if plain && key == "<<" {
                self.merge(value, &mut merged)?;
            } else {
                entries.push(Entry { key, key_span, value });
            }
        }
        refuse_duplicate_keys(&entries, self.problems);
        let mut taken: BTreeSet<Cow<'a, str>> = entries.iter().map(|own| own.key.clone()).collect();
        entries.extend(merged.into_iter().filter(|entry| taken.insert(entry.key.clone())));
        Ok(Data::Map(entries))
    }

    /// Takes over the entries of a merged map, or of each map of a merged list.
    fn merge(&mut self, value: Value<'a>, into: &mut Vec<Entry<'a>>) -> Result<(), Stopped> {
        match value.data {
            Data::Map(entries) => into.extend(entries),
            Data::List(items) => {
                for item in items {
                    self.merge(item, into)?;
                }
            }
            _ => return self.stop(value.span, "`<<` takes a map, or a list of maps"),
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<Value<'a>, Stopped> {
        let Some((value, amount)) = self.anchors.get(&id) else {
            return self.stop(span, "an alias repeats a whole value, and cannot stand inside it");
        };
        self.from_aliases.add(*amount);
        self.read.add(*amount);
        if self.from_aliases.values > MAX_ALIAS_VALUES {
            return self.stop(span, format!("aliases expand to more than {MAX_ALIAS_VALUES} values"));
        }
        if self.from_aliases.bytes > MAX_ALIAS_BYTES {
            return self.stop(span, format!("aliases expand to more than {MAX_ALIAS_BYTES} bytes of text"));
        }
        // The parser does not see how deep a repeated value goes, and every later walk through the tree recurses.
        if self.depth + height(value) > MAX_DEPTH {
            return self.stop(span, format!("lists and maps may nest {MAX_DEPTH} deep, aliases written out"));
        }
        Ok(Value { span, data: value.data.clone() })
    }

    fn scalar(
        &mut self,
        text: Cow<'a, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        marks: Marks,
    ) -> Data<'a> {
        self.read.bytes = self.read.bytes.saturating_add(text.len());
        match tag {
            Some(tag) if tag.is_yaml_core_schema_tag("str") => Data::Text(text),
            Some(tag) => {
                self.refuse_tag(Some(&tag.original()), marks);
                Data::Null
            }
            None if style == ScalarStyle::Plain => plain(text),
            None => Data::Text(text),
        }
    }

    fn refuse_tag(&mut self, tag: Option<&str>, marks: Marks) {
        if let Some(tag) = tag {
            let span = marks.tag_span().map_or_else(|| self.span(marks), |tag| self.span(tag));
            self.problems.report(Finding::new(span, format!("the tag `{tag}` has no meaning here")));
        }
    }

    fn count(&mut self, span: Span) -> Result<(), Stopped> {
        self.read.values += 1;
        if self.read.values > MAX_VALUES {
            return self.stop(span, format!("a file may hold at most {MAX_VALUES} values"));
        }
        Ok(())
    }

    fn span(&self, marks: Marks) -> Span {
        let offset = |mark: granit_parser::Marker| mark.byte_offset().unwrap_or(self.text.len());
        Span::new(offset(marks.start), offset(marks.end))
    }

    fn stop<T>(&mut self, span: Span, message: impl Into<alloc::string::String>) -> Result<T, Stopped> {
        self.problems.report(Finding::new(span, message));
        Err(Stopped)
    }
}

/// How many lists and maps lie inside each other in a value.
fn height(value: &Value<'_>) -> usize {
    match &value.data {
        Data::List(items) => 1 + items.iter().map(height).max().unwrap_or_default(),
        Data::Map(entries) => 1 + entries.iter().map(|entry| height(&entry.value)).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Gives a plain scalar its type.
pub(super) fn plain(text: Cow<'_, str>) -> Data<'_> {
    match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => return Data::Null,
        "true" | "True" | "TRUE" => return Data::Bool(true),
        "false" | "False" | "FALSE" => return Data::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" => return Data::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Data::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Data::Float(f64::NAN),
        _ => {}
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).map_or(Data::Text(text), Data::Int);
    }
    let digits = text.trim_start_matches(['-', '+']);
    let starts_as_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if !starts_as_number || leading_zero || text.len() - digits.len() > 1 {
        return Data::Text(text);
    }
    if let Ok(int) = text.parse() {
        return Data::Int(int);
    }
    let is_float =
        digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'-' | b'+'));
    match text.parse() {
        Ok(float) if is_float => Data::Float(float),
        _ => Data::Text(text),
    }
}
