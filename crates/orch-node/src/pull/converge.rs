//! One convergence: the configuration is fetched, made true where it is not, and the server is told what became of it.
//!
//! What came with the answer is written down before anything else is done, so a cut at any moment loses no token; the
//! configuration is applied by the same worker as one that was pushed, which a cut of this process does not end.

use std::time::Duration;

use orch_model::pull::{NodeResult, SpecAnswer, Telling};
use orch_model::{ApplyReport, ApplyStatus, Config, Delivery, Inspection, KeyName, ResourceReport};

use super::client::{CallError, Client};
use super::converged::{Converged, PullError};
use super::failure;
use super::fitting::fitting;
use super::memory::Known;
use super::pace::Pace;
use super::presence::{Headers, Presence, known_by};
use super::progress::while_telling;
use crate::apply;
use crate::error::{ApplyError, in_full};
use crate::health;
use crate::keys;
use crate::node::Node;
use crate::push::{Pushed, push};
use crate::resource::Extent;
use crate::signals::Signals;
use crate::state::{ApplyLock, State};
use crate::vault;
use crate::worker::{Terms, say};

/// How a node converges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manner {
    /// When the server is asked.
    pub(crate) pace: Pace,
    /// How long applying may take.
    pub(crate) limit: Duration,
    /// How long of that the node may take to become healthy.
    pub(crate) health: Duration,
    /// By how many seconds its clock is made to look wrong.
    pub(crate) skew: i64,
}

/// How far a convergence goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The node is made what it should be, whatever it was.
    Full,
    /// Tokens are renewed before they end; the node is looked at only where the server has something new.
    Renewal,
}

/// A node that pulls.
pub(super) struct Pull<'p> {
    pub(super) node: &'p Node,
    pub(super) state: &'p State,
    pub(super) signals: &'p Signals,
    pub(super) manner: &'p Manner,
}

impl<'p> Pull<'p> {
    pub(super) fn known(&self) -> Result<Known, PullError> {
        Known::read(self.state)?.ok_or(PullError::NotEnrolled)
    }

