//! Every host of a request, with those who speak to it: what a command needs to look, to act and to go in.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{
    Fleet, Hetzner, Host, HostName, ManifestName, Node, NodeName, Provider, Proxmox, SecretRef, Settings,
    SiteName, Survey, Trust, Url,
};
use orch_plan::Plan;
use orch_run::{Door, Enroller, Leaser, Permit, Place, Places, Reverter, StateDir, Transport, Treasury};
use thiserror::Error;
use tokio::task::JoinSet;
use zeroize::Zeroizing;

use crate::api::{Client, ClientSettings, Opener, Tcp, Trusting, host_and_port};
use crate::hetzner::{self, HetznerSetup};
use crate::host_shell::HostShell;
use crate::host_system::{HostSystem, HostWay};
use crate::local::{Local, LocalWay, Setup};
use crate::nested::{Kinship, Nest};
use crate::preflight::{Preflight, Wanted};
use crate::proxmox::{self, ProxmoxSetup};
use crate::push::Uploaded;
use crate::rollout::RolloutSettings;
use crate::ssh::{Ssh, SshSettings, Wayfinder};
use crate::stead::{Stead, Steads};

/// How many questions are asked of an API at once.
const LANES: usize = 16;
/// How long the host itself may take until its SSH server answers.
const HOST_REACH: Duration = Duration::from_secs(5);
/// How long a host may take that is to be given a system itself: one that is rebooted through another is waited for.
const HOST_ITSELF: Duration = Duration::from_secs(20);
/// How long an API may take for one answer.
const ANSWER: Duration = Duration::from_secs(30);

/// Where things are that hosts are spoken to from.
#[derive(Clone)]
pub struct Base {
    /// The driver's own folder.
    pub state: StateDir,
    /// The site's folder; paths in host files are relative to it.
    pub site: PathBuf,
    /// This program, which starts itself for what needs a process of its own.
    pub program: PathBuf,
    /// The program that is brought to nodes elsewhere, where it is not this one.
    pub node_program: Option<PathBuf>,
    /// How long connections to nodes that nobody uses are kept for the next command, where they are.
    pub keep: Option<Duration>,
    /// Who can open the secrets of the site.
    pub treasury: Arc<dyn Treasury>,
    /// What stands in for hosts elsewhere, where they are not to be spoken to themselves.
    pub steads: Option<Steads>,
    /// The socket of an SSH agent that may open hosts, where there is one.
    pub agent: Option<PathBuf>,
    /// Where the systems of NixOS nodes come from, and how patient their rollouts are.
    pub rollout: RolloutSettings,
}

/// What of a fleet, or of a whole site, says whom there is to speak to.
#[derive(Clone, Copy)]
pub struct Premises<'f> {
    /// The site that owns everything.
    pub site: &'f SiteName,
    /// The hosts.
    pub hosts: &'f BTreeMap<HostName, Host>,
    /// The nodes that are or could be on them.
    pub nodes: &'f [Node],
    /// Who lives inside of whom, where that is not said of the nodes.
    pub parents: Option<&'f BTreeMap<(ManifestName, NodeName), NodeName>>,
    /// How long things are waited for.
    pub settings: &'f Settings,
}

impl<'f> From<&'f Fleet> for Premises<'f> {
    fn from(fleet: &'f Fleet) -> Self {
        Self {
            site: &fleet.site,
            hosts: &fleet.hosts,
            nodes: &fleet.nodes,
            parents: None,
            settings: &fleet.settings,
        }
    }
}

impl<'f> From<&'f Survey> for Premises<'f> {
    fn from(survey: &'f Survey) -> Self {
        Self {
            site: &survey.site,
            hosts: &survey.hosts,
            nodes: &[],
            parents: Some(&survey.parents),
            settings: &survey.settings,
        }
    }
}

/// A host that is elsewhere: a hypervisor, a cloud.
#[async_trait]
pub(crate) trait Elsewhere: orch_run::Provider + Wayfinder {
    /// Says what would stand in the way of making these machines, and what they would cost. Changes nothing.
    async fn preflight(&self, wanted: &[Wanted]) -> Preflight;

    /// Takes away what was put elsewhere for the sake of this command alone.
    async fn close(&self) {}
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
    /// Hosts whose nodes are in a network of this computer, in which a server can listen to them.
    pub ears: BTreeMap<HostName, Local>,
    locals: BTreeMap<HostName, Local>,
    elsewhere: BTreeMap<HostName, Arc<dyn Elsewhere>>,
    /// Where images of hosts elsewhere have the program that configures nodes, where they do.
    node_programs: BTreeMap<HostName, String>,
    local_ways: Vec<Arc<LocalWay>>,
    ways: Vec<Arc<Ssh>>,
}

