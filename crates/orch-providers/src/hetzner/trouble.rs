//! What can go wrong with a question, and what it means for an order.

use orch_model::{HostName, printable};
use orch_run::ProviderError;
use thiserror::Error;

use crate::api::ApiError;

/// A message of the API is shown no longer than this.
const LONGEST: usize = 300;

/// Why a question has no answer that is of use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum CallError {
    /// The API said no.
    #[error("{what}: {message} (`{code}`, status {status})")]
    Said { what: String, status: u16, code: String, message: String },
    /// There is no answer.
    #[error("{what}: {error}")]
    Mute { what: String, error: ApiError },
    /// The answer makes no sense.
    #[error("{0}")]
    Odd(String),
    /// An action was begun and failed.
    #[error("`{command}` failed: {message} (`{code}`)")]
    Action { command: String, code: String, message: String },
    /// The time was over.
    #[error("{0}")]
    Late(String),
    /// Something on this computer is not as it must be.
    #[error("{why}")]
    Here { why: String, hint: String },
    /// It is not to be done.
    #[error("{0}")]
    Refused(String),
    /// The machine there is not the one that was meant.
    #[error("machine `{machine}` does not bear the mark {expected}")]
    NotOurs { machine: String, expected: uuid::Uuid },
}

impl CallError {
    pub(super) fn said(what: &str, status: u16, code: &str, message: &str) -> Self {
        Self::Said { what: what.into(), status, code: short(code), message: short(message) }
    }

    /// The code with which the API said no.
    pub(super) fn code(&self) -> Option<&str> {
        match self {
            Self::Said { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether the thing is not there.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Said { status: 404, .. })
    }

    /// Whether what was asked can have been done all the same.
    pub(super) const fn may_be_done(&self) -> bool {
        matches!(
            self,
            Self::Said { status: 500.., .. } | Self::Mute { error: ApiError::Unanswered { .. }, .. }
        )
    }

    /// What it means for an order to this host.
    pub(super) fn told(self, host: &HostName) -> ProviderError {
        let (host, why) = (host.clone(), self.to_string());
        let failed = |hint: String| ProviderError::Failed {
            host: host.clone(),
            why: why.clone(),
            evidence: Vec::new(),
            hint,
        };
        match self {
            Self::NotOurs { machine, expected } => ProviderError::NotOurs { machine, expected },
            Self::Refused(why) => ProviderError::Refused { host, why },
            Self::Late(why) => ProviderError::Late { host, why, evidence: Vec::new() },
            Self::Said { status: 500.., .. } => ProviderError::NoAnswer { host, why },
            Self::Said { ref code, status, .. } => match remedy(code, status) {
                _ if is_busy(code, status) => ProviderError::Late { host, why, evidence: Vec::new() },
                Some(remedy) => ProviderError::Refused { why: format!("{why}: {remedy}"), host },
                None => ProviderError::Refused { host, why },
            },
            Self::Mute { error, .. } => match error {
                ApiError::Unreached { .. } | ApiError::Unanswered { .. } => {
                    ProviderError::NoAnswer { host, why }
                }
                ApiError::Untrusted { .. } => failed(format!(
                    "see who answers in its place; where the certificate was renewed, write its fingerprint into hosts/{host}.yaml"
                )),
                ApiError::Sealed { hint, .. } => failed(hint),
            },
            Self::Here { hint, .. } => failed(hint),
            Self::Odd(_) => failed("run again, and tell the makers of orch if it stays so".into()),
            Self::Action { .. } => {
                failed("look at the server in the console of Hetzner, and run again".into())
            }
        }
    }
}

/// Whether a thing was busy with something else.
pub(super) fn is_busy(code: &str, status: u16) -> bool {
    status == 423 || matches!(code, "locked" | "conflict")
}

/// What people can do about a no.
fn remedy(code: &str, status: u16) -> Option<&'static str> {
    match (code, status) {
        ("unauthorized", _) | (_, 401) => {
            Some("the token is none of a project: make one, and put it into the sops file")
        }
        ("token_readonly", _) => {
            Some("the token may only read: make one with `Read & Write`, and put it into the sops file")
        }
        ("resource_limit_exceeded", _) => Some(
            "the project may not have more of these: ask Hetzner for a higher limit, or destroy what is not needed",
        ),
        ("forbidden", _) => {
            Some("the token may not do this: see what it is allowed to do in the console of Hetzner")
        }
        ("protected", _) => Some(
            "it is protected: take the protection away in the console of Hetzner if that is what you want",
        ),
        _ => None,
    }
}

/// One line of what others wrote.
pub(super) fn short(text: &str) -> String {
    let line = printable(text);
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}
