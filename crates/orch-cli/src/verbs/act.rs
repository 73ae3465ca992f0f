//! `orch create`, `orch config` and `orch destroy`: the whole flow, from files to a report.

use std::io::{self, IsTerminal, Write};

use orch_plan::{Goal, Plan, Verb};
use orch_run::ExitCode;

use crate::args::{Acting, Cli, CreateArgs, DestroyArgs};
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
    act(cli, &args.acting, &Goal { verb: Verb::Create, only, replace: args.replace }, Consent::Given, output)
}

pub(crate) fn config(cli: &Cli, args: &Acting, output: &Output) -> Result<ExitCode, Failure> {
    let goal = Goal { only: args.about.selection(), ..Goal::of(Verb::Config) };
    act(cli, args, &goal, Consent::Given, output)
}

pub(crate) fn destroy(cli: &Cli, args: &DestroyArgs, output: &Output) -> Result<ExitCode, Failure> {
    let goal = Goal { only: args.acting.about.selection(), ..Goal::of(Verb::Destroy) };
    let consent = if args.yes { Consent::Given } else { Consent::ToAskFor };
    act(cli, &args.acting, &goal, consent, output)
}

/// Whether somebody has to say yes first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Consent {
    Given,
    ToAskFor,
}

fn act(
    cli: &Cli,
    args: &Acting,
    goal: &Goal,
    consent: Consent,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let scene = Scene::of(cli, &args.about.manifest, &args.about.placement, Some(&args.pace))?;
    // What is destroyed needs none but what opens its host.
    let scene = if goal.verb == Verb::Destroy { scene.admitted() } else { scene.opened(&goal.only)? };
    if args.dry_run {
        return plan::rehearse(&scene, goal, output, |_| Ok(()));
    }
    if consent == Consent::ToAskFor && !can_ask() {
        return Err(Failure::NobodyToAsk);
    }
    block_on(async {
        let stage = Stage::enter(scene, goal, &goal.verb.to_string())?;
        stage.reach.during(carry_out(&stage, args, goal, consent, output)).await
    })
}

async fn carry_out(
    stage: &Stage,
    args: &Acting,
    goal: &Goal,
    consent: Consent,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let plan = stage.plan(goal).await?;
    if consent == Consent::ToAskFor && !plan.is_noop() {
        ask(&plan)?;
    }
    let page = Page::open(args.telling.report.as_deref())?;
    let serving = stage.serve(&plan)?;
    let view = View::open(&args.telling, &goal.verb.to_string(), AfterStop::End)?;
    let report = stage.driver(&view).run(stage.run.clone(), &plan).await;
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
