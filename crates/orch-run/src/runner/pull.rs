//! A node that fetches its configuration: it is told to, and what it says of it is waited for.

use std::time::Duration;

use orch_model::token::Code;
use orch_model::{ApplyStatus, Config, Digest, NodeKeys, NodeRecord, Reported};
use tokio::time::Instant;

use super::step_error::StepError;
use crate::permit::Permit;
use crate::registry::{Registry, RegistryError};
use crate::told::{failures, skipped};
use crate::transport::{Configured, Target, TransportError};

/// How long a node that was told to converge may be silent before it is enrolled anew: it may rest, because it found no server
/// the last time, or its tokens may be worthless.
const SILENCE: Duration = Duration::from_secs(1);
/// How long the server may say something else than the plan before that is a failure: it may be reading the site just now.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait before a server that does not answer is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// One node that fetches its configuration.
pub(super) struct Pull<'p> {
    pub(super) registry: &'p dyn Registry,
    pub(super) target: &'p Target,
    pub(super) config: &'p Config,
    pub(super) permit: &'p Permit,
    /// How long it may take.
    pub(super) limit: Duration,
}

impl Pull<'_> {
    /// Waits until the node has made its configuration true. `enrolled` is how many results it had given when this run made it;
    /// a node that was there before is told to converge, and enrolled anew where it does not answer.
    pub(super) async fn configure(&self, enrolled: Option<u64>) -> Result<Configured, StepError> {
        // It has to be said that the time is over before nobody listens any more.
        let deadline = Instant::now() + self.limit.saturating_sub(self.limit / 10);
        let mut last = Last::default();
        let since = match enrolled {
            Some(since) => since,
            None => self.rouse(deadline, &mut last).await?,
        };
        self.target.progress.say("waiting for its report");
        loop {
            let record = self.record(last.events, deadline, &last).await?;
            last.events = Some(record.events);
            if let Some(doing) = record.doing.as_deref().filter(|doing| last.doing.as_deref() != Some(*doing))
            {
                self.target.progress.say(doing);
                last.doing = Some(doing.to_owned());
            }
            self.must_be_served(&record, &mut last)?;
            if last.server.replace(record.server).is_some_and(|before| before != record.server) {
                // It was started anew, and does not know what the one before it was told.
                self.registry.converge(&self.target.identity).await?;
            }
            if record.refused.is_some() && !last.is_enrolled_anew {
                self.enrol_anew().await?;
                last.is_enrolled_anew = true;
            }
            let is_news = record.results() > since;
            let is_answer = |reported: &Reported| is_news && self.is_answer(reported, last.is_enrolled_anew);
            if let Some(reported) = record.reported.filter(is_answer) {
                return self.judge(&reported, record.keys);
            }
            if Instant::now() >= deadline {
                return Err(self.late(&last).into());
            }
        }
    }

    /// Has a node that was there before converge; how many results it had given until then.
    async fn rouse(&self, deadline: Instant, last: &mut Last) -> Result<u64, StepError> {
        self.target.progress.say("telling it to converge");
        let before = self.record(None, deadline, &Last::default()).await?;
        if before.fetched.is_some() && before.alarm.is_none() && before.refused.is_none() {
            self.registry.converge(&self.target.identity).await?;
            // The word itself is an event.
            let told = self.record(None, deadline, &Last::default()).await?.events;
            if self.is_heard_of(told, deadline).await? {
                return Ok(before.results());
            }
        }
        self.enrol_anew().await?;
        last.is_enrolled_anew = true;
        Ok(before.results())
    }

    /// Hands the node what it needs, where it can be gone to. One that nobody can go to comes by itself, when its time has
    /// come.
    async fn enrol_anew(&self) -> Result<(), StepError> {
        self.target.progress.say("handing it what it needs to fetch its configuration");
        match self.registry.hand_over(self.target, &self.config.spec, self.permit).await {
            Err(RegistryError::Transport(error)) => self.target.progress.say(&error.to_string()),
            handed => handed?,
        }
        Ok(())
    }

    /// Whether something happens to the node within a moment.
    async fn is_heard_of(&self, since: u64, deadline: Instant) -> Result<bool, StepError> {
        let until = deadline.min(Instant::now() + SILENCE.min(self.limit / 4));
        let heard = self.registry.record(&self.target.identity, Some(since));
        match tokio::time::timeout_at(until, heard).await {
            Ok(Err(error)) if !error.is_passing() => Err(error.into()),
            Ok(Ok(record)) => Ok(record.events != since),
            Ok(Err(_)) | Err(_) => Ok(false),
        }
    }

    /// What is known of the node. A server that does not answer is asked again: it may have been started anew.
    async fn record(
        &self,
        after: Option<u64>,
        deadline: Instant,
        last: &Last,
    ) -> Result<NodeRecord, StepError> {
        loop {
            match tokio::time::timeout_at(deadline, self.registry.record(&self.target.identity, after)).await
            {
                Ok(Ok(record)) => return Ok(record),
                Ok(Err(error)) if error.is_passing() && Instant::now() + PAUSE < deadline => {
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => return Err(self.late(last).into()),
            }
        }
    }

    /// What the server hands out must be what was planned, or nothing that the node says is about it.
    fn must_be_served(&self, record: &NodeRecord, last: &mut Last) -> Result<(), TransportError> {
        if record.wanted == Some(self.config.digest()) {
            last.other_since = None;
            return Ok(());
        }
        let since = *last.other_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE.min(self.limit / 4) {
            return Ok(());
        }
        let trouble = record.trouble.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let why = format!(
            "the server hands out another configuration than this site has: it serves `{}`{trouble}",
            record.site
        );
        Err(TransportError::Failed { node: self.target.identity.clone(), why, evidence: Vec::new() })
    }

    /// Whether a report is about this configuration, or says that none could be had.
    fn is_answer(&self, reported: &Reported, is_enrolled_anew: bool) -> bool {
        let report = &reported.result.report;
        // What is told late is about an earlier try.
        if reported.result.owed {
            return false;
        }
        // So is what is told of a token that was refused: the node has another one by now, or has it in a moment.
        let refused = Code::E302.to_string();
        let is_refused = report.error.as_ref().is_some_and(|error| error.starts_with(&refused));
        let is_stale = is_enrolled_anew && is_refused;
        report.spec_digest == self.config.digest() || (report.spec_digest == Digest::NONE && !is_stale)
    }

    fn judge(&self, reported: &Reported, keys: Option<NodeKeys>) -> Result<Configured, StepError> {
        let report = &reported.result.report;
        if report.status == ApplyStatus::Complete {
            let (changed, notes) = (report.changed(), skipped(&report.resources));
            return Ok(Configured { changed, notes, keys });
        }
        let why = report.error.as_deref().unwrap_or("it did not say why");
        let why = orch_model::printable(why).into_owned();
        let evidence = failures(report);
        Err(TransportError::Failed { node: self.target.identity.clone(), why, evidence }.into())
    }

    fn late(&self, last: &Last) -> TransportError {
        let why = match &last.doing {
            Some(doing) => format!("no report came; the last that it said was: {doing}"),
            None => "no report came from it".to_owned(),
        };
        TransportError::Late { node: self.target.identity.clone(), why, evidence: Vec::new() }
    }
}

/// What is known so far.
#[derive(Default)]
struct Last {
    events: Option<u64>,
    doing: Option<String>,
    /// Whether this run has given it what it needs once more.
    is_enrolled_anew: bool,
    server: Option<u64>,
    /// Since when the server hands out something else.
    other_since: Option<Instant>,
}

impl From<RegistryError> for StepError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(error)
    }
}
