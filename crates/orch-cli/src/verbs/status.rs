//! `orch status`: what is, next to what is wanted. Takes no lock, so no run can block it.

use std::time::Duration;

use orch_plan::{Goal, Verb, plan};
use orch_run::{ExitCode, Standing};

use crate::args::{About, Cli};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::runtime::block_on;
use crate::scene::Scene;

/// How long a node may take to say what it is.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn run(cli: &Cli, about: &About, output: &Output) -> Result<ExitCode, Failure> {
    let scene = Scene::of(cli, &about.manifest, &about.placement, None)?;
    let only = about.selection();
    let reach = scene.reach().must_cover(&scene.hosts(&only)?)?;
    let standing = block_on(reach.during(async {
        let observed = reach.look().await;
        let plan = plan(&scene.fleet, &observed, &Goal { only: only.clone(), ..Goal::of(Verb::Create) })?;
        let standing = Standing::of(&scene.fleet, &only, &observed, &reach.ground.doors, DEADLINE);
        let (standing, preflight) = tokio::join!(standing, reach.ground.preflight(&plan));
        Ok(Standing { caveats: preflight.caveats, ..standing? })
    }))?;
    output::caveats(&standing.caveats);
    output.answer(&standing, &standing);
    Ok(standing.exit_code)
}
