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

/// How many values aliases may stand for in one file.
const MAX_ALIAS_VALUES: usize = 100_000;

/// Reading stopped; why has been reported.
struct Stopped;

pub(super) fn read<'a>(text: &'a str, problems: &mut Reporter<'a>) -> Option<Value<'a>> {
    let mut options = Options::default();
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    options.disallow_directives = true;
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(text, options);
    Tree { text, parser, problems, anchors: BTreeMap::new(), values: 0, from_aliases: 0 }.document().ok()
}

struct Tree<'a, 'p> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    problems: &'p mut Reporter<'a>,
    /// Finished values that an alias may repeat, with the number of values in each.
    anchors: BTreeMap<usize, (Value<'a>, usize)>,
    values: usize,
    from_aliases: usize,
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
        let before = self.values;
        self.count(span)?;
        let anchor = event.anchor_id();
        let tag = event.tag().map(Tag::original);
        let data = match event {
            Event::Scalar(text, style, _, tag) => self.scalar(text, style, tag.as_deref(), marks),
            Event::SequenceStart(..) => self.list()?,
            Event::MappingStart(..) => self.map()?,
            Event::Alias(id) => return self.alias(id, span),
            _ => return self.stop(span, "this is not YAML: a value is missing here"),
        };
        if matches!(data, Data::List(_) | Data::Map(_)) {
            self.refuse_tag(tag.as_deref(), marks);
        }
        let value = Value { span, data };
        if let Some(id) = anchor {
            self.anchors.insert(id, (value.clone(), self.values - before));
        }
        Ok(value)
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
        let Some((value, size)) = self.anchors.get(&id) else {
            return self.stop(span, "an alias cannot stand inside the value that it repeats");
        };
        self.from_aliases += size;
        self.values += size;
        let data = value.data.clone();
        if self.from_aliases > MAX_ALIAS_VALUES {
            return self.stop(span, format!("aliases expand to more than {MAX_ALIAS_VALUES} values"));
        }
        Ok(Value { span, data })
    }

    fn scalar(
        &mut self,
        text: Cow<'a, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        marks: Marks,
    ) -> Data<'a> {
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
        self.values += 1;
        if self.values > MAX_VALUES {
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

/// Gives a plain scalar its type.
fn plain(text: Cow<'_, str>) -> Data<'_> {
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
