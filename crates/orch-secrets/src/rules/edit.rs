//! Recipients put into and taken out of `.sops.yaml` as text, so that comments and order stay.
//!
//! What comes of a change is read again, and must mean what was meant and nothing else.

use std::ops::Range;

use super::{Rules, RulesError, read, rules, texts};
use crate::reader::Reader;
use crate::sops::{Data, Edits, Entry, Value, same};

/// The text with one more recipient in the rule that is for a file. The same text where it is there already.
pub fn add_recipient(text: &str, path: &str, recipient: &Reader) -> Result<String, RulesError> {
    let mut meant = Rules::parse(text)?;
    let at = meant.matching(path)?;
    let groups = &mut meant.0[at].policy.groups;
    if groups.iter().flatten().any(|reader| reader.is_same(recipient)) {
        return Ok(text.to_owned());
    }
    let [group] = groups.as_mut_slice() else {
        return Err(cannot("the key is shared out among several groups, and it is not said which"));
    };
    group.push(recipient.clone());
    let root = read(text)?;
    let rule = &rules(&root)?[at];
    let place = match rule.field("key_groups").map(Value::items) {
        Some([group]) => group,
        _ => rule,
    };
    let mut edits = Edits::default();
    Editor { text }.add(&mut edits, place, recipient)?;
    finish(text, edits, &root, &meant)
}

/// The text without a recipient, in whatever rules it stands. The same text where it stands in none.
pub fn remove_recipient(text: &str, recipient: &Reader) -> Result<String, RulesError> {
    let mut meant = Rules::parse(text)?;
    let root = read(text)?;
    let mut edits = Edits::default();
    let mut changes = false;
    for (at, rule) in rules(&root)?.iter().enumerate() {
        for group in &mut meant.0[at].policy.groups {
            let before = group.len();
            group.retain(|reader| !reader.is_same(recipient));
            changes |= group.len() < before;
            if group.is_empty() && before > 0 {
                return Err(RulesError::LastRecipient { recipient: recipient.clone(), number: at + 1 });
            }
        }
        let groups = rule.field("key_groups").map(Value::items).unwrap_or_default();
        for place in groups.iter().chain([rule]) {
            Editor { text }.remove(&mut edits, place, recipient)?;
        }
    }
    if changes { finish(text, edits, &root, &meant) } else { Ok(text.to_owned()) }
}

fn cannot(what: &'static str) -> RulesError {
    RulesError::CannotEdit { what }
}

/// Makes the changes, and compares what they mean.
fn finish(text: &str, edits: Edits, old: &Value, meant: &Rules) -> Result<String, RulesError> {
    let changed = edits.apply(text.as_bytes()).and_then(|bytes| String::from_utf8(bytes).ok());
    let changed = changed.ok_or(cannot("two changes are about one place"))?;
    let new = read(&changed)?;
    // Order within a group says nothing.
    let sorted = |rules: &Rules| {
        let mut rules = rules.clone();
        rules.0.iter_mut().flat_map(|rule| &mut rule.policy.groups).for_each(|group| group.sort());
        rules
    };
    let is_meant =
        sorted(&Rules::parse(&changed)?) == sorted(meant) && same(&without_age(&new), &without_age(old));
    if is_meant {
        Ok(changed)
    } else {
        Err(cannot("the way it is written is not one that can be changed safely"))
    }
}

/// Everything that a change must leave as it is.
fn without_age(value: &Value) -> Value {
    let data = match &value.data {
        Data::List(items) => Data::List(items.iter().map(without_age).collect()),
        Data::Map(entries) => {
            let rest = entries.iter().filter(|entry| entry.key != "age");
            let rest = rest.map(|entry| Entry { value: without_age(&entry.value), ..entry.clone() });
            Data::Map(rest.collect())
        }
        data => data.clone(),
    };
    Value::new(value.span.clone(), data)
}

struct Editor<'a> {
    text: &'a str,
}

