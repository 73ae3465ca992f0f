//! Older layouts of site files: what is renamed, what is ignored, what is refused with the way to migrate.
//!
//! It works on values before they are decoded, so that the types of today need not know of yesterday.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use crate::source::FileKind;
use crate::text::{Data, Entry, Finding, Reporter, Value};

/// Older names that hosts and the site file may use for what they say about nodes.
const DEFAULTS_RENAMED: [(&str, &str); 3] =
    [("spec_server", "server_url"), ("automation_user", "node_user"), ("vm_user", "node_user")];
const HOST_RENAMED: [(&str, &str); 2] = [("ssh_user", "ssh.user"), ("host_user", "ssh.user")];
const SITE_IGNORED: [&str; 2] = ["image_release", "pve_remove_subscription_nag"];

/// Renames and drops what older sites have; `None` means that the file is of a layout that must be migrated, which
/// has been reported.
pub(crate) fn bring_up_to_date(kind: FileKind, value: &mut Value<'_>, cx: &mut Reporter<'_>) -> Option<()> {
    let Data::Map(entries) = &mut value.data else {
        return Some(());
    };
    match kind {
        FileKind::Host => rename(entries, DEFAULTS_RENAMED.iter().chain(&HOST_RENAMED), cx),
        FileKind::Site => {
            if let Some(apart) = section(entries, "defaults") {
                rename(apart, &DEFAULTS_RENAMED, cx);
                ignore(apart, &SITE_IGNORED, cx);
            }
            rename(entries, &DEFAULTS_RENAMED, cx);
            ignore(entries, &SITE_IGNORED, cx);
        }
        FileKind::Posture => ignore(entries, &["auth"], cx),
        FileKind::Spec => {
            if let Some(run) = section(entries, "run") {
                forget_trigger(run, cx);
            }
        }
        FileKind::Manifest => {
            refuse_levels(entries, cx)?;
            if let Some(settings) = section(entries, "settings") {
                ignore(settings, &["timeout_buffer"], cx);
            }
        }
        FileKind::Preset => {}
    }
    Some(())
}

/// Version 1 described levels; it cannot be read as nodes without losing what it meant.
fn refuse_levels(entries: &[Entry<'_>], cx: &mut Reporter<'_>) -> Option<()> {
    let is_old = |entry: &&Entry<'_>| {
        entry.key == "levels" || (entry.key == "schema_version" && entry.value.data == Data::Int(1))
    };
    let Some(old) = entries.iter().find(is_old) else {
        return Some(());
    };
    let message = "this manifest has the layout of version 1, which orch does not read";
    let hint = "set `schema_version: 2`, and write each entry of `levels` as an entry of `nodes` whose `parent:` names \
                the node one level above (the first level has none)";
    cx.report(Finding::new(old.key_span, message).hint(hint));
    None
}

fn section<'v, 'a>(entries: &'v mut [Entry<'a>], key: &str) -> Option<&'v mut Vec<Entry<'a>>> {
    match entries.iter_mut().find(|entry| entry.key == key) {
        Some(Entry { value: Value { data: Data::Map(inner), .. }, .. }) => Some(inner),
        _ => None,
    }
}

fn rename<'n>(
    entries: &mut Vec<Entry<'_>>,
    names: impl IntoIterator<Item = &'n (&'static str, &'static str)>,
    cx: &mut Reporter<'_>,
) {
    for (old, new) in names {
        let Some(at) = entries.iter().position(|entry| entry.key == *old) else {
            continue;
        };
        let entry = entries.remove(at);
        let message = format!("`{old}` is an older name of `{new}`");
        let warning = Finding::new(entry.key_span, message).warning();
        let is_taken = match new.split_once('.') {
            None => !put(entries, new, entry),
            Some((outer, inner)) => !put_inside(entries, outer, inner, entry),
        };
        cx.report(if is_taken {
            warning.hint(format!("it is ignored, because `{new}` is given too"))
        } else {
            warning.hint(format!("write `{new}`"))
        });
    }
}

/// Adds an entry under another key, unless that key already says something.
fn put<'a>(entries: &mut Vec<Entry<'a>>, key: &'static str, mut entry: Entry<'a>) -> bool {
    entries.retain(|other| other.key != key || other.value.data != Data::Null);
    let is_free = entries.iter().all(|other| other.key != key);
    if is_free {
        entry.key = Cow::Borrowed(key);
        entries.push(entry);
    }
    is_free
}

/// Moves an entry into the section `outer`, unless that already says `inner`.
fn put_inside<'a>(
    entries: &mut Vec<Entry<'a>>,
    outer: &'static str,
    inner: &'static str,
    mut entry: Entry<'a>,
) -> bool {
    if let Some(section) = section(entries, outer) {
        return put(section, inner, entry);
    }
    let (key_span, span) = (entry.key_span, entry.value.span);
    entry.key = Cow::Borrowed(inner);
    let value = Value { span, data: Data::Map(Vec::from([entry])) };
    put(entries, outer, Entry { key: Cow::Borrowed(outer), key_span, value })
}

fn ignore(entries: &mut Vec<Entry<'_>>, keys: &[&str], cx: &mut Reporter<'_>) {
    entries.retain(|entry| {
        let known = !keys.contains(&entry.key.as_ref());
        if !known {
            let message = format!("`{}` has no effect any more", entry.key);
            cx.report(Finding::new(entry.key_span, message).warning().hint("remove it"));
        }
        known
    });
}

/// Triggers by webhook or git became the spec server's "converge now"; their keys go with them.
fn forget_trigger(run: &mut Vec<Entry<'_>>, cx: &mut Reporter<'_>) {
    let old = |entry: &Entry<'_>| {
        entry.key == "trigger"
            && matches!(&entry.value.data, Data::Text(word) if word == "webhook" || word == "git")
    };
    if let Some(trigger) = run.iter().find(|entry| old(entry)) {
        let finding = Finding::new(trigger.value.span, "this trigger has no effect any more");
        cx.report(finding.warning().hint("use `schedule` with an interval, or `manual`"));
        run.retain(|entry| entry.key == "interval");
    }
}
