//! The YAML that people write by hand in site files, read several times as fast as a whole YAML parser can.
//!
//! Block maps and lists, one-line scalars and one-line flow collections, in plain ASCII. Whatever else there is in a
//! text, mistakes included, makes it not simple, and the whole parser reads it; so nothing is ever refused here. A test
//! compares the two, value by value and place by place, on whatever this one reads.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::yaml::plain;
use super::{Data, Entry, MAX_DEPTH, MAX_VALUES, Span, Value};

/// Reads a text that is simple; `None` says that it is not, and nothing else.
pub(super) fn read(text: &str) -> Option<Value<'_>> {
    let lines = lines(text)?;
    let mut reader = Reader { text, lines, at: 0, depth: 0, values: 0 };
    let root = reader.block(0)?;
    (reader.at == reader.lines.len()).then_some(root)
}

/// A line with something on it: where its content begins and ends, and in which column it begins.
#[derive(Clone, Copy)]
struct Line {
    indent: usize,
    start: usize,
    end: usize,
}

/// The lines that are neither empty nor a comment; nothing where a character is not plain.
fn lines(text: &str) -> Option<Vec<Line>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        if !line.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return None;
        }
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        if !content.is_empty() && !content.starts_with('#') {
            let end = start + line.trim_end_matches(' ').len();
            lines.push(Line { indent, start: start + indent, end });
        }
        start += line.len() + 1;
    }
    Some(lines)
}

struct Reader<'a> {
    text: &'a str,
    lines: Vec<Line>,
    at: usize,
    depth: usize,
    values: usize,
}

