//! `orch exec`: one program on every node, on many at once, and what each said.

use std::io::{self, Write};

use orch_run::{ExecOutcome, Execution, ExitCode, NodeExecution};

use crate::args::{Cli, ExecArgs};
use crate::failure::Failure;
use crate::foreign;
use crate::output::{self, Output};
use crate::runtime::block_on;
use crate::scene::Scene;

pub(crate) fn run(cli: &Cli, args: &ExecArgs, output: &Output) -> Result<ExitCode, Failure> {
    let about = &args.about;
    let scene = Scene::of(cli, &about.manifest, &about.placement, Some(&args.pace))?;
    let only = about.selection();
    let reach = scene.reach().must_cover(&scene.hosts(&only)?)?;
    let done = block_on(reach.during(async {
        let observed = reach.look().await;
        let (fleet, doors) = (&scene.fleet, &reach.ground.doors);
        Ok(Execution::of(fleet, &only, &observed, doors, &args.argv, args.timeout.duration()).await?)
    }))?;
    if cli.json {
        output::print_json(&done);
    } else {
        done.nodes.iter().for_each(|node| show(node, output));
    }
    Ok(done.exit_code)
}

/// A header, then what the program wrote: to standard output, and to standard error with the node's name before
/// each line, since there the headers are not seen.
fn show(node: &NodeExecution, output: &Output) {
    let name = &node.identity.node;
    let took = match node.outcome {
        ExecOutcome::Skipped { .. } => String::new(),
        _ => format!(" ({:.1}s)", node.seconds),
    };
    output.say(&format!("== {name}: {}{took}", node.outcome));
    match &node.outcome {
        ExecOutcome::Ended { stdout, stderr, .. } => {
            output.pass_on(stdout);
            let stderr = foreign::fit_for(&io::stderr(), stderr);
            for line in stderr.split_inclusive(|byte| *byte == b'\n') {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                // Nobody may be there to read it.
                let _ = io::stderr().write_all(&[name.as_str().as_bytes(), b": ", line, b"\n"].concat());
            }
        }
        ExecOutcome::Failed { hint, .. } => output::note(&format!("{name}: hint: {hint}")),
        ExecOutcome::TimedOut | ExecOutcome::Skipped { .. } => {}
    }
}
