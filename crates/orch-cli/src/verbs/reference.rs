//! What orch says about itself: schemas, completions, manual pages. All of it comes from the code that does the work.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use orch_run::ExitCode;
use serde_json::json;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output::{self, Output};

/// Every schema as a file: its name and its text.
pub(crate) fn schema_files() -> impl Iterator<Item = (String, String)> {
    orch_model::schemas().map(|(name, schema)| (name, format!("{schema:#}\n")))
}

pub(crate) fn schema(kind: Option<&str>, out: Option<&Path>, output: &Output) -> Result<ExitCode, Failure> {
    if let Some(folder) = out {
        let files = schema_files().map(|(name, text)| (folder.join(name), text.into_bytes()));
        return write_all(folder, files, output);
    }
    let kind = kind.unwrap_or_default();
    let wanted = format!("{kind}.schema.json");
    let found = schema_files().find(|(name, _)| *name == wanted);
    let (_, text) = found.ok_or_else(|| Failure::UnknownKind(kind.to_owned()))?;
    output::print_text(&text);
    Ok(ExitCode::Done)
}

pub(crate) fn completions(shell: clap_complete::Shell, output: &Output) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "orch", &mut script);
    output.answer_plain(&String::from_utf8_lossy(&script), "script");
    ExitCode::Done
}

pub(crate) fn man(folder: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let mut command = Cli::command();
    command.build();
    let mut pages = Vec::new();
    render_pages(&command, &mut pages)
        .map_err(|source| Failure::Unwritten { path: folder.to_owned(), source })?;
    let files = pages.into_iter().map(|(name, page)| (folder.join(name), page));
    write_all(folder, files, output)
}

/// The page of a command, then those of its subcommands: `orch.1`, `orch-runs.1`, `orch-runs-list.1`.
fn render_pages(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    command.get_subcommands().try_for_each(|subcommand| render_pages(subcommand, pages))
}

fn write_all(
    folder: &Path,
    files: impl Iterator<Item = (PathBuf, Vec<u8>)>,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let unwritten = |path: &Path| {
        let path = path.to_owned();
        move |source| Failure::Unwritten { path, source }
    };
    fs::create_dir_all(folder).map_err(unwritten(folder))?;
    let mut written = Vec::new();
    for (path, content) in files {
        fs::write(&path, content).map_err(unwritten(&path))?;
        written.push(path);
    }
    let text = format!("wrote {} files to {}", written.len(), folder.display());
    output.answer(&text, &json!({ "written": written }));
    Ok(ExitCode::Done)
}
