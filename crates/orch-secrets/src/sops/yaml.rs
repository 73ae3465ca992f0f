//! YAML to a tree, from parser events, so that every value knows its place and is typed as sops types it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput};

use super::document::{Comment, Documents, Fault};
use super::node::{Data, Entry, MAX_BYTES, MAX_DEPTH, MAX_NODES, Value};
use super::scalar;
use crate::Secret;

/// Reads every document.
pub(super) fn read(text: &str) -> Result<Documents, Fault> {
    let mut options = Options::default();
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    options.set_emit_comments(true);
    let mut reader = Reader {
        text,
        parser: Parser::new_from_str_with_options(text, options),
        anchors: BTreeMap::new(),
        comments: Vec::new(),
        nodes: 0,
        bytes: 0,
        kept: 0,
        kept_bytes: 0,
        depth: 0,
        has_aliases: false,
    };
    let mut roots = Vec::new();
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            event => {
                let at = reader.range(span).start;
                let root = reader.value(event, span)?;
                roots.push(match root.data {
                    Data::Map(_) => root,
                    Data::Null => Value::new(root.span, Data::Map(Vec::new())),
                    _ => return Err(Fault::at(at, "a document of a sops file is a map")),
                });
            }
        }
    }
    Ok(Documents { roots, comments: reader.comments, has_aliases: reader.has_aliases })
}

/// How much a value comes to.
#[derive(Clone, Copy)]
struct Amount {
    nodes: usize,
    bytes: usize,
    /// How many lists and maps lie inside each other.
    height: usize,
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    /// Finished values that an alias may repeat, with how much is in each.
    anchors: BTreeMap<usize, (Value, Amount)>,
    comments: Vec<Comment>,
    nodes: usize,
    /// How much of the text was read, aliases written out.
    bytes: usize,
    /// How many values are kept for aliases, and how many bytes.
    kept: usize,
    kept_bytes: usize,
    depth: usize,
    has_aliases: bool,
}

impl<'a> Reader<'a> {
    /// The next event that is not a comment; those are put aside.
    fn next(&mut self) -> Result<(Event<'a>, Span), Fault> {
        loop {
            match self.parser.next_event() {
                Some(Ok((Event::Comment(..), span))) => {
                    let range = self.range(span);
                    self.count(1)?;
                    self.comments.push(Comment::of(self.text, range));
                }
                Some(Ok(next)) => return Ok(next),
                Some(Err(error)) => {
                    let at = error.marker().byte_offset().unwrap_or(self.text.len());
                    return Err(Fault::at(at, "this is not YAML"));
                }
                None => return Ok((Event::StreamEnd, Span::default())),
            }
        }
    }

    fn value(&mut self, event: Event<'a>, span: Span) -> Result<Value, Fault> {
        let range = self.range(span);
        let before = (self.nodes, self.bytes);
        self.count(1)?;
        let anchor = event.anchor_id();
        let value = match event {
            Event::Scalar(text, style, _, tag) => {
                self.count_bytes(text.len())?;
                let data = match tag.as_deref() {
                    Some(tag) if tag.is_yaml_core_schema_tag("str") => text_of(&text),
                    Some(tag) => tagged(tag.original().trim_start_matches('!'), &text, range.start)?,
                    None if style == ScalarStyle::Plain => {
                        let data = scalar::plain(&text);
                        data.ok_or(Fault::at(range.start, "a whole number is too large for sops"))?
                    }
                    None => text_of(&text),
                };
                Value::new(range, data)
            }
            Event::SequenceStart(..) => self.nested(&range, Self::list)?,
            Event::MappingStart(..) => self.nested(&range, Self::map)?,
            Event::Alias(id) => return self.alias(id, range),
            _ => return Err(Fault::at(range.start, "this is not YAML: a value is missing here")),
        };
        if let Some(id) = anchor {
            let (nodes, bytes) = (self.nodes - before.0, self.bytes - before.1);
            self.kept += nodes;
            self.kept_bytes += bytes;
            if self.kept > MAX_NODES || self.kept_bytes > MAX_BYTES {
                return Err(Fault::too_large("anchors inside anchors hold too much"));
            }
            let amount = Amount { nodes, bytes, height: height(&value) };
            self.anchors.insert(id, (value.clone(), amount));
        }
        Ok(value)
    }

