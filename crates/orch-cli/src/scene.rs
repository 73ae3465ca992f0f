//! What a command about nodes begins with: the fleet that is meant, and those who speak to its hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use orch_model::{Fleet, HostName, HostRequest, Identity, Node, Scope, parse, resolve, resolve_hosts};
use orch_nix::{BuildOn, Kind};
use orch_plan::{Goal, HostView, Observed, Plan, Selection, Verb};
use orch_providers::rollout::Systems;
use orch_providers::{Base, Ground, GroundError, Preflight};
use orch_run::load;
use orch_run::status::minding_drift;
use orch_run::treasury::{judge_hosts, judge_readers, minding_readers};
use orch_run::{SiteTreasury, StateDir, Treasury, TreasuryError, know_secrets, observe, picked};
use orch_secrets::{Identities, Vault};
use orch_server::{ServerFolder, SitePlace, SiteRegistry, system_clock};

use crate::args::{Cli, Pace, Placement, RequiredManifest};
use crate::failure::Failure;
use crate::lab;
use crate::output;
use crate::runtime::block_on;
use crate::site;
use crate::systems::Evaluation;

/// How long a host may take to show what is on it, and a node to say what it is.
const LOOK: Duration = Duration::from_secs(30);

/// How long it may take at the end of a command to tell nodes that nobody waits for them any more, and to take away what was put
/// on them for the sake of this command alone.
const GOODBYE: Duration = Duration::from_secs(15);

/// The fleet that a command is about, and where its hosts are spoken to from.
pub(crate) struct Scene {
    pub(crate) fleet: Fleet,
    /// Why secrets cannot be had that the command needs, once it was tried.
    pub(crate) sealed: Vec<TreasuryError>,
    base: Base,
    treasury: Arc<SiteTreasury>,
    identities: Identities,
    /// A manifest from elsewhere.
    manifest_file: Option<PathBuf>,
    /// A folder with nixpkgs, where one is named.
    nixpkgs: Option<PathBuf>,
    /// Where the systems of NixOS nodes are built.
    build_on: BuildOn,
    /// Whether its nodes are nodes, or the hosts themselves.
    kind: Kind,
}

/// Those who speak to hosts, and the hosts that nobody can speak to.
pub(crate) struct Reach {
    pub(crate) ground: Ground,
    pub(crate) mute: BTreeMap<HostName, GroundError>,
}

impl Scene {
    /// Reads the site and finds out what is meant.
    pub(crate) fn of(
        cli: &Cli,
        manifest: &RequiredManifest,
        placement: &Placement,
        pace: Option<&Pace>,
    ) -> Result<Self, Failure> {
        let root = site::root(cli)?;
        let (sources, name) = site::with_manifest(cli, &root, manifest)?;
        let catalog = parse(&sources, Scope::Manifest { name: &name, host: placement.host.as_ref() })?;
        output::warn(catalog.warnings());
        site::warn_of_no_name(&catalog);
        let fleet = resolve(&catalog, &placement.request(name))?;
        let scene = Self::with(cli, &root, fleet, pace, Kind::Node)?;
        let manifest_file = manifest.manifest_file.as_deref().map(absolute);
        Ok(Self { manifest_file, ..scene })
    }

    /// Reads the site and finds out what is meant by hosts that are nodes themselves.
    pub(crate) fn of_hosts(cli: &Cli, hosts: &[HostName], pace: &Pace) -> Result<Self, Failure> {
        let root = site::root(cli)?;
        let hosts: BTreeSet<HostName> = hosts.iter().cloned().collect();
        let has_module = |name: &&HostName| root.join(format!("hosts/{name}/default.nix")).is_file();
        let with_module = hosts.iter().filter(has_module).cloned().collect();
        let sources = load::site(&root)?;
        let catalog = parse(&sources, Scope::Hosts(&hosts))?;
        output::warn(catalog.warnings());
        let fleet = resolve_hosts(&catalog, &HostRequest { hosts, with_module })?;
        Self::with(cli, &root, fleet, Some(pace), Kind::Host)
    }

    fn with(
        cli: &Cli,
        root: &Path,
        mut fleet: Fleet,
        pace: Option<&Pace>,
        kind: Kind,
    ) -> Result<Self, Failure> {
        if let Some(parallelism) = pace.and_then(|pace| pace.parallelism) {
            fleet.settings.parallelism = parallelism.into();
        }
        let identities = Identities::of_process();
        let treasury = Arc::new(SiteTreasury::new(Vault::new(&absolute(root), identities.clone())));
        let base = base_with(cli, root, treasury.clone())?;
        let (nixpkgs, build_on) = (cli.nixpkgs.as_deref().map(absolute), cli.build_on.clone());
        let (sealed, manifest_file) = (Vec::new(), None);
        Ok(Self { fleet, sealed, base, treasury, identities, manifest_file, nixpkgs, build_on, kind })
    }

