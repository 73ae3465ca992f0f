//! The way back to the system that ran before, by its own path. It counts as gone only once that was read.

use std::thread;
use std::time::Duration;

use orch_model::system::RolloutPhase;

use super::activate::{Verb, log, program, run};
use super::boot_default::{boot_default, is_hidden};
use super::nix::Nix;
use super::reboot::reboot;
use super::work::{Work, named};
use super::{generation, record};
use crate::error::in_full;
use crate::state::State;

/// How often the way is tried.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

impl Work<'_> {
    /// Goes back, and ends the rollout by what is read then.
    pub(super) fn go_back(&mut self) {
        self.forget_applied();
        let mut wrong = Vec::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                thread::sleep(PAUSE);
            }
            if self.is_to_be_booted_out_of() {
                self.reboot_back();
            }
            wrong = self.try_back(attempt);
            if wrong.is_empty() {
                return self.end(RolloutPhase::RolledBack);
            }
            for line in &wrong {
                log(&self.places, line);
            }
        }
        if self.is_back() {
            // What was not as it should be is told, and the node is where it was.
            self.rollout.record.evidence.extend(wrong.into_iter().map(|line| format!("back: {line}")));
            return self.end(RolloutPhase::RolledBack);
        }
        let (running, default) = (self.places.running(), boot_default(&self.places));
        let read = format!("{} runs and {} is booted", named(running.as_deref()), named(default.as_deref()));
        self.rollout
            .record
            .evidence
            .extend(wrong.into_iter().chain([read]).map(|line| format!("back: {line}")));
        self.end(RolloutPhase::Stuck);
    }

    /// One try; what went wrong in it, in words.
    fn try_back(&mut self, attempt: u32) -> Vec<String> {
        let mut wrong = Vec::new();
        // What of it was activated in another boot is gone with that.
        let was_activated = self.rollout.activated_in.as_deref() == Some(&self.places.boot());
        let previous = self.rollout.record.previous.clone();
        match &previous {
            Some(previous) if was_activated || self.places.running().as_ref() != Some(previous) => {
                match run(&self.places, previous, Verb::Test, self.activation_limit()) {
                    Ok(attempt) if attempt.is_success() => {}
                    Ok(attempt) => wrong.push(attempt.words()),
                    Err(error) => wrong.push(in_full(&error)),
                }
            }
            None if was_activated => {
                wrong.push("there was no system before, and what this one's activation did stays".into());
            }
            _ => {}
        }
        if self.rollout.touched_default {
            wrong.extend(self.restore_default(attempt));
        }
        if !self.is_back() {
            let (running, default) = (self.places.running(), boot_default(&self.places));
            let read =
                format!("{} runs and {} is booted", named(running.as_deref()), named(default.as_deref()));
            wrong.push(read);
        }
        wrong
    }

    /// Has the node boot what it booted before.
    fn restore_default(&mut self, attempt: u32) -> Option<String> {
        let target = self.rollout.previous_profile.clone();
        let restored = match generation::restore(&self.places, target.as_deref()) {
            Ok(true) => Ok(()),
            // The generation is gone, and the system is not: it is made one again.
            Ok(false) => self
                .rollout
                .default_before()
                .map_or(Ok(()), |default| Nix::of(self.node).set_profile(&self.places, default)),
            Err(error) => Err(error),
        };
        if let Err(error) = restored {
            return Some(in_full(&error));
        }
        // It stays in the menu as long as it is not known that the menu can be written without it.
        if attempt == 0 {
            self.take_generation_away();
        }
        self.write_menu().err().map(super::work::Fault::words)
    }

    /// Whether the node runs and boots what it did before. Nothing is taken for granted.
    fn is_back(&self) -> bool {
        let record = &self.rollout.record;
        let runs = self.places.running() == record.previous;
        // That nothing can be read is no sign that it is as it was.
        let hidden = self.rollout.touched_default && is_hidden(&self.places);
        let boots = !hidden && boot_default(&self.places) == record.previous_default;
        let nothing_left = record.previous.is_some() || self.rollout.activated_in.is_none();
        runs && boots && nothing_left
    }

    /// What the node has is no more what was last made true: whoever asks is to find that out, also when this is cut short.
    fn forget_applied(&self) {
        let state = State::find(self.node);
        if let Err(error) = state.and_then(|state| state.map_or(Ok(()), |state| state.forget_applied())) {
            log(&self.places, &error.in_full());
        }
    }

    /// Whether this boot is the one into the new system, and another one would lead out of it.
    fn is_to_be_booted_out_of(&self) -> bool {
        let (record, system) = (&self.rollout.record, self.rollout.record.system.as_str());
        let booted_new = self.places.booted().as_deref() == Some(system);
        let boots_other = self.rollout.default_before().is_some_and(|default| default != system);
        self.rollout.order.reboot
            && booted_new
            && boots_other
            && record.previous.is_some()
            && !self.rollout.rebooted_back
    }

    /// Boots what was booted before. The node ends this process on its way; where it does not, this comes back.
    fn reboot_back(&mut self) {
        let previous = self.rollout.record.previous.clone().unwrap_or_default();
        if !program(&self.places, &previous).exists() || self.restore_default(0).is_some() {
            return;
        }
        self.rollout.rebooted_back = true;
        // What is not written down would be done again after the boot, and so on.
        let begun = record::write(&self.places, &self.rollout).and_then(|()| reboot(self.node));
        match begun {
            Ok(()) => thread::sleep(Duration::from_secs(self.rollout.order.limits.reboot)),
            Err(error) => log(&self.places, &in_full(&error)),
        }
    }
}
