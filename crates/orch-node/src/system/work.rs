//! A rollout, from wherever it stands to its end. Every step is written down before it is done, so that whoever takes over
//! knows what may have been done.

use std::thread;
use std::time::Duration;

use orch_model::system::RolloutPhase;

use super::activate::{Verb, log, run};
use super::boot_default::boot_default;
use super::clock::{after, left_until, uptime_ms};
use super::error::SystemError;
use super::evidence::gather;
use super::places::{Places, is};
use super::reboot::{is_looked_after, reboot};
use super::record::{self, Rollout};
use super::verdict::{self, Verdict};
use crate::error::in_full;
use crate::node::Node;

/// What a system says that can only be booted into.
const ONLY_BOOTED: i32 = 100;
/// How often it is looked whether somebody said something.
const TICK: Duration = Duration::from_millis(20);
/// How much longer than the checks of health may take, whoever does them is waited for.
const GRACE_SECONDS: u64 = 10;
/// Whoever gave the order hears that it was taken before the connection ends with the node.
const ANSWERING: Duration = Duration::from_secs(1);
/// How often it is tried to write something down that nothing may wait for.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Why a system is not kept, in words.
pub(super) struct Fault(pub(super) String);

impl Fault {
    pub(super) fn words(self) -> String {
        self.0
    }
}

impl From<SystemError> for Fault {
    fn from(error: SystemError) -> Self {
        Self(in_full(&error))
    }
}

/// A rollout, and where it happens.
pub(super) struct Work<'a> {
    pub(super) node: &'a Node,
    pub(super) places: Places,
    pub(super) rollout: Rollout,
    /// What the new system said when it was activated.
    pub(super) said: Vec<String>,
    unhealthy: Vec<String>,
}

/// Does what is left to do. Called with the lock held, and with nothing left running of who had it before.
pub(super) fn carry_on(node: &Node, rollout: Rollout) {
    let places = Places::of(node);
    let mut work = Work { node, places, rollout, said: Vec::new(), unhealthy: Vec::new() };
    work.notice_boot();
    while !work.rollout.has_ended() {
        work.step();
    }
}

