//! What the API says when it does not do what it was asked: a status, a code for programs and a message for people.

use serde_json::{Value as Json, json};

use crate::exchange::Answer;

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    status: u16,
    code: &'static str,
    message: String,
    details: Json,
}

impl Refusal {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: Json::Null }
    }

    /// One field of the question is wrong.
    pub(super) fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::all_invalid(&[(field.to_owned(), message.into())])
    }

    /// Fields of the question are wrong, each with what is wrong about it.
    pub(super) fn all_invalid(fields: &[(String, String)]) -> Self {
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("invalid input in field '{}'", names.join("', '"));
        Self { details: named(fields), ..Self::new(422, "invalid_input", message) }
    }

    /// Something has this name, or this fingerprint, already.
    pub(super) fn taken(what: &str, field: &str) -> Self {
        let message = format!("{what} {field} is already used");
        let details = named(&[(field.to_owned(), format!("{field} is already used"))]);
        Self { details, ..Self::new(409, "uniqueness_error", message) }
    }

    pub(super) fn absent(what: &str, id: impl std::fmt::Display) -> Self {
        Self::new(404, "not_found", format!("{what} with ID '{id}' not found"))
    }

    pub(super) fn no_such_path() -> Self {
        Self::new(404, "not_found", "the requested path does not exist")
    }

    pub(super) fn locked(what: &str) -> Self {
        Self::new(423, "locked", format!("{what} is locked: an action is running on it"))
    }

    pub(super) fn protected(what: &str, against: &str) -> Self {
        Self::new(423, "protected", format!("{what} {against} is protected"))
    }

    pub(super) fn in_use(what: &str) -> Self {
        Self::new(422, "resource_in_use", format!("{what} is still in use"))
    }

    pub(super) fn limit(what: &str) -> Self {
        let details = json!({"limits": [{"name": format!("{what}_limit")}]});
        Self { details, ..Self::new(403, "resource_limit_exceeded", format!("{what} limit exceeded")) }
    }

    pub(super) fn out_of_stock() -> Self {
        Self::new(
            412,
            "resource_unavailable",
            "error during placement: there is no such server type left in this location",
        )
    }

    /// What the real API can do and the lab cannot.
    pub(super) fn unsupported() -> Self {
        Self::new(501, "unsupported_error", "the lab does not know this part of the API")
    }

    pub(super) fn answer(&self) -> Answer {
        let error = json!({"code": self.code, "message": self.message, "details": self.details});
        Answer::json(self.status, &json!({ "error": error }))
    }
}

fn named(fields: &[(String, String)]) -> Json {
    let fields: Vec<Json> =
        fields.iter().map(|(name, message)| json!({"name": name, "messages": [message]})).collect();
    json!({ "fields": fields })
}
