//! A new sops file from a text in clear. Comments of the text are not taken over.

use jiff::Timestamp;

use super::cipher::{self, DataKey};
use super::error::SopsError;
use super::metadata::Wrapped;
use super::node::{Data, Entry, Value};
use super::open::{MacOfValues, place};
use super::select::{Selection, Selector};
use super::{Format, SopsFile, emit, read, shamir};
use crate::Secret;
use crate::path::{KeyPath, Step};
use crate::reader::Reader;

/// The version of sops whose files these are.
const VERSION: &str = "3.11.0";
/// The largest whole number that every version of sops reads from JSON as it is written.
const MAX_JSON_INT: u64 = 1 << 53;

/// Who may open a file, and which of its values are encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// One group of recipients that can each open it, or several that each hold a share of the key.
    pub groups: Vec<Vec<Reader>>,
    /// How many groups it takes; all of them where this is zero.
    pub threshold: usize,
    /// Which values are encrypted.
    pub selection: Selection,
}

impl Policy {
    /// For these recipients, each on their own, every value encrypted.
    pub fn of(recipients: impl IntoIterator<Item = Reader>) -> Self {
        Self { groups: vec![recipients.into_iter().collect()], ..Self::default() }
    }
}

/// Encrypts a text of a format. The name stands in messages only.
pub fn encrypt(file: &str, format: Format, plain: &[u8], policy: &Policy) -> Result<Vec<u8>, SopsError> {
    let roots = plain_roots(file, format, plain)?;
    let key = cipher::new_key();
    let selector = Selector::for_writing(file, policy.selection.rule.as_ref())?;
    let mut closing = Closing::new(file, format, &key, &selector, policy.selection.mac_only_encrypted);
    let closed: Result<Vec<Value>, SopsError> =
        roots.iter().map(|root| closing.value(root, &KeyPath::default())).collect();
    let (closed, mac) = (closed?, closing.mac.finish());
    let groups = wrap_groups(file, &key, policy)?;
    let (last_modified, mac) = seal_mac(&key, &mac);
    let metadata = metadata(&groups, policy, &last_modified, &mac);
    let text = emit::file(format, &closed, &metadata).ok_or_else(|| SopsError::Unsupported {
        file: file.to_owned(),
        what: String::from("a key or value of it cannot be written in this format"),
        instead: "use YAML, which can hold everything",
    })?;
    let again = SopsFile::parse_as(file, format, &text)?.open_with(key)?;
    let spoiled = SopsError::Spoiled { file: file.to_owned(), what: "its values are others" };
    if again.roots.len() == roots.len() && again.roots.iter().zip(&roots).all(|(a, b)| same(a, b)) {
        Ok(text)
    } else {
        Err(spoiled)
    }
}

/// What is in the text, which must not be a sops file already.
fn plain_roots(file: &str, format: Format, plain: &[u8]) -> Result<Vec<Value>, SopsError> {
    if format == Format::Binary {
        let value = Value::new(0..plain.len(), Data::Text(Secret::new(plain.to_vec())));
        let entry = Entry { key: String::from("data"), key_span: 0..0, value };
        return Ok(vec![Value::new(0..plain.len(), Data::Map(vec![entry]))]);
    }
    let roots = read(file, format, plain)?.roots;
    let is_taken = |entry: &Entry| match format {
        Format::Dotenv => entry.key.starts_with(super::dotenv::PREFIX),
        _ => entry.key == "sops",
    };
    if roots.iter().flat_map(Value::entries).any(is_taken) {
        return Err(SopsError::Unsupported {
            file: file.to_owned(),
            what: String::from("it has a key that sops keeps for itself"),
            instead: "a file that is encrypted already is changed with `sops edit`",
        });
    }
    Ok(if roots.is_empty() { vec![Value::new(0..0, Data::Map(Vec::new()))] } else { roots })
}

/// Encrypts the values of a tree, and sums them up.
pub(super) struct Closing<'a> {
    file: &'a str,
    format: Format,
    key: &'a DataKey,
    selector: &'a Selector,
    pub(super) mac: MacOfValues,
}

impl<'a> Closing<'a> {
    fn new(file: &'a str, format: Format, key: &'a DataKey, selector: &'a Selector, only: bool) -> Self {
        Self { file, format, key, selector, mac: MacOfValues::new(only) }
    }

    fn value(&mut self, value: &Value, path: &KeyPath) -> Result<Value, SopsError> {
        let data = match &value.data {
            Data::Null => Data::Null,
            Data::List(items) => {
                let items = items.iter().enumerate();
                let items: Result<Vec<_>, _> =
                    items.map(|(index, item)| self.value(item, &path.with(Step::Index(index)))).collect();
                Data::List(items?)
            }
            Data::Map(entries) => {
                let entries: Result<Vec<_>, _> =
                    entries.iter().map(|entry| self.entry(entry, path)).collect();
                Data::Map(entries?)
            }
            _ => return self.leaf(value, path),
        };
        Ok(Value::new(value.span.clone(), data))
    }

