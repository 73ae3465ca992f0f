//! `orch diff`: what a rollout would change on each node, before it happens. Looks, builds what is to be compared, and changes no
//! node.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use orch_model::system::Inventory;
use orch_model::{Config, HostName, Identity, Node, Problem, ResourceReport, StorePath, printable};
use orch_nix::{Changes, changes};
use orch_plan::Observed;
use orch_providers::rollout::Systems;
use orch_run::{Door, ExitCode, Presence, Progress, Target, TransportError, at_once, picked};
use serde::Serialize;

use crate::args::{Cli, DiffArgs, Placement};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::runtime::block_on;
use crate::scene::{Reach, Scene};
use crate::verbs::status::DEADLINE;

/// How long building a system may take.
const BUILD: Duration = Duration::from_hours(2);

pub(crate) fn run(cli: &Cli, args: &DiffArgs, output: &Output) -> Result<ExitCode, Failure> {
    let scene = scene(cli, args)?;
    let only = args.selection();
    let scene = scene.opened(&only)?;
    let reach = scene.reach().must_cover(&scene.hosts(&only)?)?;
    let report = block_on(reach.during(async {
        let observed = reach.look().await;
        let picked = picked(&scene.fleet, &only)?;
        let questions = picked.iter().map(|node| question(&scene, &reach, &observed, node));
        let answers = at_once(questions.map(Question::answered)).await;
        let mut nodes = Vec::new();
        let mut inventories = Inventories { systems: scene.systems(), known: BTreeMap::new() };
        for (node, answer) in picked.iter().zip(answers) {
            let difference = match answer.unwrap_or_else(lost) {
                Answer::Known(difference) => difference,
                Answer::Runs(running, wanted) => of_systems(running, wanted, &mut inventories).await,
            };
            nodes.push(NodeDiff { identity: node.identity.clone(), difference });
        }
        Ok(DiffReport { exit_code: exit_code(&nodes), nodes })
    }))?;
    output.answer(&report, &report);
    Ok(report.exit_code)
}

/// The nodes of a manifest, or hosts themselves where no manifest is named.
fn scene(cli: &Cli, args: &DiffArgs) -> Result<Scene, Failure> {
    let wrong = |what: &str, hint: &str| Failure::Problems(Problem::with_request(what).hint(hint).into());
    match (args.manifest.named(), args.hosts.as_slice()) {
        (Some(manifest), [] | [_]) => {
            let placement = Placement { host: args.hosts.first().cloned(), mode: args.mode };
            Scene::of(cli, &manifest, &placement, Some(&args.pace))
        }
        (Some(_), _) => {
            Err(wrong("several hosts are named", "with -M, -H is the one host for nodes that name none"))
        }
        (None, []) => {
            Err(wrong("neither a manifest nor a host is named", "name a manifest with -M, or hosts with -H"))
        }
        (None, hosts) => Scene::of_hosts(cli, hosts, &args.pace),
    }
}

/// What a rollout would change, node by node.
#[derive(Serialize)]
struct DiffReport {
    exit_code: ExitCode,
    nodes: Vec<NodeDiff>,
}

#[derive(Serialize)]
struct NodeDiff {
    identity: Identity,
    #[serde(flatten)]
    difference: Difference,
}

/// What would change on one node.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Difference {
    /// It runs one NixOS system, and is to run another.
    System {
        /// What runs.
        running: String,
        /// What is to run.
        wanted: StorePath,
        /// What that changes.
        changes: Box<Changes>,
    },
    /// It is configured thing by thing, and these differ.
    Resources {
        /// What differs.
        differs: Vec<ResourceReport>,
    },
    /// It has no configuration to be compared.
    Unconfigured,
    /// It could not be compared.
    Unknown {
        /// Why not.
        why: String,
        /// What to try.
        hint: String,
    },
}

impl Difference {
    fn unknown(why: impl fmt::Display, hint: impl Into<String>) -> Self {
        Self::Unknown { why: why.to_string(), hint: hint.into() }
    }
}

/// What a node is to be asked, with all that it takes: every node is asked at the same time.
enum Question {
    /// Nothing: what would change is known, or that it cannot be.
    None(Difference),
    /// Something, by this door.
    Of { door: Arc<dyn Door>, target: Target, config: Box<Config> },
}

/// What came of a question.
enum Answer {
    /// What would change.
    Known(Difference),
    /// What runs, and the system that is to run.
    Runs(Inventory, StorePath),
}

fn question(scene: &Scene, reach: &Reach, observed: &Observed, node: &Node) -> Question {
    if let Some(why) = &node.unfit {
        return Question::None(Difference::unknown(why, "mend what Nix complains about"));
    }
    let Some(config) = node.config.clone() else { return Question::None(Difference::Unconfigured) };
    let presence = Presence::of(&scene.fleet, &node.identity, observed);
    let host: &HostName = &node.identity.host;
    let found = presence.target(node).zip(reach.ground.doors.get(host).cloned());
    let Some((target, door)) = found else {
        let hint = "`orch create` makes and starts what is not there";
        return Question::None(Difference::unknown(format!("it {}", presence.why_not()), hint));
    };
    Question::Of { door, target, config: Box::new(config) }
}

