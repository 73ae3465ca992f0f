//! A node that keeps itself as it should be: it converges, rests until its time has come or there is something new, and
//! begins again. One per node.

use std::time::{Duration, Instant};

use orch_model::token;
use orch_model::{Config, Digest, Trigger};
use rustix::process::{WaitOptions, wait};

use super::client::{CallError, Client};
use super::converge::{Depth, Pull};
use super::converged::{Converged, PullError};
use super::memory::Known;
use super::pace::jittered;
use crate::error::in_full;
use crate::worker::say;

/// What failed is tried again after this at the latest.
const AFTER_FAILURE: Duration = Duration::from_mins(5);
/// A server that says at once that there is something new, or nothing, is not asked more often than this.
const BREATH: Duration = Duration::from_secs(1);
/// How long the server is left alone where waiting failed; doubled each time, up to the second.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// The same where it does not let the node in or has no time.
const LONG_PAUSES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(5));
/// No interval is waited for longer: the clock must be able to hold its end.
const LONGEST_INTERVAL: Duration = Duration::from_hours(24 * 365);
/// How long a token lasts that does not say so.
const TOKEN_LIFE: Duration = Duration::from_hours(24);

/// Why a rest ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rested {
    /// Its time has come.
    Due,
    /// The server has something new.
    News,
    /// Somebody said so.
    Told,
    /// It is to stop.
    Stop,
}

/// A node that keeps itself as it should be.
pub(super) struct Keeper<'p> {
    pull: Pull<'p>,
    /// The enrolment by which it last converged.
    origin: Option<Digest>,
    /// What the server said it has, where that could not be fetched.
    seen: Option<u64>,
    /// How long the server was last left alone.
    pause: Duration,
    /// The way to the server that is waited at, and what it was made for.
    way: Option<(Digest, Vec<Digest>, Client<'p>)>,
}

impl<'p> Keeper<'p> {
    pub(super) const fn new(pull: Pull<'p>) -> Self {
        Self { pull, origin: None, seen: None, pause: Duration::ZERO, way: None }
    }

    /// Goes on until it is told to stop.
    pub(super) fn run(mut self) -> Result<(), PullError> {
        let mut depth = self.depth(&self.pull.known()?);
        loop {
            let begun = Instant::now();
            let pause = self.converge(depth);
            let due = Instant::now() + pause;
            match self.rest(due, begun) {
                Rested::Stop => return Ok(()),
                Rested::News | Rested::Told => depth = Depth::Full,
                Rested::Due => {
                    depth = self.pull.known().map_or(Depth::Full, |known| self.depth(&known));
                }
            }
        }
    }

    /// Where a node converges only when it is told to, it does so by itself only until it was done once.
    fn depth(&self, known: &Known) -> Depth {
        let outcome = known.memory.as_ref().and_then(|memory| memory.outcome.as_ref());
        let is_done = outcome.is_some_and(|outcome| outcome.error.is_none());
        let is_manual = self.config().is_some_and(|config| config.role.run.trigger == Trigger::Manual);
        if is_done && is_manual { Depth::Renewal } else { Depth::Full }
    }

    fn config(&self) -> Option<Config> {
        self.pull.state.config()
    }

