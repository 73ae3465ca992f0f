//! `orch plan`: the flow up to the plan, and a print.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use orch_plan::{Goal, Observed, Plan, plan};
use orch_providers::Obstacle;
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
    let plan = match recorded {
        Some(file) => plan(&scene.fleet, &read_observed(file)?, goal)?,
        None => block_on(planned(scene, goal))?,
    };
    output.answer(&plan, &plan);
    Ok(ExitCode::Done)
}

/// The plan for what is there now, after saying what it rests on and what stands in its way.
async fn planned(scene: &Scene, goal: &Goal) -> Result<Plan, Failure> {
    let reach = scene.reach();
    let mut observed = reach.look_for(goal, &scene.fleet).await?;
    let assumption = reach.assume_empty(&mut observed);
    let plan = plan(&scene.fleet, &observed, goal)?;
    if let Some(assumption) = assumption {
        output::note(&assumption);
    }
    let preflight = reach.preflight(&plan).await;
    output::caveats(&preflight.caveats);
    for Obstacle { what, hint } in &preflight.obstacles {
        output::note(&format!("obstacle: {what}; {hint}"));
    }
    Ok(plan)
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
