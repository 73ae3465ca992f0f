//! The confirmation, over connections that were not there before.

use std::time::Duration;

use orch_model::system::{RolloutPhase, SwitchAnswer, SwitchOrder};
use orch_run::TransportError;
use tokio::time::Instant;

use super::question::Asking;
use super::{Rollout, phase};

/// How long one connection is asked to wait for the end; then another one is made.
const ONE_WAIT: Duration = Duration::from_secs(30);

impl Rollout<'_> {
    /// Confirms over a new connection, again and again until the node says that it is at an end: where it cannot be reached it
    /// goes back by itself, and says so then. An error says that it could not be read, and what was read last.
    pub(super) async fn confirmed(
        &self,
        order: &SwitchOrder,
        armed: &SwitchAnswer,
    ) -> Result<SwitchAnswer, TransportError> {
        self.say("confirming over a new connection");
        let limits = &self.settings.limits;
        let deadline = Instant::now() + limits.until_the_end(order.reboot).min(self.left());
        let mut last = Heard { answer: armed.clone(), trouble: None };
        let mut word = Word::Await;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.come_in(word, order, left).await {
                Ok(answer) if answer.record.phase.is_end() => return Ok(answer),
                // The new system waits for somebody who comes in now.
                Ok(answer) if word == Word::Await && answer.record.phase == RolloutPhase::Waiting => {
                    (word, last) = (Word::Confirm, Heard { answer, trouble: None });
                    continue;
                }
                Ok(answer) => last = Heard { answer, trouble: None },
                // It was heard, and will say the same again.
                Err(error @ TransportError::Failed { .. }) => return Err(error),
                // Whatever else it is may be of the new system's making, and pass when the node goes back.
                Err(error) => last.trouble = Some(error),
            }
            if Instant::now() + limits.pause >= deadline {
                return Err(self.unread(order, &last));
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

    /// What is said of a node that could not be read at the end.
    fn unread(&self, order: &SwitchOrder, last: &Heard) -> TransportError {
        let (node, record) = (self.target.identity.clone(), &last.answer.record);
        let before = record.previous.as_deref().unwrap_or("none");
        let why = format!(
            "it was told to go over to `{}` and was not read at its end: it was {} when it was last heard; it goes \
             back to `{before}` by itself where nobody confirms, and which of them runs is not known",
            order.system,
            phase(record.phase),
        );
        let trouble = last.trouble.as_ref();
        let mut evidence: Vec<String> = trouble.map(ToString::to_string).into_iter().collect();
        evidence.extend(trouble.map(TransportError::evidence).unwrap_or_default().iter().cloned());
        TransportError::Silent { node, why, evidence }
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
struct Heard {
    answer: SwitchAnswer,
    /// What was in the way since.
    trouble: Option<TransportError>,
}
