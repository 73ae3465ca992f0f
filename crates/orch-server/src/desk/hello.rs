//! What nodes say of themselves, and the secrets that they are given for it.

use orch_model::{Config, Identity, KeyName, NodeKeys, Parcel, SecretDigest};
use orch_run::{SiteTreasury, Treasury as _};

use super::{Answered, Desk};
use crate::holds::Holds;
use crate::ledger::ShowError;

/// What a node says of itself when it asks for its configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hello {
    /// By what it is known.
    pub(crate) keys: Option<NodeKeys>,
    /// The secrets that it has.
    pub(crate) holds: Holds,
}

impl Desk {
    /// Takes note of what a node that tells something says it is known by: whether its own host key is shown by now.
    pub(crate) async fn hear(&self, node: &Identity, hello: Hello) -> Result<(), Answered> {
        let Some(keys) = &hello.keys else { return Ok(()) };
        let now = (self.clock)();
        self.noted(node, self.ledger.hear(node, keys, now).await, now)
    }

    /// What came of taking note of it.
    pub(super) fn noted(
        &self,
        node: &Identity,
        noted: Result<(), ShowError>,
        now: u64,
    ) -> Result<(), Answered> {
        match noted {
            Ok(()) => Ok(()),
            Err(ShowError::Refused(refusal)) => Err(self.refuse(node, refusal, now)),
            Err(ShowError::Ledger(error)) => Err(Answered::fault(error)),
        }
    }

    /// The secrets that a node needs and does not have, for nobody but itself. One that does not say what can be encrypted to
    /// it is given none.
    pub(super) async fn parcel(&self, config: &Config, hello: Hello) -> Result<Option<Parcel>, Answered> {
        let Hello { keys: Some(keys), holds } = hello else { return Ok(None) };
        let lacks = |(name, digest): (&KeyName, &SecretDigest)| (!holds.hold(digest)).then(|| name.clone());
        let lacking: Vec<KeyName> = config.secret_digests().iter().filter_map(lacks).collect();
        if lacking.is_empty() {
            return Ok(None);
        }
        let (vault, config) = (self.specs.vault(), config.clone());
        let pack = move || SiteTreasury::new(vault).pack(&config, &lacking, &keys.age);
        let packed = tokio::task::spawn_blocking(pack).await;
        Ok(Some(packed.map_err(Answered::fault)?.map_err(Answered::fault)?))
    }
}
