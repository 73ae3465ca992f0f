//! Configuring nodes over SSH.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use orch_model::pull::Enrolment;
use orch_model::system::{LeaseAnswer, LeaseClaim, SwitchAnswer};
use orch_model::{Config, NodeKeys};
use orch_run::{Configured, Enroller, Leaser, Permit, Reverter, Target, Transport, TransportError};
use tokio::time::Instant;

use super::client::Ssh;
use super::connection::Connection;
use super::road::SshRoad;
use super::way::Way;
use crate::push::{self, Part, Program, What};
use crate::rollout::{Holding, Rollout, back, end_within, system_of};

#[async_trait]
impl Transport for Ssh {
    /// A connection that breaks is made again, and the node asked again: it goes on meanwhile, and answers for the same
    /// work. Whoever lets go of this ends that work.
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError> {
        let deadline = Instant::now() + self.settings().limits.configure;
        target.needs(permit)?;
        let way = self.way(target).await?;
        if let Some(system) = system_of(target, config)? {
            let settings = self.settings();
            let rollout = Rollout {
                road: &SshRoad { ssh: self, target, program: way.program },
                target,
                what: What { config, treasury: &settings.treasury, part: Part::Whole },
                limits: &settings.limits,
                settings: &settings.rollout,
                permit,
                time: end_within(settings.limits.configure),
                begun: OnceLock::new(),
            };
            return rollout.carry_out(system).await;
        }
        let mut work = Work { ssh: self, program: &way.program, connection: None };
        let ended = self.push_until_answered(target, config, &way, &mut work, deadline).await;
        work.connection = None;
        ended
    }

    async fn settle(&self, target: &Target, permit: &Permit) -> Result<NodeKeys, TransportError> {
        target.needs(permit)?;
        let way = self.way(target).await?;
        let connection = self.reach_by(target, &way).await?;
        push::settle(&connection, &way.program, target, &self.settings().limits).await
    }
}

#[async_trait]
impl Enroller for Ssh {
    async fn enrol(
        &self,
        target: &Target,
        enrolment: &Enrolment,
        permit: &Permit,
    ) -> Result<(), TransportError> {
        target.needs(permit)?;
        let way = self.way(target).await?;
        let connection = self.reach_by(target, &way).await?;
        push::enrol(&connection, &way.program, target, enrolment, &self.settings().limits).await
    }
}

#[async_trait]
impl Leaser for Ssh {
    async fn lease(
        &self,
        target: &Target,
        claim: &LeaseClaim,
        permit: &Permit,
    ) -> Result<LeaseAnswer, TransportError> {
        target.needs(permit)?;
        let way = self.way(target).await?;
        let connection = self.reach_by(target, &way).await?;
        self.holding(target, &way, &connection).lease(claim).await
    }

    async fn release(&self, target: &Target, claim: &str) -> Result<(), TransportError> {
        let way = self.way(target).await?;
        let connection = self.reach_by(target, &way).await?;
        self.holding(target, &way, &connection).release(claim).await
    }
}

#[async_trait]
impl Reverter for Ssh {
    async fn back(&self, target: &Target, permit: &Permit) -> Result<SwitchAnswer, TransportError> {
        target.needs(permit)?;
        let way = self.way(target).await?;
        let road = SshRoad { ssh: self, target, program: way.program };
        back(&road, target, &self.settings().rollout.limits, permit).await
    }
}

impl Ssh {
    fn holding<'h>(&'h self, target: &'h Target, way: &'h Way, remote: &'h Connection) -> Holding<'h> {
        Holding { remote, program: &way.program, target, limits: &self.settings().rollout.limits }
    }

    async fn push_until_answered(
        &self,
        target: &Target,
        config: &Config,
        way: &Way,
        work: &mut Work<'_>,
        deadline: Instant,
    ) -> Result<Configured, TransportError> {
        let settings = self.settings();
        let (mut wait, mut is_first) = (settings.first_wait, true);
        loop {
            let connection = Arc::new(self.reach_by(target, way).await?);
            work.connection = Some(Arc::clone(&connection));
            let (program, limits) = (&way.program, &settings.limits);
            let what = What { config, treasury: &settings.treasury, part: Part::Whole };
            let ended = push::configure(&*connection, program, target, what, limits, deadline).await;
            match ended {
                Err(error) if error.is_passing() && Instant::now() + wait < deadline => {
                    target.progress.say("the connection broke, connecting again");
                    tokio::time::sleep(wait).await;
                    (wait, is_first) = ((wait * 2).min(settings.longest_wait), false);
                }
                Ok(done) if !is_first => return Ok(guessed(done)),
                ended => return ended,
            }
        }
    }
}

/// What was answered after a connection broke. Whether the try before changed something is not known, and what waits for a
/// change must not miss one.
fn guessed(done: Configured) -> Configured {
    if done.changed {
        return done;
    }
    let guess = "changed, as far as is known: the connection broke while it was at it".to_owned();
    Configured { changed: true, notes: done.notes.into_iter().chain([guess]).collect(), ..done }
}

/// Work that a node does for us. Let go of while there is a connection, the node is told to end it.
struct Work<'a> {
    ssh: &'a Ssh,
    program: &'a Program,
    connection: Option<Arc<Connection>>,
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.ssh.bid_farewell(connection, self.program.clone());
        }
    }
}