/// A host that cannot be spoken to.
#[derive(Debug, Clone, Error)]
#[error("host `{host}` cannot be spoken to: {why}")]
pub struct GroundError {
    /// The host.
    pub host: HostName,
    /// Why not.
    pub why: String,
    /// The way out.
    pub hint: String,
}

impl Ground {
    /// Finds out who speaks to each host, and which hosts nobody can speak to. Touches nothing.
    pub fn of<'f>(premises: impl Into<Premises<'f>>, base: &Base) -> (Self, BTreeMap<HostName, GroundError>) {
        let premises = premises.into();
        let (mut ground, mut mute) = (Self::default(), BTreeMap::new());
        for (name, host) in premises.hosts {
            if let Err((why, hint)) = ground.add(name, host, premises, base) {
                mute.insert(name.clone(), GroundError { host: name.clone(), why, hint });
            }
        }
        (ground, mute)
    }

    /// The hosts themselves, each as the one node on it: those whose files say how they are reached. Touches nothing.
    pub fn of_hosts<'f>(
        premises: impl Into<Premises<'f>>,
        base: &Base,
    ) -> (Self, BTreeMap<HostName, GroundError>) {
        let premises = premises.into();
        let (mut ground, mut mute) = (Self::default(), BTreeMap::new());
        let program = base.node_program.as_ref().unwrap_or(&base.program);
        let program = Arc::new(Uploaded::of(program.clone()));
        for (name, host) in premises.hosts {
            if let Err((why, hint)) = ground.add_host_itself(host, premises, base, &program) {
                mute.insert(name.clone(), GroundError { host: name.clone(), why, hint });
            }
        }
        (ground, mute)
    }

    fn add_host_itself(
        &mut self,
        host: &Host,
        premises: Premises<'_>,
        base: &Base,
        program: &Arc<Uploaded>,
    ) -> Result<(), (String, String)> {
        let hops = way_to(host, premises.hosts);
        let settings = SshSettings {
            more_identities: hops.iter().filter_map(|host| HostWay::identity(host, &base.site)).collect(),
            agent: base.agent.clone(),
            // It runs already: nobody waits for it to boot before it is known that it is needed.
            reach: HOST_REACH.max(premises.settings.timeouts.boot.duration().min(HOST_ITSELF)),
            ..ssh_settings(premises.settings, base)
        };
        let hops = hops.into_iter().map(HostWay::hop).collect::<Result<_, _>>()?;
        let way = Arc::new(Ssh::new(Arc::new(HostWay { hops, program: Arc::clone(program) }), settings));
        let provider = HostSystem::new(host.clone(), premises.site.clone(), Arc::clone(&way));
        self.places.insert(host.name.clone(), place(Arc::new(provider), &way));
        self.doors.insert(host.name.clone(), Arc::clone(&way) as _);
        self.ways.push(way);
        Ok(())
    }

    fn add(
        &mut self,
        name: &HostName,
        host: &Host,
        premises: Premises<'_>,
        base: &Base,
    ) -> Result<(), (String, String)> {
        if host.provider == Provider::Local {
            self.add_local(name, host, premises, base);
            return Ok(());
        }
        let stead = match &base.steads {
            None => None,
            Some(steads) => Some(steads.0.get(name).ok_or_else(|| {
                let hint = "`orch lab up` starts one for every host of the site; where one runs that does not know it, `orch lab down` first".to_owned();
                ("there is no lab in its stead".to_owned(), hint)
            })?),
        };
        let provider = stead.map_or_else(|| host.provider.clone(), |stead| stead.in_place_of(&host.provider));
        let site = Site { name, host, premises, base, stead };
        let (elsewhere, program): (Arc<dyn Elsewhere>, _) = match &provider {
            Provider::Local => return Ok(()),
            Provider::Proxmox(proxmox) => (site.proxmox(proxmox)?, &proxmox.node_program),
            Provider::Hetzner(hetzner) => (site.hetzner(hetzner)?, &hetzner.node_program),
        };
        self.node_programs.extend(program.clone().map(|program| (name.clone(), program)));
        if let Some(machines) = stead.and_then(|stead| stead.machines.clone()) {
            self.ears.insert(name.clone(), Local::new(machines));
        }
        self.add_elsewhere(name, elsewhere, premises, base);
        Ok(())
    }

    fn add_local(&mut self, name: &HostName, host: &Host, premises: Premises<'_>, base: &Base) {
        let boot = premises.settings.timeouts.boot.duration();
        let local = Local::new(Setup {
            host: name.clone(),
            state: base.state.clone(),
            site: base.site.clone(),
            user: host.node_user.clone(),
            program: base.program.clone(),
            reach: premises.settings.verify_ssh.then_some(boot),
        });
        let way = Arc::new(local.way(ssh_settings(premises.settings, base)));
        let provider = Arc::new(local.clone());
        self.places.insert(name.clone(), place(provider, &way));
        self.doors.insert(name.clone(), Arc::clone(&way) as _);
        self.enrollers.insert(name.clone(), Arc::clone(&way) as _);
        self.local_ways.push(way);
        self.ears.insert(name.clone(), local.clone());
        self.locals.insert(name.clone(), local);
    }

    fn add_elsewhere(
        &mut self,
        name: &HostName,
        host: Arc<dyn Elsewhere>,
        premises: Premises<'_>,
        base: &Base,
    ) {
        let finder: Arc<dyn Wayfinder> = Arc::clone(&host) as _;
        let way = Arc::new(Ssh::new(finder, ssh_settings(premises.settings, base)));
        self.places.insert(name.clone(), place(Arc::clone(&host) as _, &way));
        self.doors.insert(name.clone(), Arc::clone(&way) as _);
        self.enrollers.insert(name.clone(), Arc::clone(&way) as _);
        self.ways.push(way);
        self.elsewhere.insert(name.clone(), host);
    }

    /// Whether a host is this very computer.
    pub fn is_here(&self, host: &HostName) -> bool {
        self.locals.contains_key(host)
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
        let mut closing = JoinSet::new();
        for elsewhere in self.elsewhere.values() {
            let elsewhere = Arc::clone(elsewhere);
            closing.spawn(async move { elsewhere.close().await });
        }
        for way in &self.local_ways {
            let way = Arc::clone(way);
            closing.spawn(async move { way.close().await });
        }
        for way in &self.ways {
            let way = Arc::clone(way);
            closing.spawn(async move { way.close().await });
        }
        closing.join_all().await;
    }

    /// Says what would stand in the way of a plan, what would be less than it asks for, and what it would cost. Changes
    /// nothing.
    pub async fn preflight(&self, plan: &Plan) -> Preflight {
        let mut all = Preflight::default();
        for (host, local) in &self.locals {
            let wanted = Wanted::on(host, plan).into_iter().map(|wanted| wanted.machine);
            all.extend(local.preflight(wanted.collect()).await);
        }
        for (host, elsewhere) in &self.elsewhere {
            let wanted = Wanted::on(host, plan);
            // One that nothing is asked of is not asked either.
            if !wanted.is_empty() {
                let program = self.node_programs.get(host).map(String::as_str);
                all.obstacles.extend(wanted.iter().flat_map(|wanted| wanted.stands_elsewhere(host, program)));
                all.extend(elsewhere.preflight(&wanted).await);
            }
        }
        all
    }
}

