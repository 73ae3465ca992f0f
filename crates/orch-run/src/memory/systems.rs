//! The NixOS systems of machines in memory: which one runs and which one ran before, and who has the machine to themselves.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use orch_model::system::{
    Lease, LeaseAnswer, LeaseClaim, RolloutPhase, RolloutRecord, SwitchAnswer, SystemView,
};
use orch_model::{Config, StorePath};
use orch_plan::Applied;
use uuid::Uuid;

use super::world::MemoryProvider;
use crate::permit::Permit;
use crate::system::{Leaser, Reverter};
use crate::transport::{Target, TransportError};

/// The systems of all machines of a host.
#[derive(Default)]
pub(super) struct Systems(Mutex<BTreeMap<Uuid, System>>);

/// What is known of one machine.
#[derive(Default)]
struct System {
    running: Option<StorePath>,
    before: Option<(Option<StorePath>, Applied)>,
    moved_by: Option<String>,
    lease: Option<(Lease, Instant)>,
}

impl Systems {
    fn on<T>(&self, uuid: Uuid, change: impl FnOnce(&mut System) -> T) -> T {
        change(self.0.lock().expect("nobody panics while holding this").entry(uuid).or_default())
    }

    /// Whether a machine runs the system of a configuration, where that has one.
    pub(super) fn runs(&self, uuid: Uuid, config: &Config) -> bool {
        config.system().is_none_or(|system| self.on(uuid, |machine| machine.running.as_ref() == Some(system)))
    }

    /// Moves a machine to the system of its configuration, unless another has it, or nobody where the run says that it has it.
    /// `applied` is what it had before.
    pub(super) fn move_to(
        &self,
        target: &Target,
        config: &Config,
        applied: Applied,
        permit: &Permit,
    ) -> Result<(), String> {
        let Some(system) = config.system() else { return Ok(()) };
        let is_leased = permit.holds(&target.identity)?;
        self.on(target.uuid, |machine| {
            match machine.lease() {
                Some(lease) if lease.run != permit.claim() => return Err(lease.to_string()),
                None if is_leased => return Err("it is not this run's any more".to_owned()),
                Some(_) | None => {}
            }
            let before = machine.running.replace(system.clone());
            machine.before = Some((before, applied));
            machine.moved_by = Some(permit.claim().to_owned());
            Ok(())
        })
    }
}

impl System {
    /// Who has it now.
    fn lease(&mut self) -> Option<Lease> {
        self.lease.take_if(|(_, end)| *end <= Instant::now());
        self.lease.as_ref().map(|(lease, _)| lease.clone())
    }

    fn claim(&mut self, claim: &LeaseClaim, lasts: Duration) -> bool {
        let since = match self.lease() {
            Some(lease) if lease.run != claim.run => return false,
            Some(lease) => lease.since,
            None => Timestamp::now().to_string(),
        };
        let (holder, run) = (claim.holder.clone(), claim.run.clone());
        let lease = Lease { holder, run, since, seconds_left: lasts.as_secs() };
        self.lease = Some((lease, Instant::now() + lasts));
        true
    }

    fn view(&mut self) -> SystemView {
        let running = self.running.as_ref().map(ToString::to_string);
        SystemView {
            platform: "x86_64-linux".to_owned(),
            nix: Some("2.8.0".to_owned()),
            booted: running.clone(),
            boot_default: running.clone(),
            running,
            missing: Vec::new(),
            free: u64::MAX,
            substitutes: false,
            lease: self.lease(),
            rollout: self.rollout(),
        }
    }

    /// The last rollout, which was of the run that moved it.
    fn rollout(&self) -> Option<RolloutRecord> {
        let previous = self.before.as_ref()?.0.as_ref().map(ToString::to_string);
        let run = self.moved_by.clone()?;
        Some(RolloutRecord {
            id: run.clone(),
            run,
            system: self.running.clone()?,
            previous_default: previous.clone(),
            previous,
            phase: RolloutPhase::Permanent,
            why: None,
            evidence: Vec::new(),
            reboot_needed: Vec::new(),
            since: Timestamp::now().to_string(),
        })
    }
}

impl MemoryProvider {
    /// What a machine runs.
    pub fn system_of(&self, uuid: Uuid) -> Option<String> {
        self.systems.on(uuid, |machine| machine.running.as_ref().map(ToString::to_string))
    }

    /// Puts a system on a machine by hand.
    pub fn put_system(&self, uuid: Uuid, system: StorePath) {
        self.systems.on(uuid, |machine| machine.running = Some(system));
    }

    /// By what the run is known that has a machine to itself.
    pub fn lease_of(&self, uuid: Uuid) -> Option<String> {
        self.systems.on(uuid, |machine| machine.lease().map(|lease| lease.run))
    }

    /// Has a lease end before its time.
    pub fn forget_lease(&self, uuid: Uuid, claim: &str) {
        self.systems.on(uuid, |machine| {
            machine.lease.take_if(|(lease, _)| lease.run == claim);
        });
    }

    /// Whether somebody has a machine to themselves.
    pub fn is_leased(&self, uuid: Uuid) -> bool {
        self.systems.on(uuid, |machine| machine.lease().is_some())
    }
}

#[async_trait]
impl Leaser for MemoryProvider {
    async fn lease(
        &self,
        target: &Target,
        claim: &LeaseClaim,
        permit: &Permit,
    ) -> Result<LeaseAnswer, TransportError> {
        target.needs(permit)?;
        let lasts = self.lease_lasts.unwrap_or(Duration::from_secs(claim.seconds));
        Ok(self.systems.on(target.uuid, |machine| {
            let granted = machine.claim(claim, lasts);
            LeaseAnswer { granted, view: machine.view() }
        }))
    }

    async fn release(&self, target: &Target, claim: &str) -> Result<(), TransportError> {
        self.systems.on(target.uuid, |machine| {
            machine.lease.take_if(|(lease, _)| lease.run == claim);
        });
        Ok(())
    }
}

#[async_trait]
impl Reverter for MemoryProvider {
    async fn back(&self, target: &Target, permit: &Permit) -> Result<SwitchAnswer, TransportError> {
        target.needs(permit)?;
        let failed = |why: &str| TransportError::Failed {
            node: target.identity.clone(),
            why: why.into(),
            evidence: Vec::new(),
        };
        let (answer, applied) = self
            .systems
            .on(target.uuid, |machine| {
                let is_ours = machine.moved_by.as_deref() == Some(permit.claim());
                let (before, applied) = machine.before.clone().filter(|_| is_ours)?;
                let why = Some("asked for".to_owned());
                let record = RolloutRecord { phase: RolloutPhase::RolledBack, why, ..machine.rollout()? };
                machine.running = before;
                let view = machine.view();
                Some((SwitchAnswer { record, view, watched: false, unhealthy: Vec::new() }, applied))
            })
            .ok_or_else(|| failed("this run did not move it"))?;
        self.applied_by_hand(target.uuid, applied).map_err(|error| failed(&error.to_string()))?;
        Ok(answer)
    }
}
