//! The way to nodes on this computer: by SSH, hop by hop as it would be anywhere, or straight into the namespaces of
//! those that have no SSH server.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use orch_model::pull::Enrolment;
use orch_model::system::{Inventory, LeaseAnswer, LeaseClaim, SwitchAnswer};
use orch_model::{Config, Inspection, NodeKeys, RootLogin};
use orch_run::{
    Configured, Door, Ended, Enroller, Leaser, Permit, Reverter, Target, Transport, TransportError, Treasury,
};
use tokio::time::Instant;

use super::boot::PROGRAM;
use super::direct::{Direct, Work};
use super::enter::CONNECT;
use super::make::Maker;
use super::power::{last_lines, refuses_root, ssh_port};
use super::process::Process;
use super::record::{Folder, Record};
use super::{HELPER, Local, refresh};
use crate::exec::exec;
use crate::push::{self, Limits, Part, Program, What};
use crate::remote::{Bridge, Remote};
use crate::rollout::{Holding, Outside, Road, Rollout, RolloutSettings, back, end_within, system_of};
use crate::ssh::{Hop, Ssh, SshSettings, Way, Wayfinder, Whereabouts};

/// The way to the nodes of a host on this computer.
pub struct LocalWay {
    maker: Arc<Maker>,
    ssh: Ssh,
    limits: Limits,
    treasury: Arc<dyn Treasury>,
    rollout: RolloutSettings,
}

impl Local {
    /// The way to its nodes.
    pub fn way(&self, settings: SshSettings) -> LocalWay {
        let settings = SshSettings { whereabouts: Whereabouts::Here, ..settings };
        let (limits, treasury) = (settings.limits.clone(), Arc::clone(&settings.treasury));
        let finder = Arc::new(Finder { maker: Arc::clone(&self.maker) });
        let (maker, rollout) = (Arc::clone(&self.maker), settings.rollout.clone());
        LocalWay { maker, ssh: Ssh::new(finder, settings), limits, treasury, rollout }
    }

    /// The private key that opens its nodes.
    pub fn identity(&self) -> PathBuf {
        self.maker.identity.clone()
    }
}

/// Knows which hops lead to a machine.
struct Finder {
    maker: Arc<Maker>,
}

#[async_trait]
impl Wayfinder for Finder {
    async fn way(&self, target: &Target) -> Result<Way, TransportError> {
        let hops = self.maker.hops(target)?;
        let sudo = hops.last().is_some_and(|hop| hop.user != "root");
        Ok(Way { hops, program: Program::There(PROGRAM.into()), sudo })
    }
}

impl Maker {
    /// The machine that is meant, which must run.
    fn running(&self, target: &Target) -> Result<(Folder, Record), TransportError> {
        let found =
            self.store.bearing(target.uuid).map_err(|error| unreachable(target, &error.to_string()))?;
        let (folder, record) = found.ok_or_else(|| unreachable(target, "it does not exist"))?;
        if folder.running().is_some() {
            return Ok((folder, record));
        }
        let evidence = last_lines(&folder.console());
        Err(TransportError::Unreachable {
            node: target.identity.clone(),
            why: "it does not run".into(),
            evidence,
        })
    }

    /// The machines on the way to one, outermost first.
    fn hops(&self, target: &Target) -> Result<Vec<Hop>, TransportError> {
        let (folder, record) = self.running(target)?;
        let mut hops = vec![hop(target, &folder, &record)?];
        let mut above = record.inside;
        while let Some(name) = above {
            let folder = self.store.folder(&name);
            let record = folder.record().map_err(|error| unreachable(target, &error.to_string()))?;
            hops.push(hop(target, &folder, &record)?);
            above = record.inside;
        }
        hops.reverse();
        let first = hops.first_mut().expect("the machine itself is a hop");
        let outermost = self.outermost(&folder);
        first.proxy = Some(vec![
            self.program.clone().into(),
            HELPER.into(),
            CONNECT.into(),
            outermost.path().as_os_str().to_owned(),
            first.port.to_string().into(),
        ]);
        Ok(hops)
    }

    /// The machine on the host itself that another lives in, however deep.
    fn outermost(&self, folder: &Folder) -> Folder {
        let inside = folder.record().ok().and_then(|record| record.inside);
        inside.map_or_else(|| folder.clone(), |name| self.outermost(&self.store.folder(&name)))
    }

    /// Whether a machine, and every machine on the way to it, is reached by SSH.
    fn has_ssh(&self, folder: &Folder, record: &Record) -> bool {
        let is_let_in = record.user.as_str() != "root" || !refuses_root(folder);
        let above = record.inside.as_ref().map(|name| self.store.folder(name));
        let is_reached = |above: Folder| above.record().is_ok_and(|record| self.has_ssh(&above, &record));
        record.has_ssh() && is_let_in && above.is_none_or(is_reached)
    }
}