impl<'a> Reader<'a> {
    /// A map or a list whose entries begin in this column.
    fn block(&mut self, indent: usize) -> Option<Value<'a>> {
        let line = *self.lines.get(self.at).filter(|line| line.indent == indent)?;
        self.count(1)?;
        self.nested(
            |reader| if reader.is_item(line) { reader.list(indent, line.start) } else { reader.map(indent) },
        )
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let value = (self.depth < MAX_DEPTH).then(|| read(self))??;
        self.depth -= 1;
        Some(value)
    }

    /// Counts values and keys as the whole parser does; too many of them are its to refuse.
    fn count(&mut self, more: usize) -> Option<()> {
        self.values += more;
        (self.values <= MAX_VALUES).then_some(())
    }

    fn map(&mut self, indent: usize) -> Option<Value<'a>> {
        let start = self.lines[self.at].start;
        let mut entries: Vec<Entry<'a>> = Vec::new();
        while let Some(line) = self.next_in(indent).filter(|line| !self.is_item(*line)) {
            let key_end = self.key_end(line)?;
            let key = &self.text[line.start..key_end];
            self.count(1)?;
            self.at += 1;
            let value = self.value_after(indent, key_end + 1, line.end)?;
            entries.push(Entry { key: Cow::Borrowed(key), key_span: Span::new(line.start, key_end), value });
        }
        self.is_left(indent)?;
        has_distinct_keys(&entries)
            .then_some(Value { span: Span::new(start, start), data: Data::Map(entries) })
    }

    fn list(&mut self, indent: usize, start: usize) -> Option<Value<'a>> {
        let mut items = Vec::new();
        while let Some(line) = self.next_in(indent).filter(|line| self.is_item(*line)) {
            let inner = self.item(line)?;
            let item = if self.key_end(inner).is_some() {
                self.lines[self.at] = inner;
                self.block(inner.indent)?
            } else {
                self.at += 1;
                self.value_after(indent, inner.start, inner.end)?
            };
            items.push(item);
        }
        self.is_left(indent)?;
        Some(Value { span: Span::new(start, start), data: Data::List(items) })
    }

    /// What stands behind a dash, as if it were a line of its own: neither nothing, nor a comment, nor another dash.
    fn item(&self, line: Line) -> Option<Line> {
        let content = self.text[line.start + 1..line.end].trim_start_matches(' ');
        let start = line.end - content.len();
        let inner = Line { indent: line.indent + start - line.start, start, ..line };
        let is_empty = content.is_empty() || content.starts_with('#');
        (!is_empty && !self.is_item(inner)).then_some(inner)
    }

    /// The value behind a key, or behind a dash where there is one. What stands in this line must not go on in the next.
    fn value_after(&mut self, indent: usize, start: usize, end: usize) -> Option<Value<'a>> {
        let content = self.text[start..end].trim_start_matches(' ');
        let next = self.lines.get(self.at).copied();
        if content.is_empty() || content.starts_with('#') {
            return match next {
                Some(next) if next.indent > indent => self.block(next.indent),
                Some(next) if next.indent == indent && self.is_item(next) => {
                    // Beside its key, a list begins for the whole parser where its first item does.
                    let first = self.item(next)?.start;
                    self.count(1)?;
                    self.nested(|reader| reader.list(indent, first))
                }
                _ => {
                    self.count(1)?;
                    Some(Value { span: Span::new(start - 1, start - 1), data: Data::Null })
                }
            };
        }
        if next.is_some_and(|next| next.indent > indent) {
            return None;
        }
        let (value, after) = self.one_line(end - content.len(), end)?;
        is_comment(&self.text[after..end]).then_some(value)
    }

    /// A value that ends in its line, and where it ends.
    fn one_line(&mut self, start: usize, end: usize) -> Option<(Value<'a>, usize)> {
        self.count(1)?;
        let content = &self.text[start..end];
        match content.as_bytes().first()? {
            b'[' => self.nested(|reader| reader.flow_list(start, end)),
            b'{' => self.nested(|reader| reader.flow_map(start, end)),
            quote @ (b'"' | b'\'') => self.quoted(*quote as char, start, end),
            _ => {
                let plain_end = start + content.find(" #").unwrap_or(content.len());
                let text = self.text[start..plain_end].trim_end_matches(' ');
                let is_plain = begins_plain(text) && !text.contains(": ") && !text.ends_with(':');
                let span = Span::new(start, start + text.len());
                is_plain.then(|| (Value { span, data: plain(Cow::Borrowed(text)) }, plain_end))
            }
        }
    }

    fn quoted(&self, quote: char, start: usize, end: usize) -> Option<(Value<'a>, usize)> {
        let inner = &self.text[start + 1..end];
        let length = inner.find(quote)?;
        let (text, after) = (&inner[..length], start + length + 2);
        // An escape, or a quote that is doubled, needs the whole parser.
        let is_simple = !text.contains('\\') && !self.text[after..end].starts_with(quote);
        let value = Value { span: Span::new(start, after), data: Data::Text(Cow::Borrowed(text)) };
        is_simple.then_some((value, after))
    }

    fn flow_list(&mut self, start: usize, end: usize) -> Option<(Value<'a>, usize)> {
        let mut items = Vec::new();
        let mut at = self.skip(start + 1, end);
        while self.byte(at, end)? != b']' {
            let (item, after) = self.flow_value(at, end)?;
            items.push(item);
            at = self.next_flow(after, end, b']')?;
        }
        let span = Span::new(start, start + 1);
        Some((Value { span, data: Data::List(items) }, at + 1))
    }

    fn flow_map(&mut self, start: usize, end: usize) -> Option<(Value<'a>, usize)> {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        let mut at = self.skip(start + 1, end);
        while self.byte(at, end)? != b'}' {
            let key_end = self.key_end(Line { indent: 0, start: at, end })?;
            let key = Cow::Borrowed(&self.text[at..key_end]);
            self.count(1)?;
            let (value, after) = self.flow_value(self.skip(key_end + 1, end), end)?;
            entries.push(Entry { key, key_span: Span::new(at, key_end), value });
            at = self.next_flow(after, end, b'}')?;
        }
        let span = Span::new(start, start + 1);
        has_distinct_keys(&entries).then_some((Value { span, data: Data::Map(entries) }, at + 1))
    }

    fn flow_value(&mut self, at: usize, end: usize) -> Option<(Value<'a>, usize)> {
        if matches!(self.byte(at, end)?, b'[' | b'{' | b'"' | b'\'') {
            return self.one_line(at, end);
        }
        self.count(1)?;
        let content = &self.text[at..end];
        let length = content.find(|c: char| !is_word(c)).unwrap_or(content.len());
        let word = &content[..length];
        let value = Value { span: Span::new(at, at + length), data: plain(Cow::Borrowed(word)) };
        begins_plain(word).then_some((value, at + length))
    }

    /// Where the next entry of a flow collection begins, or where the collection ends.
    fn next_flow(&self, after: usize, end: usize, close: u8) -> Option<usize> {
        let at = self.skip(after, end);
        match self.byte(at, end)? {
            b',' => {
                let next = self.skip(at + 1, end);
                (self.byte(next, end)? != close).then_some(next)
            }
            byte => (byte == close).then_some(at),
        }
    }

    fn skip(&self, at: usize, end: usize) -> usize {
        let rest = &self.text[at.min(end)..end];
        end - rest.trim_start_matches(' ').len()
    }

    fn byte(&self, at: usize, end: usize) -> Option<u8> {
        self.text.as_bytes()[..end].get(at).copied()
    }

    /// The current line, if it begins in this column.
    fn next_in(&self, indent: usize) -> Option<Line> {
        self.lines.get(self.at).copied().filter(|line| line.indent == indent)
    }

    /// A collection ends where a line begins further left; anything else is for the whole parser to judge.
    fn is_left(&self, indent: usize) -> Option<()> {
        let next = self.lines.get(self.at);
        // A list may stand in the same column as the map that it ends in.
        next.is_none_or(|next| next.indent <= indent).then_some(())
    }

    fn is_item(&self, line: Line) -> bool {
        let content = &self.text[line.start..line.end];
        content == "-" || content.starts_with("- ")
    }

    /// Where the key of a line ends, if the line begins with one.
    fn key_end(&self, line: Line) -> Option<usize> {
        let content = &self.text[line.start..line.end];
        let length = content.find(|c: char| !is_word(c))?;
        let after = &content[length..];
        let is_key = after == ":" || after.starts_with(": ");
        let is_plain = length <= 64 && content.starts_with(|c: char| c.is_ascii_alphabetic());
        (is_key && is_plain).then_some(line.start + length)
    }
}