    fn nested(
        &mut self,
        range: &Range<usize>,
        read: fn(&mut Self) -> Result<(Data, usize), Fault>,
    ) -> Result<Value, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::too_large("lists and maps lie too deep in each other"));
        }
        let (data, end) = read(self)?;
        self.depth -= 1;
        Ok(Value::new(range.start..end.max(range.start), data))
    }

    fn list(&mut self) -> Result<(Data, usize), Fault> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, span) => return Ok((Data::List(items), self.range(span).end)),
                (event, span) => items.push(self.value(event, span)?),
            }
        }
    }

    fn map(&mut self) -> Result<(Data, usize), Fault> {
        let mut entries = Vec::new();
        let mut taken = BTreeSet::new();
        loop {
            let (event, span) = self.next()?;
            let key_span = self.range(span);
            let key = match event {
                Event::MappingEnd => return Ok((Data::Map(entries), key_span.end)),
                Event::Scalar(text, style, ..) => {
                    let is_text =
                        style != ScalarStyle::Plain || matches!(scalar::plain(&text), Some(Data::Text(_)));
                    if !is_text {
                        return Err(Fault::at(key_span.start, "a key must be text"));
                    }
                    text.into_owned()
                }
                _ => return Err(Fault::at(key_span.start, "a key must be text")),
            };
            self.count(1)?;
            self.count_bytes(key.len())?;
            if !taken.insert(key.clone()) {
                return Err(Fault::at(key_span.start, "a key stands twice in one map"));
            }
            let (event, span) = self.next()?;
            let value = self.value(event, span)?;
            entries.push(Entry { key, key_span, value });
        }
    }

    fn alias(&mut self, id: usize, range: Range<usize>) -> Result<Value, Fault> {
        let missing = Fault::at(range.start, "an alias repeats a whole value, and cannot stand inside it");
        let amount = self.anchors.get(&id).ok_or(missing)?.1;
        self.has_aliases = true;
        // Counted before it is copied.
        self.count(amount.nodes)?;
        self.count_bytes(amount.bytes)?;
        if self.depth + amount.height > MAX_DEPTH {
            return Err(Fault::too_large("lists and maps lie too deep in each other, aliases written out"));
        }
        // It stands where the alias does, and what is in it where the anchor is.
        let data = self.anchors.get(&id).map_or(Data::Null, |(value, _)| value.data.clone());
        Ok(Value::new(range, data))
    }

    fn count(&mut self, more: usize) -> Result<(), Fault> {
        self.nodes = self.nodes.saturating_add(more);
        if self.nodes > MAX_NODES {
            return Err(Fault::too_large("it has too many values, aliases written out"));
        }
        Ok(())
    }

    fn count_bytes(&mut self, more: usize) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > 2 * MAX_BYTES {
            return Err(Fault::too_large("it has too much text, aliases written out"));
        }
        Ok(())
    }

    fn range(&self, span: Span) -> Range<usize> {
        let end = self.text.len();
        let start = span.start.byte_offset().unwrap_or(end).min(end);
        start..span.end.byte_offset().unwrap_or(end).clamp(start, end)
    }
}

/// A scalar with a tag. One that is not of YAML itself says nothing to sops.
fn tagged(tag: &str, text: &str, at: usize) -> Result<Data, Fault> {
    match tag {
        "null" | "bool" | "int" | "float" | "timestamp" | "binary" => {
            scalar::tagged(tag, text).ok_or(Fault::at(at, "a tag and its value do not go together"))
        }
        _ => Ok(text_of(text)),
    }
}

fn text_of(text: &str) -> Data {
    Data::Text(Secret::from(text.to_owned()))
}

fn height(value: &Value) -> usize {
    match &value.data {
        Data::List(items) => 1 + items.iter().map(height).max().unwrap_or_default(),
        Data::Map(entries) => 1 + entries.iter().map(|entry| height(&entry.value)).max().unwrap_or_default(),
        _ => 0,
    }
}