    pub(super) fn client(&self, known: &Known) -> Result<Client<'p>, PullError> {
        let Known { enrolment, .. } = known;
        let patience = self.manner.pace.patience;
        Client::new((&enrolment.server, known.pins()), &enrolment.node, patience, self.signals)
            .map_err(PullError::Enrolment)
    }

    /// Converges once.
    pub(super) fn converge(&self, depth: Depth) -> Result<Converged, PullError> {
        let mut known = self.known()?;
        let mut client = self.client(&known)?;
        let presence =
            Presence { keys: keys::make(self.node, self.state)?, holds: vault::digests(self.state) };
        let answer = match self.fetch(&known, &mut client, &presence) {
            Ok(answer) => answer,
            Err((CallError::Told, _)) => return Ok(Converged::Left("it was told otherwise meanwhile")),
            Err((error, tries)) => {
                return self.not_fetched(&mut known, &mut client, depth, (&error, tries));
            }
        };
        let (revision, pins) = (known.revision(), known.pins().to_vec());
        known.learn(self.state, &answer)?;
        if known.pins() != pins {
            client = self.client(&known)?;
        }
        self.settle_owed(&mut known, &mut client)?;
        let unsettled = self.show_own_key(&presence);
        let is_old = revision == Some(answer.revision) && self.completed(&answer.spec)?.is_some();
        let is_old = is_old && vault::lacking(self.state, &answer.spec).is_empty();
        if depth == Depth::Renewal && is_old && unsettled.is_none() {
            known.conclude(self.state, None)?;
            return Ok(Converged::Renewed);
        }
        let delivery = Delivery { config: answer.spec, parcel: answer.parcel };
        self.make_true(&mut known, &mut client, &delivery, unsettled)
    }

    /// Has the SSH server show the node's own key in place of the one that it was given, which whoever may read what machines
    /// are made with knows. A server that answered has written the own one down before, so nobody is shut out. What
    /// fails is done the next time; says why it did.
    fn show_own_key(&self, presence: &Presence) -> Option<String> {
        if presence.keys.settled {
            return None;
        }
        let why = match keys::settle(self.node, self.state) {
            Ok(keys) if keys.settled => return None,
            Ok(_) => "it was told to, and does not".into(),
            Err(error) => error.in_full(),
        };
        let why = format!("the SSH server does not show the node's own key yet: {why}");
        say(&why);
        Some(why)
    }

    /// Who tells the server something. It is told what is so now, and not what was so when the node asked.
    fn headers(&self) -> Headers {
        keys::noted(self.state).ok().flatten().as_ref().map(known_by).unwrap_or_default()
    }

    /// Asks for the configuration, and believes no other node's.
    fn fetch(
        &self,
        known: &Known,
        client: &mut Client<'_>,
        presence: &Presence,
    ) -> Result<SpecAnswer, (CallError, u32)> {
        let Manner { pace, .. } = self.manner;
        let headers = presence.headers();
        pace.ask(self.signals, || {
            let answer = client.spec(known.token(), &headers, pace.call)?;
            if answer.spec.node == known.enrolment.node {
                return Ok(answer);
            }
            Err(CallError::Nonsense(format!("it is the configuration of `{}`", answer.spec.node)))
        })
    }

    /// Writes down why there is no configuration, and tells the server where it refused and there is a token for that.
    fn not_fetched(
        &self,
        known: &mut Known,
        client: &mut Client<'_>,
        depth: Depth,
        (error, tries): (&CallError, u32),
    ) -> Result<Converged, PullError> {
        let report = failure::report(self.state, &known.enrolment, (error, tries))?;
        failure::keep(self.state, &report, error)?;
        // A renewal that fails says nothing of the node.
        if depth == Depth::Full {
            known.conclude(self.state, report.error.clone())?;
        }
        if !error.may_pass() && known.memory.is_some() {
            known.owe(self.state, Some(self.result(report.clone(), Vec::new())))?;
            self.settle(known, client)?;
        }
        Ok(Converged::NotFetched(Box::new(report)))
    }

    /// Tells the server, once, a result that it could not be told when it came about.
    pub(super) fn settle_owed(&self, known: &mut Known, client: &mut Client<'_>) -> Result<(), ApplyError> {
        if let Some(result) = known.memory.as_mut().and_then(|memory| memory.undelivered.as_mut()) {
            result.owed = true;
        }
        self.settle(known, client)
    }

    /// Tells the server what it has not taken yet.
    fn settle(&self, known: &mut Known, client: &mut Client<'_>) -> Result<(), ApplyError> {
        let Some(memory) = known.memory.as_ref() else { return Ok(()) };
        let Some(result) = memory.undelivered.clone() else { return Ok(()) };
        let (telling, limit) = (Telling::Result(result), self.manner.pace.call);
        let told = client.tell(&memory.tokens.report, &self.headers(), &telling, limit);
        if is_settled(&told) { known.owe(self.state, None) } else { Ok(()) }
    }

    /// Makes a configuration true where it is not, and tells what became of it.
    fn make_true(
        &self,
        known: &mut Known,
        client: &mut Client<'_>,
        delivery: &Delivery,
        unsettled: Option<String>,
    ) -> Result<Converged, PullError> {
        let config = &delivery.config;
        let kept = self.completed(config)?;
        let drift = if kept.is_some() { self.inspect(config) } else { Drift::default() };
        let report = match kept.filter(|_| drift.is_none()) {
            Some(kept) => kept,
            None => match self.apply(known, client, delivery) {
                Ok(Pushed::Ended(report)) => *report,
                Ok(Pushed::Lacking(names)) => self.failed(known, config, &not_sent(&names))?,
                Err(error) => self.failed(known, config, &error.in_full())?,
                Ok(Pushed::LimitReached(why)) => {
                    known.conclude(self.state, Some(why.into()))?;
                    return Ok(Converged::Left(why));
                }
                Ok(Pushed::Left) => {
                    return Ok(Converged::Left("it was told to stop, and the worker goes on"));
                }
            },
        };
        let report = unsettled.into_iter().fold(report, with_unsettled);
        let result = self.result(report.clone(), drift.resources);
        known.settle_on(self.state, report.error.clone(), result)?;
        self.deliver(known, client)?;
        Ok(Converged::Ended(Box::new(report)))
    }

    /// The report of this configuration, where it was the last one to be made true.
    fn completed(&self, config: &Config) -> Result<Option<ApplyReport>, ApplyError> {
        Ok(self.state.report()?.filter(|report| report.completes(config)))
    }

    fn inspect(&self, config: &Config) -> Drift {
        let resources = apply::inspect(self.node, config);
        let seen = Inspection { applied: None, resources, health: health::check(self.node, config) };
        Drift { resources: seen.drift().cloned().collect(), is_unhealthy: !seen.is_healthy() }
    }

    fn apply(
        &self,
        known: &Known,
        client: &mut Client<'_>,
        delivery: &Delivery,
    ) -> Result<Pushed, ApplyError> {
        let Manner { limit, health, .. } = *self.manner;
        let terms = Terms { mode: known.enrolment.mode, limit, health, extent: Extent::Whole };
        let memory = known.memory.as_ref().expect("what was learned is known");
        while_telling(client, (&memory.tokens.report, &self.headers()), self.signals, |follower| {
            push(self.node, delivery, terms, follower)
        })
    }

    /// The report of a configuration that was fetched and could not be begun with.
    fn failed(&self, known: &Known, config: &Config, why: &str) -> Result<ApplyReport, ApplyError> {
        let attempts = self.state.attempts(config.digest())?;
        let report = apply::failed(config, known.enrolment.mode, attempts, why);
        // Whoever applies at this moment writes down what comes of it.
        if let Some(_lock) = ApplyLock::try_take(self.state)? {
            self.state.keep(&report)?;
        }
        Ok(report)
    }

    /// Tells the server the result, with as much patience as it is asked with. What it does not take is kept for the next
    /// time.
    fn deliver(&self, known: &mut Known, client: &mut Client<'_>) -> Result<(), ApplyError> {
        let Manner { pace, .. } = self.manner;
        let Some(memory) = known.memory.as_ref() else { return Ok(()) };
        let Some(result) = memory.undelivered.clone() else { return Ok(()) };
        let telling = Telling::Result(result);
        let (token, headers) = (&memory.tokens.report, self.headers());
        let told = pace.ask(self.signals, || client.tell(token, &headers, &telling, pace.call));
        let told = told.map_err(|(error, _)| error);
        if let Err(error) = &told {
            say(&format!("the result is not with the server: {}", in_full(error)));
        }
        if is_settled(&told) { known.owe(self.state, None) } else { Ok(()) }
    }

    fn result(&self, report: ApplyReport, drift: Vec<ResourceReport>) -> Box<NodeResult> {
        let clock = jiff::Timestamp::now().as_second().saturating_add(self.manner.skew);
        Box::new(fitting(NodeResult { report, drift, owed: false, clock }))
    }
}

