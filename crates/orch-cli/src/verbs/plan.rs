//! `orch plan`: the flow up to the plan, and a print.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use orch_plan::{Goal, Observed, Plan, Verb, plan};
use orch_providers::{Cost, Obstacle};
use orch_run::ExitCode;
use serde::Serialize;

use crate::args::{Cli, PlanArgs};
use crate::failure::Failure;
use crate::outlook::Outlook;
use crate::output::{self, Output};
use crate::runtime::block_on;
use crate::scene::Scene;
use crate::stage;

pub(crate) fn run(cli: &Cli, args: &PlanArgs, output: &Output) -> Result<ExitCode, Failure> {
    let about = &args.about;
    let scene = Scene::of(cli, &about.manifest, &about.placement, Some(&args.pace))?;
    let goal = Goal {
        verb: args.goal.into(),
        only: about.selection(),
        replace: args.replace,
        staging: args.staging.staging(),
        reboot: args.staging.reboot,
    };
    let scene = if goal.verb == Verb::Destroy { scene.admitted() } else { scene.opened(&goal.only)? };
    let (plan, costs) = match args.observed.as_deref() {
        Some(file) => (plan(&scene.fleet, &read_observed(file)?, &goal)?, Vec::new()),
        None => with_obstacles(look(&scene, &goal)?.0),
    };
    output.answer(&plan, &Priced { plan: &plan, costs });
    Ok(ExitCode::Done)
}

/// A plan with what it costs.
#[derive(Serialize)]
struct Priced<'p> {
    #[serde(flatten)]
    plan: &'p Plan,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    costs: Vec<Cost>,
}

/// The plan, after saying what stands in its way: whoever asks for a plan is given one nevertheless.
fn with_obstacles(outlook: Outlook) -> (Plan, Vec<Cost>) {
    if let Some(Failure::Obstacles(obstacles)) = &outlook.objection {
        for Obstacle { what, hint } in obstacles {
            output::note(&format!("obstacle: {what}; {hint}"));
        }
    }
    (outlook.plan, outlook.costs)
}

/// Shows what a run for a goal would do, and objects to it as the run would; `refuse` is what this kind of run objects to
/// besides. Takes no lock.
pub(crate) fn rehearse(
    scene: &Scene,
    goal: &Goal,
    output: &Output,
    refuse: impl FnOnce(&Observed) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    let (outlook, observed) = look(scene, goal)?;
    output.answer(&outlook.plan, &Priced { plan: &outlook.plan, costs: outlook.costs.clone() });
    let mute = scene.reach().must_cover(&stage::hosts(scene, goal)?).err();
    let objection = mute.or_else(|| refuse(&observed).err()).or(outlook.objection);
    Ok(objection.map_or(ExitCode::Done, |objection| output::object(&objection)))
}

/// The plan for what is there now, and what that is, after saying what it rests on.
fn look(scene: &Scene, goal: &Goal) -> Result<(Outlook, Observed), Failure> {
    let reach = scene.reach();
    let (outlook, observed) = block_on(reach.during(async {
        let mut observed = scene.look_for(&reach, goal).await?;
        reach.mind_the_mute(&mut observed);
        let outlook = Outlook::of(scene, &reach, &observed, goal).await?;
        Ok((outlook, observed))
    }))?;
    output::caveats(&outlook.caveats);
    output::costs(&outlook.costs);
    Ok((outlook, observed))
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
