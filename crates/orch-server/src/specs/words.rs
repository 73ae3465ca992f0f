//! What a node becomes, as it is said to it. What it has in common with others is put into words once for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::body::Bytes;
use orch_model::config::{Role, SecretDigests};
use orch_model::pull::NextTokens;
use orch_model::{Config, Digest, Identity, NodeName, Parcel, SpecName};
use serde::Serialize;

/// A node's configuration, and the words for it.
#[derive(Debug, Clone)]
pub(crate) struct Worded {
    pub(crate) config: Config,
    /// What is its own.
    own: Bytes,
    /// What it shares with others.
    role: Bytes,
}

/// The words for what was met already, by where it is in memory: it is there for as long as they are.
#[derive(Debug, Default)]
pub(super) struct Words {
    roles: BTreeMap<*const Role, Bytes>,
}

/// What of a configuration is the node's own. The names and their order are those of [`Config`]; a test compares them.
#[derive(Serialize)]
struct Own<'a> {
    node: &'a Identity,
    spec: &'a SpecName,
    hostname: &'a NodeName,
    digest: Digest,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    secret_digests: &'a SecretDigests,
}

/// What of an answer is not configuration, likewise.
#[derive(Serialize)]
struct Rest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    parcel: Option<Parcel>,
    next: &'a NextTokens,
    pins: &'a [Digest],
    revision: u64,
}

impl Words {
    pub(super) fn of(&mut self, config: Config) -> Worded {
        let words = || Bytes::from(json(&*config.role));
        let role = self.roles.entry(Arc::as_ptr(&config.role)).or_insert_with(words).slice(1..);
        let Config { node, spec, hostname, .. } = &config;
        let mut own = b"{\"spec\":".to_vec();
        let (digest, secret_digests) = (config.digest(), config.secret_digests());
        own.extend(json(&Own { node, spec, hostname, digest, secret_digests }));
        // One object goes on where the other one ended.
        *own.last_mut().expect("an object has an end") = b',';
        Worded { own: own.into(), role, config }
    }
}

impl Worded {
    /// The answer to a node that asks for its configuration, in pieces: a [`SpecAnswer`](orch_model::pull::SpecAnswer).
    pub(crate) fn answer(
        &self,
        parcel: Option<Parcel>,
        next: &NextTokens,
        pins: &[Digest],
        revision: u64,
    ) -> [Bytes; 3] {
        let mut last = json(&Rest { parcel, next, pins, revision });
        last[0] = b',';
        [self.own.clone(), self.role.clone(), last.into()]
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what orch defines can be written as JSON")
}
