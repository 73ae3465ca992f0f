//! `orch validate`: the first lines of the flow, and whether they hold.

use std::collections::BTreeSet;

use orch_model::{Catalog, ManifestName, Problems, Scope, parse, resolve};
use orch_run::{ExitCode, load};
use serde_json::json;

use crate::args::{Cli, OptionalManifest, Placement};
use crate::failure::Failure;
use crate::in_nix;
use crate::output::{self, Output};
use crate::site;

pub(crate) fn run(
    cli: &Cli,
    manifest: &OptionalManifest,
    placement: &Placement,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let checked = match manifest.named() {
        None => validate_site(cli, placement),
        Some(manifest) => {
            let (sources, name) = site::with_manifest(cli, &site::root(cli)?, &manifest)?;
            let scope = Scope::Manifest { name: &name, host: placement.host.as_ref() };
            parse(&sources, scope)
                .and_then(|catalog| {
                    let nodes = check(&catalog, &name, placement)?;
                    Ok((format!("manifest `{name}` is valid: {nodes}"), catalog.warnings().clone()))
                })
                .map_err(Failure::from)
        }
    };
    match checked {
        Ok((text, warnings)) => {
            output::warn(&warnings);
            output.answer(&text, &json!({ "valid": true, "problems": warnings }));
            Ok(ExitCode::Done)
        }
        // A problem with a file makes the site invalid; a request that makes no sense is a wrong argument.
        Err(Failure::Problems(problems)) if problems.iter().any(|problem| problem.file.is_some()) => {
            output::note(&format!("{problems}\n"));
            output.answer(&summary(&problems), &json!({ "valid": false, "problems": problems }));
            Ok(ExitCode::Failed)
        }
        Err(failure) => Err(failure),
    }
}

fn validate_site(cli: &Cli, placement: &Placement) -> Result<(String, Problems), Failure> {
    let root = site::root(cli)?;
    let sources = in_nix::evaluated(cli, &root, load::site(&root)?, |_| true)?;
    let catalog = parse(&sources, Scope::Site)?;
    let mut problems = Problems::default();
    for manifest in catalog.manifests() {
        if let Err(found) = check(&catalog, manifest, placement) {
            problems = problems.and(found);
        }
    }
    if problems.has_errors() {
        return Err(problems.into());
    }
    let (manifests, hosts) = (catalog.manifests().count(), catalog.hosts().count());
    let text =
        format!("the site is valid: {} and {}", counted(manifests, "manifest"), counted(hosts, "host"));
    Ok((text, catalog.warnings().clone()))
}

/// What a manifest means where its hosts are known; how many nodes it has.
fn check(catalog: &Catalog<'_>, manifest: &ManifestName, placement: &Placement) -> Result<String, Problems> {
    if placement.host.is_none() && catalog.needs_host(manifest) {
        return Ok(counted(catalog.node_count(manifest), "node"));
    }
    let fleet = resolve(catalog, &placement.request(manifest.clone()))?;
    Ok(counted(fleet.nodes.len(), "node"))
}

fn summary(problems: &Problems) -> String {
    let files: BTreeSet<_> = problems.iter().filter_map(|problem| problem.file.as_ref()).collect();
    format!("invalid: {} in {}", counted(problems.len(), "problem"), counted(files.len(), "file"))
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
