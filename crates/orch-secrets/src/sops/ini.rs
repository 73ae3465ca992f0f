//! INI as go-ini reads it, which is what sops uses: sections, `=` or `:`, quotes, lines that go on.

use std::collections::BTreeSet;

use super::document::{Comment, Documents, Fault};
use super::node::{Data, Entry, MAX_NODES, Value};
use crate::Secret;

/// The section of what stands before every section.
const DEFAULT: &str = "DEFAULT";

/// Reads the sections, metadata among them.
pub(super) fn read(text: &str) -> Result<Documents, Fault> {
    let mut reader = Reader { text, at: 0, comments: Vec::new(), nodes: 0 };
    let mut sections = vec![section(DEFAULT, 0..0)];
    // The names that are taken: of sections, and of keys in the last one.
    let (mut names, mut keys) = (BTreeSet::new(), BTreeSet::new());
    while let Some((start, line)) = reader.line() {
        let trimmed = line.trim_start();
        let start = start + line.len() - trimmed.len();
        match trimmed.as_bytes().first() {
            None => {}
            Some(b'#' | b';') => reader.comment(start, trimmed)?,
            Some(b'[') => {
                let close = trimmed.rfind(']').ok_or(Fault::at(start, "a section has no `]`"))?;
                let name = &trimmed[1..close];
                reader.count()?;
                reader.comment_in(start + close + 1, &trimmed[close + 1..])?;
                let is_first = name == DEFAULT && sections.len() == 1;
                if !names.insert(name) || (name == DEFAULT && !is_first) {
                    return Err(Fault::at(start, "a section stands twice"));
                }
                if !is_first {
                    sections.push(section(name, start + 1..start + close));
                    keys.clear();
                }
            }
            Some(_) => {
                let entry = reader.entry(start, trimmed)?;
                let section = sections.last_mut().expect("there is always the first section");
                let Data::Map(entries) = &mut section.value.data else { continue };
                if !keys.insert(entry.key.clone()) {
                    return Err(Fault::at(start, "a key stands twice in one section"));
                }
                entries.push(entry);
            }
        }
    }
    let mut documents = Documents::one(Value::new(0..text.len(), Data::Map(sections)));
    documents.comments = reader.comments;
    Ok(documents)
}

fn section(name: &str, span: std::ops::Range<usize>) -> Entry {
    let value = Value::new(span.clone(), Data::Map(Vec::new()));
    Entry { key: name.to_owned(), key_span: span, value }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    comments: Vec<Comment>,
    nodes: usize,
}

impl<'a> Reader<'a> {
    /// The next line, with its break, and where it starts.
    fn line(&mut self) -> Option<(usize, &'a str)> {
        let start = self.at;
        let rest = self.text.get(start..).filter(|rest| !rest.is_empty())?;
        let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
        self.at += length;
        Some((start, &rest[..length]))
    }

    fn comment(&mut self, start: usize, comment: &str) -> Result<(), Fault> {
        self.count()?;
        self.comments.push(Comment::of(self.text, start..start + comment.trim_end().len()));
        Ok(())
    }

