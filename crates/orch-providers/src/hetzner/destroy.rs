//! Destroying servers: those that bear the mark at that very moment, and no others.

use orch_plan::MachineRef;
use orch_run::{Done, Order};
use serde::Deserialize as _;
use serde_json::Value as Json;
use tokio::time::Instant;
use uuid::Uuid;

use super::Hetzner;
use super::answer::Begun;
use super::make::id_of;
use super::trouble::CallError;

impl Hetzner {
    /// Destroys a server, and what was there for its manifest alone once that has no servers any more.
    pub(super) async fn destroy(&self, order: &Order, machine: &MachineRef) -> Result<Done, CallError> {
        let until = self.deadline();
        order.progress.say("destroying the server");
        let (done, was_apart) = self.remove(id_of(machine)?, machine.uuid, until).await?;
        if was_apart || self.inner.setup.hetzner.spread {
            self.tidy_groups(&order.identity.manifest, until).await?;
        }
        Ok(done)
    }

    /// Removes a server that bears the mark; one that is gone is gone. Says too whether it was in a group of ours.
    pub(super) async fn remove(
        &self,
        id: u64,
        uuid: Uuid,
        until: Instant,
    ) -> Result<(Done, bool), CallError> {
        let Some(server) = self.server(id, until).await? else { return Ok((Done::Unchanged, false)) };
        let was_apart = server.placement_group.as_ref().is_some_and(|group| self.is_ours(&group.labels));
        if !server.bears(uuid) {
            return Err(CallError::NotOurs { machine: server.name, expected: uuid });
        }
        if server.protection.delete {
            let why = format!("server `{}` is protected from being deleted", server.name);
            return Err(CallError::Refused(format!(
                "{why}: take the protection away in the console of Hetzner if that is what you want"
            )));
        }
        self.forget(uuid);
        let path = format!("/servers/{id}");
        let answer: Json = match self.inner.caller.delete(&path, until).await {
            Ok(answer) => answer,
            // It was asked before, and the answer was lost.
            Err(error) if error.is_missing() => return Ok((Done::Changed, was_apart)),
            Err(error) => return Err(error),
        };
        if let Ok(begun) = Begun::deserialize(&answer) {
            self.inner.watch.ended([begun.action], until).await?;
        }
        Ok((Done::Changed, was_apart))
    }
}
