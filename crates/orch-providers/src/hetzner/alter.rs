//! Changing servers that are there: switching on, another type, and what is written on them.

use orch_model::Size;
use orch_plan::MachineRef;
use orch_run::{Done, Order, Pin};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::Hetzner;
use super::answer::{Begun, Labels, Server, ServerType};
use super::make::id_of;
use super::settle::Settled;
use super::trouble::CallError;
use crate::api::encode;
use crate::cloud::{NAMES, Written};

impl Hetzner {
    /// Switches a server on, and waits until it can be reached.
    pub(super) async fn start(&self, order: &Order, machine: &MachineRef) -> Result<Done, CallError> {
        let until = self.deadline();
        self.started(order, id_of(machine)?, machine, until).await
    }

    async fn started(
        &self,
        order: &Order,
        id: u64,
        machine: &MachineRef,
        until: Instant,
    ) -> Result<Done, CallError> {
        match self.settle(id, machine.uuid, &order.progress, until).await? {
            Settled::Running { server, changed } => {
                self.reach(&server, &order.progress).await?;
                Ok(if changed { Done::Changed } else { Done::Unchanged })
            }
            Settled::Dead => {
                let why = format!("server `{}` was never made to the end", machine.name);
                Err(CallError::Refused(format!("{why}: destroy it, and create it again")))
            }
        }
    }

    /// Gives a server the type that stands for its node's size, and writes the size on it. It is off meanwhile, and runs
    /// afterwards if it ran before.
    pub(super) async fn resize(
        &self,
        order: &Order,
        machine: &MachineRef,
        to: Size,
    ) -> Result<Done, CallError> {
        let until = self.deadline();
        let id = id_of(machine)?;
        let kind = self.kind_of(order)?;
        let mut server = self.marked(id, machine.uuid, until).await?;
        let is_another = server.kind.name != kind;
        let runs = server.status == "running" || server.status == "starting";
        if is_another {
            self.fits(&server, kind, until).await?;
            let changed = async {
                self.switch_off(order, &server, machine, until).await?;
                order.progress.say(&format!("making it a {kind}"));
                self.retype(&server, kind, f64::from(to.disk) > server.disk, machine, until).await
            };
            let changed = changed.await;
            // What was switched off for nothing is switched on again.
            if changed.is_err() && runs {
                // Also where the time was over: nobody leaves it off for that.
                let until = until.max(Instant::now() + self.inner.caller.pace.shutdown);
                let _ = self.settle(id, machine.uuid, &order.progress, until).await;
            }
            changed?;
            server = self.marked(id, machine.uuid, until).await?;
        }
        let written = server.written().map(|written| Written { size: Some(to), ..written });
        let labelled = self.write(&server, written.as_ref(), until).await?;
        if runs && is_another {
            self.started(order, id, machine, until).await?;
        }
        Ok(if is_another { Done::Changed } else { labelled })
    }

    /// Whether a server can become one of this type: nobody switches it off to be refused then.
    async fn fits(&self, server: &Server, kind: &str, until: Instant) -> Result<(), CallError> {
        let query = format!("name={}", encode(kind));
        let offered: Vec<ServerType> =
            self.inner.caller.list("/server_types", "server_types", &query, until).await?;
        let why = match offered.iter().find(|offered| offered.name == kind) {
            None => format!("there is no server type `{kind}`"),
            Some(offered) if offered.architecture != server.kind.architecture => {
                format!("server `{}` cannot become a `{kind}`, which is another architecture", server.name)
            }
            Some(offered) if offered.disk < server.disk => {
                format!("server `{}` cannot become a `{kind}`: its disk would shrink", server.name)
            }
            Some(_) => return Ok(()),
        };
        Err(CallError::Refused(format!("{why}: name another type, or make the node anew with --replace")))
    }

