//! Trees as text, in each format.

use super::metadata::Wrapped;
use super::node::{Data, Entry, Value, go_decimal};
use super::{Format, dotenv, ini, json, plain, scalar};

/// A whole file. Nothing for what its format cannot hold.
pub(super) fn file(format: Format, roots: &[Value], metadata: &Value) -> Option<Vec<u8>> {
    let with_metadata = |root: &Value| {
        let mut entries = root.entries().to_vec();
        entries.push(entry("sops", metadata.clone()));
        map(entries)
    };
    let mut out = String::new();
    match format {
        Format::Yaml => {
            for (at, root) in roots.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "---\n" });
                block(&with_metadata(root), 0, &mut out)?;
            }
        }
        Format::Json | Format::Binary if !is_text(roots.first()?) => return None,
        Format::Json | Format::Binary => {
            plain::write(&with_metadata(roots.first()?), 0, &mut out)?;
            out.push('\n');
        }
        Format::Dotenv => return dotenv_lines(roots.first()?, metadata),
        Format::Ini => {
            for section in roots.first()?.entries() {
                ini_section(&section.key, section.value.entries().iter().map(field), &mut out)?;
            }
            let flat = flatten(metadata);
            ini_section(
                "sops",
                flat.iter().map(|(key, value)| (key.as_str(), Some(value.as_str()))),
                &mut out,
            )?;
        }
    }
    Some(out.into_bytes())
}

/// Whether all that is text in it is UTF-8, and so can stand in a text.
fn is_text(value: &Value) -> bool {
    match &value.data {
        Data::Text(_) => value.as_text().is_some(),
        Data::List(items) => items.iter().all(is_text),
        Data::Map(entries) => entries.iter().all(|entry| is_text(&entry.value)),
        _ => true,
    }
}

pub(super) fn entry(key: &str, value: Value) -> Entry {
    Entry { key: key.to_owned(), key_span: 0..0, value }
}

pub(super) fn map(entries: Vec<Entry>) -> Value {
    Value::new(0..0, Data::Map(entries))
}

/// The list of recipients, as it stands in metadata.
pub(super) fn recipients(group: &[Wrapped]) -> Value {
    let one = |wrapped: &Wrapped| {
        let recipient = entry("recipient", Value::text(wrapped.reader.as_str()));
        map(vec![recipient, entry("enc", Value::text(&wrapped.enc))])
    };
    Value::new(0..0, Data::List(group.iter().map(one).collect()))
}

/// A map or list in block style, each line indented by so much.
pub(super) fn block(value: &Value, indent: usize, out: &mut String) -> Option<()> {
    let pad = " ".repeat(indent);
    match &value.data {
        Data::Map(entries) => {
            for entry in entries {
                out.push_str(&format!("{pad}{}:", yaml_key(&entry.key, &pad)));
                below(&entry.value, indent, out)?;
            }
            // A document of nothing is a map of nothing.
            if entries.is_empty() {
                out.push_str("{}\n");
            }
        }
        Data::List(items) => {
            for item in items {
                out.push_str(&format!("{pad}-"));
                below(item, indent, out)?;
            }
        }
        _ => return None,
    }
    Some(())
}

/// What stands behind a key or a dash.
fn below(value: &Value, indent: usize, out: &mut String) -> Option<()> {
    match &value.data {
        Data::Map(entries) if entries.is_empty() => out.push_str(" {}\n"),
        Data::List(items) if items.is_empty() => out.push_str(" []\n"),
        Data::Map(_) | Data::List(_) => {
            out.push('\n');
            block(value, indent + 4, out)?;
        }
        _ => {
            out.push(' ');
            if let Some(text) = value.as_text().filter(|text| is_block_text(text)) {
                out.push_str("|\n");
                text.lines().for_each(|line| out.push_str(&format!("{}{line}\n", " ".repeat(indent + 4))));
            } else {
                out.push_str(&yaml_scalar(value)?);
                out.push('\n');
            }
        }
    }
    Some(())
}

/// Whether a text reads well, and unchanged, as several lines.
fn is_block_text(text: &str) -> bool {
    let is_fine = |line: &str| {
        !line.is_empty() && !line.starts_with([' ', '\t']) && line.bytes().all(|b| (0x20..0x7f).contains(&b))
    };
    text.ends_with('\n') && text.lines().all(is_fine)
}

