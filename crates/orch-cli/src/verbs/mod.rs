//! One module for each verb: arguments in, an answer out.

mod graph;
mod init;
mod plan;
mod reference;
mod runs;
mod validate;

use orch_run::ExitCode;

use crate::args::{Cli, VerbArgs};
use crate::failure::Failure;
use crate::output::Output;

/// Does what the command line says.
pub(crate) fn run(cli: &Cli, output: &Output) -> Result<ExitCode, Failure> {
    match &cli.verb {
        VerbArgs::Validate { manifest, placement } => validate::run(cli, manifest, placement, output),
        VerbArgs::Plan(args) => plan::run(cli, args, output),
        VerbArgs::Graph { manifest, host, format, output: file } => {
            graph::run(cli, manifest, host.as_ref(), *format, file.as_deref(), output)
        }
        VerbArgs::Runs { what } => runs::run(cli, what, output),
        VerbArgs::Init { dir } => init::run(dir, output),
        VerbArgs::Schema { kind, out } => reference::schema(kind.as_deref(), out.as_deref(), output),
        VerbArgs::Completions { shell } => Ok(reference::completions(*shell, output)),
        VerbArgs::Man { dir } => reference::man(dir, output),
    }
}
