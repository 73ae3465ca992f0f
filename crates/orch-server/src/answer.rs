//! One question over HTTP and its answer.

use std::sync::Arc;
use std::time::Instant;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use orch_model::pull::{AGE_HEADER, ErrorAnswer, ErrorWords, HOLDS_HEADER, HOST_KEY_HEADER, SETTLED_HEADER};
use orch_model::token::Code;
use orch_model::{Identity, NodeKeys};
use orch_run::log::Level;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::desk::{Answered, Desk, Hello};
use crate::holds::Holds;
use crate::limits::Limits;
use crate::pieces::Pieces;
use crate::question::{Asker, Question};
use crate::tell::Tell;

type Answer = Response<Pieces>;
/// Told of a node whose token was believed.
pub(crate) type Trusted = Box<dyn Fn(&Identity) + Send + Sync>;

/// Answers questions that come in over one connection.
pub(crate) struct Answerer {
    pub(crate) desk: Arc<Desk>,
    pub(crate) asker: Asker,
    /// Who asks, for the log.
    pub(crate) from: String,
    pub(crate) limits: Limits,
    /// Places for those who wait.
    pub(crate) waiting: Arc<Semaphore>,
    pub(crate) tell: Tell,
    /// Told of a node whose token was believed.
    pub(crate) trusted: Trusted,
    /// What is done when everything is to be read anew.
    pub(crate) reload: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// Why there is no proper answer.
enum Unanswered {
    /// It is in the table of codes.
    Coded(Answered),
    /// HTTP itself has a word for it.
    Plain(StatusCode, &'static str),
}

impl From<Answered> for Unanswered {
    fn from(answered: Answered) -> Self {
        Self::Coded(answered)
    }
}

impl Answerer {
    /// Answers one question, and writes down that it was asked. No token and no body is ever in the log.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Answer {
        let begun = Instant::now();
        let (head, body) = request.into_parts();
        let question = Question::of(self.asker, head.method.as_str(), head.uri.path(), head.uri.query());
        let (word, node) = match &question {
            Ok(question) => (question.word(), question.node().map(ToString::to_string)),
            Err(_) => ("nothing", None),
        };
        let answered = match question {
            Ok(question) => self.respond(question, &head.headers, body).await,
            Err(answered) => Err(answered.into()),
        };
        let (answer, code, cause) = match answered {
            Ok(answer) => (answer, String::new(), String::new()),
            Err(Unanswered::Coded(Answered { code, message, cause })) => {
                let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
                (refusal(status, &ErrorAnswer::of(code, message)), format!(" {code}"), cause)
            }
            Err(Unanswered::Plain(status, message)) => {
                let words = ErrorWords { code: format!("E{}", status.as_u16()), message: message.into() };
                (refusal(status, &ErrorAnswer { error: words }), String::new(), String::new())
            }
        };
        self.desk.metrics.answered(word, answer.status().as_u16());
        let (status, from) = (answer.status().as_u16(), &self.from);
        let words = format!("{status}{code} to {from} in {:.1?}{cause}", begun.elapsed());
        let level = if answer.status().is_server_error() { Level::Error } else { Level::Info };
        (self.tell)(level, word, node.as_deref().unwrap_or("-"), &words);
        answer
    }

    async fn respond(
        &self,
        question: Question,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<Answer, Unanswered> {
        let token = bearer(headers);
        match question {
            Question::Health => Ok(json(&serde_json::json!({ "status": "ok" }))),
            Question::Spec(node) => {
                let answer = self.desk.spec(&node, token, hello(headers)).await?;
                (self.trusted)(&node);
                Ok(said(Pieces::of(answer)))
            }
            Question::Wait(node, after) => {
                // Nobody waits, or is kept for it, who may not.
                self.desk.may_wait(&node, token).await?;
                (self.trusted)(&node);
                let full = "too many wait already; ask again later";
                let full = |_| Unanswered::Plain(StatusCode::SERVICE_UNAVAILABLE, full);
                let _place = self.waiting.try_acquire().map_err(full)?;
                Ok(json(&self.desk.wait(&node, after, self.limits.wait).await?))
            }
            Question::Report(node) => {
                // Nothing of what somebody says is read who may not say it.
                self.desk.may_report(&node, token).await?;
                (self.trusted)(&node);
                self.desk.hear(&node, hello(headers)).await?;
                let telling = self.read(body).await?;
                self.desk.tell(&node, telling).await?;
                Ok(nothing())
            }
            Question::Known(node, after) => Ok(json(&self.desk.record(&node, after, self.limits.wait).await)),
            Question::Converge(node) => {
                self.desk.converge(&node);
                Ok(nothing())
            }
            Question::Revoke => {
                let what = self.read(body).await?;
                let failed = |_| Answered::new(Code::E500, "it could not be written down");
                self.desk.revoke(what).await.map_err(failed)?;
                Ok(nothing())
            }
            Question::Reload => {
                (self.reload)().map_err(|why| Answered::new(Code::E400, why))?;
                Ok(nothing())
            }
            Question::Metrics => {
                let mut answer = Response::new(Pieces::from(self.desk.metrics_text().into_bytes()));
                let text = HeaderValue::from_static("text/plain; version=0.0.4");
                answer.headers_mut().insert(CONTENT_TYPE, text);
                Ok(answer)
            }
        }
    }

    /// What was sent, as long as it is short, arrives in time and makes sense.
    async fn read<T: DeserializeOwned>(&self, body: Incoming) -> Result<T, Unanswered> {
        let body = Limited::new(body, self.limits.body).collect();
        let late = |_| Unanswered::Plain(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time");
        let large = |_| Unanswered::Plain(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
        let body = tokio::time::timeout(self.limits.read, body).await.map_err(late)?.map_err(large)?;
        let wrong = |_| Unanswered::Coded(Answered::new(Code::E400, "what was sent makes no sense"));
        serde_json::from_slice(&body.to_bytes()).map_err(wrong)
    }
}

/// The token that a request carries.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// What a node says of itself. What makes no sense was not said.
fn hello(headers: &HeaderMap) -> Hello {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let age = text(AGE_HEADER).and_then(|text| text.parse().ok());
    let host_key = text(HOST_KEY_HEADER).and_then(|text| text.parse().ok());
    // Never taken for granted: until the node says so it may be shown by another key.
    let settled = text(SETTLED_HEADER) == Some("true");
    let keys = age.map(|age| NodeKeys { age, host_key, settled });
    Hello { keys, holds: Holds::of(text(HOLDS_HEADER).unwrap_or_default()) }
}

fn json(value: &impl Serialize) -> Answer {
    said(serde_json::to_vec(value).expect("what orch defines can be written as JSON").into())
}

/// An answer that is JSON already.
fn said(body: Pieces) -> Answer {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn nothing() -> Answer {
    let mut answer = Response::new(Pieces::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// An answer after which the connection ends: what was not read of the request would be taken for the next one.
fn refusal(status: StatusCode, error: &ErrorAnswer) -> Answer {
    let mut answer = json(error);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("30"));
    }
    answer
}
