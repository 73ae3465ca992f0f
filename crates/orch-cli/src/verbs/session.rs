//! `orch ssh` and `orch ssh-config`: into a node, by hand or with the tools that people have.

use std::os::unix::process::CommandExt;
use std::process::Command;

use orch_model::{Node, NodeName};
use orch_run::{ExitCode, Presence, Target, picked, withhold};

use crate::args::{About, Cli, SshArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::runtime::block_on;
use crate::scene::{Reach, Scene};

/// Opens a session on a node, in place of this program.
pub(crate) fn ssh(cli: &Cli, args: &SshArgs) -> Result<ExitCode, Failure> {
    let scene = Scene::of(cli, &args.manifest, &args.placement, None)?;
    let node = find(&scene, &args.node)?;
    let host = &node.identity.host;
    let reach = scene.reach().must_cover(&[host.clone()].into())?;
    let observed = block_on(async { Ok(reach.look().await) })?;
    let presence = Presence::of(&scene.fleet, &node.identity, &observed);
    let away = || Failure::NotThere { node: args.node.clone(), why: presence.why_not().to_owned() };
    let target = presence.target(node).ok_or_else(away)?;
    let door = reach.ground.doors.get(host).ok_or_else(away)?;
    let session = door.session(&target, &args.argv)?;
    let (program, rest) = session.split_first().ok_or_else(away)?;
    let source = withhold(Command::new(program).args(rest)).exec();
    Err(Failure::NotStarted { program: program.to_string_lossy().into_owned(), source })
}

fn find<'s>(scene: &'s Scene, name: &NodeName) -> Result<&'s Node, Failure> {
    let nodes = &scene.fleet.nodes;
    nodes.iter().find(|node| node.name() == name).ok_or_else(|| {
        let known: Vec<String> = nodes.iter().take(12).map(|node| format!("`{}`", node.name())).collect();
        Failure::NoSuchNode {
            node: name.clone(),
            manifest: scene.fleet.manifest.to_string(),
            known: known.join(", "),
        }
    })
}

/// Prints how ordinary tools reach the nodes that run.
pub(crate) fn ssh_config(cli: &Cli, about: &About, output: &Output) -> Result<ExitCode, Failure> {
    let scene = Scene::of(cli, &about.manifest, &about.placement, None)?;
    let only = about.selection();
    let reach = scene.reach().must_cover(&scene.hosts(&only)?)?;
    let observed = block_on(async { Ok(reach.look().await) })?;
    let nodes = picked(&scene.fleet, &only)?.into_iter();
    let targets: Vec<Target> =
        nodes.filter_map(|node| Presence::of(&scene.fleet, &node.identity, &observed).target(node)).collect();
    let config =
        configs(&reach, &targets)?.ok_or_else(|| Failure::NoSsh(scene.fleet.manifest.to_string()))?;
    output.answer_plain(&config, "ssh_config");
    Ok(ExitCode::Done)
}

/// The configurations of all hosts, one after the other; nothing where no node has SSH.
fn configs(reach: &Reach, targets: &[Target]) -> Result<Option<String>, Failure> {
    let mut all: Option<String> = None;
    for (host, door) in &reach.ground.doors {
        let on_host = targets.iter().filter(|target| target.identity.host == *host).cloned();
        let config = door.ssh_config(&on_host.collect::<Vec<_>>())?;
        if let Some(config) = config {
            all.get_or_insert_default().push_str(&config);
        }
    }
    Ok(all)
}