/// A host, and a way to its nodes that does everything that is done with nodes.
fn place<W>(provider: Arc<dyn orch_run::Provider>, way: &Arc<W>) -> Place
where
    W: Transport + Leaser + Reverter + 'static,
{
    Place {
        provider,
        transport: Arc::clone(way) as _,
        leaser: Some(Arc::clone(way) as _),
        reverter: Some(Arc::clone(way) as _),
    }
}

/// A host after those through which it is reached, the first of them first.
fn way_to<'h>(host: &'h Host, hosts: &'h BTreeMap<HostName, Host>) -> Vec<&'h Host> {
    let jump = |host: &&'h Host| host.ssh.as_ref()?.jump.as_ref().and_then(|jump| hosts.get(jump));
    // A way that goes round in a circle was refused when the files were read.
    let mut way: Vec<&Host> = std::iter::successors(Some(host), jump).take(hosts.len()).collect();
    way.reverse();
    way
}

fn ssh_settings(settings: &Settings, base: &Base) -> SshSettings {
    let mut ssh = SshSettings::new(base.state.ssh(), identity(base));
    ssh.reach = settings.timeouts.boot.duration();
    ssh.keep = base.keep;
    ssh.treasury = Arc::clone(&base.treasury);
    ssh.limits.configure = settings.timeouts.config.duration();
    ssh.rollout = base.rollout.clone();
    ssh.rollout.limits = ssh.rollout.limits.within(ssh.limits.configure);
    ssh
}

/// The private key that opens nodes.
fn identity(base: &Base) -> PathBuf {
    let path = base.state.keys().join("driver_ed25519");
    std::path::absolute(&path).unwrap_or(path)
}

/// One host elsewhere, while it is found out how it is spoken to.
struct Site<'a> {
    name: &'a HostName,
    host: &'a Host,
    premises: Premises<'a>,
    base: &'a Base,
    stead: Option<&'a Stead>,
}

