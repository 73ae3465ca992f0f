//! Nodes that a run has to itself: what `orch-node system lease|release` answer.

use orch_model::system::{LeaseAnswer, LeaseClaim};
use orch_run::{Ended, Target, TransportError};

use super::RolloutLimits;
use super::question::Asking;
use crate::push::{Program, tail};
use crate::remote::Remote;

/// A node that is asked for.
pub(crate) struct Holding<'h> {
    pub(crate) remote: &'h dyn Remote,
    pub(crate) program: &'h Program,
    pub(crate) target: &'h Target,
    pub(crate) limits: &'h RolloutLimits,
}

impl Holding<'_> {
    /// Asks for the node, or asks for it again.
    pub(crate) async fn lease(&self, claim: &LeaseClaim) -> Result<LeaseAnswer, TransportError> {
        self.asking().about(&["system", "lease"], claim, self.limits.answer).await
    }

    /// Gives the node back, where this claim has it.
    pub(crate) async fn release(&self, claim: &str) -> Result<(), TransportError> {
        let args = ["system", "release", claim];
        let ended: Ended = self.program.run(self.remote, self.target, &args, &[], self.limits.answer).await?;
        if ended.code == Some(0) {
            return Ok(());
        }
        let (node, evidence) = (self.target.identity.clone(), tail(&ended.stderr));
        Err(TransportError::Failed { node, why: "it could not be given back".into(), evidence })
    }

    const fn asking(&self) -> Asking<'_> {
        Asking { remote: self.remote, program: self.program, target: self.target }
    }
}