    /// Opens every secret of the nodes that are meant, so that it is known by what each is known again. What cannot be had
    /// is told with everything else that stands in the way.
    pub(crate) fn opened(mut self, only: &Selection) -> Result<Self, Failure> {
        let picked = picked(&self.fleet, only)?;
        let meant: BTreeSet<Identity> = picked.into_iter().map(|node| node.identity.clone()).collect();
        self.evaluate(&meant)?;
        let vault = self.treasury.vault();
        self.sealed = know_secrets(&mut self.fleet, vault, |node| meant.contains(node));
        let hosts: BTreeSet<&HostName> = meant.iter().map(|node| &node.host).collect();
        // What stands in for a host is opened by something else.
        let is_spoken_to =
            |host: &HostName| hosts.contains(host) && self.base.steads.is_none() && self.kind == Kind::Node;
        self.sealed.extend(judge_hosts(&self.fleet, vault, is_spoken_to));
        self.sealed.extend(judge_readers(&self.fleet, vault, |node| meant.contains(node)));
        Ok(self)
    }

    /// Has the NixOS nodes that are meant know their systems. What is told to Nix has no value of a secret in it, and nothing
    /// that is made of one.
    fn evaluate(&mut self, meant: &BTreeSet<Identity>) -> Result<(), Failure> {
        let is_nixos = |node: &Node| node.config.as_ref().is_some_and(|config| config.role.nixos.is_some());
        if !self.fleet.nodes.iter().any(is_nixos) {
            return Ok(());
        }
        let evaluation = Evaluation {
            site: &self.base.site,
            cache: self.base.state.evaluations(),
            nixpkgs: self.nixpkgs.clone(),
            build_on: self.build_on.clone(),
            kind: self.kind,
        };
        let fleet = &mut self.fleet;
        let known = block_on(async { Ok(evaluation.of(fleet, |node| meant.contains(node)).await) })?;
        if let Some(known) = known {
            self.base.rollout.systems = known;
        }
        Ok(())
    }

    /// Opens what opens the hosts of the nodes that are meant, and nothing else: whoever only takes down needs no more.
    pub(crate) fn admitted(mut self) -> Self {
        self.sealed = judge_hosts(&self.fleet, self.treasury.vault(), |_| self.base.steads.is_none());
        self
    }

    /// Looks as a goal needs it, and minds nodes that are to read sops files themselves and cannot yet.
    pub(crate) async fn look_for(&self, reach: &Reach, goal: &Goal) -> Result<Observed, Failure> {
        let observed = reach.look_for(goal, &self.fleet).await?;
        if goal.verb == Verb::Destroy {
            return Ok(observed);
        }
        Ok(minding_readers(&self.fleet, self.treasury.vault(), observed))
    }

    /// Who can open its secrets.
    pub(crate) fn treasury(&self) -> Arc<dyn Treasury> {
        Arc::clone(&self.treasury) as _
    }

    /// What the server of the site keeps.
    pub(crate) fn server(&self) -> ServerFolder {
        let folder = ServerFolder::of(&self.base.state, &self.fleet.site);
        folder.of_site(&self.base.site, self.identities.clone())
    }

    /// Where the files are that the server hands out.
    pub(crate) fn place(&self) -> SitePlace {
        SitePlace {
            root: self.base.site.clone(),
            manifest: self.manifest_file.clone(),
            identities: self.identities.clone(),
        }
    }

    /// Where the systems of its nodes come from.
    pub(crate) fn systems(&self) -> Arc<dyn Systems> {
        Arc::clone(&self.base.rollout.systems)
    }

    /// The driver's own folder.
    pub(crate) const fn state(&self) -> &StateDir {
        &self.base.state
    }

    /// The hosts of the nodes that are meant.
    pub(crate) fn hosts(&self, only: &Selection) -> Result<BTreeSet<HostName>, Failure> {
        Ok(picked(&self.fleet, only)?.into_iter().map(|node| node.identity.host.clone()).collect())
    }

    /// Finds those who speak to the hosts. A host that nobody can speak to is set aside.
    pub(crate) fn reach(&self) -> Reach {
        let (ground, mute) = match self.kind {
            Kind::Host => Ground::of_hosts(&self.fleet, &self.base),
            Kind::Node => Ground::of(&self.fleet, &self.base),
        };
        Reach { ground, mute }
    }
}

