//! One call: who asks what of whom, and what they may.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use super::access::Caller;
use super::guest::{Guest, Kind};
use super::lab::Lab;
use super::params::Params;
use super::reply::Refusal;
use super::state::State;
use crate::exchange::Asked;
use crate::faults::Fault;

/// One call, after it was found out who asks.
pub(super) struct Call {
    pub(super) lab: Arc<Lab>,
    pub(super) asked: Asked,
    pub(super) who: Caller,
    pub(super) params: Params,
    /// Where the machine that the call is about answers, if that was asked.
    pub(super) address: Option<IpAddr>,
    /// Whether privileges are missing on purpose; looked up once.
    pub(super) stripped: OnceLock<bool>,
}

impl Call {
    /// What kind of guest the path speaks of.
    pub(super) fn kind(&self) -> Kind {
        if self.asked.path.contains("/lxc") { Kind::Lxc } else { Kind::Qemu }
    }

    pub(super) fn strikes(&self, fault: Fault) -> bool {
        self.lab.settings.faults.strike(fault, &self.asked)
    }

    /// Demands every one of these privileges.
    pub(super) fn need(&self, state: &State, path: &str, privileges: &[&str]) -> Result<(), Refusal> {
        let held = self.who.privileges(state, path);
        match privileges.iter().find(|&&privilege| self.is_stripped() || !held.contains(privilege)) {
            None => Ok(()),
            Some(_) => Err(Refusal::forbidden(path, &privileges.join(", "))),
        }
    }

    /// Demands one of these privileges.
    pub(super) fn need_any(&self, state: &State, path: &str, privileges: &[&str]) -> Result<(), Refusal> {
        if !self.is_stripped() && self.may_any(state, path, privileges) {
            return Ok(());
        }
        Err(Refusal::forbidden(path, &privileges.join("|")))
    }

    pub(super) fn may_any(&self, state: &State, path: &str, privileges: &[&str]) -> bool {
        let held = self.who.privileges(state, path);
        privileges.iter().any(|&privilege| held.contains(privilege))
    }

    fn is_stripped(&self) -> bool {
        *self.stripped.get_or_init(|| self.strikes(Fault::NoPrivilege))
    }

    /// The id of the guest that the path names, which the caller may do this to.
    pub(super) fn guest_id(&self, state: &State, privileges: &[&str]) -> Result<u32, Refusal> {
        let vmid = self.params.id("vmid")?;
        self.need_any(state, &format!("/vms/{vmid}"), privileges)?;
        self.guest(state, vmid)?;
        Ok(vmid)
    }

    /// The guest of this id and of the kind that the path speaks of.
    pub(super) fn guest<'a>(&self, state: &'a State, vmid: u32) -> Result<&'a Guest, Refusal> {
        let guest = state.guests.get(&vmid).filter(|guest| guest.kind == self.kind());
        guest.ok_or_else(|| self.no_config(vmid))
    }

    pub(super) fn guest_mut<'a>(&self, state: &'a mut State, vmid: u32) -> Result<&'a mut Guest, Refusal> {
        let guest = state.guests.get_mut(&vmid).filter(|guest| guest.kind == self.kind());
        guest.ok_or_else(|| self.no_config(vmid))
    }

    fn no_config(&self, vmid: u32) -> Refusal {
        let file = self.kind().config_file(&self.lab.settings.node, vmid);
        Refusal::died(format!("Configuration file '{file}' does not exist"))
    }

    /// `skiplock`, which only root itself may say.
    pub(super) fn skips_lock(&self) -> Result<bool, Refusal> {
        let is_on = self.params.is_on("skiplock");
        if is_on && !self.who.is_root() {
            return Err(Refusal::parameter("skiplock", "Only root may use this option."));
        }
        Ok(is_on)
    }
}
