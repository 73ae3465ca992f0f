//! What is said of a plan before anything is touched, with what it would cost.

use async_trait::async_trait;

use super::Hetzner;
use crate::ground::Elsewhere;
use crate::preflight::{Cost, Preflight, Wanted};

#[async_trait]
impl Elsewhere for Hetzner {
    async fn preflight(&self, wanted: &[Wanted]) -> Preflight {
        let wanted: Vec<_> =
            wanted.iter().map(|wanted| (wanted.node.clone(), wanted.machine.clone())).collect();
        let (mut said, costs) = tokio::join!(Self::preflight(self, &wanted), self.costs(&wanted));
        let host = &self.inner.setup.host;
        match costs {
            Ok(costs) => said.costs.extend(costs.into_iter().map(|cost| Cost {
                host: host.clone(),
                what: cost.what,
                count: cost.count,
                monthly: cost.monthly,
                hourly: cost.hourly,
                currency: cost.currency,
            })),
            // Whoever cannot be asked is an obstacle already; what has no price costs nothing that could be told.
            Err(error) => said.caveats.push(format!("what servers of `{host}` cost is not known: {error}")),
        }
        said
    }
}
