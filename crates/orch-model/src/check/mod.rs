//! What holds between files, and between the nodes of a manifest.
//!
//! Every check looks only at values that could be read, so that one mistake is told once.

mod cycle;
mod hosts;
mod node;
mod pattern;
mod peers;
mod roster;
mod spec;

use alloc::format;

pub(crate) use roster::Roster;

use crate::catalog::{Catalog, Files};
use crate::decode::{Decode, Located, suggestion};
use crate::files::{Host, Manifest, Pattern, Spec};
use crate::text::{Finding, Reporter};
use crate::word::{HostName, ManifestName, SpecName};

/// Checks everything that was read.
pub(crate) fn references(catalog: &mut Catalog<'_>) {
    hosts::check(&mut catalog.hosts);
    let Catalog { site, hosts, manifests, specs, presets, postures, .. } = catalog;
    for (_, spec, cx) in specs.each() {
        spec::check(spec, site.value.as_ref(), postures, cx);
    }
    let context = Context { hosts, specs };
    for (name, manifest, cx) in manifests.each() {
        check_name(name, manifest, cx);
        for node in manifest.nodes.iter() {
            known(node.preset.as_ref(), presets, "preset", cx);
            known(node.spec.as_ref(), specs, "spec", cx);
            known(node.host.as_ref(), hosts, "host", cx);
        }
        check_nodes(manifest, &context, cx);
    }
}

/// What a manifest's nodes refer to outside of it.
struct Context<'c, 'a> {
    hosts: &'c Files<'a, HostName, Host>,
    specs: &'c Files<'a, SpecName, Spec>,
}

fn check_name(file: &ManifestName, manifest: &Manifest, cx: &mut Reporter<'_>) {
    if let Some((name, span)) = manifest.name.known()
        && name != file
    {
        let message = format!("the manifest calls itself `{name}`, but its file is named `{file}`");
        cx.report(Finding::new(span, message).hint("give both the same name"));
    }
}

fn check_nodes(manifest: &Manifest, context: &Context<'_, '_>, cx: &mut Reporter<'_>) {
    let roster = Roster::new(&manifest.nodes, cx);
    if !roster.is_complete {
        return;
    }
    for node in manifest.nodes.iter() {
        node::check(node, &roster, context, cx);
    }
    node::check_vmids(&manifest.nodes, cx);
    peers::check(&roster, cx);
    let is_acyclic = cycle::check(&roster, cx);
    if manifest.pattern.is_stand_in() {
        return;
    }
    // What shape the nodes have is known only where every one of them and every relation could be read.
    if is_acyclic && manifest.nodes.is_whole() && roster.is_closed() {
        pattern::check(manifest, &roster, cx);
    } else if is_acyclic && *manifest.pattern == Pattern::Flat {
        pattern::check_flat(&roster, cx);
    }
}

/// Reports a reference to a file that does not exist.
fn known<N, T>(reference: Option<&Located<N>>, files: &Files<'_, N, T>, noun: &str, cx: &mut Reporter<'_>)
where
    N: Ord
        + Clone
        + core::str::FromStr<Err = alloc::string::String>
        + core::borrow::Borrow<str>
        + core::fmt::Display,
    T: Decode,
{
    let Some((name, span)) = reference.and_then(Located::known) else {
        return;
    };
    if !files.is_known(name) {
        let hint = suggestion(name.borrow(), files.names().map(core::borrow::Borrow::borrow), cx);
        cx.report(Finding::new(span, format!("there is no {noun} `{name}`")).hint_option(hint));
    }
}
