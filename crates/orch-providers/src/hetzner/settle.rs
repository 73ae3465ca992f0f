//! Bringing a server that is there to where it runs and answers, whatever it was about before.

use std::net::SocketAddr;

use orch_run::Progress;
use serde_json::json;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::Hetzner;
use super::answer::{Action, Begun, Server};
use super::trouble::CallError;
use crate::cloud::knock;

/// Where a server came to.
pub(super) enum Settled {
    /// It runs.
    Running {
        server: Box<Server>,
        /// Whether it did so only after something was done, or waited for.
        changed: bool,
    },
    /// Whatever was to make it has ended, and it was not made.
    Dead,
}

impl Hetzner {
    /// Waits for what a server is about, switches it on where it is off, and returns once it runs.
    pub(super) async fn settle(
        &self,
        id: u64,
        uuid: Uuid,
        progress: &Progress,
        until: Instant,
    ) -> Result<Settled, CallError> {
        let pace = &self.inner.caller.pace;
        // How often in a row there was nothing to wait for, and how often it was switched on before.
        let (mut idle, mut tried) = (0, 0);
        let mut changed = false;
        loop {
            let server = self.marked(id, uuid, until).await?;
            self.remember(&server);
            match server.status.as_str() {
                "running" => return Ok(Settled::Running { server: Box::new(server), changed }),
                "off" => {
                    progress.say("switching on");
                    match self.act(id, "poweron", until).await {
                        Err(error) if error.may_be_done() && tried + 1 < pace.tries => idle += 1,
                        // One that was switched on before, and is off all the same, is given a moment.
                        acted => acted.map(|()| idle = tried)?,
                    }
                    tried += 1;
                }
                status => {
                    progress.say("waiting for the server");
                    let running = self.actions(&format!("/servers/{id}"), until).await?;
                    if !running.is_empty() {
                        idle = 0;
                        self.inner.watch.ended(running, until).await?;
                    } else if status == "initializing" && idle >= pace.tries {
                        return Ok(Settled::Dead);
                    } else {
                        idle += 1;
                    }
                }
            }
            changed = true;
            if idle > 0 {
                let pause = pace.pause(idle - 1);
                if Instant::now() + pause >= until {
                    let why = format!("server `{}` is `{}` and does not run", server.name, server.status);
                    return Err(CallError::Late(why));
                }
                sleep(pause).await;
            }
        }
    }

    /// A server as it is now, which must bear the mark.
    pub(super) async fn marked(&self, id: u64, uuid: Uuid, until: Instant) -> Result<Server, CallError> {
        let found = self.server(id, until).await?.filter(|server| server.bears(uuid));
        found.ok_or_else(|| CallError::NotOurs { machine: id.to_string(), expected: uuid })
    }

    /// Has a server do something that takes no words, and waits for its end.
    pub(super) async fn act(&self, id: u64, verb: &str, until: Instant) -> Result<(), CallError> {
        let path = format!("/servers/{id}/actions/{verb}");
        let begun: Begun = self.inner.caller.post(&path, &json!({}), until).await?;
        self.inner.watch.ended([begun.action], until).await
    }

    /// What a thing is about.
    pub(super) async fn actions(&self, thing: &str, until: Instant) -> Result<Vec<Action>, CallError> {
        let path = format!("{thing}/actions");
        self.inner.caller.list(&path, "actions", "status=running", until).await
    }

    /// Waits until the SSH server of a node answers, where that is asked for.
    pub(super) async fn reach(&self, server: &Server, progress: &Progress) -> Result<(), CallError> {
        let Some(reach) = self.inner.setup.reach else { return Ok(()) };
        let late = |why: String| CallError::Late(format!("server `{}`: {why}", server.name));
        let address = server.address().ok_or_else(|| late("it has no address".into()))?;
        let port = server.written().map_or(22, |written| written.port);
        progress.say("waiting for ssh");
        knock(SocketAddr::new(address, port), Instant::now() + reach).await.map_err(late)
    }
}
