//! Every host of a request, with those who speak to it: what a command needs to look, to act and to go in.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orch_model::{Fleet, HostName, Provider, ProviderKind};
use orch_plan::{Action, MachineSpec, Plan};
use orch_run::{Door, Enroller, Permit, Place, Places, StateDir, Treasury};
use thiserror::Error;
use tokio::task::JoinSet;

use crate::local::{Local, LocalWay, Setup};
use crate::ssh::SshSettings;

/// Where things are that hosts are spoken to from.
#[derive(Clone)]
pub struct Base {
    /// The driver's own folder.
    pub state: StateDir,
    /// The site's folder; paths in host files are relative to it.
    pub site: PathBuf,
    /// This program, which starts itself for what needs a process of its own.
    pub program: PathBuf,
    /// How long connections to nodes that nobody uses are kept for the next command, where they are.
    pub keep: Option<Duration>,
    /// Who can open the secrets of the site.
    pub treasury: Arc<dyn Treasury>,
}

/// Every host of a fleet, with those who speak to it.
#[derive(Default)]
pub struct Ground {
    /// For runs.
    pub places: Places,
    /// For looking around, and for people.
    pub doors: BTreeMap<HostName, Arc<dyn Door>>,
    /// For nodes that fetch their configuration themselves.
    pub enrollers: BTreeMap<HostName, Arc<dyn Enroller>>,
    /// The hosts that are this very computer.
    pub locals: BTreeMap<HostName, Local>,
    ways: Vec<Arc<LocalWay>>,
}

/// A host that cannot be spoken to.
#[derive(Debug, Error)]
pub enum GroundError {
    /// There is no provider for it yet.
    #[error("host `{host}` cannot be spoken to: there is no provider for `{kind}` yet")]
    NoProvider {
        /// The host.
        host: HostName,
        /// Its kind.
        kind: ProviderKind,
    },
}

impl GroundError {
    /// What to try next.
    pub const fn hint(&self) -> &'static str {
        "place the nodes on a host whose provider is `local`, with -H or in the manifest"
    }
}

/// What is said of a plan before anything is touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preflight {
    /// What stands in the way.
    pub obstacles: Vec<Obstacle>,
    /// What will be less than was asked for, though it works: a disk without a limit.
    pub caveats: Vec<String>,
}

/// One thing that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// What it is.
    pub what: String,
    /// The way out.
    pub hint: String,
}

impl Ground {
    /// Finds out who speaks to each host of a fleet, and which hosts nobody can speak to yet. Touches nothing.
    pub fn of(fleet: &Fleet, base: &Base) -> (Self, BTreeMap<HostName, GroundError>) {
        let mut mute = BTreeMap::new();
        let mut ground = Self::default();
        for (name, host) in &fleet.hosts {
            let Provider::Local = host.provider else {
                let unknown = GroundError::NoProvider { host: name.clone(), kind: host.provider.kind() };
                mute.insert(name.clone(), unknown);
                continue;
            };
            let local = Local::new(Setup {
                host: name.clone(),
                state: base.state.clone(),
                site: base.site.clone(),
                user: host.node_user.clone(),
                program: base.program.clone(),
                reach: fleet.settings.verify_ssh.then(|| fleet.settings.timeouts.boot.duration()),
            });
            let mut settings = SshSettings::new(base.state.ssh(), local.identity());
            settings.reach = fleet.settings.timeouts.boot.duration();
            settings.keep = base.keep;
            settings.treasury = Arc::clone(&base.treasury);
            settings.limits.configure = fleet.settings.timeouts.config.duration();
            let way = Arc::new(local.way(settings));
            let provider = Arc::new(local.clone());
            ground.places.insert(name.clone(), Place { provider, transport: Arc::clone(&way) as _ });
            ground.doors.insert(name.clone(), Arc::clone(&way) as _);
            ground.enrollers.insert(name.clone(), Arc::clone(&way) as _);
            ground.ways.push(way);
            ground.locals.insert(name.clone(), local);
        }
        (ground, mute)
    }

    /// Removes what interrupted runs left of machines that are gone, on the hosts that there is leave to change.
    pub async fn tidy(&self, permit: &Permit) -> io::Result<()> {
        for local in self.locals.values() {
            local.tidy(permit).await?;
        }
        Ok(())
    }

    /// Ends what this command still has with nodes: waits until those that are to stop were told so, and lets go of every
    /// connection. To be called, with a limit, before the runtime ends: what is under way then is lost.
    pub async fn close(&self) {
        let ways = self.ways.iter().cloned();
        let closing: JoinSet<()> = ways.map(|way| async move { way.close().await }).collect();
        closing.join_all().await;
    }

    /// Says what would stand in the way of a plan, and what would be less than it asks for. Changes nothing.
    pub async fn preflight(&self, plan: &Plan) -> Preflight {
        let mut all = Preflight::default();
        for (host, local) in &self.locals {
            let on_host = plan.nodes.iter().filter(|node| node.identity.host == *host);
            let wanted: Vec<MachineSpec> = on_host.flat_map(|node| &node.up).filter_map(made).collect();
            let said = local.preflight(wanted).await;
            all.obstacles.extend(said.obstacles);
            all.caveats.extend(said.caveats);
        }
        all
    }
}

/// The machine that an action makes.
fn made(action: &Action) -> Option<MachineSpec> {
    match action {
        Action::Create { machine } | Action::Adopt { machine, .. } => Some(machine.clone()),
        _ => None,
    }
}
