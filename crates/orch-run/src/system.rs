//! NixOS nodes as a run sees them: had to itself for as long as the run lasts, and taken back where the run says so.

use async_trait::async_trait;
use orch_model::system::{LeaseAnswer, LeaseClaim, SwitchAnswer};

use crate::permit::Permit;
use crate::transport::{Target, TransportError};

/// Has nodes to a run alone. A lease lies on the node itself, so it binds drivers that share nothing else.
#[async_trait]
pub trait Leaser: Send + Sync {
    /// Asks for a node, or asks for it again. A refusal is an answer; the view in it says who has the node.
    async fn lease(
        &self,
        target: &Target,
        claim: &LeaseClaim,
        permit: &Permit,
    ) -> Result<LeaseAnswer, TransportError>;

    /// Gives a node back. Idempotent, and without effect on what another claim holds.
    async fn release(&self, target: &Target, claim: &str) -> Result<(), TransportError>;
}

/// Takes nodes back to the system that they ran before a run moved them.
#[async_trait]
pub trait Reverter: Send + Sync {
    /// Takes the node back, by the explicit path of the system before, also where the new one was made permanent. The rollout is
    /// the one of this permit's claim ([`Permit::claim`]). Idempotent. The answer says what was read of the node afterwards.
    async fn back(&self, target: &Target, permit: &Permit) -> Result<SwitchAnswer, TransportError>;
}