/// One value on one line.
pub(super) fn yaml_scalar(value: &Value) -> Option<String> {
    Some(match &value.data {
        Data::Null => String::from("null"),
        Data::Bool(value) => value.to_string(),
        Data::Int(value) => value.to_string(),
        Data::Float(value) if value.is_finite() => format!("{value:?}"),
        Data::Float(value) => match go_decimal(*value).as_str() {
            "NaN" => String::from(".nan"),
            "+Inf" => String::from(".inf"),
            _ => String::from("-.inf"),
        },
        Data::Time(text) => text.clone(),
        Data::Text(_) | Data::Comment(_) => yaml_text(value.as_text()?),
        Data::List(_) | Data::Map(_) => return None,
    })
}

/// A text in YAML: plain where nothing could be made of it but the same text.
pub(super) fn yaml_text(text: &str) -> String {
    let fit = |c: char| c.is_ascii_alphanumeric() || "_-./+=".contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(fit);
    let is_encrypted =
        text.starts_with("ENC[AES256_GCM,") && !text.contains(['#', '\n', '"', ' ']) && text.ends_with(']');
    let is_text = matches!(scalar::plain(text), Some(Data::Text(_)));
    // Other readers of YAML take more words for yes and no.
    let is_old_bool = ["y", "n", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str());
    if is_encrypted || (is_word && is_text && !is_old_bool) { text.to_owned() } else { yaml_quoted(text) }
}

/// A key of more than a thousand characters is told as one.
fn yaml_key(key: &str, pad: &str) -> String {
    if key.len() > 1000 { format!("? {}\n{pad}", yaml_quoted(key)) } else { yaml_text(key) }
}

pub(super) fn yaml_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Text of JSON.
pub(super) fn json_text(text: &str) -> String {
    let mut out = String::new();
    json::quote(text, &mut out);
    out
}

/// Metadata for formats that have neither lists nor maps, sorted by name.
pub(super) fn flatten(metadata: &Value) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for entry in metadata.entries() {
        flatten_into(&entry.key, &entry.value, &mut fields);
    }
    fields.sort();
    fields
}

pub(super) fn flatten_into(name: &str, value: &Value, into: &mut Vec<(String, String)>) {
    match &value.data {
        Data::Map(entries) => {
            for entry in entries {
                flatten_into(&format!("{name}__map_{}", entry.key), &entry.value, into);
            }
        }
        Data::List(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten_into(&format!("{name}__list_{index}"), item, into);
            }
        }
        _ => {
            let text = value.secret().map(|text| String::from_utf8_lossy(text.expose()).into_owned());
            into.push((name.to_owned(), text.unwrap_or_default().replace('\n', "\\n")));
        }
    }
}

fn field(entry: &Entry) -> (&str, Option<&str>) {
    (&entry.key, entry.value.as_text())
}

fn dotenv_lines(root: &Value, metadata: &Value) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut line = |key: &str, value: &[u8]| {
        out.extend(key.bytes().chain([b'=']));
        out.extend(value);
        out.push(b'\n');
    };
    for entry in root.entries() {
        let Data::Text(value) = &entry.value.data else { return None };
        let is_fit = !entry.key.is_empty() && !entry.key.starts_with('#') && !entry.key.contains(['=', '\n']);
        let written: Vec<u8> = value
            .expose()
            .iter()
            .flat_map(|byte| if *byte == b'\n' { &b"\\n"[..] } else { std::slice::from_ref(byte) })
            .copied()
            .collect();
        if !is_fit {
            return None;
        }
        line(&entry.key, &written);
    }
    for (key, value) in flatten(metadata) {
        line(&format!("{}{key}", dotenv::PREFIX), value.as_bytes());
    }
    Some(out)
}

fn ini_section<'a>(
    name: &str,
    fields: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    out: &mut String,
) -> Option<()> {
    if name != "DEFAULT" {
        if name.is_empty() || name.contains([']', '\n', '[']) {
            return None;
        }
        out.push_str(&format!("[{name}]\n"));
    }
    for (key, value) in fields {
        let is_fit = !key.is_empty() && !key.starts_with(['#', ';', '[', '"', '`']) && key.trim() == key;
        if !is_fit || key.contains(['=', ':', '\n']) {
            return None;
        }
        out.push_str(&format!("{key} = {}\n", ini::quote(value?)?));
    }
    Some(())
}
