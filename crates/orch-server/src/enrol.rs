//! What a node is given from outside: its first token, where the server is, and by what it is known.

use std::time::Duration;

use orch_model::pull::Enrolment;
use orch_model::token::{Audience, Bearer, Claims, TokenId, sign};
use orch_model::{Digest, Identity, Mode, SpecName};
use thiserror::Error;

use crate::certificate::{CertificateError, Certificates};
use crate::desk::{Clock, new_chain};
use crate::folder::ServerFolder;
use crate::keys::{KeyError, Keys};

/// How long a first token holds.
const FIRST: Duration = Duration::from_hours(1);

/// A token cannot be minted.
#[derive(Debug, Error)]
pub enum EnrolError {
    /// The keys cannot be had.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The certificates cannot be had.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// There is no key.
    #[error("there is no key to sign tokens with")]
    NoKey,
}

/// Mints first tokens.
#[derive(Clone)]
pub struct Minter {
    keys: Keys,
    folder: ServerFolder,
    clock: Clock,
}

impl Minter {
    /// Mints for the server that keeps its things in this folder. It need not run.
    pub fn of(folder: &ServerFolder, clock: Clock) -> Self {
        Self { keys: Keys::of(folder), folder: folder.clone(), clock }
    }

    /// A first token for a node, which puts an end to those that it was given before, once it is shown.
    pub fn mint(
        &self,
        node: &Identity,
        spec: &SpecName,
        holds: Option<Duration>,
    ) -> Result<(Claims, Bearer), EnrolError> {
        let now = (self.clock)();
        let claims = Claims {
            v: 1,
            n: node.clone(),
            s: spec.clone(),
            iat: now,
            aud: Some(Audience::Spec),
            exp: Some(now.saturating_add(holds.unwrap_or(FIRST).as_secs())),
            jti: Some(TokenId::first(new_chain())),
            kid: None,
        };
        let token = sign(&claims, &self.keys.ring()?).ok_or(EnrolError::NoKey)?;
        Ok((claims, Bearer::new(token)))
    }

    /// What a node needs to fetch its configuration from a server at this address.
    pub fn enrol(
        &self,
        node: &Identity,
        spec: &SpecName,
        mode: Mode,
        server: String,
    ) -> Result<Enrolment, EnrolError> {
        let (_, token) = self.mint(node, spec, None)?;
        let pins: Vec<Digest> = Certificates::of(&self.folder)?.pins().into();
        Ok(Enrolment { node: node.clone(), mode, server, pins, token })
    }
}
