//! Services that run, now and after a reboot, and services that do not. Only systemd is spoken to.

use orch_model::Unit;
use orch_model::config::Services;

use super::{Look, Resource};
use crate::due_reload::DueReload;
use crate::error::ApplyError;
use crate::node::Node;
use crate::systemd::{Systemd, UnitState};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Runs,
    Rests,
}

pub(super) struct Service {
    unit: Unit,
    wish: Wish,
}

pub(super) fn all(services: &Services) -> impl Iterator<Item = Box<dyn Resource>> {
    let run = services.enable.iter().map(|unit| (unit, Wish::Runs));
    let rest = services.disable.iter().map(|unit| (unit, Wish::Rests));
    run.chain(rest)
        .map(|(unit, wish)| -> Box<dyn Resource> { Box::new(Service { unit: unit.clone(), wish }) })
}

impl Service {
    fn judge(&self, node: &Node, state: &UnitState) -> Result<Look, ApplyError> {
        let is_as_wanted = match self.wish {
            Wish::Runs if !state.is_known() => {
                return Err(ApplyError::Impossible(format!("systemd knows no unit `{}`", self.unit)));
            }
            Wish::Runs if state.is_outdated() || self.due_restart().is_set(node) => {
                return Ok(Look::Differs("its file has changed since it was started".into()));
            }
            Wish::Runs => (state.is_active() || state.has_nothing_to_do()) && state.is_enabled(),
            // What is not there does not run.
            Wish::Rests => !state.is_known() || (state.is_stopped() && !state.starts_at_boot()),
        };
        Ok(Look::of((!is_as_wanted).then(|| state.words())))
    }

    fn due_restart(&self) -> DueReload {
        DueReload::of_unit(&self.unit)
    }

    /// One that ran already is started anew where its file has changed; a cut before that is seen by the mark.
    fn run(&self, node: &Node, systemd: &Systemd) -> Result<(), ApplyError> {
        let (unit, due) = (self.unit.as_str(), self.due_restart());
        let before = systemd.state(unit)?;
        if before.is_outdated() {
            due.set(node)?;
            systemd.read_units_again()?;
        }
        systemd.change(&["enable", "--now"], unit)?;
        if before.is_active() && due.is_set(node) {
            systemd.change(&["restart"], unit)?;
        }
        due.clear(node)
    }
}

impl Resource for Service {
    fn kind(&self) -> &'static str {
        "service"
    }

    fn name(&self) -> String {
        self.unit.to_string()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        match Systemd::of(node) {
            Some(systemd) => self.judge(node, &systemd.state(self.unit.as_str())?),
            None => Ok(Look::skip("no systemd here")),
        }
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let Some(systemd) = Systemd::of(node) else { return Ok(()) };
        match self.wish {
            Wish::Runs => self.run(node, &systemd),
            Wish::Rests => systemd.change(&["disable", "--now"], self.unit.as_str()),
        }
    }
}
