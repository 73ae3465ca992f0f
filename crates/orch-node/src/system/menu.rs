//! The boot menu: the new system is in it before it is activated, and is what is booted only once it is to stay.

use super::activate::{Verb, log, program, run};
use super::boot_default::boot_default;
use super::nix::Nix;
use super::work::{Fault, Work, named};
use super::{generation, record};
use crate::error::in_full;

impl Work<'_> {
    /// Puts the new system into the boot menu, and leaves the default as it is.
    pub(super) fn register(&mut self) -> Result<(), Fault> {
        self.rollout.touched_default = true;
        record::write(&self.places, &self.rollout)?;
        let system = self.rollout.record.system.clone();
        let (places, rollout) = (&self.places, &mut self.rollout);
        generation::add(places, system.as_str(), |number| {
            rollout.generation = Some(number);
            record::write(places, rollout)
        })?;
        let Err(Fault(why)) = self.write_menu() else { return Ok(()) };
        // There are boot loaders that boot the newest entry: with them it is in the menu only once it is to be booted.
        log(&self.places, &format!("it stays out of the boot menu for now: {why}"));
        self.take_generation_away();
        self.write_menu()
    }

    /// Has the boot menu written by the system that is the default, and reads back that it still is.
    pub(super) fn write_menu(&self) -> Result<(), Fault> {
        let Some(default) = self.rollout.default_before().map(String::from) else { return Ok(()) };
        if !program(&self.places, &default).exists() {
            return Ok(());
        }
        let attempt = run(&self.places, &default, Verb::Boot, self.activation_limit())?;
        if !attempt.is_success() {
            return Err(Fault(attempt.words()));
        }
        let (now, before) = (boot_default(&self.places), self.rollout.record.previous_default.clone());
        if before.is_some() && now != before {
            return Err(Fault(format!("the boot menu was written, and boots {}", named(now.as_deref()))));
        }
        Ok(())
    }

    /// Takes the generation away that was made for the new system.
    pub(super) fn take_generation_away(&mut self) {
        let system = self.rollout.record.system.clone();
        if let Some(number) = self.rollout.generation
            && let Err(error) = generation::remove(&self.places, number, system.as_str())
        {
            log(&self.places, &in_full(&error));
        }
    }

    /// Makes the new system what the node boots.
    pub(super) fn set_default(&mut self) -> Result<(), Fault> {
        let system = self.rollout.record.system.clone();
        Nix::of(self.node).set_profile(&self.places, system.as_str())?;
        let attempt = run(&self.places, system.as_str(), Verb::Boot, self.activation_limit())?;
        if attempt.is_success() {
            return Ok(());
        }
        let words = attempt.words();
        self.said = attempt.said;
        Err(Fault(words))
    }
}
