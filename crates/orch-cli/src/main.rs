//! The `orch` command: reads arguments, asks the other crates, prints their answers. It holds no logic of its own.

mod args;
mod failure;
mod foreign;
mod in_nix;
mod inner;
mod lab;
mod outlook;
mod output;
mod page;
mod paint;
mod runtime;
mod scene;
mod serving;
mod site;
mod stage;
mod systems;
mod verbs;
mod view;

use std::process::ExitCode;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use args::Cli;
use output::Output;

fn main() -> ExitCode {
    if let Some(code) = inner::face(std::env::args_os()) {
        return code;
    }
    // Whatever opens secrets has them in its memory, and identities in its variables: no image of that comes to lie on a disk,
    // and nobody else of this user looks at it. Where the kernel does not know of this, there is nothing else to do.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let (cli, output) = match Cli::read(std::env::args_os()) {
        Ok(cli) => {
            let output = Output::new(cli.json);
            (cli, output)
        }
        Err(unread) => return unread.print(),
    };
    let done = verbs::run(&cli, &output);
    ExitCode::from(output.close(done))
}
