//! `orch create`, `orch config` and `orch destroy`: the whole flow, from files to a report.

use std::io::{self, IsTerminal, Write};

use orch_plan::{Goal, Plan, Verb};
use orch_run::ExitCode;

use crate::args::{Acting, Cli, ConfigArgs, CreateArgs, DestroyArgs, Pausing, RolloutArgs, Telling};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::page::Page;
use crate::runtime::block_on;
use crate::scene::Scene;
use crate::stage::Stage;
use crate::verbs::plan;
use crate::view::{AfterStop, View};

pub(crate) fn create(cli: &Cli, args: &CreateArgs, output: &Output) -> Result<ExitCode, Failure> {
    let only = args.acting.about.selection();
    let goal = Goal { only, replace: args.replace, ..Goal::of(Verb::Create) };
    act(cli, &args.acting, &goal, Consent::Given, output)
}

pub(crate) fn config(cli: &Cli, args: &ConfigArgs, output: &Output) -> Result<ExitCode, Failure> {
    let only = args.acting.about.selection();
    let (staging, reboot) = (args.staging.staging(), args.staging.reboot);
    let goal = Goal { only, staging, reboot, ..Goal::of(Verb::Config) };
    act(cli, &args.acting, &goal, Consent::Given, output)
}

pub(crate) fn destroy(cli: &Cli, args: &DestroyArgs, output: &Output) -> Result<ExitCode, Failure> {
    let goal = Goal { only: args.acting.about.selection(), ..Goal::of(Verb::Destroy) };
    let consent = if args.yes { Consent::Given } else { Consent::ToAskFor };
    act(cli, &args.acting, &goal, consent, output)
}

/// Gives hosts themselves their systems, by the same way as nodes.
pub(crate) fn rollout(cli: &Cli, args: &RolloutArgs, output: &Output) -> Result<ExitCode, Failure> {
    let scene = Scene::of_hosts(cli, &args.hosts, &args.pace)?;
    let (staging, reboot) = (args.staging.staging(), args.staging.reboot);
    let goal = Goal { staging, reboot, ..Goal::of(Verb::Config) };
    let manner = Manner { telling: &args.telling, pausing: &args.pausing, consent: Consent::Given };
    on_stage(scene, args.dry_run, &goal, manner, output)
}

/// Whether somebody has to say yes first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Consent {
    Given,
    ToAskFor,
}

/// How a run is carried out, whatever it is about.
#[derive(Clone, Copy)]
struct Manner<'a> {
    telling: &'a Telling,
    pausing: &'a Pausing,
    consent: Consent,
}

fn act(
    cli: &Cli,
    args: &Acting,
    goal: &Goal,
    consent: Consent,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let scene = Scene::of(cli, &args.about.manifest, &args.about.placement, Some(&args.pace))?;
    let manner = Manner { telling: &args.telling, pausing: &args.pausing, consent };
    on_stage(scene, args.dry_run, goal, manner, output)
}

fn on_stage(
    scene: Scene,
    dry_run: bool,
    goal: &Goal,
    manner: Manner<'_>,
    output: &Output,
) -> Result<ExitCode, Failure> {
    // What is destroyed needs none but what opens its host.
    let scene = if goal.verb == Verb::Destroy { scene.admitted() } else { scene.opened(&goal.only)? };
    if dry_run {
        return plan::rehearse(&scene, goal, output, |_| Ok(()));
    }
    if manner.consent == Consent::ToAskFor && !can_ask() {
        return Err(Failure::NobodyToAsk);
    }
    block_on(async {
        let stage = Stage::enter(scene, goal, &goal.verb.to_string())?;
        stage.reach.during(carry_out(&stage, goal, manner, output)).await
    })
}

async fn carry_out(
    stage: &Stage,
    goal: &Goal,
    manner: Manner<'_>,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let plan = stage.plan(goal).await?;
    if manner.consent == Consent::ToAskFor && !plan.is_noop() {
        ask(&plan)?;
    }
    let page = Page::open(manner.telling.report.as_deref())?;
    let serving = stage.serve(&plan)?;
    let view = View::open(manner.telling, &goal.verb.to_string(), AfterStop::End)?;
    let report = stage.driver(&view, manner.pausing).run(stage.run.clone(), &plan).await;
    if let Some(serving) = serving {
        serving.end().await;
    }
    // While somebody listens for Ctrl-C: what is in the way of tidying can be in the way for long.
    let left = match &report {
        Ok(_) if goal.verb == Verb::Destroy => stage.tidy(&view.control()).await,
        _ => None,
    };
    view.close().await;
    if let Some(left) = left {
        output::note(&left);
    }
    let report = report?;
    output.answer(&report, &report);
    Ok(page.write(|| report.html(), report.exit_code.unwrap_or(ExitCode::Failed)))
}

fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Shows what would go, and goes on only after a yes.
fn ask(plan: &Plan) -> Result<(), Failure> {
    output::note(&format!("{plan}\n"));
    let _ = write!(io::stderr(), "Destroy this? Only `yes` is taken for a yes: ");
    let mut answer = String::new();
    match io::stdin().read_line(&mut answer) {
        Ok(_) if answer.trim() == "yes" => Ok(()),
        _ => Err(Failure::NotConfirmed),
    }
}