    fn entry(&mut self, entry: &Entry, path: &KeyPath) -> Result<Entry, SopsError> {
        let value = self.value(&entry.value, &path.with(Step::Key(entry.key.clone())))?;
        Ok(Entry { key: entry.key.clone(), key_span: entry.key_span.clone(), value })
    }

    fn leaf(&mut self, value: &Value, path: &KeyPath) -> Result<Value, SopsError> {
        let is_encrypted = self.selector.selects(path.keys());
        self.mac.add(value, is_encrypted);
        if is_encrypted {
            let text = cipher::close(value, self.key, &place(path));
            return Ok(Value::new(value.span.clone(), Data::Text(text.into())));
        }
        match value.data {
            Data::Int(number) if self.format == Format::Json && number.unsigned_abs() > MAX_JSON_INT => {
                Err(SopsError::Unsupported {
                    file: self.file.to_owned(),
                    what: format!(
                        "the number at `{path}` stays in clear, and versions of sops read it differently"
                    ),
                    instead: "write it as a text, or have it encrypted",
                })
            }
            _ => Ok(value.clone()),
        }
    }
}

/// Wraps the key, or a share of it, for everybody.
fn wrap_groups(file: &str, key: &DataKey, policy: &Policy) -> Result<Vec<Vec<Wrapped>>, SopsError> {
    let count = policy.groups.len();
    if count == 0 || policy.groups.iter().any(Vec::is_empty) {
        return Err(SopsError::NobodyCanRead { file: file.to_owned() });
    }
    if count == 1 {
        return Ok(vec![wrap_all(file, &key[..], &policy.groups[0])?]);
    }
    let threshold = if policy.threshold == 0 { count } else { policy.threshold };
    let shares = shamir::split(&key[..], count, threshold).ok_or(SopsError::BadMetadata {
        file: file.to_owned(),
        what: "`shamir_threshold` is not between two and the number of groups",
    })?;
    shares.iter().zip(&policy.groups).map(|(share, group)| wrap_all(file, share, group)).collect()
}

pub(super) fn wrap_all(file: &str, key: &[u8], readers: &[Reader]) -> Result<Vec<Wrapped>, SopsError> {
    readers.iter().map(|reader| wrap(file, key, reader)).collect()
}

pub(super) fn wrap(file: &str, key: &[u8], reader: &Reader) -> Result<Wrapped, SopsError> {
    let enc = reader.wrap(key).ok_or_else(|| SopsError::Unsupported {
        file: file.to_owned(),
        what: format!("nothing can be encrypted here to `{reader}`, only to age and ssh-ed25519 recipients"),
        instead: "use `sops updatekeys` and `sops rotate` for files with such recipients",
    })?;
    Ok(Wrapped { reader: reader.clone(), enc })
}

/// The moment, and the MAC as it is stored: bound to that moment.
pub(super) fn seal_mac(key: &DataKey, mac: &str) -> (String, String) {
    let last_modified = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mac = cipher::close(&Value::text(mac), key, &last_modified);
    (last_modified, mac)
}

fn metadata(groups: &[Vec<Wrapped>], policy: &Policy, last_modified: &str, mac: &str) -> Value {
    let mut fields = Vec::new();
    let mut add = |key: &str, value: Value| fields.push(emit::entry(key, value));
    if let [group] = groups {
        add("age", emit::recipients(group));
    } else {
        let threshold = if policy.threshold == 0 { groups.len() } else { policy.threshold };
        add("shamir_threshold", Value::new(0..0, Data::Int(i64::try_from(threshold).unwrap_or_default())));
        let group = |group: &Vec<Wrapped>| emit::map(vec![emit::entry("age", emit::recipients(group))]);
        add("key_groups", Value::new(0..0, Data::List(groups.iter().map(group).collect())));
    }
    add("lastmodified", Value::text(last_modified));
    add("mac", Value::text(mac));
    if let Some((name, text)) = policy.selection.rule.as_ref().map(super::Rule::parts) {
        add(name, Value::text(text));
    } else {
        add("unencrypted_suffix", Value::text("_unencrypted"));
    }
    if policy.selection.mac_only_encrypted {
        add("mac_only_encrypted", Value::new(0..0, Data::Bool(true)));
    }
    add("version", Value::text(VERSION));
    emit::map(fields)
}

/// Whether two trees say the same, wherever it is written. Comments say nothing.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (&a.data, &b.data) {
        (Data::List(a), Data::List(b)) => {
            let (a, b) = (items(a), items(b));
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| same(a, b))
        }
        (Data::Map(a), Data::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.key == b.key && same(&a.value, &b.value))
        }
        (Data::Null, Data::Null) => true,
        // JSON does not tell 3 from 3.0, nor do the bytes that sops encrypts.
        _ => a.plain_bytes().is_some() && a.plain_bytes() == b.plain_bytes(),
    }
}

fn items(items: &[Value]) -> Vec<&Value> {
    items.iter().filter(|item| !item.is_comment()).collect()
}
