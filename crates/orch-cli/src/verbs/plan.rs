//! `orch plan`: the flow up to the plan, and a print.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use orch_plan::{Goal, Observed, plan};
use orch_run::ExitCode;

use crate::args::{Cli, PlanArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::runtime::block_on;
use crate::scene::Scene;

pub(crate) fn run(cli: &Cli, args: &PlanArgs, output: &Output) -> Result<ExitCode, Failure> {
    let about = &args.about;
    let scene = Scene::of(cli, &about.manifest, &about.placement, Some(&args.pace))?;
    let goal = Goal { verb: args.goal.into(), only: about.selection(), replace: args.replace };
    show(&scene, &goal, args.observed.as_deref(), output)
}

/// Shows what would be done for a goal, next to a recorded state or to what is there now. Takes no lock.
pub(crate) fn show(
    scene: &Scene,
    goal: &Goal,
    recorded: Option<&Path>,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let (observed, assumption) = match recorded {
        Some(file) => (read_observed(file)?, None),
        None => look(scene)?,
    };
    let plan = plan(&scene.fleet, &observed, goal)?;
    if let Some(assumption) = assumption {
        output::note(&assumption);
    }
    output.answer(&plan, &plan);
    Ok(ExitCode::Done)
}

fn look(scene: &Scene) -> Result<(Observed, Option<String>), Failure> {
    let reach = scene.reach();
    let mut observed = block_on(async { Ok(reach.look().await) })?;
    let assumption = reach.assume_empty(&mut observed);
    Ok((observed, assumption))
}

fn read_observed(path: &Path) -> Result<Observed, Failure> {
    let reader: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let unread = |source| Failure::Unread { path: path.to_owned(), source };
        Box::new(BufReader::new(File::open(path).map_err(unread)?))
    };
    serde_json::from_reader(reader).map_err(|source| Failure::Observed { path: path.to_owned(), source })
}
