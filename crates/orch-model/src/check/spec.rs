//! One spec: its references, and entries that stand in each other's way.

use alloc::collections::BTreeSet;
use alloc::format;

use super::known;
use crate::catalog::Files;
use crate::decode::{Located, suggestion};
use crate::files::{Posture, Site, Spec};
use crate::text::{Finding, Reporter};
use crate::word::{KeyName, PostureName};

pub(super) fn check(
    spec: &Spec,
    site: Option<&Site>,
    postures: &Files<'_, PostureName, Posture>,
    cx: &mut Reporter<'_>,
) {
    known(spec.access.posture.as_ref(), postures, "posture", cx);
    if let Some(site) = site {
        check_keys(spec, site, cx);
    }
    let mut users = BTreeSet::new();
    for (name, span) in spec.access.users.iter().filter_map(|user| user.name.known()) {
        if !users.insert(name) {
            cx.report(Finding::new(span, format!("user `{name}` is given twice")));
        }
    }
    let mut paths = BTreeSet::new();
    for (path, span) in spec.paths().filter_map(Located::known) {
        if !paths.insert(path) {
            cx.report(Finding::new(span, format!("`{path}` is written twice")));
        }
    }
    let mut secrets = BTreeSet::new();
    for (name, span) in spec.secrets.iter().filter_map(|secret| secret.name.known()) {
        if !secrets.insert(name) {
            let hint = "give one of them another name, and say with `from` where its value is";
            cx.report(Finding::new(span, format!("secret `{name}` is given twice")).hint(hint));
        }
    }
    let enabled: BTreeSet<_> = spec.platform.services.enable.iter().collect();
    for (unit, span) in spec.platform.services.disable.iter().filter_map(Located::known) {
        if enabled.contains(unit) {
            cx.report(Finding::new(span, format!("service `{unit}` is both enabled and disabled")));
        }
    }
}

fn check_keys(spec: &Spec, site: &Site, cx: &mut Reporter<'_>) {
    let keys = spec.access.users.iter().filter_map(|user| user.ssh_keys.as_ref()).flatten();
    for (key, span) in keys.filter_map(Located::known) {
        if !site.ssh_keys.contains_key(key) {
            let hint = suggestion(key.as_str(), site.ssh_keys.keys().map(KeyName::as_str), cx);
            cx.report(Finding::new(span, format!("the site has no ssh key `{key}`")).hint_option(hint));
        }
    }
}
