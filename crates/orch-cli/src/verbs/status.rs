//! `orch status`: what is, next to what is wanted. Takes no lock, so no run can block it.

use std::collections::BTreeMap;
use std::time::Duration;

use orch_model::{Identity, Mode, NodeRecord, Problem};
use orch_plan::{Goal, Verb, plan};
use orch_run::{ExitCode, Registry as _, Standing, TreasuryError};
use orch_server::remembered;

use crate::args::{Cli, StatusArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::runtime::block_on;
use crate::scene::{Reach, Scene};
use crate::verbs::orphans;

const WHICH: &str = "name one with -M; --orphans looks for what no manifest wants";

/// How long a node may take to say what it is.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn run(cli: &Cli, args: &StatusArgs, output: &Output) -> Result<ExitCode, Failure> {
    if args.orphans {
        return orphans::run(cli, args.placement.host.as_ref(), output);
    }
    let nameless = || Failure::Problems(Problem::with_request("no manifest is named").hint(WHICH).into());
    let manifest = args.manifest.named().ok_or_else(nameless)?;
    let scene = Scene::of(cli, &manifest, &args.placement, None)?;
    let only = args.selection();
    let scene = scene.opened(&only)?;
    for TreasuryError { what, hint } in &scene.sealed {
        output::note(&format!("warning: secrets cannot be compared: {what}\nhint: {hint}\n"));
    }
    let reach = scene.reach().must_cover(&scene.hosts(&only)?)?;
    let standing = block_on(reach.during(async {
        let observed = reach.look().await;
        let plan = plan(&scene.fleet, &observed, &Goal { only: only.clone(), ..Goal::of(Verb::Create) })?;
        let standing = Standing::of(&scene.fleet, &only, &observed, &reach.ground.doors, DEADLINE);
        let (standing, preflight) = tokio::join!(standing, reach.ground.preflight(&plan));
        let standing = standing?.with_records(known(&scene, &reach).await);
        Ok(Standing { caveats: preflight.caveats, ..standing })
    }))?;
    output::caveats(&standing.caveats);
    output.answer(&standing, &standing);
    Ok(standing.exit_code)
}

/// What the server knows of the nodes that fetch their configuration: the one that runs, or by what the last one left.
async fn known(scene: &Scene, reach: &Reach) -> BTreeMap<Identity, NodeRecord> {
    let pulling = scene.fleet.nodes.iter().filter(|node| node.mode != Mode::Push && node.config.is_some());
    let nodes: Vec<Identity> = pulling.map(|node| node.identity.clone()).collect();
    let registry = reach.registry(scene);
    let mut records = remembered(&scene.server(), nodes.clone());
    for node in nodes {
        match registry.record(&node, None).await {
            Ok(record) => drop(records.insert(node, record)),
            // Nobody serves now.
            Err(_) => break,
        }
    }
    for node in &scene.fleet.nodes {
        let wanted = node.config.as_ref().map(orch_model::Config::digest);
        records.entry(node.identity.clone()).and_modify(|record| record.wanted = wanted);
    }
    records
}
