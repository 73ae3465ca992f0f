//! The way to the spec server: HTTPS to a server that is known by its certificate, one connection, one question at a time.

mod address;
mod error;
mod http;
mod pin;
mod stream;

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orch_model::pull::{SpecAnswer, Telling, WaitAnswer};
use orch_model::token::Bearer;
use orch_model::{Digest, Identity};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde::de::DeserializeOwned;

use crate::signals::Signals;
use address::Address;
pub(crate) use error::CallError;
use http::{Answer, HttpError, Request};
use stream::{Heed, Stream, Until};

/// A server that is just being started refuses for a moment: it is asked again this often.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);
/// The server answers who waits within 55 s.
const WAIT_LIMIT: Duration = Duration::from_secs(70);

type Connection<'s> = StreamOwned<ClientConnection, Stream<'s>>;

/// The way to the spec server of one node.
pub(crate) struct Client<'s> {
    address: Address,
    tls: Arc<ClientConfig>,
    node: String,
    signals: &'s Signals,
    /// How long a connection that is refused is tried again.
    patience: Duration,
    kept: Option<Connection<'s>>,
}

/// What is said with a question.
#[derive(Clone, Copy)]
struct Said<'a> {
    headers: &'a [(&'static str, String)],
    body: Option<&'a [u8]>,
}

impl Said<'_> {
    const NOTHING: Self = Self { headers: &[], body: None };
}

impl<'s> Client<'s> {
    /// A way to a server that shows one of the pinned certificates. Connects to nobody yet.
    pub(crate) fn new(
        (server, pins): (&str, &[Digest]),
        node: &Identity,
        patience: Duration,
        signals: &'s Signals,
    ) -> Result<Self, String> {
        let tls = pin::config(pins).map_err(|error| error.to_string())?;
        let address = Address::parse(server)?;
        Ok(Self { address, tls, node: encoded(node), signals, patience, kept: None })
    }

    /// Asks for the node's configuration, and says in headers what the answer depends on.
    pub(crate) fn spec(
        &mut self,
        token: &Bearer,
        headers: &[(&'static str, String)],
        limit: Duration,
    ) -> Result<SpecAnswer, CallError> {
        let path = format!("/v1/spec/{}", self.node);
        let said = Said { headers, body: None };
        let answer = self.ask(("GET", &path), token, said, self.until(limit, Heed::Stop))?;
        parsed(&answer)
    }

    /// Tells the server something, and says in headers who does.
    pub(crate) fn tell(
        &mut self,
        token: &Bearer,
        headers: &[(&'static str, String)],
        telling: &Telling,
        limit: Duration,
    ) -> Result<(), CallError> {
        let path = format!("/v1/report/{}", self.node);
        let body = serde_json::to_vec(telling).expect("what orch defines can be written as JSON");
        let said = Said { headers, body: Some(&body) };
        self.ask(("POST", &path), token, said, self.until(limit, Heed::Stop)).map(drop)
    }

    /// Waits until there is something new after `revision`, or the server has nothing new for a while. Says which revision
    /// there is.
    pub(crate) fn wait(&mut self, token: &Bearer, revision: u64, limit: Duration) -> Result<u64, CallError> {
        let path = format!("/v1/wait/{}?after={revision}", self.node);
        let until = self.until(limit.min(WAIT_LIMIT), Heed::StopAndLookAgain);
        let answer: WaitAnswer = parsed(&self.ask(("GET", &path), token, Said::NOTHING, until)?)?;
        Ok(answer.revision)
    }

    fn until(&self, limit: Duration, heed: Heed) -> Until<'s> {
        Until { deadline: Instant::now() + limit, heed, signals: self.signals }
    }

    /// Asks once. A kept connection that turns out to be closed was no question at all.
    fn ask(
        &mut self,
        (method, path): (&'static str, &str),
        token: &Bearer,
        Said { headers, body }: Said<'_>,
        until: Until<'s>,
    ) -> Result<Answer, CallError> {
        let host = self.address.authority();
        let request = Request { method, path, host: &host, token: token.expose(), headers, body };
        let kept = self.kept.take().map(|kept| self.ask_by(kept, &request, until));
        let answer = match kept {
            None | Some(Err(HttpError::Io { begun: false, .. })) => {
                let connection = self.connect(until).map_err(CallError::io)?;
                self.ask_by(connection, &request, until)
            }
            Some(answered) => answered,
        };
        let answer = answer.map_err(CallError::http)?;
        if matches!(answer.status, 200..=299) { Ok(answer) } else { Err(CallError::refused(&answer)) }
    }

    fn ask_by(
        &mut self,
        mut connection: Connection<'s>,
        request: &Request<'_>,
        until: Until<'s>,
    ) -> Result<Answer, HttpError> {
        connection.sock.until = until;
        let answer = http::ask(&mut connection, request)?;
        if answer.stays {
            self.kept = Some(connection);
        }
        Ok(answer)
    }

    fn connect(&self, until: Until<'s>) -> io::Result<Connection<'s>> {
        let addresses = self.address.resolve(until)?;
        let begun = Instant::now();
        let stream = loop {
            match Stream::connect(&addresses, until) {
                Err(error)
                    if error.kind() == io::ErrorKind::ConnectionRefused
                        && begun.elapsed() < self.patience =>
                {
                    until.sleep(REFUSED_PAUSE)?;
                }
                connected => break connected?,
            }
        };
        let name = self.address.server_name()?;
        let tls = ClientConnection::new(Arc::clone(&self.tls), name).map_err(io::Error::other)?;
        Ok(StreamOwned::new(tls, stream))
    }
}

fn parsed<T: DeserializeOwned>(answer: &Answer) -> Result<T, CallError> {
    serde_json::from_slice(&answer.body).map_err(|error| CallError::Nonsense(error.to_string()))
}

/// An identity as part of a path.
fn encoded(node: &Identity) -> String {
    let mut path = String::new();
    for byte in node.to_string().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                path.push(char::from(byte));
            }
            _ => write!(path, "%{byte:02X}").expect("writing to a string cannot fail"),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn an_identity_becomes_one_part_of_a_path() {
        assert_eq!(encoded(&"mixed.web-1@father".parse().unwrap()), "mixed.web-1%40father");
    }
}
