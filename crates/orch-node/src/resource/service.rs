//! Services that run, now and after a reboot, and services that do not. Only systemd is spoken to.

use orch_model::Unit;
use orch_model::config::Services;

use super::{Look, Resource};
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
    fn judge(&self, state: &UnitState) -> Result<Look, ApplyError> {
        let is_as_wanted = match self.wish {
            Wish::Runs if !state.is_known() => {
                return Err(ApplyError::Impossible(format!("systemd knows no unit `{}`", self.unit)));
            }
            Wish::Runs => state.runs() && state.is_enabled(),
            // What is not there does not run.
            Wish::Rests => !state.is_known() || (state.is_stopped() && !state.starts_at_boot()),
        };
        Ok(Look::of((!is_as_wanted).then(|| state.words())))
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
            Some(systemd) => self.judge(&systemd.state(self.unit.as_str())?),
            None => Ok(Look::skip("no systemd here")),
        }
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let Some(systemd) = Systemd::of(node) else { return Ok(()) };
        let verb = match self.wish {
            Wish::Runs => ["enable", "--now"],
            Wish::Rests => ["disable", "--now"],
        };
        systemd.change(&verb, self.unit.as_str())
    }
}
