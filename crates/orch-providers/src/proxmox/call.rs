//! One question to Proxmox and its answer: `/api2/json`, forms, `data`, and an error in the words beside the status.
//!
//! What is asked is never part of a message: user data and keys are in it.

use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::Value as Json;

use super::pace::Pace;
use super::trouble::Trouble;
use crate::api::{ApiError, Client, Method, Question, Reply, form};

const FORM: &str = "application/x-www-form-urlencoded";
/// Parts of what is uploaded are kept apart by this; nothing that is uploaded contains it.
const BOUNDARY: &str = "orch-b7c1f3d09a5e4c62";
const MULTIPART: &str = "multipart/form-data; boundary=orch-b7c1f3d09a5e4c62";
/// How often a host is tried that cannot be reached: each try may take as long as an answer.
const UNREACHED_TRIES: u32 = 2;

/// What is said in a form.
pub(super) type Pairs = Vec<(&'static str, String)>;

/// Who asks Proxmox.
pub(super) struct Caller {
    client: Arc<Client>,
    pace: Pace,
}

impl Caller {
    pub(super) const fn new(client: Arc<Client>, pace: Pace) -> Self {
        Self { client, pace }
    }

    /// Looks at something.
    pub(super) async fn get(&self, path: &str) -> Result<Json, Trouble> {
        self.ask(question(Method::Get, path, None)).await
    }

    /// Makes something, or has something done.
    pub(super) async fn post(&self, path: &str, pairs: &Pairs) -> Result<Json, Trouble> {
        self.ask(question(Method::Post, path, Some(pairs))).await
    }

    /// Changes something.
    pub(super) async fn put(&self, path: &str, pairs: &Pairs) -> Result<Json, Trouble> {
        self.ask(question(Method::Put, path, Some(pairs))).await
    }

    /// Removes something.
    pub(super) async fn delete(&self, path: &str) -> Result<Json, Trouble> {
        self.ask(question(Method::Delete, path, None)).await
    }

    /// Uploads a file as an ISO image. It is small, and takes no longer than other questions.
    pub(super) async fn upload(&self, path: &str, file_name: &str, bytes: &[u8]) -> Result<Json, Trouble> {
        let body = (MULTIPART, Bytes::from(multipart(file_name, bytes)));
        let mut question = question(Method::Post, path, None);
        question.body = Some(body);
        self.ask(question).await
    }

    /// Asks, and again where that may help and cannot hurt.
    async fn ask(&self, question: Question) -> Result<Json, Trouble> {
        let call = name(&question);
        let mut tries = 0;
        loop {
            let reply = if is_upload(&question) {
                // Where an upload is refused, a connection that was used before is told `bad request` in the stead of why.
                self.client.ask_anew(&question).await
            } else {
                self.client.ask(&question).await
            };
            let trouble = match reply.map_err(Trouble::from) {
                Ok(reply) => match answer(&call, &reply) {
                    Ok(data) => return Ok(data),
                    Err(trouble) => trouble,
                },
                Err(trouble) => trouble,
            };
            tries += 1;
            let is_unreached = matches!(trouble, Trouble::Wire(ApiError::Unreached { .. }));
            let most = if is_unreached { self.pace.tries.min(UNREACHED_TRIES) } else { self.pace.tries };
            let may_help = match question.method {
                Method::Get => trouble.is_passing(),
                _ => trouble.had_no_effect(),
            };
            if !may_help || tries >= most {
                return Err(trouble);
            }
            self.pace.breathe(tries).await;
        }
    }
}

fn is_upload(question: &Question) -> bool {
    question.body.as_ref().is_some_and(|(kind, _)| *kind == MULTIPART)
}

fn question(method: Method, path: &str, pairs: Option<&Pairs>) -> Question {
    let body = pairs.map(|pairs| {
        let encoded = form(pairs.iter().map(|(name, value)| (*name, value.as_str())));
        (FORM, Bytes::from(encoded))
    });
    Question { method, path: format!("/api2/json{path}"), body, limit: None }
}

/// A question as messages name it.
fn name(question: &Question) -> String {
    let path = question.path.strip_prefix("/api2/json").unwrap_or(&question.path);
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    format!("{} {path}", question.method.as_str())
}

/// What an answer says.
pub(super) fn answer(call: &str, reply: &Reply) -> Result<Json, Trouble> {
    let body: Option<Json> = serde_json::from_slice(&reply.body).ok();
    if (200..300).contains(&reply.status) {
        let unreadable = || super::read::unreadable(call, "the answer is not what Proxmox answers");
        let mut body = body.ok_or_else(unreadable)?;
        // What has nothing to say has `null` there.
        return Ok(body.get_mut("data").map(Json::take).unwrap_or_default());
    }
    let own = own_words(reply, body.as_ref());
    let words = own.clone().unwrap_or_else(|| format!("status {}", reply.status));
    Err(Trouble::Said { call: call.to_owned(), status: reply.status, words, is_own: own.is_some() })
}

/// What Proxmox itself says of a failure: beside the status, in `message`, and for each parameter in `errors`.
fn own_words(reply: &Reply, body: Option<&Json>) -> Option<String> {
    let trimmed = |text: &str| orch_model::printable(text.trim()).to_string();
    let reason = reply.reason.as_deref().map(trimmed).filter(|reason| !reason.is_empty());
    let message = body.and_then(|body| body.get("message")).and_then(Json::as_str).map(trimmed);
    let errors = body.and_then(|body| body.get("errors")).and_then(Json::as_object);
    let errors = errors.into_iter().flatten().filter_map(|(name, error)| {
        Some(format!("`{}`: {}", trimmed(name), trimmed(&super::read::text(error)?)))
    });
    let errors: Vec<String> = errors.collect();
    let mut words: Vec<String> =
        message.filter(|message| !message.is_empty()).or(reason).into_iter().collect();
    if !errors.is_empty() {
        words.push(errors.join("; "));
    }
    (!words.is_empty()).then(|| words.join(" "))
}

/// A file as forms carry it. What kind it is must come before the file itself.
fn multipart(file_name: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"{file_name}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
    );
    let tail = format!("\r\n--{BOUNDARY}--\r\n");
    [head.as_bytes(), bytes, tail.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn reply(status: u16, reason: Option<&str>, body: &str) -> Reply {
        let reason = reason.map(str::to_owned);
        Reply { status, reason, headers: BTreeMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    fn told(status: u16, reason: Option<&str>, body: &str) -> String {
        answer("PUT /x", &reply(status, reason, body)).unwrap_err().to_string()
    }

    #[test]
    fn nothing_is_an_answer_too() {
        assert_eq!(answer("PUT /x", &reply(200, None, r#"{"data":null}"#)), Ok(Json::Null));
        assert_eq!(answer("GET /x", &reply(200, None, r#"{"total":1,"data":"100"}"#)), Ok("100".into()));
        assert!(answer("GET /x", &reply(200, None, "<html>")).is_err());
    }

    #[test]
    fn what_went_wrong_is_told_from_wherever_it_is_said() {
        assert_eq!(told(401, Some("No ticket"), ""), "PUT /x: No ticket");
        let errors = r#"{"errors":{"bogus":"property is not defined"},"message":"Parameter verification failed.\n","data":null}"#;
        assert_eq!(
            told(400, Some("Parameter verification failed."), errors),
            "PUT /x: Parameter verification failed. `bogus`: property is not defined"
        );
        assert_eq!(told(502, None, "<html>"), "PUT /x: status 502");
        let wild = told(400, None, r#"{"errors":{"\u001b[2Jx":"\u001b[0m"}}"#);
        assert!(!wild.contains(char::is_control), "{wild:?}");
    }

    #[test]
    fn a_question_is_named_without_what_is_said_in_it() {
        let asked =
            question(Method::Put, "/nodes/a/qemu/1/config?x=secret", Some(&vec![("k", "secret+".into())]));
        assert_eq!(name(&asked), "PUT /nodes/a/qemu/1/config");
        assert_eq!(asked.body.unwrap().1, "k=secret%2B");
        let twice = crate::api::encode("ssh-ed25519 A+/= x");
        assert_eq!(form([("sshkeys", twice.as_str())]), "sshkeys=ssh-ed25519%2520A%252B%252F%253D%2520x");
    }

    #[test]
    fn an_upload_is_told_from_a_form() {
        let mut asked = question(Method::Post, "/x", Some(&vec![("content", "iso".into())]));
        assert!(!is_upload(&asked) && !is_upload(&question(Method::Get, "/x", None)));
        asked.body = Some((MULTIPART, Bytes::new()));
        assert!(is_upload(&asked));
    }

    #[test]
    fn an_upload_has_its_kind_before_its_bytes() {
        let body = multipart("orch-1.iso", b"\0\r\n--bytes");
        let text = String::from_utf8_lossy(&body);
        assert!(
            text.find("name=\"content\"\r\n\r\niso\r\n") < text.find("filename=\"orch-1.iso\""),
            "{text}"
        );
        assert!(text.contains("\r\n\r\n\0\r\n--bytes\r\n--orch-") && text.ends_with("--\r\n"), "{text}");
    }
}