impl Site<'_> {
    fn proxmox(&self, proxmox: &Proxmox) -> Result<Arc<dyn Elsewhere>, (String, String)> {
        let opener = self.opener(&proxmox.api_token, "PVEAPIToken=");
        let client = self.client(&proxmox.api_endpoint, &proxmox.trust, opener)?;
        let (nodes, shell) = (|| self.nodes(), self.shell());
        let names = nodes().flat_map(|node| [node.identity.plain_name(), node.identity.distinct_name()]);
        let setup = ProxmoxSetup {
            host: self.name.clone(),
            proxmox: proxmox.clone(),
            client,
            user: self.host.node_user.clone(),
            identity: identity(self.base),
            names: names.collect(),
            vmids: nodes().filter_map(|node| node.vmid).collect(),
            ssh_ports: self.ssh_ports(),
            reach: self.reach(),
            parent: None,
            program: self.program(),
            snippets: shell.clone().map(|shell| shell as _),
            neighbours: shell.map(|shell| shell as _),
            pace: proxmox::Pace::default(),
        };
        let kinship = match self.premises.parents {
            Some(parents) => Kinship::new(self.premises.site, parents.clone()),
            None => Kinship::of(self.premises.site, self.nodes()),
        };
        Ok(Nest::new(setup, kinship, ssh_settings(self.premises.settings, self.base)))
    }

    /// The host itself, where its file says how it is reached. What stands in for it has no SSH.
    fn shell(&self) -> Option<Arc<HostShell>> {
        let ssh = self.host.ssh.as_ref().filter(|_| self.stead.is_none())?;
        // It is asked beside the API while machines are waited for, and must not keep anybody waiting itself.
        let settings = SshSettings { reach: HOST_REACH, ..ssh_settings(self.premises.settings, self.base) };
        HostShell::new(self.name, ssh, settings).map(Arc::new)
    }

    fn hetzner(&self, hetzner: &Hetzner) -> Result<Arc<dyn Elsewhere>, (String, String)> {
        let opener = self.opener(&hetzner.token, "Bearer ");
        let client = self.client(&hetzner.api_endpoint, &hetzner.trust, opener)?;
        let server_type = |node: &Node| {
            let preset = node.preset.as_ref()?;
            Some((node.name().clone(), hetzner.server_types.get(preset.as_str())?.clone()))
        };
        let setup = HetznerSetup {
            host: self.name.clone(),
            site: self.premises.site.clone(),
            hetzner: hetzner.clone(),
            client,
            user: self.host.node_user.clone(),
            identity: identity(self.base),
            server_types: self.nodes().filter_map(server_type).collect(),
            ssh_ports: self.ssh_ports(),
            reach: self.reach(),
            program: self.program(),
            pace: hetzner::Pace::default(),
        };
        Ok(Arc::new(hetzner::Hetzner::new(setup)))
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.premises.nodes.iter().filter(|node| node.identity.host == *self.name)
    }

    fn ssh_ports(&self) -> BTreeMap<NodeName, u16> {
        let port = |node: &Node| Some((node.name().clone(), node.config.as_ref()?.role.ssh.port));
        self.nodes().filter_map(port).collect()
    }

    fn reach(&self) -> Option<Duration> {
        let settings = self.premises.settings;
        settings.verify_ssh.then(|| settings.timeouts.boot.duration())
    }

    fn program(&self) -> Arc<Uploaded> {
        let program = self.base.node_program.as_ref().unwrap_or(&self.base.program);
        Arc::new(Uploaded::of(program.clone()))
    }

    /// Has the token at the moment when it is first used.
    fn opener(&self, mention: &SecretRef, scheme: &'static str) -> Opener {
        let written =
            move |token: &[u8]| Zeroizing::new(format!("{scheme}{}", String::from_utf8_lossy(token).trim()));
        if let Some(stead) = self.stead {
            let token = Arc::clone(&stead.token);
            return Arc::new(move || Ok(written(token.expose())));
        }
        let (treasury, mention) = (Arc::clone(&self.base.treasury), mention.clone());
        Arc::new(move || Ok(written(treasury.token(&mention)?.expose())))
    }

    fn client(&self, endpoint: &Url, trust: &Trust, opener: Opener) -> Result<Arc<Client>, (String, String)> {
        let hint = |what: &str| format!("mend `{what}` in hosts/{}.yaml", self.name);
        let authority = endpoint.as_str().trim_start_matches("https://");
        let authority = authority.split('/').next().unwrap_or_default();
        let unusable = || (format!("`{endpoint}` is not an address"), hint("api_endpoint"));
        let (address, port) = host_and_port(authority).ok_or_else(unusable)?;
        let tls =
            Trusting::config(trust, &self.base.site).map_err(|error| (error.to_string(), hint("ca_file")))?;
        let settings = ClientSettings {
            endpoint: endpoint.to_string(),
            dial: Arc::new(Tcp { host: address, port }),
            tls,
            opener,
            lanes: LANES,
            limit: ANSWER,
        };
        Ok(Arc::new(Client::new(settings).map_err(|why| (why, hint("api_endpoint")))?))
    }
}
