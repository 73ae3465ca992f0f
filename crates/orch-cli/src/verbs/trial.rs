//! `orch test`: create, verify, destroy, in one report and under one set of locks.

use std::time::Duration;

use orch_model::Fleet;
use orch_plan::{Goal, Observed, Verb};
use orch_run::{Doors, ExitCode, Trial, TrialReport};

use crate::args::{Acting, Cli};
use crate::failure::Failure;
use crate::output::Output;
use crate::page::Page;
use crate::runtime::block_on;
use crate::scene::Scene;
use crate::stage::Stage;
use crate::verbs::plan;
use crate::view::{AfterStop, View};

/// How long a node may take to say what it is.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) fn run(cli: &Cli, args: &Acting, output: &Output) -> Result<ExitCode, Failure> {
    let scene = Scene::of(cli, &args.about.manifest, &args.about.placement, Some(&args.pace))?;
    let goal = Goal { only: args.about.selection(), ..Goal::of(Verb::Create) };
    let scene = scene.opened(&goal.only)?;
    if args.dry_run {
        let nobody = Doors::new();
        let trial = trial(&scene.fleet, &goal, &nobody);
        return plan::rehearse(&scene, &goal, output, |observed| refuse_to_take(&trial, observed));
    }
    let (report, page) = block_on(async {
        let stage = Stage::enter(scene, &goal, "test")?;
        stage.reach.during(try_out(&stage, args, &goal)).await
    })?;
    output.answer(&report, &report);
    Ok(page.write(|| report.html(), report.exit_code))
}

async fn try_out(stage: &Stage, args: &Acting, goal: &Goal) -> Result<(TrialReport, Page), Failure> {
    let observed = stage.reach.look().await;
    let trial = trial(&stage.scene.fleet, goal, &stage.reach.ground.doors);
    refuse_to_take(&trial, &observed)?;
    let plan = stage.plan_for(goal, &observed).await?;
    let page = Page::open(args.telling.report.as_deref())?;
    let serving = stage.serve(&plan)?;
    let view = View::open(&args.telling, "test", AfterStop::CleanUp)?;
    let report = trial.run(&stage.driver(&view, &args.pausing), stage.run.clone(), &plan).await;
    if let Some(serving) = serving {
        serving.end().await;
    }
    view.close().await;
    Ok((report?, page))
}

const fn trial<'a>(fleet: &'a Fleet, goal: &'a Goal, doors: &'a Doors) -> Trial<'a> {
    Trial { fleet, only: &goal.only, doors, deadline: DEADLINE }
}

/// A trial destroys what it is about, so nothing of that may be there before.
fn refuse_to_take(trial: &Trial<'_>, observed: &Observed) -> Result<(), Failure> {
    let in_the_way = trial.in_the_way(observed)?;
    if in_the_way.is_empty() { Ok(()) } else { Err(Failure::InTheWayOfTest(in_the_way)) }
}
