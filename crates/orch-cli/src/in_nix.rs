//! Manifests that are written in Nix: evaluated when they are read, and from then on files like any other.
//!
//! A site without them needs no Nix.

use std::path::{Path, PathBuf};
use std::time::Duration;

use orch_model::{Format, Place, Source, Sources};
use orch_nix::{Evaluator, EvaluatorSettings, Tools};

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;
use crate::runtime::block_on;
use crate::scene;

/// How long evaluating one manifest may take.
const LIMIT: Duration = Duration::from_mins(2);

/// The same files, those of them evaluated that are in Nix and meant. What does not evaluate says so when it is parsed, with
/// every other problem.
pub(crate) fn evaluated(
    cli: &Cli,
    root: &Path,
    sources: Sources,
    is_meant: impl Fn(&Source) -> bool,
) -> Result<Sources, Failure> {
    let is_in_nix = |source: &Source| source.place.format == Format::Nix && is_meant(source);
    if !sources.iter().any(is_in_nix) {
        return Ok(sources);
    }
    let evaluator = evaluator(cli)?;
    Ok(sources.map(|source| {
        if !is_in_nix(&source) {
            return source;
        }
        let content = evaluator
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|with| json(with, &path_of(&source, root), root));
        Source { content, place: Place { format: Format::Json, ..source.place }, ..source }
    }))
}

/// Where a file is: those of the site are named from its root, and one from elsewhere as it was given.
fn path_of(source: &Source, root: &Path) -> PathBuf {
    let inside = root.join(&source.path);
    if inside.is_file() { inside } else { source.path.clone().into() }
}

/// Who evaluates; in words, why there is nobody.
fn evaluator(cli: &Cli) -> Result<Result<Evaluator, String>, Failure> {
    let settings = EvaluatorSettings {
        cache: scene::state(cli)?.evaluations(),
        nixpkgs: cli.nixpkgs.as_deref().map(scene::absolute),
        memory: None,
        parallel: 1,
        limit: LIMIT,
        lib: None,
    };
    let tools = block_on(async { Ok(Tools::find(None).await) })?;
    Ok(tools
        .map(|tools| Evaluator::new(tools, settings))
        .map_err(|error| format!("{error} ({})", error.hint())))
}

fn json(evaluator: &Evaluator, file: &Path, site: &Path) -> Result<Vec<u8>, String> {
    let asked = block_on(async { Ok(evaluator.evaluate_file(file, site).await) });
    let value = asked.map_err(|failure| failure.to_string())?.map_err(|error| {
        if error.evidence().len() > 1 {
            output::note(&format!(
                "Nix says of `{}`:\n  {}\n",
                file.display(),
                error.evidence().join("\n  ")
            ));
        }
        format!("{error} ({})", error.hint())
    })?;
    Ok(serde_json::to_vec_pretty(&value).expect("what was read as JSON can be written as such"))
}
