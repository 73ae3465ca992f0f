//! `orch test`: create, verify, destroy, in one report and under one set of locks.

use std::time::Duration;

use orch_plan::{Goal, Verb};
use orch_run::{ExitCode, Trial};

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
    let only = args.about.selection();
    let goal = Goal { only: only.clone(), ..Goal::of(Verb::Create) };
    if args.dry_run {
        return plan::show(&scene, &goal, None, output);
    }
    let (report, page) = block_on(async {
        let stage = Stage::enter(scene, &goal, "test")?;
        let observed = stage.reach.look().await;
        let (fleet, doors) = (&stage.scene.fleet, &stage.reach.ground.doors);
        let trial = Trial { fleet, only: &only, doors, deadline: DEADLINE };
        let in_the_way = trial.in_the_way(&observed)?;
        if !in_the_way.is_empty() {
            return Err(Failure::InTheWayOfTest(in_the_way));
        }
        let plan = stage.plan_for(&goal, &observed).await?;
        let page = Page::open(args.telling.report.as_deref())?;
        let view = View::open(&args.telling, "test", AfterStop::CleanUp)?;
        let report = trial.run(&stage.driver(&view), stage.run.clone(), &plan).await;
        view.close().await;
        Ok((report?, page))
    })?;
    output.answer(&report, &report);
    Ok(page.write(|| report.html(), report.exit_code))
}
