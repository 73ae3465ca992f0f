//! What a node that pulls was given, and what it has since: `enrolment.json`, put there from outside, and `pull.json`.
//!
//! The file from outside is never changed: its token is used up by the first fetch whose successor is used. Another one in
//! its place begins anew.

use orch_model::Digest;
use orch_model::pull::{Enrolment, NextTokens, NodeResult, SpecAnswer};
use orch_model::token::Bearer;
use serde::{Deserialize, Serialize};

use crate::error::ApplyError;
use crate::state::State;

/// Where a node is given what it needs to fetch its configuration.
pub const ENROLMENT: &str = "/var/lib/orch/enrolment.json";
pub(super) const ENROLMENT_NAME: &str = "enrolment.json";
const MEMORY_NAME: &str = "pull.json";

/// What a node that pulls has since its first fetch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Memory {
    /// The digest of the token that this descends from.
    enrolment: Digest,
    /// The tokens for the next time.
    pub(super) tokens: NextTokens,
    /// The certificates that the server may show.
    pub(super) pins: Vec<Digest>,
    /// What the server calls the state of things that was fetched last.
    pub(super) revision: u64,
    /// A result that the server has not taken yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undelivered: Option<Box<NodeResult>>,
    /// How it went last; nothing while it is at it.
    pub(super) outcome: Option<Outcome>,
}

/// How a convergence went.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// When it ended, in RFC 3339.
    pub(super) at: String,
    /// Why the node is not as it should be, where it is not.
    pub(super) error: Option<String>,
}

/// What a node that pulls knows.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) enrolment: Enrolment,
    /// Nothing before the first fetch.
    pub(super) memory: Option<Memory>,
}

impl Known {
    /// Reads what the node knows; nothing where it was never told to pull.
    pub(super) fn read(state: &State) -> Result<Option<Self>, ApplyError> {
        let Some(text) = state.text(ENROLMENT_NAME)? else { return Ok(None) };
        let enrolment: Enrolment = serde_json::from_slice(&text).map_err(|error| {
            // Without the text around it, which may be the token.
            let (line, column) = (error.line(), error.column());
            let why = format!("it is not an enrolment: wrong at line {line}, column {column}");
            ApplyError::refused(ENROLMENT.as_ref(), why)
        })?;
        let memory: Option<Memory> = state.read_json(MEMORY_NAME)?;
        let digest = digest_of(&enrolment);
        Ok(Some(Self { memory: memory.filter(|memory| memory.enrolment == digest), enrolment }))
    }

    /// Which enrolment it is.
    pub(super) fn origin(&self) -> Digest {
        digest_of(&self.enrolment)
    }

    /// What the server calls the state of things that was fetched last.
    pub(super) fn revision(&self) -> Option<u64> {
        self.memory.as_ref().map(|memory| memory.revision)
    }

    /// The token that opens the configuration now.
    pub(super) fn token(&self) -> &Bearer {
        self.memory.as_ref().map_or(&self.enrolment.token, |memory| &memory.tokens.spec)
    }

    /// The certificates that the server may show now.
    pub(super) fn pins(&self) -> &[Digest] {
        self.memory.as_ref().map_or(&self.enrolment.pins, |memory| &memory.pins)
    }

    /// Takes what came with an answer, and writes it down before anything is done with the rest.
    pub(super) fn learn(&mut self, state: &State, answer: &SpecAnswer) -> Result<(), ApplyError> {
        // Without any pin the node could never speak to its server again.
        let pins = if answer.pins.is_empty() { self.pins().to_vec() } else { answer.pins.clone() };
        let undelivered = self.memory.take().and_then(|memory| memory.undelivered);
        self.memory = Some(Memory {
            enrolment: digest_of(&self.enrolment),
            tokens: answer.next.clone(),
            pins,
            revision: answer.revision,
            undelivered,
            outcome: None,
        });
        self.write(state)
    }

    /// Writes down how it went. Before the first fetch there is nothing to write it to.
    pub(super) fn conclude(&mut self, state: &State, error: Option<String>) -> Result<(), ApplyError> {
        if let Some(memory) = &mut self.memory {
            memory.outcome = Some(Outcome { at: jiff::Timestamp::now().to_string(), error });
        }
        self.write(state)
    }

    /// Writes down how it went, together with the result that the server is to be told.
    pub(super) fn settle_on(
        &mut self,
        state: &State,
        error: Option<String>,
        result: Box<NodeResult>,
    ) -> Result<(), ApplyError> {
        if let Some(memory) = &mut self.memory {
            memory.undelivered = Some(result);
        }
        self.conclude(state, error)
    }

    /// Keeps a result until the server has taken it.
    pub(super) fn owe(&mut self, state: &State, result: Option<Box<NodeResult>>) -> Result<(), ApplyError> {
        if let Some(memory) = &mut self.memory {
            memory.undelivered = result;
        }
        self.write(state)
    }

    fn write(&self, state: &State) -> Result<(), ApplyError> {
        self.memory.as_ref().map_or(Ok(()), |memory| state.write_json(MEMORY_NAME, memory))
    }
}

fn digest_of(enrolment: &Enrolment) -> Digest {
    Digest::of_bytes(enrolment.token.expose().as_bytes())
}