    /// Converges, and says after how long to do so again.
    fn converge(&mut self, depth: Depth) -> Duration {
        self.origin = self.pull.known().ok().map(|known| known.origin());
        let converged = self.pull.converge(depth);
        // A worker that was left behind is a child still.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let is_good = match &converged {
            Ok(converged) => {
                tell(converged);
                converged.is_good()
            }
            Err(error) => {
                say(&in_full(error));
                false
            }
        };
        if !matches!(converged, Err(_) | Ok(Converged::NotFetched(_))) {
            self.seen = None;
        }
        let run = self.config().map(|config| config.role.run.clone());
        let interval = match run.as_ref().map(|run| run.trigger) {
            Some(Trigger::Manual) => self.half_life(),
            _ => run.map_or(AFTER_FAILURE, |run| run.interval.duration()),
        }
        .min(LONGEST_INTERVAL);
        jittered(if is_good { interval } else { interval.min(AFTER_FAILURE) })
    }

    /// How long the token for the next fetch is good for, halved. The node's own clock does not matter for that.
    fn half_life(&self) -> Duration {
        let known = self.pull.known().ok();
        let claims = known.and_then(|known| token::read(known.token().expose()).ok());
        let life = claims.and_then(|claims| claims.exp?.checked_sub(claims.iat)).map(Duration::from_secs);
        (life.unwrap_or(TOKEN_LIFE) / 2).max(Duration::from_mins(1))
    }

    /// Rests until then, or until the server has something new, or until it is told otherwise.
    fn rest(&mut self, due: Instant, begun: Instant) -> Rested {
        let signals = self.pull.signals;
        loop {
            if signals.is_stop_asked() {
                return Rested::Stop;
            }
            if signals.take_look_again() {
                return Rested::Told;
            }
            if Instant::now() >= due {
                return Rested::Due;
            }
            if self.has_news(due) {
                self.sleep_until(due.min(begun + BREATH));
                return if signals.is_stop_asked() { Rested::Stop } else { Rested::News };
            }
        }
    }

    /// Waits at the server for a while. Whether there is something new.
    fn has_news(&mut self, due: Instant) -> bool {
        let begun = Instant::now();
        match self.ask_for_news(due) {
            Ok(is_new) => {
                self.pause = Duration::ZERO;
                if !is_new {
                    self.sleep_until(due.min(begun + BREATH));
                }
                is_new
            }
            Err(Some(CallError::Told)) => false,
            Err(error) => {
                let status = error.as_ref().and_then(CallError::status);
                let (first, longest) =
                    if matches!(status, Some(400..=499 | 503)) { LONG_PAUSES } else { PAUSES };
                self.pause = (self.pause * 2).clamp(first, longest);
                self.sleep_until(due.min(Instant::now() + jittered(self.pause)));
                false
            }
        }
    }

    fn ask_for_news(&mut self, due: Instant) -> Result<bool, Option<CallError>> {
        // Read again each time: a new enrolment is news, and no token is shown that has a successor.
        let mut known = self.pull.known().map_err(|_| None)?;
        if self.origin != Some(known.origin()) {
            return Ok(true);
        }
        let Some(memory) = known.memory.clone() else { return Err(None) };
        let mut client = self.way_to_server(&known)?;
        self.pull.settle_owed(&mut known, &mut client).map_err(|_| None)?;
        let after = self.seen.unwrap_or(memory.revision);
        let left = due.saturating_duration_since(Instant::now());
        let revision = client.wait(&memory.tokens.spec, after, left)?;
        self.way = Some((known.origin(), memory.pins, client));
        self.seen = Some(revision);
        Ok(revision != after)
    }

    /// The way that was used before, where it still leads to the server.
    fn way_to_server(&mut self, known: &Known) -> Result<Client<'p>, Option<CallError>> {
        match self.way.take() {
            Some((origin, pins, client)) if origin == known.origin() && pins == known.pins() => Ok(client),
            _ => self.pull.client(known).map_err(|_| None),
        }
    }

    /// Sleeps until then, but not past a word from outside.
    fn sleep_until(&self, until: Instant) {
        let signals = self.pull.signals;
        while Instant::now() < until && !signals.is_stop_asked() && !signals.is_look_again_asked() {
            signals.wait(Some(until));
        }
    }
}

/// Says what is worth a line.
fn tell(converged: &Converged) {
    match converged {
        Converged::Ended(report) | Converged::NotFetched(report) => {
            if let Some(error) = &report.error {
                say(&format!("failed: {error}"));
            }
        }
        Converged::Left(why) => say(why),
        Converged::Renewed => {}
    }
}
