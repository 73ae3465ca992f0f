//! TOML to values with their places, on the `toml` crate's own tree.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::ToString;
use alloc::vec::Vec;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Data, Entry, Finding, Reporter, Span, Value};

pub(super) fn read<'a>(text: &'a str, problems: &mut Reporter<'a>) -> Option<Value<'a>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        problems.report(Finding::new(Span::new(span.start, span.end), error.message().to_owned()));
    }
    let span = Span::new(0, 0);
    errors.is_empty().then(|| Value { span, data: map(table.into_inner()) })
}

fn map(table: DeTable<'_>) -> Data<'_> {
    let mut entries: Vec<_> = table
        .into_iter()
        .map(|(key, item)| Entry { key_span: span_of(&key), key: key.into_inner(), value: value(item) })
        .collect();
    // The crate sorts by key; people and messages follow the file.
    entries.sort_by_key(|entry| entry.key_span);
    Data::Map(entries)
}

fn value(item: Spanned<DeValue<'_>>) -> Value<'_> {
    let span = span_of(&item);
    let data = match item.into_inner() {
        DeValue::String(text) => Data::Text(text),
        DeValue::Boolean(truth) => Data::Bool(truth),
        DeValue::Integer(int) => match i64::from_str_radix(int.as_str(), int.radix()) {
            Ok(int) => Data::Int(int),
            Err(_) => Data::Text(Cow::Owned(int.to_string())),
        },
        DeValue::Float(float) => {
            float.as_str().parse().map_or_else(|_| Data::Text(Cow::Owned(float.to_string())), Data::Float)
        }
        DeValue::Datetime(moment) => Data::Text(Cow::Owned(moment.to_string())),
        DeValue::Array(items) => Data::List(items.into_iter().map(value).collect()),
        DeValue::Table(table) => map(table),
    };
    Value { span, data }
}

fn span_of<T>(item: &Spanned<T>) -> Span {
    let range = item.span();
    Span::new(range.start, range.end)
}