impl Work<'_> {
    fn step(&mut self) {
        let done = match self.rollout.phase() {
            RolloutPhase::Armed => self.begin(),
            RolloutPhase::Activating => {
                Err(Fault("its watcher was ended while the system was being activated".into()))
            }
            RolloutPhase::Rebooting => self.wait_for_reboot(),
            RolloutPhase::Waiting => self.wait_for_verdict(),
            RolloutPhase::Confirmed => self.make_permanent(),
            RolloutPhase::Returning => {
                self.go_back();
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(why) = done {
            self.turn_back(why);
        }
    }

    /// What a boot since the last step means.
    fn notice_boot(&mut self) {
        if self.rollout.boot == self.places.boot() {
            return;
        }
        let runs_new = is(self.places.running().as_deref(), &self.rollout.record.system);
        match self.rollout.phase() {
            RolloutPhase::Rebooting if runs_new => self.wait_from_now(),
            RolloutPhase::Rebooting => {
                self.turn_back(Fault("the node was rebooted, and did not come up on it".into()));
            }
            RolloutPhase::Confirmed if runs_new => {}
            RolloutPhase::Returning => {}
            _ => self.turn_back(Fault("the node was rebooted in between".into())),
        }
    }

    /// Makes the new system one that can be booted, and activates it.
    fn begin(&mut self) -> Result<(), Fault> {
        self.register()?;
        if self.rollout.order.reboot && !self.rollout.record.reboot_needed.is_empty() {
            return self.reboot_into_it();
        }
        self.rollout.activated_in = Some(self.places.boot());
        self.enter(RolloutPhase::Activating)?;
        let system = self.rollout.record.system.clone();
        let attempt = run(&self.places, system.as_str(), Verb::Test, self.activation_limit())?;
        let (words, code, is_success) = (attempt.words(), attempt.code(), attempt.is_success());
        self.said = attempt.said;
        if code == Some(ONLY_BOOTED) && self.places.running() == self.rollout.record.previous {
            return self.boot_only();
        }
        if !is_success {
            return Err(Fault(words));
        }
        let running = self.places.running();
        if !is(running.as_deref(), &system) {
            return Err(Fault(format!("{words}, and {} runs", named(running.as_deref()))));
        }
        self.wait_from_now();
        Ok(())
    }

    /// The new system says that it has to be booted into: that is done where it may be, and where somebody goes on then.
    fn boot_only(&mut self) -> Result<(), Fault> {
        let is_looked_after = is_looked_after(&self.places, &self.rollout.record.system);
        if self.rollout.order.reboot && is_looked_after {
            return self.reboot_into_it();
        }
        let why = if self.rollout.order.reboot {
            "it can only be booted into, and nobody would watch over it then"
        } else {
            "it can only be booted into"
        };
        self.rollout.record.why = Some(why.into());
        self.leave_to_reboot()
    }

    /// Ends where the new system would have to be booted into, with everything as it was.
    fn leave_to_reboot(&mut self) -> Result<(), Fault> {
        self.take_generation_away();
        self.write_menu()?;
        self.end(RolloutPhase::NeedsReboot);
        Ok(())
    }

    fn reboot_into_it(&mut self) -> Result<(), Fault> {
        self.enter(RolloutPhase::Rebooting)?;
        self.set_default()?;
        thread::sleep(ANSWERING);
        reboot(self.node)?;
        Ok(())
    }

    /// The reboot takes this process with it; where it does not, it did not happen.
    fn wait_for_reboot(&mut self) -> Result<(), Fault> {
        let seconds = self.rollout.order.limits.reboot;
        let until = after(uptime_ms(), seconds);
        while !left_until(until).is_zero() {
            if verdict::heard(&self.places, &self.rollout.order.id) == Some(Verdict::Back) {
                return Err(Fault("it was asked to go back".into()));
            }
            thread::sleep(TICK);
        }
        Err(Fault(format!("the node did not reboot within {seconds} s")))
    }

    /// The new system runs; somebody has to say that it is to stay.
    fn wait_from_now(&mut self) {
        self.rollout.waits_since = Some(uptime_ms());
        if let Err(why) = self.enter(RolloutPhase::Waiting) {
            self.turn_back(why);
        }
    }

    fn wait_for_verdict(&mut self) -> Result<(), Fault> {
        let (id, limits) = (self.rollout.order.id.clone(), self.rollout.order.limits);
        let since = self.rollout.waits_since.unwrap_or_else(uptime_ms);
        loop {
            match verdict::heard(&self.places, &id) {
                Some(Verdict::Keep) => return self.enter(RolloutPhase::Confirmed),
                Some(Verdict::Unhealthy(checks)) => {
                    let why = format!("it is not healthy: {}", checks.join("; "));
                    self.unhealthy = checks;
                    return Err(Fault(why));
                }
                Some(Verdict::Back) => return Err(Fault("it was asked to go back".into())),
                None => {}
            }
            let visit = verdict::visited(&self.places, &id).filter(|visit| *visit >= since);
            let patience = visit.map(|visit| after(visit, limits.health.saturating_add(GRACE_SECONDS)));
            let until = after(since, limits.confirm).max(patience.unwrap_or_default());
            if left_until(until).is_zero() {
                return Err(Fault(format!("nobody confirmed it within {} s", limits.confirm)));
            }
            thread::sleep(TICK.min(left_until(until)));
        }
    }

    /// Makes the new system what the node boots, and reads back that it is and that it runs.
    fn make_permanent(&mut self) -> Result<(), Fault> {
        self.set_default()?;
        let system = self.rollout.record.system.clone();
        let (running, default) = (self.places.running(), boot_default(&self.places));
        if !is(running.as_deref(), &system) || !is(default.as_deref(), &system) {
            let (running, default) = (named(running.as_deref()), named(default.as_deref()));
            return Err(Fault(format!("it was made permanent, and {running} runs and {default} is booted")));
        }
        self.end(RolloutPhase::Permanent);
        Ok(())
    }

    /// Gathers what tells why, and then begins the way back. Nothing stops it, not even that it cannot be written down.
    fn turn_back(&mut self, Fault(why): Fault) {
        log(&self.places, &format!("going back: {why}"));
        self.rollout.record.evidence = gather(self.node, &self.places, &self.said, &self.unhealthy);
        self.rollout.record.why = Some(why);
        self.rollout.record.phase = RolloutPhase::Returning;
        self.note();
    }

    pub(super) fn activation_limit(&self) -> Duration {
        Duration::from_secs(self.rollout.order.limits.activate.max(1))
    }

    fn enter(&mut self, phase: RolloutPhase) -> Result<(), Fault> {
        self.rollout.record.phase = phase;
        self.rollout.boot = self.places.boot();
        Ok(record::write(&self.places, &self.rollout)?)
    }

    pub(super) fn end(&mut self, phase: RolloutPhase) {
        log(&self.places, &format!("rollout {} ended: {phase:?}", self.rollout.order.id));
        self.rollout.record.phase = phase;
        self.note();
    }

    /// Writes down how it stands; where that cannot be, goes on.
    fn note(&mut self) {
        self.rollout.boot = self.places.boot();
        for _ in 0..TRIES {
            match record::write(&self.places, &self.rollout) {
                Ok(()) => return,
                Err(error) => log(&self.places, &in_full(&error)),
            }
            thread::sleep(PAUSE);
        }
    }
}

/// A system by its path, for people.
pub(super) fn named(system: Option<&str>) -> String {
    system.map_or_else(|| "no system".into(), |system| format!("`{system}`"))
}
