//! One module for each verb: arguments in, an answer out.

mod act;
mod diff;
mod exec;
mod graph;
mod init;
mod lab;
mod orphans;
mod plan;
mod reference;
mod runs;
mod secrets;
mod serve;
mod session;
mod status;
mod token;
mod trial;
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
        VerbArgs::Create(args) => act::create(cli, args, output),
        VerbArgs::Config(args) => act::config(cli, args, output),
        VerbArgs::Rollout(args) => act::rollout(cli, args, output),
        VerbArgs::Diff(args) => diff::run(cli, args, output),
        VerbArgs::Status(args) => status::run(cli, args, output),
        VerbArgs::Lab { what } => lab::run(cli, what, output),
        VerbArgs::Test(args) => trial::run(cli, args, output),
        VerbArgs::Exec(args) => exec::run(cli, args, output),
        VerbArgs::Ssh(args) => session::ssh(cli, args),
        VerbArgs::SshConfig(about) => session::ssh_config(cli, about, output),
        VerbArgs::Destroy(args) => act::destroy(cli, args, output),
        VerbArgs::Graph { manifest, host, format, output: file } => {
            graph::run(cli, manifest, host.as_ref(), *format, file.as_deref(), output)
        }
        VerbArgs::Serve(args) => serve::run(cli, args, output),
        VerbArgs::Secrets { what } => secrets::run(cli, what, output),
        VerbArgs::Token { what } => token::run(cli, what, output),
        VerbArgs::Runs { what } => runs::run(cli, what, output),
        VerbArgs::Init { dir } => init::run(dir, output),
        VerbArgs::Schema { kind, out } => reference::schema(kind.as_deref(), out.as_deref(), output),
        VerbArgs::Completions { shell } => Ok(reference::completions(*shell, output)),
        VerbArgs::Man { dir } => reference::man(dir, output),
    }
}
