//! One text more, or another one, in a file that is there: for values that orch itself makes.

use super::cipher::{self, DataKey};
use super::edit::Edits;
use super::emit;
use super::encrypt::seal_mac;
use super::error::SopsError;
use super::node::{Data, Entry, Value};
use super::open::{MacOfValues, place};
use super::renew::each_leaf;
use super::select::Selector;
use super::{Format, SopsFile};
use crate::Secret;
use crate::keyring::Keyring;
use crate::path::{KeyPath, Step};

const EDIT: &str = "use `sops set` or `sops edit` for this";

impl SopsFile {
    /// The file with this text at a path: in the place of the value that is there, or as the last of its map. Maps that
    /// are missing on the way are made. Everything else stays as it is.
    pub fn set(&self, keyring: &Keyring, path: &KeyPath, value: &Secret) -> Result<Vec<u8>, SopsError> {
        if !matches!(self.format, Format::Yaml | Format::Json) {
            return Err(self.left_to_sops("single values are set in YAML and JSON only", EDIT));
        }
        let selector = Selector::for_writing(&self.file, self.metadata.selection.rule.as_ref())?;
        if path.is_root() || self.has_aliases {
            return Err(self.left_to_sops("nothing can be set there", EDIT));
        }
        if !selector.selects(path.keys()) {
            let what = format!("by its rules the value at `{path}` would stay in clear");
            return Err(self.left_to_sops(&what, "give it another name, or change the rules of the file"));
        }
        let opened = self.open(keyring)?;
        let document = opened.roots.iter().position(|root| root.at(path).is_some()).unwrap_or_default();
        let new = Value::new(0..0, Data::Text(value.clone()));
        let closed = cipher::close(&new, &opened.key, &place(path));
        let mut roots = opened.roots.clone();
        let mut edits = Edits::default();
        match opened.roots[document].at(path) {
            Some(old) => {
                self.refuse_nested(old, path)?;
                let is_plain_null = old.span.is_empty();
                let text = self.restyled(&old.span, &closed, false);
                edits.replace(self.tight(&old.span), if is_plain_null { format!(" {text}") } else { text });
            }
            None => self.edit_in(&mut edits, document, &opened.roots[document], path, &closed)?,
        }
        put(&mut roots[document], path.steps(), new)
            .ok_or_else(|| self.left_to_sops("a list ends before there", EDIT))?;
        self.edit_sum(&mut edits, &selector, &roots, &opened.key)?;
        let (text, _) = self.finish(edits, DataKey::clone(&opened.key), &roots)?;
        Ok(text)
    }

    fn refuse_nested(&self, old: &Value, path: &KeyPath) -> Result<(), SopsError> {
        let what = match old.data {
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
            _ => return Ok(()),
        };
        Err(SopsError::NotOneValue { file: self.file.clone(), path: path.clone(), what })
    }

    fn edit_sum(
        &self,
        edits: &mut Edits,
        selector: &Selector,
        roots: &[Value],
        key: &DataKey,
    ) -> Result<(), SopsError> {
        let mut mac = MacOfValues::new(self.metadata.selection.mac_only_encrypted);
        for root in roots {
            each_leaf(root, &KeyPath::default(), &mut |value, path| {
                mac.add(value, selector.selects(path.keys()));
            });
        }
        let (last_modified, mac) = seal_mac(key, &mac.finish());
        self.edit_mac(edits, &last_modified, &mac)
    }

    /// Puts an entry behind the last one of the deepest map that is there.
    fn edit_in(
        &self,
        edits: &mut Edits,
        document: usize,
        root: &Value,
        path: &KeyPath,
        closed: &str,
    ) -> Result<(), SopsError> {
        let refuse = || self.left_to_sops("a list, or one value, stands in the way", EDIT);
        let mut parent = root;
        let mut steps = path.steps();
        while let Some((step, rest)) = steps.split_first() {
            let Some(next) = parent.step(step) else { break };
            (parent, steps) = (next, rest);
        }
        let keys: Option<Vec<&str>> = steps
            .iter()
            .map(|step| match step {
                Step::Key(key) => Some(key.as_str()),
                Step::Index(_) => None,
            })
            .collect();
        let keys = keys.ok_or_else(refuse)?;
        let Data::Map(entries) = &parent.data else { return Err(refuse()) };
        let is_root = std::ptr::eq(parent, root);
        let metadata = self.places[document].as_ref().filter(|_| is_root);
        let is_flow = self.format == Format::Json || self.starts_with(&parent.span, b"{");
        match (entries.last(), metadata) {
            (Some(last), _) if is_flow => {
                let at = last.value.span.end;
                let space = if self.format == Format::Json {
                    self.margin(last.key_span.start)
                } else {
                    String::from(" ")
                };
                edits.replace(at..at, format!(",{space}{}", flow(&keys, closed)));
            }
            (Some(last), _) => {
                let at = self.line_end(self.end_of(last));
                edits.replace(
                    at..at,
                    format!("\n{}", block(&keys, closed, self.column(entries[0].key_span.start)).trim_end()),
                );
            }
            (None, Some(metadata)) => self.edit_before(edits, metadata, &keys, closed, is_flow),
            (None, None) if is_flow => {
                edits.replace(parent.span.clone(), format!("{{{}}}", flow(&keys, closed)));
            }
            (None, None) => return Err(refuse()),
        }
        Ok(())
    }

    /// A document that holds nothing but its metadata.
    fn edit_before(&self, edits: &mut Edits, metadata: &Entry, keys: &[&str], closed: &str, is_flow: bool) {
        let at = metadata.key_span.start;
        let text = if is_flow {
            format!("{},{}", flow(keys, closed), self.margin(at))
        } else {
            block(keys, closed, self.column(at)).trim_start().to_owned() + &" ".repeat(self.column(at))
        };
        edits.replace(at..at, text);
    }
}

/// `"a": {"b": "…"}`
fn flow(keys: &[&str], closed: &str) -> String {
    let nested = keys
        .iter()
        .rev()
        .fold(emit::json_text(closed), |inner, key| format!("{{{}: {inner}}}", emit::json_text(key)));
    nested[1..nested.len() - 1].to_owned()
}

/// The same as lines, from so far in.
fn block(keys: &[&str], closed: &str, indent: usize) -> String {
    let value =
        keys.iter().rev().fold(Value::text(closed), |inner, key| emit::map(vec![emit::entry(key, inner)]));
    let mut out = String::new();
    // A chain of maps with a text at its end can always be written.
    let _ = emit::block(&value, indent, &mut out);
    out
}

/// The same change to the tree. Nothing where a list would have to grow.
fn put(value: &mut Value, steps: &[Step], new: Value) -> Option<()> {
    let Some((step, rest)) = steps.split_first() else {
        value.data = new.data;
        return Some(());
    };
    if value.step(step).is_none() {
        let (Step::Key(key), Data::Map(entries)) = (step, &mut value.data) else { return None };
        entries.push(emit::entry(
            key,
            Value::new(0..0, if rest.is_empty() { Data::Null } else { Data::Map(Vec::new()) }),
        ));
    }
    put(value.at_mut(&KeyPath::new(vec![step.clone()]))?, rest, new)
}
