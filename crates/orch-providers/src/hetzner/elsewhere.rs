//! What is said of a plan before anything is touched, with what it would cost.

use async_trait::async_trait;

use super::Hetzner;
use crate::ground::Elsewhere;
use crate::preflight::{Preflight, Wanted};

#[async_trait]
impl Elsewhere for Hetzner {
    async fn preflight(&self, wanted: &[Wanted]) -> Preflight {
        let wanted: Vec<_> =
            wanted.iter().map(|wanted| (wanted.node.clone(), wanted.machine.clone())).collect();
        let (mut said, costs) = tokio::join!(Self::preflight(self, &wanted), self.costs(&wanted));
        match costs {
            Ok(costs) => said.costs.extend(costs),
            // Whoever cannot be asked is an obstacle already; what has no price costs nothing that could be told.
            Err(error) => said.caveats.push(format!("what servers cost is not known: {error}")),
        }
        said
    }
}