impl Question {
    async fn answered(self) -> Answer {
        let (door, target, config) = match self {
            Self::None(difference) => return Answer::Known(difference),
            Self::Of { door, target, config } => (door, target, config),
        };
        let answer = match config.system() {
            Some(system) => {
                in_time(door.inventory(&target)).await.map(|running| Answer::Runs(running, system.clone()))
            }
            None => in_time(door.inspect(&target, &config)).await.map(|seen| {
                let differs = seen.resources.into_iter().filter(|resource| resource.changed).collect();
                Answer::Known(Difference::Resources { differs })
            }),
        };
        answer.unwrap_or_else(Answer::Known)
    }
}

/// What a node says within its time; what is to be told of it where it says nothing.
async fn in_time<T>(asked: impl Future<Output = Result<T, TransportError>>) -> Result<T, Difference> {
    match tokio::time::timeout(DEADLINE, asked).await {
        Ok(answer) => answer.map_err(|error| Difference::unknown(&error, error.hint())),
        Err(_) => {
            Err(Difference::unknown(format!("it said nothing within {DEADLINE:?}"), "see what it is doing"))
        }
    }
}

fn lost() -> Answer {
    let hint = "run it again, and tell the makers of orch";
    Answer::Known(Difference::unknown("whoever asked it stopped without an answer", hint))
}

async fn of_systems(running: Inventory, wanted: StorePath, inventories: &mut Inventories) -> Difference {
    match inventories.of(&wanted).await {
        Ok(inventory) => {
            let changes = Box::new(changes(&running, &inventory));
            Difference::System { running: running.system, wanted, changes }
        }
        Err(why) => Difference::unknown(why, "mend what Nix complains about"),
    }
}

/// What systems in the store here are made of, each looked at once.
struct Inventories {
    systems: Arc<dyn Systems>,
    known: BTreeMap<StorePath, Arc<Inventory>>,
}

impl Inventories {
    /// Builds the system where it is not there, and says what it is made of.
    async fn of(&mut self, system: &StorePath) -> Result<Arc<Inventory>, String> {
        if let Some(known) = self.known.get(system) {
            return Ok(Arc::clone(known));
        }
        let progress = Progress::to(|doing| output::note(&printable(doing)));
        self.systems.ready(system, &progress, BUILD).await.map_err(|error| error.why)?;
        let path = system.to_string();
        let found = tokio::task::spawn_blocking(move || orch_node::inventory(&path)).await;
        let found = Arc::new(found.map_err(|error| error.to_string())??);
        self.known.insert(system.clone(), Arc::clone(&found));
        Ok(found)
    }
}

/// Everything could be compared, or some of it, or nothing.
fn exit_code(nodes: &[NodeDiff]) -> ExitCode {
    let unknown = nodes.iter().filter(|node| matches!(node.difference, Difference::Unknown { .. })).count();
    match unknown {
        0 => ExitCode::Done,
        all if all == nodes.len() => ExitCode::Failed,
        _ => ExitCode::Partly,
    }
}

impl fmt::Display for DiffReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, NodeDiff { identity, difference }) in self.nodes.iter().enumerate() {
            let separator = if index > 0 { "\n" } else { "" };
            write!(f, "{separator}{}: ", identity.node)?;
            write_difference(f, difference)?;
        }
        Ok(())
    }
}

fn write_difference(f: &mut fmt::Formatter<'_>, difference: &Difference) -> fmt::Result {
    match difference {
        Difference::Unconfigured => writeln!(f, "it has no spec, so nothing is to be changed"),
        Difference::Unknown { why, hint } => {
            writeln!(f, "cannot be compared: {}\n  hint: {}", printable(why), printable(hint))
        }
        Difference::System { running, wanted, .. } if running == wanted.as_str() => {
            writeln!(f, "runs what it should")
        }
        Difference::System { running, wanted, changes } => {
            writeln!(f, "{} -> {wanted}", printable(running))?;
            changes.to_string().lines().try_for_each(|line| writeln!(f, "  {line}"))
        }
        Difference::Resources { differs } if differs.is_empty() => writeln!(f, "is as it should be"),
        Difference::Resources { differs } => {
            writeln!(f, "{} thing{} to change", differs.len(), if differs.len() == 1 { "" } else { "s" })?;
            differs.iter().try_for_each(|resource| {
                let detail = resource.detail.as_deref().unwrap_or("differs");
                writeln!(f, "  ~ {} {}: {}", resource.kind, printable(&resource.name), printable(detail))
            })
        }
    }
}