/// A machine as a hop, but for the way to it.
fn hop(target: &Target, folder: &Folder, record: &Record) -> Result<Hop, TransportError> {
    let host_keys = record.host_keys();
    if host_keys.is_empty() {
        return Err(unreachable(target, "there is a machine without SSH on the way"));
    }
    Ok(Hop {
        alias: record.marks.node.to_string(),
        address: record.place.address().to_string(),
        port: ssh_port(folder),
        user: record.user.to_string(),
        host_keys,
        proxy: None,
        generation: folder.running().map(|init| init.to_string()).unwrap_or_default(),
    })
}

impl LocalWay {
    /// The direct way, for a machine without SSH, or one whose spec shuts out the account that SSH would use.
    fn direct(&self, target: &Target, config: Option<&Config>) -> Result<Option<Direct>, TransportError> {
        let (folder, record) = self.maker.running(target)?;
        let is_shut_out = record.user.as_str() == "root"
            && config.is_some_and(|config| config.role.ssh.permit_root_login == RootLogin::No);
        if self.maker.has_ssh(&folder, &record) && !is_shut_out {
            return Ok(None);
        }
        Ok(Some(Direct::new(folder, self.maker.program.clone(), target.clone())))
    }
}

impl LocalWay {
    /// Waits for nodes that are still being told to stop, and lets go of every connection.
    pub async fn close(&self) {
        self.ssh.close().await;
    }

    /// Waits until the machine does not run any more: whoever waits for an answer from it waits in vain. Over SSH that
    /// would be seen much later, and could as well be a reboot.
    async fn goes_off(&self, target: &Target) -> TransportError {
        const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
        let init = match self.maker.running(target) {
            Ok((folder, _)) => folder.running(),
            Err(off) => return off,
        };
        while init.as_ref().is_some_and(Process::is_alive) {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        self.maker.running(target).err().unwrap_or_else(|| unreachable(target, "it was started anew"))
    }

    const fn holding<'h>(
        &'h self,
        target: &'h Target,
        remote: &'h Direct,
        program: &'h Program,
    ) -> Holding<'h> {
        Holding { remote, program, target, limits: &self.rollout.limits }
    }

    /// Makes sure that the node has the program that speaks as this one does.
    async fn refresh(&self, target: &Target) -> Result<(), TransportError> {
        let (folder, _) = self.maker.running(target)?;
        let program = self.maker.program.clone();
        let refreshed = tokio::task::spawn_blocking(move || refresh::refresh(&folder, &program)).await;
        let failed = |why: String| unreachable(target, &format!("it cannot be given this program: {why}"));
        refreshed.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }
}

/// The way to a machine without SSH that is given another system.
struct DirectRoad<'w> {
    way: &'w LocalWay,
    target: &'w Target,
    config: Option<&'w Config>,
    program: Program,
}

impl DirectRoad<'_> {
    /// Found anew each time: the machine may have been rebooted.
    fn direct(&self) -> Result<Arc<Direct>, TransportError> {
        let direct = self.way.direct(self.target, self.config)?;
        direct.map(Arc::new).ok_or_else(|| unreachable(self.target, "it is reached by SSH by now"))
    }
}

#[async_trait]
impl Road for DirectRoad<'_> {
    fn program(&self) -> &Program {
        &self.program
    }

    async fn shared(&self) -> Result<Arc<dyn Bridge>, TransportError> {
        Ok(self.direct()?)
    }

    async fn anew(&self) -> Result<Arc<dyn Remote>, TransportError> {
        Ok(self.direct()?)
    }

    async fn outside(&self) -> Result<Option<Outside>, TransportError> {
        Ok(None)
    }
}

#[async_trait]
impl Transport for LocalWay {
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError> {
        target.needs(permit)?;
        self.refresh(target).await?;
        let system = system_of(target, config)?;
        if let Some(direct) = self.direct(target, Some(config))? {
            let what = What { config, treasury: &self.treasury, part: Part::Whole };
            if let Some(system) = system {
                let road = DirectRoad { way: self, target, config: Some(config), program: there() };
                let rollout = Rollout {
                    road: &road,
                    target,
                    what,
                    limits: &self.limits,
                    settings: &self.rollout,
                    permit,
                    time: end_within(self.limits.configure),
                    begun: OnceLock::new(),
                };
                return rollout.carry_out(system).await;
            }
            let program = Program::There(PROGRAM.into());
            let deadline = Instant::now() + self.limits.configure;
            let work = Work::begin(&direct, program.argv(&["cancel"]));
            let ended = push::configure(&direct, &program, target, what, &self.limits, deadline).await;
            work.end();
            return ended;
        }
        // A node on its way to another system may be rebooted by that, and what it says then is waited for.
        if system.is_some() {
            return self.ssh.configure(target, config, permit).await;
        }
        tokio::select! {
            configured = self.ssh.configure(target, config, permit) => configured,
            off = self.goes_off(target) => Err(off),
        }
    }

