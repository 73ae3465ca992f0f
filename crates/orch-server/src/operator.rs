//! The operator's side: asks a running server over its socket.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use orch_model::pull::ErrorAnswer;
use orch_model::{Identity, NodeRecord};
use serde::Serialize;
use thiserror::Error;
use tokio::net::UnixStream;

use crate::folder::ServerFolder;
use crate::ledger::Revoked;
use crate::socket::connect_path;

/// No answer is larger.
const LARGEST: usize = 32 << 20;

/// The server did not do what was asked.
#[derive(Debug, Error)]
pub enum OperatorError {
    /// Nobody answers.
    #[error("no server answers at `{path}`")]
    Absent {
        /// Where one would.
        path: PathBuf,
        /// What was seen instead.
        source: io::Error,
    },
    /// It did not answer to the end.
    #[error("the server did not answer: {0}")]
    Silent(String),
    /// It said no.
    #[error("the server refused: {0}")]
    Refused(String),
}

/// The way to the server of a site on this machine.
#[derive(Debug, Clone)]
pub struct Operator {
    folder: ServerFolder,
    /// How long an answer may take beyond what it is waited for.
    limit: Duration,
}

impl Operator {
    /// The way to the server that keeps its things in this folder.
    pub const fn of(folder: ServerFolder) -> Self {
        Self { folder, limit: Duration::from_mins(1) }
    }

    /// What is known of a node. With a number of events, once there are others.
    pub async fn record(&self, node: &Identity, after: Option<u64>) -> Result<NodeRecord, OperatorError> {
        let query = after.map(|after| format!("?after={after}")).unwrap_or_default();
        let answer = self.ask(Method::GET, &format!("/v1/nodes/{node}{query}"), Vec::new()).await?;
        serde_json::from_slice(&answer).map_err(|error| OperatorError::Silent(error.to_string()))
    }

    /// Has a node converge now.
    pub async fn converge(&self, node: &Identity) -> Result<(), OperatorError> {
        self.ask(Method::POST, &format!("/v1/converge/{node}"), Vec::new()).await.map(drop)
    }

    /// Takes tokens back.
    pub async fn revoke(&self, what: &Revoked) -> Result<(), OperatorError> {
        self.ask(Method::POST, "/v1/revoke", json(what)).await.map(drop)
    }

    /// Has it read everything anew.
    pub async fn reload(&self) -> Result<(), OperatorError> {
        self.ask(Method::POST, "/v1/reload", Vec::new()).await.map(drop)
    }

    /// What it counted.
    pub async fn metrics(&self) -> Result<String, OperatorError> {
        let answer = self.ask(Method::GET, "/metrics", Vec::new()).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    async fn ask(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Bytes, OperatorError> {
        let late = |_| OperatorError::Silent(format!("nothing within {:?}", self.limit));
        tokio::time::timeout(self.limit, self.ask_patiently(method, path, body)).await.map_err(late)?
    }

    async fn ask_patiently(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Bytes, OperatorError> {
        let (socket, _held) = connect_path(&self.folder).map_err(|error| self.absent(error))?;
        let stream = UnixStream::connect(socket).await.map_err(|error| self.absent(error))?;
        let silent = |error: hyper::Error| OperatorError::Silent(error.to_string());
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(silent)?;
        let connection = tokio::spawn(connection);
        let request = Request::builder().method(method).uri(path).header("host", "orch");
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| OperatorError::Silent(error.to_string()))?;
        let answer = sender.send_request(request).await.map_err(silent)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        connection.abort();
        let body = body.map_err(|error| OperatorError::Silent(error.to_string()))?.to_bytes();
        match status {
            StatusCode::OK | StatusCode::NO_CONTENT => Ok(body),
            status => {
                let words = serde_json::from_slice::<ErrorAnswer>(&body).map(|answer| answer.error.message);
                Err(OperatorError::Refused(words.unwrap_or_else(|_| status.to_string())))
            }
        }
    }

    fn absent(&self, source: io::Error) -> OperatorError {
        OperatorError::Absent { path: self.folder.socket(), source }
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what orch defines can be written as JSON")
}
