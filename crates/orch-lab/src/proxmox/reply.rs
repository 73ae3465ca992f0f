//! What a call comes to: data, or a refusal with the words of the real one.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::exchange::Answer;

/// What a call gives.
pub(super) type Outcome = Result<Reply, Refusal>;

/// Data, and how many there are where a list was cut.
pub(super) struct Reply {
    pub(super) data: Json,
    pub(super) total: Option<usize>,
}

impl From<Json> for Reply {
    fn from(data: Json) -> Self {
        Self { data, total: None }
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Json::String(text).into()
    }
}

impl Reply {
    pub(super) fn null() -> Self {
        Json::Null.into()
    }

    pub(super) fn answer(&self) -> Answer {
        let mut body = json!({ "data": self.data });
        if let Some(total) = self.total {
            body["total"] = total.into();
        }
        Answer::json(200, &body)
    }
}

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    status: u16,
    message: String,
    errors: BTreeMap<String, String>,
}

impl Refusal {
    /// Whatever the real one dies of: 500.
    pub(super) fn died(message: impl Into<String>) -> Self {
        Self { status: 500, message: message.into(), errors: BTreeMap::new() }
    }

    /// Parameters that are not what they should be: 400.
    pub(super) fn parameters(errors: BTreeMap<String, String>) -> Self {
        Self { status: 400, message: "Parameter verification failed.".into(), errors }
    }

    /// One such parameter.
    pub(super) fn parameter(name: &str, why: impl Into<String>) -> Self {
        Self::parameters(BTreeMap::from([(name.to_owned(), why.into())]))
    }

    /// Nobody whom it knows: 401.
    pub(super) fn unknown_caller(message: impl Into<String>) -> Self {
        Self { status: 401, message: message.into(), errors: BTreeMap::new() }
    }

    /// Somebody who may not: 403.
    pub(super) fn forbidden(path: &str, privileges: &str) -> Self {
        let message = format!("Permission check failed ({path}, {privileges})");
        Self { status: 403, message, errors: BTreeMap::new() }
    }

    /// A call could not be sent on to another node: 595.
    pub(super) fn unreachable() -> Self {
        Self { status: 595, message: "Connection timed out".into(), errors: BTreeMap::new() }
    }

    /// Nothing is there: 501.
    pub(super) fn no_such_method(method: &str, path: &str) -> Self {
        Self {
            status: 501,
            message: format!("Method '{method} {path}' not implemented"),
            errors: BTreeMap::new(),
        }
    }

    pub(super) const fn is_unknown_caller(&self) -> bool {
        self.status == 401
    }

    pub(super) fn answer(&self) -> Answer {
        // The reason stands in one line of the head, so that it ends where the first line of the message ends.
        let line = self.message.lines().next().unwrap_or_default();
        let reason = line.replace(|letter: char| letter.is_control(), "?");
        if self.status == 401 {
            return Answer::empty(401).because(reason);
        }
        let mut body = json!({ "data": null, "message": format!("{}\n", self.message) });
        if !self.errors.is_empty() {
            body["errors"] = json!(self.errors);
        }
        Answer::json(self.status, &body).because(reason)
    }
}
