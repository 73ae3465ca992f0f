//! `orch graph`: the nodes of a manifest, drawn.

use std::fs;
use std::path::Path;

use orch_model::{HostName, Scope, parse};
use orch_run::ExitCode;
use serde_json::json;

use crate::args::{Cli, GraphFormat, RequiredManifest};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::site;

pub(crate) fn run(
    cli: &Cli,
    manifest: &RequiredManifest,
    host: Option<&HostName>,
    format: GraphFormat,
    file: Option<&Path>,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let (sources, name) = site::with_manifest(cli, &site::root(cli)?, manifest)?;
    let catalog = parse(&sources, Scope::Manifest { name: &name, host })?;
    output::warn(catalog.warnings());
    let graph = catalog.graph(&name, host).expect("a manifest in scope was read");
    let drawing = match format {
        GraphFormat::Dot => graph.to_dot(),
        GraphFormat::Mermaid => graph.to_mermaid(),
        GraphFormat::Svg => graph.to_svg(),
    };
    match file {
        Some(path) => {
            let unwritten = |source| Failure::Unwritten { path: path.to_owned(), source };
            fs::write(path, drawing).map_err(unwritten)?;
            output.answer(&format!("wrote {}", path.display()), &json!({ "written": path }));
        }
        None => output.answer(&drawing, &graph),
    }
    Ok(ExitCode::Done)
}