impl Editor<'_> {
    fn add(&self, edits: &mut Edits, place: &Value, recipient: &Reader) -> Result<(), RulesError> {
        // What is said about a key of SSH behind it may hold anything.
        let words: Vec<&str> = recipient.as_str().split_whitespace().take(2).collect();
        let new = words.join(" ");
        match place.entry("age").map(|entry| (entry, &entry.value.data)) {
            Some((entry, Data::Text(_))) => self.add_to_text(edits, &entry.value, &new)?,
            Some((entry, Data::List(items))) => self.add_to_list(edits, &entry.value, items, &new)?,
            Some((entry, Data::Null)) => {
                let at = entry.key_span.end;
                let colon = self.text[at..].find(':').ok_or(cannot("`age` has no colon"))?;
                let end = entry.value.span.end.max(at + colon + 1);
                edits.replace(at + colon + 1..end, format!(" {new}"));
            }
            Some(_) => return Err(cannot("`age` is neither a text nor a list")),
            None => {
                let first = place.entries().first().ok_or(cannot("the rule is empty"))?;
                if self.text[place.span.clone()].starts_with('{') {
                    return Err(cannot("the rule is written on one line"));
                }
                let at = first.key_span.start;
                edits.replace(at..at, format!("age: {new}\n{}", " ".repeat(self.column(at))));
            }
        }
        Ok(())
    }

    /// Behind the last recipient of a text with commas.
    fn add_to_text(&self, edits: &mut Edits, value: &Value, new: &str) -> Result<(), RulesError> {
        let raw = self.text.get(value.span.clone()).ok_or(cannot("`age` stands nowhere"))?;
        if raw.starts_with('*') {
            return Err(cannot("`age` is an alias"));
        }
        let body = raw.trim_end();
        let has_lines = body.contains('\n');
        let body = if body.starts_with(['"', '\'']) { &body[..body.len() - 1] } else { body };
        let at = value.span.start + body.len();
        let comma = if body.trim_end().ends_with(',') { "" } else { "," };
        let space = if has_lines {
            let line = &body[body.rfind('\n').map_or(0, |at| at + 1)..];
            let indent = line.len() - line.trim_start().len();
            format!("\n{}", " ".repeat(indent))
        } else {
            String::new()
        };
        edits.replace(at..at, format!("{comma}{space}{new}"));
        Ok(())
    }

    fn add_to_list(
        &self,
        edits: &mut Edits,
        list: &Value,
        items: &[Value],
        new: &str,
    ) -> Result<(), RulesError> {
        let is_flow = self.text[list.span.clone()].starts_with('[');
        match items.last() {
            Some(bottom) if is_flow => edits.replace(bottom.span.end..bottom.span.end, format!(", {new}")),
            None if is_flow => edits.replace(list.span.clone(), format!("[{new}]")),
            Some(bottom) => {
                let line = self.line(bottom.span.start);
                let dash = self.text[line.clone()].find(|c: char| c != ' ').unwrap_or_default();
                if !self.text[line.start + dash..].starts_with("- ") {
                    return Err(cannot("the last recipient does not stand on a line of its own"));
                }
                let end = self.line(bottom.span.start + self.text[bottom.span.clone()].trim_end().len()).end;
                edits.replace(end..end, format!("\n{}- {new}", " ".repeat(dash)));
            }
            None => return Err(cannot("`age` stands nowhere")),
        }
        Ok(())
    }

    fn remove(&self, edits: &mut Edits, place: &Value, recipient: &Reader) -> Result<(), RulesError> {
        for part in place.field("merge").map(Value::items).unwrap_or_default() {
            self.remove(edits, part, recipient)?;
        }
        let Some(age) = place.field("age") else { return Ok(()) };
        match &age.data {
            Data::List(items) => {
                let is_flow = self.text[age.span.clone()].starts_with('[');
                for item in items.iter().filter(|item| holds(item, recipient)) {
                    let parts = texts(Some(item)).map_or(0, |parts| parts.len());
                    match (parts, is_flow) {
                        (1, true) => edits.replace(self.with_comma(&age.span, item.span.clone())?, ""),
                        (1, false) => {
                            let line = self.line(item.span.start);
                            if !self.text[line.clone()].trim_start().starts_with("- ") {
                                return Err(cannot("a recipient does not stand on a line of its own"));
                            }
                            edits.replace(line.start..(line.end + 1).min(self.text.len()), "");
                        }
                        _ => self.remove_from_text(edits, item, recipient)?,
                    }
                }
            }
            _ if holds(age, recipient) => self.remove_from_text(edits, age, recipient)?,
            _ => {}
        }
        Ok(())
    }

    fn remove_from_text(
        &self,
        edits: &mut Edits,
        value: &Value,
        recipient: &Reader,
    ) -> Result<(), RulesError> {
        let raw = &self.text[value.span.clone()];
        let parts = texts(Some(value)).unwrap_or_default();
        for part in parts.into_iter().filter(|part| Reader::listed(part).is_same(recipient)) {
            let at = raw.find(part).ok_or(cannot("a recipient is written in pieces, or by an alias"))?;
            let start = value.span.start + at;
            edits.replace(self.with_comma(&value.span, start..start + part.len())?, "");
        }
        Ok(())
    }

    /// A part and the comma that goes with it: the one behind it, or else the one before.
    fn with_comma(&self, within: &Range<usize>, part: Range<usize>) -> Result<Range<usize>, RulesError> {
        let behind = &self.text[part.end..within.end];
        if let Some(rest) = behind.trim_start().strip_prefix(',') {
            return Ok(part.start..within.end - rest.trim_start().len());
        }
        let before = self.text[within.start..part.start].trim_end();
        let before = before.strip_suffix(',').ok_or(cannot("a recipient has no comma beside it"))?;
        Ok(within.start + before.len()..part.end)
    }

    fn column(&self, at: usize) -> usize {
        at - self.line(at).start
    }

    /// The line that something stands on, without its break.
    fn line(&self, at: usize) -> Range<usize> {
        let start = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        start..self.text[at..].find('\n').map_or(self.text.len(), |end| at + end)
    }
}

fn holds(value: &Value, recipient: &Reader) -> bool {
    texts(Some(value)).unwrap_or_default().iter().any(|part| Reader::listed(part).is_same(recipient))
}