    async fn settle(&self, target: &Target, permit: &Permit) -> Result<NodeKeys, TransportError> {
        target.needs(permit)?;
        match self.direct(target, None)? {
            Some(direct) => {
                push::settle(&direct, &Program::There(PROGRAM.into()), target, &self.limits).await
            }
            None => self.ssh.settle(target, permit).await,
        }
    }
}

#[async_trait]
impl Leaser for LocalWay {
    async fn lease(
        &self,
        target: &Target,
        claim: &LeaseClaim,
        permit: &Permit,
    ) -> Result<LeaseAnswer, TransportError> {
        target.needs(permit)?;
        match self.direct(target, None)? {
            Some(direct) => self.holding(target, &direct, &there()).lease(claim).await,
            None => self.ssh.lease(target, claim, permit).await,
        }
    }

    async fn release(&self, target: &Target, claim: &str) -> Result<(), TransportError> {
        match self.direct(target, None)? {
            Some(direct) => self.holding(target, &direct, &there()).release(claim).await,
            None => self.ssh.release(target, claim).await,
        }
    }
}

#[async_trait]
impl Reverter for LocalWay {
    async fn back(&self, target: &Target, permit: &Permit) -> Result<SwitchAnswer, TransportError> {
        target.needs(permit)?;
        match self.direct(target, None)? {
            Some(_) => {
                let road = DirectRoad { way: self, target, config: None, program: there() };
                back(&road, target, &self.rollout.limits, permit).await
            }
            None => self.ssh.back(target, permit).await,
        }
    }
}

/// The program that every machine here has.
fn there() -> Program {
    Program::There(PROGRAM.into())
}

#[async_trait]
impl Enroller for LocalWay {
    /// Straight into the namespaces: a node that fetches its configuration need not be reached in any other way.
    async fn enrol(
        &self,
        target: &Target,
        enrolment: &Enrolment,
        permit: &Permit,
    ) -> Result<(), TransportError> {
        target.needs(permit)?;
        self.refresh(target).await?;
        let (folder, _) = self.maker.running(target)?;
        let direct = Direct::new(folder, self.maker.program.clone(), target.clone());
        push::enrol(&direct, &Program::There(PROGRAM.into()), target, enrolment, &self.limits).await
    }
}

#[async_trait]
impl Door for LocalWay {
    async fn inspect(&self, target: &Target, config: &Config) -> Result<Inspection, TransportError> {
        match self.direct(target, Some(config))? {
            Some(direct) => {
                push::inspect(&direct, &Program::There(PROGRAM.into()), target, config, &self.limits).await
            }
            None => self.ssh.inspect(target, config).await,
        }
    }

    async fn inventory(&self, target: &Target) -> Result<Inventory, TransportError> {
        match self.direct(target, None)? {
            Some(direct) => {
                push::inventory(&direct, &Program::There(PROGRAM.into()), target, &self.limits).await
            }
            None => self.ssh.inventory(target).await,
        }
    }

    async fn exec(&self, target: &Target, argv: &[String], limit: Duration) -> Result<Ended, TransportError> {
        match self.direct(target, None)? {
            Some(direct) => exec(&direct, target, argv, limit).await,
            None => self.ssh.exec(target, argv, limit).await,
        }
    }

    fn session(&self, target: &Target, argv: &[String]) -> Result<Vec<OsString>, TransportError> {
        match self.direct(target, None)? {
            Some(direct) => {
                let shell = || vec!["/bin/sh".to_owned(), "-l".to_owned()];
                let argv = if argv.is_empty() { shell() } else { argv.to_vec() };
                Ok(direct.command_line(&argv))
            }
            None => self.ssh.session(target, argv),
        }
    }

    fn ssh_config(&self, targets: &[Target]) -> Result<Option<String>, TransportError> {
        let by_ssh = |target: &Target| Ok(self.direct(target, None)?.is_none().then(|| target.clone()));
        let reached: Vec<Target> =
            targets.iter().filter_map(|target| by_ssh(target).transpose()).collect::<Result<_, _>>()?;
        if reached.is_empty() { Ok(None) } else { self.ssh.ssh_config(&reached) }
    }
}

pub(super) fn unreachable(target: &Target, why: &str) -> TransportError {
    TransportError::Unreachable { node: target.identity.clone(), why: why.into(), evidence: Vec::new() }
}
