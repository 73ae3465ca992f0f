//! Another data key: every value and every encrypted comment is encrypted anew, where it stands.

use super::SopsFile;
use super::cipher::{self, DataKey};
use super::document::Comment;
use super::edit::Edits;
use super::encrypt::{seal_mac, wrap_all};
use super::error::SopsError;
use super::node::{Data, Value};
use super::open::{MacOfValues, place};
use super::opened::Opened;
use super::rewrap::is_age;
use super::select::Selector;
use crate::keyring::Keyring;
use crate::path::{KeyPath, Step};
use crate::reader::Reader;

const ROTATE: &str = "use `sops rotate` for this file";

impl SopsFile {
    /// The file with a new data key, for these recipients and no others. Layout and comments stay as they are.
    pub fn renew(&self, keyring: &Keyring, wanted: &[Reader]) -> Result<Vec<u8>, SopsError> {
        let group = self.only_group(ROTATE)?;
        if group.iter().any(|one| !is_age(&one.reader)) {
            return Err(self
                .left_to_sops("it has recipients that are not age's, which cannot be written here", ROTATE));
        }
        if self.has_aliases {
            return Err(self.left_to_sops("a value stands in it twice by way of an alias", ROTATE));
        }
        if let Some(reader) = wanted.iter().find(|reader| !reader.is_writable()) {
            let what = format!("nothing can be encrypted here to `{reader}`");
            return Err(self.left_to_sops(&what, ROTATE));
        }
        if wanted.is_empty() {
            return Err(SopsError::NobodyCanRead { file: self.file.clone() });
        }
        let opened = self.open(keyring)?;
        let key = cipher::new_key();
        let mut edits = Edits::default();
        let places = self.renew_values(&mut edits, &opened, &key)?;
        for comment in self.comments.iter().filter(|comment| comment.is_encrypted) {
            let again = self.renew_comment(comment, &places, &opened.key, &key);
            let refuse = || self.left_to_sops("an encrypted comment of it cannot be opened", ROTATE);
            edits.replace(comment.span.clone(), again.ok_or_else(refuse)?);
        }
        let listed = wrap_all(&self.file, &key[..], wanted)?;
        self.edit_recipients(&mut edits, &listed)?;
        let (text, _) = self.finish(edits, key, &opened.roots)?;
        self.check_recipients(&text, &listed)?;
        Ok(text)
    }

    /// Encrypts the values anew, and the MAC. Says where every value stands.
    fn renew_values(
        &self,
        edits: &mut Edits,
        opened: &Opened,
        key: &DataKey,
    ) -> Result<Vec<(usize, KeyPath)>, SopsError> {
        let selector = Selector::for_writing(&self.file, self.metadata.selection.rule.as_ref())?;
        let mut mac = MacOfValues::new(self.metadata.selection.mac_only_encrypted);
        let mut places = Vec::new();
        for root in &opened.roots {
            each_leaf(root, &KeyPath::default(), &mut |value, path| {
                let is_encrypted = selector.selects(path.keys());
                mac.add(value, is_encrypted);
                places.push((value.span.start, path.clone()));
                let is_empty = value.plain_bytes().is_none_or(|bytes| bytes.is_empty());
                if is_encrypted && !is_empty {
                    let text = cipher::close(value, key, &place(path));
                    edits.replace(self.tight(&value.span), self.restyled(&value.span, &text, false));
                }
            });
        }
        let (last_modified, mac) = seal_mac(key, &mac.finish());
        self.edit_mac(edits, &last_modified, &mac)?;
        places.sort();
        Ok(places)
    }

    /// A comment does not say what it belongs to. It opens only with the right place, so those around it are tried.
    fn renew_comment(
        &self,
        comment: &Comment,
        places: &[(usize, KeyPath)],
        old: &DataKey,
        new: &DataKey,
    ) -> Option<String> {
        let text = std::str::from_utf8(self.text.get(comment.span.clone())?).ok()?;
        let after = places.partition_point(|(at, _)| *at < comment.span.start);
        let around = [after.checked_sub(1), Some(after)];
        let around = around.into_iter().flatten().filter_map(|at| places.get(at));
        let mut candidates = vec![KeyPath::default()];
        for (_, path) in around {
            let steps = path.steps();
            candidates.extend((1..=steps.len()).map(|count| KeyPath::new(steps[..count].to_vec())));
        }
        candidates.iter().find_map(|path| {
            let data = cipher::open(text, old, &place(path)).ok()?;
            Some(cipher::close(&Value::new(0..0, data), new, &place(path)))
        })
    }
}

/// Every value that is one, in order, comments of lists among them.
pub(super) fn each_leaf(value: &Value, path: &KeyPath, visit: &mut impl FnMut(&Value, &KeyPath)) {
    match &value.data {
        Data::Null => {}
        Data::Map(entries) => {
            for entry in entries {
                each_leaf(&entry.value, &path.with(Step::Key(entry.key.clone())), visit);
            }
        }
        Data::List(items) => {
            for (index, item) in items.iter().enumerate() {
                each_leaf(item, &path.with(Step::Index(index)), visit);
            }
        }
        _ => visit(value, path),
    }
}