/// A node that shows another host key than its own is not what it should be, whatever else became of it.
fn with_unsettled(mut report: ApplyReport, why: String) -> ApplyReport {
    report.status = ApplyStatus::Failed;
    report.error = Some(report.error.map_or_else(|| why.clone(), |error| format!("{error}; {why}")));
    let (kind, name) = ("keys".into(), "host key".into());
    report.resources.push(ResourceReport { kind, name, changed: false, skipped: None, detail: Some(why) });
    report
}

fn not_sent(names: &[KeyName]) -> String {
    let words: Vec<String> =
        names.iter().map(|name| format!("the server did not send secret `{name}`")).collect();
    words.join("; ")
}

/// What is not as it was made.
#[derive(Default)]
struct Drift {
    resources: Vec<ResourceReport>,
    is_unhealthy: bool,
}

impl Drift {
    fn is_none(&self) -> bool {
        self.resources.is_empty() && !self.is_unhealthy
    }
}

/// Whether a result needs not be told again: the server has it, or will never take it. One whose token is not believed, or
/// whose node is not known, may be taken with the next token.
fn is_settled(told: &Result<(), CallError>) -> bool {
    match told {
        Ok(()) => true,
        Err(error) => matches!(error.status(), Some(400 | 413 | 422)),
    }
}