impl Reach {
    /// Who knows the nodes that fetch their configuration, whoever serves them.
    pub(crate) fn registry(&self, scene: &Scene) -> SiteRegistry {
        let here = self.ground.ears.iter().map(|(host, local)| (host.clone(), local.server_address()));
        let elsewhere = scene.fleet.hosts.iter().filter(|(host, _)| !self.ground.ears.contains_key(*host));
        let elsewhere =
            elsewhere.filter_map(|(name, host)| Some((name.clone(), host.server_url.as_ref()?.to_string())));
        let (addresses, enrollers) = (here.chain(elsewhere).collect(), self.ground.enrollers.clone());
        SiteRegistry::new(&scene.server(), system_clock(), addresses, enrollers)
    }

    /// Waits for something that is done with hosts and nodes, and then, however that ended, until nodes that are to stop
    /// what they do were told so: what is still under way when the runtime ends is lost.
    pub(crate) async fn during<T>(&self, doing: impl Future<Output = T>) -> T {
        let done = doing.await;
        // A node that cannot be told in time goes on until its own limit.
        let _ = tokio::time::timeout(GOODBYE, self.ground.close()).await;
        done
    }

    /// Looks at every host that can be looked at.
    pub(crate) async fn look(&self) -> Observed {
        observe(&self.ground.places, LOOK).await
    }

    /// Looks as a goal needs it: the nodes themselves are asked too where it mends what has drifted.
    async fn look_for(&self, goal: &Goal, fleet: &Fleet) -> Result<Observed, Failure> {
        let observed = self.look().await;
        Ok(minding_drift(fleet, goal, &observed, &self.ground.doors, LOOK).await?)
    }

    /// What is to be said of a plan before anything is touched: nothing of one that does nothing, and no caveats of one
    /// that makes nothing.
    pub(crate) async fn preflight(&self, plan: &Plan) -> Preflight {
        if plan.is_noop() {
            return Preflight::default();
        }
        let preflight = self.ground.preflight(plan).await;
        let caveats = if plan.verb == Verb::Create { preflight.caveats } else { Vec::new() };
        Preflight { caveats, ..preflight }
    }

    /// Says of hosts that nobody can speak to that they cannot be looked at.
    pub(crate) fn mind_the_mute(&self, observed: &mut Observed) {
        for (host, error) in &self.mute {
            observed.hosts.insert(host.clone(), HostView::Unreachable { why: error.why.clone() });
        }
    }

    /// Refuses what needs a host that nobody can speak to.
    pub(crate) fn must_cover(mut self, hosts: &BTreeSet<HostName>) -> Result<Self, Failure> {
        match hosts.iter().find_map(|host| self.mute.remove(host)) {
            Some(error) => Err(error.into()),
            None => Ok(self),
        }
    }
}

/// Where the hosts of a site are spoken to from.
pub(crate) fn base(cli: &Cli, root: &Path) -> Result<Base, Failure> {
    let vault = Vault::new(&absolute(root), Identities::of_process());
    base_with(cli, root, Arc::new(SiteTreasury::new(vault)))
}

fn base_with(cli: &Cli, root: &Path, treasury: Arc<dyn Treasury>) -> Result<Base, Failure> {
    Ok(Base {
        state: state(cli)?,
        site: absolute(root),
        program: program()?,
        node_program: cli.node_program.as_deref().map(absolute),
        keep: (cli.keep_connections > 0).then(|| Duration::from_secs(cli.keep_connections.into())),
        treasury,
        steads: lab::steads(cli)?,
        agent: std::env::var_os("SSH_AUTH_SOCK").filter(|socket| !socket.is_empty()).map(Into::into),
        rollout: orch_providers::rollout::RolloutSettings::default(),
    })
}

/// The driver's own folder, by a path that holds wherever it is used: programs that others start read it too. What is done
/// in the lab is kept apart from what is done for real.
pub(crate) fn state(cli: &Cli) -> Result<StateDir, Failure> {
    let state = own_state(cli)?;
    if cli.lab { Ok(StateDir::locate(Some(&lab::driver_folder(&state)))?) } else { Ok(state) }
}

/// The driver's own folder, in the lab or not.
pub(crate) fn own_state(cli: &Cli) -> Result<StateDir, Failure> {
    Ok(StateDir::locate(cli.state.as_deref().map(absolute).as_deref())?)
}

pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// This program, by a path that other programs can start it by.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|source| Failure::Unread { path: "this program".into(), source })
}
