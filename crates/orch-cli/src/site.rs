//! The first lines of the flow, which every verb about a manifest shares: files, catalog, request.

use std::path::{Path, PathBuf};

use orch_model::{Catalog, FileKind, ManifestName, Problem, Problems, Request, Source, Sources};
use orch_run::load;

use crate::args::{Cli, OptionalManifest, Placement, RequiredManifest};
use crate::failure::Failure;
use crate::in_nix;
use crate::output;

/// The folder of the site that the command is about.
pub(crate) fn root(cli: &Cli) -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    Ok(load::find(cli.site.as_deref(), &here)?)
}

/// The manifest that the command is about, with the site's files.
pub(crate) fn with_manifest(
    cli: &Cli,
    root: &Path,
    manifest: &RequiredManifest,
) -> Result<(Sources, ManifestName), Failure> {
    let site = load::site(root)?;
    let (sources, name) = named(site, manifest)?;
    let is_it =
        |source: &Source| source.place.kind == FileKind::Manifest && source.place.stem == name.as_str();
    Ok((in_nix::evaluated(cli, root, sources, is_it)?, name))
}

fn named(site: Sources, manifest: &RequiredManifest) -> Result<(Sources, ManifestName), Failure> {
    match (&manifest.manifest, &manifest.manifest_file) {
        (_, Some(file)) => {
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let unnamed = |why| Failure::Problems(Problems::from(Problem::with_request(why)));
            let name = stem.parse().map_err(unnamed)?;
            Ok((load::with_manifest(&site, file)?, name))
        }
        (Some(name), None) => Ok((site, name.clone())),
        (None, None) => {
            let missing = Problem::with_request("no manifest is named").hint("name one with -M");
            Err(Failure::Problems(missing.into()))
        }
    }
}

/// Says that a site cannot be told from others, where that is so.
pub(crate) fn warn_of_no_name(catalog: &Catalog<'_>) {
    if !catalog.is_site_named() {
        output::note(
            &"warning: this site has no `name`, so its machines are marked `orch`, as those of every other site without one\n\
              hint: set `name` in site.yaml\n",
        );
    }
}

impl OptionalManifest {
    /// The manifest, where one is named.
    pub(crate) fn named(&self) -> Option<RequiredManifest> {
        let named = self.manifest.is_some() || self.manifest_file.is_some();
        let given =
            RequiredManifest { manifest: self.manifest.clone(), manifest_file: self.manifest_file.clone() };
        named.then_some(given)
    }
}

impl Placement {
    /// What is asked for.
    pub(crate) fn request(&self, manifest: ManifestName) -> Request {
        Request { manifest, host: self.host.clone(), mode: self.mode }
    }
}
