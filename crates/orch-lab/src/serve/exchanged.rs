//! One question from the wire to the API and its answer back, with what goes wrong on purpose between them.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::sync::Arc;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use jiff::Timestamp;
use serde_json::json;

use super::body::Sent;
use super::calls::{Call, Calls};
use super::settings::ServeSettings;
use crate::exchange::{Answer, Api, Asked};
use crate::faults::Fault;

/// Who answers the questions of a connection.
pub(super) struct Exchange {
    pub(super) api: Arc<dyn Api>,
    pub(super) settings: ServeSettings,
    pub(super) calls: Calls,
}

impl Exchange {
    /// Answers; an error cuts the connection.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> io::Result<Response<Sent>> {
        let at = Timestamp::now();
        let (asked, too_large) = self.asked(request).await?;
        tokio::time::sleep(self.settings.latency).await;
        let strikes = |fault| self.settings.faults.strike(fault, &asked);
        let before = if too_large {
            Some(Answer::empty(413))
        } else if strikes(Fault::TooMany) {
            Some(too_many())
        } else if strikes(Fault::ServerError) {
            Some(server_error())
        } else {
            None
        };
        let is_silent = before.is_none() && strikes(Fault::SilentAfter);
        let is_cut = before.is_none() && !is_silent && strikes(Fault::CutAnswer);
        let answer = self.carried_out(asked, before, at).await?;
        if is_silent {
            return pending().await;
        }
        if is_cut && answer.body.is_empty() {
            return Err(io::Error::other("cut on purpose"));
        }
        Ok(response(answer, if is_cut { Sent::half } else { Sent::whole }))
    }

    /// Has the API answer, to the end: whoever asked may go away, and what he asked for is done all the same.
    async fn carried_out(&self, asked: Asked, before: Option<Answer>, at: Timestamp) -> io::Result<Answer> {
        let (api, calls) = (Arc::clone(&self.api), self.calls.clone());
        let work = tokio::spawn(async move {
            let (method, path) = (asked.method.clone(), asked.path.clone());
            let answer = match before {
                Some(answer) => answer,
                None => api.answer(asked).await,
            };
            calls.note(Call { at, method, path, status: answer.status });
            answer
        });
        work.await.map_err(io::Error::other)
    }

    /// The question, and whether it is larger than anybody may ask: then without its body.
    async fn asked(&self, request: Request<Incoming>) -> io::Result<(Asked, bool)> {
        let (head, body) = request.into_parts();
        let mut headers = BTreeMap::new();
        for (name, value) in &head.headers {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            let known = headers.entry(name.as_str().to_owned());
            known.and_modify(|known| *known = format!("{known}, {value}")).or_insert(value);
        }
        let mut asked = Asked {
            method: head.method.as_str().to_owned(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers,
            body: Vec::new(),
        };
        match Limited::new(body, self.settings.largest_body).collect().await {
            Ok(body) => {
                asked.body = body.to_bytes().to_vec();
                Ok((asked, false))
            }
            Err(error) if error.is::<http_body_util::LengthLimitError>() => Ok((asked, true)),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// An answer as it goes over the wire.
fn response(answer: Answer, body: fn(Vec<u8>) -> Sent) -> Response<Sent> {
    let mut response = Response::new(body(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // A line is a line, whatever is in what went wrong.
    let reason = answer.reason.map(|reason| reason.replace(|letter: char| letter.is_control(), " "));
    if let Some(reason) = reason.and_then(|reason| ReasonPhrase::try_from(reason.into_bytes()).ok()) {
        response.extensions_mut().insert(reason);
    }
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// What those are told who ask too often, in the words of Hetzner; Proxmox has none.
fn too_many() -> Answer {
    let error = json!({ "error": { "code": "rate_limit_exceeded", "message": "limit of 3600 requests per hour reached" } });
    Answer::json(429, &error)
        .with("retry-after", &1)
        .with("ratelimit-limit", &3600)
        .with("ratelimit-remaining", &0)
        .with("ratelimit-reset", &(Timestamp::now().as_second() + 1))
}

fn server_error() -> Answer {
    Answer::json(500, &json!({ "error": { "code": "server_error", "message": "an error on purpose" } }))
}