    /// Has a server switch itself off, and switches it off where it does not.
    async fn switch_off(
        &self,
        order: &Order,
        server: &Server,
        machine: &MachineRef,
        until: Instant,
    ) -> Result<(), CallError> {
        let pace = &self.inner.caller.pace;
        let patience = Instant::now() + pace.shutdown;
        let mut attempt = 0;
        loop {
            let seen = self.marked(server.id, machine.uuid, until).await?;
            if seen.status == "off" {
                return Ok(());
            }
            if attempt == 0 && seen.status == "running" {
                order.progress.say("switching off");
                self.asked_to(server.id, "shutdown", until).await?;
            } else if Instant::now() >= patience {
                self.asked_to(server.id, "poweroff", until).await?;
            }
            let pause = pace.pause(attempt).min(patience.saturating_duration_since(Instant::now()));
            attempt += 1;
            if Instant::now() + pause >= until {
                return Err(CallError::Late(format!("server `{}` does not switch off", server.name)));
            }
            sleep(pause.max(pace.first_poll)).await;
        }
    }

    /// The same as to act, for those who look what became of it anyway: a lost answer is none that matters.
    async fn asked_to(&self, id: u64, verb: &str, until: Instant) -> Result<(), CallError> {
        match self.act(id, verb, until).await {
            Err(error) if error.may_be_done() => Ok(()),
            acted => acted,
        }
    }

    /// Changes the type of a server that is off. Where the answer is lost, what the server is about is waited for, and then it
    /// is looked at.
    async fn retype(
        &self,
        server: &Server,
        kind: &str,
        upgrade_disk: bool,
        machine: &MachineRef,
        until: Instant,
    ) -> Result<(), CallError> {
        let path = format!("/servers/{}/actions/change_type", server.id);
        let body = json!({ "server_type": kind, "upgrade_disk": upgrade_disk });
        let mut attempt = 0;
        loop {
            let lost = match self.inner.caller.post::<Begun>(&path, &body, until).await {
                Ok(begun) => return self.inner.watch.ended([begun.action], until).await,
                Err(error) if error.may_be_done() => error,
                Err(error) => return Err(error),
            };
            let running = self.actions(&format!("/servers/{}", server.id), until).await?;
            self.inner.watch.ended(running, until).await?;
            let seen = self.marked(server.id, machine.uuid, until).await?;
            if seen.kind.name == kind {
                return Ok(());
            }
            attempt += 1;
            if attempt >= self.inner.caller.pace.tries {
                return Err(lost);
            }
            sleep(self.inner.caller.pace.pause(attempt - 1)).await;
        }
    }

    /// Writes on a server what its node has said of itself.
    pub(super) async fn note(&self, pin: &Pin) -> Result<Done, CallError> {
        let until = self.deadline();
        let not_ours = || CallError::NotOurs { machine: pin.identity.plain_name(), expected: pin.uuid };
        let found = self.selected(&format!("orch-uuid={}", pin.uuid), until).await?;
        let is_it = |server: &&Server| {
            server.written().is_some_and(|written| {
                written.marks.uuid == pin.uuid && written.marks.is_of(&self.inner.setup.site, &pin.identity)
            })
        };
        let mut bearing = found.iter().filter(is_it);
        let server = bearing.next().ok_or_else(not_ours)?;
        if let Some(other) = bearing.next() {
            let why = format!("servers `{}` and `{}` bear the same mark", server.name, other.name);
            return Err(CallError::Refused(format!("{why}: take the labels off the one that was copied")));
        }
        let written = server.written().map(|written| written.pinned(pin));
        self.write(server, written.as_ref(), until).await
    }

    /// Writes our words on a server, and leaves those of others as they are.
    async fn write(
        &self,
        server: &Server,
        written: Option<&Written>,
        until: Instant,
    ) -> Result<Done, CallError> {
        let Some(written) = written else { return Ok(Done::Unchanged) };
        let labels = relabelled(&server.labels, written);
        if labels == server.labels {
            return Ok(Done::Unchanged);
        }
        let body = json!({ "labels": labels });
        self.inner.caller.put(&format!("/servers/{}", server.id), &body, until).await?;
        self.remember(&Server { labels, ..server.clone() });
        Ok(Done::Changed)
    }
}

/// The labels of others, and our words.
fn relabelled(labels: &Labels, written: &Written) -> Labels {
    let foreign = labels.iter().filter(|(name, _)| !NAMES.contains(&name.as_str()));
    let foreign = foreign.map(|(name, value)| (name.clone(), value.clone()));
    foreign.chain(written.labels().into_iter().map(|(name, word)| (name.to_owned(), word))).collect()
}
