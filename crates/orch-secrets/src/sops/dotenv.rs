//! dotenv as sops reads it: lines, no quotes, the first `=` splits.

use super::document::{Comment, Documents, Fault};
use super::node::{Data, Entry, MAX_NODES, Value};
use crate::Secret;

/// What the keys of the metadata begin with.
pub(super) const PREFIX: &str = "sops_";

/// Reads the lines, metadata among them.
pub(super) fn read(text: &[u8]) -> Result<Documents, Fault> {
    let mut entries = Vec::new();
    let mut comments = Vec::new();
    let mut at = 0;
    for line in text.split(|byte| *byte == b'\n') {
        let start = at;
        at += line.len() + 1;
        if line.is_empty() {
            continue;
        }
        if entries.len() + comments.len() > MAX_NODES {
            return Err(Fault::too_large("it has too many values"));
        }
        let utf8 = std::str::from_utf8(line);
        if line[0] == b'#' {
            if let Ok(line) = utf8 {
                let mut comment = Comment::of(line, 0..line.len());
                comment.sign = start;
                comment.span = start + comment.span.start..start + comment.span.end;
                comments.push(comment);
            }
            continue;
        }
        let Some(split) = line.iter().position(|byte| *byte == b'=') else {
            return Err(Fault::at(start, "a line has no `=`"));
        };
        let key = std::str::from_utf8(&line[..split]).map_err(|_| Fault::at(start, "a key is not UTF-8"))?;
        let value = Secret::new(with_line_breaks(&line[split + 1..]));
        let span = start + split + 1..start + line.len();
        let value = Value::new(span, Data::Text(value));
        entries.push(Entry { key: key.to_owned(), key_span: start..start + split, value });
    }
    refuse_duplicates(&entries)?;
    let mut documents = Documents::one(Value::new(0..text.len(), Data::Map(entries)));
    documents.comments = comments;
    Ok(documents)
}

fn refuse_duplicates(entries: &[Entry]) -> Result<(), Fault> {
    let mut taken = std::collections::BTreeSet::new();
    match entries.iter().find(|entry| !taken.insert(entry.key.as_str())) {
        Some(entry) => Err(Fault::at(entry.key_span.start, "a key stands twice")),
        None => Ok(()),
    }
}

/// `\n`, two characters, is a line break.
pub(super) fn with_line_breaks(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, behind @ ..] = rest {
        if let (b'\\', [b'n', behind @ ..]) = (first, behind) {
            plain.push(b'\n');
            rest = behind;
        } else {
            plain.push(*first);
            rest = behind;
        }
    }
    plain
}
