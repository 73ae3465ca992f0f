//! The confirmation, over connections that were not there before.

use std::time::Duration;

use orch_model::system::{RolloutPhase, SwitchAnswer, SwitchOrder, SystemQuestion, SystemView};
use orch_run::TransportError;
use tokio::time::Instant;

use super::question::Asking;
use super::{Rollout, judge, phase};

/// How long one connection is asked to wait for the end; then another one is made.
const ONE_WAIT: Duration = Duration::from_secs(30);

/// The last words of a node that is asked about a rollout which it does not have.
const UNKNOWN: &str = "is not known here";

impl Rollout<'_> {
    /// Confirms over a new connection, again and again until the node says that it is at an end: where it cannot be reached it
    /// goes back by itself, and says so then. An error says that it could not be read, and what was read last.
    pub(super) async fn confirmed(
        &self,
        order: &SwitchOrder,
        heard: Heard,
    ) -> Result<SwitchAnswer, TransportError> {
        self.say("confirming over a new connection");
        let limits = &self.settings.limits;
        let deadline = Instant::now()
            + limits.until_the_end(order.reboot).min(self.left().saturating_sub(limits.answer));
        let mut last = heard;
        let mut word = Word::Await;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.come_in(word, order, left).await {
                Ok(answer) if answer.record.phase.is_end() => return Ok(answer),
                // The new system waits for somebody who comes in now.
                Ok(answer) if word == Word::Await && answer.record.phase == RolloutPhase::Waiting => {
                    (word, last) = (Word::Confirm, Heard::of(answer));
                    continue;
                }
                Ok(answer) => last = Heard::of(answer),
                // It will say the same again. An order that it never got can be given again.
                Err(error) if is_unknown(&error) => {
                    return Err(last.lost_order().unwrap_or(error));
                }
                // Whatever else it is may be of the new system's making, and pass when the node goes back.
                Err(error) => last.trouble = Some(error),
            }
            if Instant::now() + limits.pause >= deadline {
                return self.read_at_last(order, last).await;
            }
            tokio::time::sleep(limits.pause).await;
        }
    }

    async fn come_in(
        &self,
        word: Word,
        order: &SwitchOrder,
        left: Duration,
    ) -> Result<SwitchAnswer, TransportError> {
        let seconds = ONE_WAIT.min(left).as_secs().max(1);
        let limit = (Duration::from_secs(seconds) + self.settings.limits.answer).min(left);
        let seconds = seconds.to_string();
        let asked = async {
            let node = self.road.anew().await?;
            let asking = Asking { remote: &*node, program: self.road.program(), target: self.target };
            let args = ["system", word.as_str(), "--limit", &seconds, &order.id];
            asking.ask(&args, &[], limit).await
        };
        // Finding the way, connecting and the answer together: none of them may take what is left for asking again.
        let late = |_| TransportError::Unreachable {
            node: self.target.identity.clone(),
            why: format!("no answer within {limit:?}"),
            evidence: Vec::new(),
        };
        tokio::time::timeout(limit, asked).await.map_err(late)?
    }

    /// Reads a node that did not say how it ended.
    async fn read_at_last(
        &self,
        order: &SwitchOrder,
        mut last: Heard,
    ) -> Result<SwitchAnswer, TransportError> {
        let limit = self.settings.limits.answer;
        let read = async {
            let node = self.road.anew().await?;
            self.asking(&*node).about(&["system", "look"], &SystemQuestion::default(), limit).await
        };
        let view: SystemView = match tokio::time::timeout(limit, read).await {
            Ok(Ok(view)) => view,
            Ok(Err(error)) => {
                last.trouble = Some(error);
                return Err(self.unread(order, &last));
            }
            Err(_) => return Err(self.unread(order, &last)),
        };
        match view.rollout.clone().filter(|record| record.id == order.id) {
            Some(record) if record.phase.is_end() => {
                Ok(SwitchAnswer { record, view, watched: false, unhealthy: Vec::new() })
            }
            record => {
                let heard = last.answer.as_ref().map(|answer| &answer.record);
                let phase =
                    record.as_ref().or(heard).map_or("of unknown standing", |record| phase(record.phase));
                let why = format!(
                    "it did not come to an end in time, and goes on by itself: it is {phase}; {}",
                    judge::read(&view)
                );
                Err(self.failed(why, last.words()))
            }
        }
    }

    /// What is said of a node that could not be read at the end.
    fn unread(&self, order: &SwitchOrder, last: &Heard) -> TransportError {
        let system = &order.system;
        let why = match last.answer.as_ref().map(|answer| &answer.record) {
            Some(record) => format!(
                "it was told to go over to `{system}` and was not read at its end: it was {} when it was last heard; it goes \
                 back to `{}` by itself where nobody confirms, and which of them runs is not known",
                phase(record.phase),
                record.previous.as_deref().unwrap_or("none"),
            ),
            None => format!(
                "it was told to go over to `{system}`, and whether it heard that is not known; where it did, it goes back to \
                 the system before by itself, and which of them runs is not known"
            ),
        };
        TransportError::Silent { node: self.target.identity.clone(), why, evidence: last.words() }
    }
}

/// What is asked of the node. A connection that was there before the activation ended says nothing of a node that lets nobody
/// in since: so it is waited for over one, and confirmed over another that is made when it was heard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Await,
    Confirm,
}

impl Word {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Await => "await",
            Self::Confirm => "confirm",
        }
    }
}

/// What was heard last.
pub(super) struct Heard {
    /// Nothing where the answer to the order itself was lost: it may have been taken all the same.
    answer: Option<SwitchAnswer>,
    /// What was in the way since.
    trouble: Option<TransportError>,
}

impl Heard {
    pub(super) const fn of(answer: SwitchAnswer) -> Self {
        Self { answer: Some(answer), trouble: None }
    }

    pub(super) const fn nothing(trouble: TransportError) -> Self {
        Self { answer: None, trouble: Some(trouble) }
    }

    /// Why an order was lost of which the node knows nothing.
    fn lost_order(self) -> Option<TransportError> {
        self.trouble.filter(|_| self.answer.is_none())
    }

    /// What was in the way, and what tells more.
    fn words(&self) -> Vec<String> {
        let trouble = self.trouble.as_ref();
        let mut words: Vec<String> = trouble.map(ToString::to_string).into_iter().collect();
        words.extend(trouble.map(TransportError::evidence).unwrap_or_default().iter().cloned());
        words
    }
}

/// Whether a node said that it does not know this rollout: it will say so for ever.
pub(super) fn is_unknown(error: &TransportError) -> bool {
    matches!(error, TransportError::Failed { why, .. } if why.ends_with(UNKNOWN))
}