    fn count(&mut self) -> Result<(), Fault> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Fault::too_large("it has too many values"));
        }
        Ok(())
    }

    /// The comment behind something, if there is one.
    fn comment_in(&mut self, start: usize, text: &str) -> Result<(), Fault> {
        text.find(['#', ';']).map_or(Ok(()), |at| self.comment(start + at, &text[at..]))
    }

    fn entry(&mut self, start: usize, line: &'a str) -> Result<Entry, Fault> {
        self.count()?;
        let (key, behind) = key(line).ok_or(Fault::at(start, "a line has no key, or no `=`"))?;
        let (value, span) = self.value(start + behind, &line[behind..])?;
        let key_span = start..start + behind;
        Ok(Entry { key: key.to_owned(), key_span, value: Value::new(span, Data::Text(Secret::from(value))) })
    }

    fn value(&mut self, start: usize, raw: &'a str) -> Result<(String, std::ops::Range<usize>), Fault> {
        let text = raw.trim_start();
        let start = start + raw.len() - text.len();
        if text.is_empty() {
            // The place behind the sign, and not the beginning of the next line.
            let at = start - (raw.len() - raw.trim_end_matches(['\r', '\n']).len()).min(raw.len());
            return Ok((String::new(), at..at));
        }
        let quote = match text.as_bytes() {
            [b'"', b'"', b'"', _, ..] => "\"\"\"",
            [b'`', ..] => "`",
            _ => "",
        };
        if !quote.is_empty() {
            let inner = &text[quote.len()..];
            if let Some(end) = inner.rfind(quote) {
                return Ok((inner[..end].to_owned(), start..start + end + 2 * quote.len()));
            }
            return self.several_lines(start, inner, quote);
        }
        let text = text.trim_end();
        if let Some(first) = text.strip_suffix('\\') {
            return Ok(self.continued(start, first));
        }
        let mut end = text.len();
        if let Some(at) = text.find(['#', ';']) {
            self.comment(start + at, &text[at..])?;
            end = text[..at].trim_end().len();
        }
        let text = &text[..end];
        Ok((unquoted(text).to_owned(), start..start + end))
    }

    fn several_lines(
        &mut self,
        start: usize,
        first: &str,
        quote: &str,
    ) -> Result<(String, std::ops::Range<usize>), Fault> {
        let mut value = first.to_owned();
        while let Some((at, line)) = self.line() {
            if let Some(end) = line.rfind(quote) {
                value.push_str(&line[..end]);
                return Ok((value, start..at + end + quote.len()));
            }
            value.push_str(line);
        }
        Err(Fault::at(start, "a quote has no end"))
    }

    fn continued(&mut self, start: usize, first: &str) -> (String, std::ops::Range<usize>) {
        let mut value = first.to_owned();
        let mut end = start + first.len() + 1;
        while let Some((at, line)) = self.line() {
            let next = line.trim();
            if next.is_empty() {
                break;
            }
            end = at + line.trim_end().len();
            value.push_str(next);
            if !value.ends_with('\\') {
                break;
            }
            value.pop();
        }
        (value, start..end)
    }
}

/// The key of a line, and where its value begins.
fn key(line: &str) -> Option<(&str, usize)> {
    let quote = match line.as_bytes() {
        [b'"', b'"', b'"', rest @ ..] if rest.len() > 3 => "\"\"\"",
        [b'"', ..] => "\"",
        [b'`', ..] => "`",
        _ => {
            let end = line.find(['=', ':']).filter(|end| *end > 0)?;
            return Some((line[..end].trim(), end + 1));
        }
    };
    let inner = &line[quote.len()..];
    let end = inner.find(quote)?;
    let behind = quote.len() + end + quote.len();
    let delimiter = line[behind..].find(['=', ':'])?;
    Some((inner[..end].trim(), behind + delimiter + 1))
}

fn unquoted(text: &str) -> &str {
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote)
            && inner.find(quote).is_some_and(|at| at + 1 == inner.len())
        {
            return &inner[..inner.len() - 1];
        }
    }
    text
}

/// Writes a value as go-ini does. Nothing for what it would not read again as the same.
pub(super) fn quote(text: &str) -> Option<String> {
    let quoted = if text.contains(['\n', '`']) {
        format!("\"\"\"{text}\"\"\"")
    } else if text.contains(['#', ';'])
        || text.ends_with('\\')
        || text.trim() != text
        || unquoted(text) != text
    {
        format!("`{text}`")
    } else {
        text.to_owned()
    };
    let line = format!("k = {quoted}\n");
    let again = read(&line).ok()?;
    let same = again.roots[0].entries().first()?.value.field("k")?.as_text() == Some(text);
    same.then_some(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_what_go_ini_takes_them_for() {
        let text = "a = 1\nb:two # said\n[s]\nc = \"x\"\nd = `a#b`\ne = \"\"\"l1\nl2\"\"\"\nf = a \\\n  b\ng =\n; h\n";
        let documents = read(text).map_err(|_| ()).expect("this is INI");
        let mut found = Vec::new();
        for section in documents.roots[0].entries() {
            for entry in section.value.entries() {
                found.push(format!(
                    "{}.{}={}",
                    section.key,
                    entry.key,
                    entry.value.as_text().unwrap_or_default()
                ));
            }
        }
        let expected = ["DEFAULT.a=1", "DEFAULT.b=two", "s.c=x", "s.d=a#b", "s.e=l1\nl2", "s.f=a b", "s.g="];
        assert_eq!(found, expected);
        assert_eq!(documents.comments.len(), 2);
    }
}
