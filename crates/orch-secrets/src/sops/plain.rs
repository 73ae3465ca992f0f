//! A whole file in clear, as `sops decrypt --output-type json` prints it. For tests and for people, not for programs.

use super::error::SopsError;
use super::json;
use super::node::{Data, Value};
use super::opened::Opened;
use crate::Secret;

impl Opened {
    /// The first document as JSON, byte for byte what sops prints. Numbers that JSON does not have are refused.
    pub fn to_json(&self) -> Result<Secret, SopsError> {
        let mut out = String::new();
        let root = self.roots.first();
        let written = root.map_or(Some(()), |root| write(root, 0, &mut out));
        out.push('\n');
        let secret = Secret::from(out);
        written.map(|()| secret).ok_or_else(|| SopsError::Unsupported {
            file: self.file.clone(),
            what: String::from("it holds a number that JSON has no word for"),
            instead: "print it as YAML with `sops decrypt`",
        })
    }
}

/// Writes a value as Go's encoder does, with tabs. Nothing for numbers that are none.
pub(super) fn write(value: &Value, depth: usize, out: &mut String) -> Option<()> {
    match &value.data {
        Data::Null => out.push_str("null"),
        Data::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Data::Int(value) => out.push_str(&value.to_string()),
        Data::Float(value) => out.push_str(&json::float(*value)?),
        Data::Time(text) => json::quote(text, out),
        Data::Text(text) | Data::Comment(text) => json::quote(&String::from_utf8_lossy(text.expose()), out),
        Data::List(items) => {
            let items: Vec<&Value> = items.iter().filter(|item| !item.is_comment()).collect();
            nest(&items, ['[', ']'], depth, out, |item, out| write(item, depth + 1, out))?;
        }
        Data::Map(entries) => nest(entries, ['{', '}'], depth, out, |entry, out| {
            json::quote(&entry.key, out);
            out.push_str(": ");
            write(&entry.value, depth + 1, out)
        })?,
    }
    Some(())
}

fn nest<T>(
    items: &[T],
    [open, close]: [char; 2],
    depth: usize,
    out: &mut String,
    mut write: impl FnMut(&T, &mut String) -> Option<()>,
) -> Option<()> {
    out.push(open);
    for (at, item) in items.iter().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n('\t', depth + 1));
        write(item, out)?;
    }
    if !items.is_empty() {
        out.push('\n');
        out.extend(std::iter::repeat_n('\t', depth));
    }
    out.push(close);
    Some(())
}
