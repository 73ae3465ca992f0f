//! Questions to the API and their answers as values: asked again where that can do no harm, and never faster than is allowed.

use std::sync::Arc;

use hyper::body::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tokio::time::{Instant, sleep};

use super::answer::Failure;
use super::decode::{decode, list_of};
use super::pace::Pace;
use super::pacer::Pacer;
use super::trouble::{CallError, is_busy};
use crate::api::{ApiError, Client, Method, Question, Reply};

/// How many things one answer lists; the API allows no more.
pub(super) const PAGE: usize = 50;

/// Who asks.
pub(super) struct Caller {
    client: Arc<Client>,
    pacer: Pacer,
    pub(super) pace: Pace,
}

impl Caller {
    pub(super) fn new(client: Arc<Client>, pace: Pace) -> Self {
        Self { client, pacer: Pacer::new(), pace }
    }

    /// Looks at something; the path may have a query.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str, until: Instant) -> Result<T, CallError> {
        let reply = self.ask(Method::Get, path, None, until).await?;
        decode(&named(Method::Get, path), &reply.body)
    }

    /// Everything of a list, page by page. The key names the list in the answer.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        key: &str,
        query: &str,
        until: Instant,
    ) -> Result<Vec<T>, CallError> {
        let mut all = Vec::new();
        let mut page = 1_u64;
        loop {
            let and = if query.is_empty() { "" } else { "&" };
            let page_of = format!("{path}?{query}{and}per_page={PAGE}&page={page}");
            let answer: Json = self.get(&page_of, until).await?;
            all.append(&mut list_of(&named(Method::Get, path), key, &answer)?);
            let next = answer.pointer("/meta/pagination/next_page").and_then(Json::as_u64);
            match next.filter(|next| *next > page) {
                Some(next) => page = next,
                None => return Ok(all),
            }
        }
    }

    /// Makes something or has it do something; asked again only where nothing can have been done.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Json,
        until: Instant,
    ) -> Result<T, CallError> {
        let reply = self.ask(Method::Post, path, Some(body), until).await?;
        decode(&named(Method::Post, path), &reply.body)
    }

    /// Has something done that can be done twice without harm: asked again also where the answer was lost.
    pub(super) async fn order(&self, path: &str, body: &Json, until: Instant) -> Result<Json, CallError> {
        let mut attempt = 0;
        loop {
            match self.post(path, body, until).await {
                Err(lost) if lost.may_be_done() && attempt + 1 < self.pace.tries => {
                    sleep(self.pace.pause(attempt)).await;
                    attempt += 1;
                }
                answered => return answered,
            }
        }
    }

    /// Changes something. Asked twice, it is as if it was asked once.
    pub(super) async fn put(&self, path: &str, body: &Json, until: Instant) -> Result<(), CallError> {
        self.ask(Method::Put, path, Some(body), until).await.map(|_| ())
    }

    /// Removes something; what is in the answer, where there is something.
    pub(super) async fn delete(&self, path: &str, until: Instant) -> Result<Json, CallError> {
        let reply = self.ask(Method::Delete, path, None, until).await?;
        Ok(serde_json::from_slice(&reply.body).unwrap_or_default())
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
        until: Instant,
    ) -> Result<Reply, CallError> {
        let what = named(method, path);
        let body = body.map(|body| ("application/json", Bytes::from(body.to_string())));
        let mut question = Question { method, path: path.into(), body, limit: None };
        let mut attempt = 0;
        loop {
            let over = |wait: std::time::Duration| {
                let why = format!("{what}: too much was asked of it, and it allows the next question in");
                CallError::Late(format!("{why} {} s", wait.as_secs().max(1)))
            };
            self.pacer.turn(until).await.map_err(over)?;
            let now = Instant::now();
            if now >= until {
                return Err(CallError::Late(format!("{what}: there is no time left to ask")));
            }
            question.limit = Some(self.pace.answer.min(until - now));
            let failed = match self.client.ask(&question).await {
                // What was cut off by the order's own end is late, and is no silence of the API.
                Err(ApiError::Unanswered { .. }) if method != Method::Post && Instant::now() >= until => {
                    return Err(CallError::Late(format!(
                        "{what}: there was no time left to wait for the answer"
                    )));
                }
                Err(error) => CallError::Mute { what: what.clone(), error },
                Ok(reply) => {
                    self.pacer.learn(&reply, &self.pace);
                    if reply.status < 400 {
                        return Ok(reply);
                    }
                    if reply.status == 429 {
                        self.pacer.hold(&reply, self.pace.pause(attempt));
                        attempt += 1;
                        continue;
                    }
                    refusal(&what, &reply)
                }
            };
            let pause = self.pace.pause(attempt);
            attempt += 1;
            if attempt >= self.pace.tries
                || !may_ask_again(method, &failed)
                || Instant::now() + pause >= until
            {
                return Err(failed);
            }
            sleep(pause).await;
        }
    }
}

/// Whether asking once more can do no harm, and may help.
fn may_ask_again(method: Method, failed: &CallError) -> bool {
    match failed {
        CallError::Mute { error: ApiError::Unreached { .. }, .. } => true,
        CallError::Said { code, status, .. } if is_busy(code, *status) => true,
        failed => method != Method::Post && failed.may_be_done(),
    }
}

/// The question as it is named in messages: without what stands behind the `?`.
fn named(method: Method, path: &str) -> String {
    format!("{} {}", method.as_str(), path.split('?').next().unwrap_or(path))
}

fn refusal(what: &str, reply: &Reply) -> CallError {
    let Failure { code, message } = Failure::read(&reply.body);
    let words = reply.reason.as_deref().unwrap_or("it says no more");
    let message = if message.is_empty() { words } else { &message };
    CallError::said(what, reply.status, &code, message)
}