/// Characters that mean nothing to YAML wherever they stand within a word.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '+' | '-' | '@' | '$')
}

/// Whether a plain scalar may begin so, whatever comes after.
fn begins_plain(text: &str) -> bool {
    let mut bytes = text.bytes();
    match bytes.next() {
        Some(b'-') => bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric()),
        Some(byte) => byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'~' | b'.' | b'('),
        None => false,
    }
}

/// Whether nothing, or only a comment, stands behind a value.
fn is_comment(rest: &str) -> bool {
    let content = rest.trim_start_matches(' ');
    content.is_empty() || (content.starts_with('#') && content.len() < rest.len())
}

/// Maps in which a key is given twice, and large ones, are for the whole parser, which knows what to say.
fn has_distinct_keys(entries: &[Entry<'_>]) -> bool {
    let repeats =
        |(at, entry): (usize, &Entry<'_>)| entries[..at].iter().any(|before| before.key == entry.key);
    entries.len() <= 64 && !entries.iter().enumerate().any(repeats)
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::read;
    use crate::text::{Reporter, yaml};

    /// The two readers of YAML, on a text that the quick one takes; how often it did is the caller's to judge.
    fn agree(text: &str) -> bool {
        let Some(quick) = read(text) else { return false };
        let mut problems = Reporter::new("f");
        problems.set_text(text);
        let whole = yaml::read(text, &mut problems);
        let found = problems.finish();
        assert!(found.is_empty(), "{text}\n{found}");
        assert_eq!(Some(quick), whole, "{text}");
        true
    }

    #[test]
    fn simple_yaml_is_read_as_the_whole_parser_reads_it() {
        for text in [
            "a: 1\nb:\n  c: x y # hi\n  d:\n  - p\n  - q: 1\n    r: 2\n",
            "e: [u, 'v', {w: 1, z: 0644}]\nf:\n# c\ng: \"q\"\nh: {}\ni: []\n",
            "nodes:\n  - { name: a, type: vm }\n\n  - name: b\n    tags: [x, y]   # why\n    parent: null\n",
            "a:\n  - 1\n  - -2\n  - 1.5e3\nb: ~\nc: no\nd: http://x:80/y#z\n",
            "a: b\n\n",
            "- a\n- b: 1\n- [c]\n",
            "a:\n  b:\n    c:\n      - d:\n          e: f\n        g: h\n",
        ] {
            assert!(agree(text), "this is simple:\n{text}");
        }
    }

    /// Files of the sample site, as people write them.
    const SAMPLES: [&str; 6] = [
        include_str!("../../../../manifests/edge.yaml"),
        include_str!("../../../../manifests/nested-test.yaml"),
        include_str!("../../../../hosts/cloud.yaml"),
        include_str!("../../../../specs/dns.yaml"),
        include_str!("../../../../postures/prod.yaml"),
        include_str!("../../../../presets/vm-small.yaml"),
    ];

    #[test]
    fn what_people_write_is_simple() {
        let simple = SAMPLES.iter().filter(|text| agree(text)).count();
        assert!(simple >= 4, "only {simple} of the samples are simple");
    }

    #[test]
    fn what_is_not_simple_is_left_to_the_whole_parser() {
        for text in [
            "",
            "a",
            "a: &x 1",
            "a: *x",
            "a: !t 1",
            "a: |\n  b\n",
            "a: b\n  c\n",
            "a: \"x\\n\"",
            "a: 'it''s'",
            "---\na: 1",
            "a: 1\na: 2",
            "? a\n: b",
            "a:\tb",
            "a: b: c",
            " a: 1",
            "a: [b,]",
            "a: [b: c]",
            "a: {b}",
            "a:\n    b: 1\n  c: 2",
            "<<: {}",
            "\"a\": 1",
            "a: %b",
            "a: ä",
            "-\n  a: 1",
            "- - a",
            "a: [b\n]",
            "a: 'b' c",
            "a: [b] c",
            "a: 'b'#c",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    /// A text of lines that are often simple, and often not quite.
    fn nearly_simple() -> impl Strategy<Value = String> {
        let line = "(- |- - )?([a-z]{1,2}: ?)?([a-z0-9.~-]{0,3}|'[a-z ]{0,2}'|\"[a-z#]{0,2}\"|\\[[a-z, ]{0,5}\\]|\\{[a-z:, ]{0,6}\\}|# c|a #c|a#c)";
        let line =
            (0_usize..4, line).prop_map(|(indent, line)| [&" ".repeat(indent), line.as_str(), "\n"].concat());
        vec(line, 0..8).prop_map(|lines| lines.concat())
    }

    /// A sample with some characters changed, taken out or put in.
    fn tampered() -> impl Strategy<Value = String> {
        let edit = (any::<Index>(), "[ \n:#,'\"a0{}\\[\\]-]{0,2}", 0_usize..3);
        (0..SAMPLES.len(), vec(edit, 1..4)).prop_map(|(sample, edits)| {
            let mut text = String::from(SAMPLES[sample]);
            for (at, new, gone) in edits {
                let at = at.index(text.len());
                text.replace_range(at..(at + gone).min(text.len()), &new);
            }
            text
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn both_readers_agree_on_whatever_the_quick_one_reads(texts in vec(nearly_simple(), 8)) {
            for text in texts {
                agree(&text);
            }
        }

        #[test]
        fn both_readers_agree_on_samples_that_were_tampered_with(texts in vec(tampered(), 8)) {
            for text in texts {
                agree(&text);
            }
        }
    }
}
