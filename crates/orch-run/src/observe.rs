//! Looks at every host of a fleet, all at once. A host that does not answer says so and holds up nobody.

use std::time::Duration;

use orch_model::HostName;
use orch_plan::{HostView, Observed};
use tokio::task::JoinSet;

use crate::provider::{Place, Places, Scope};

/// Looks at every host, each for at most `deadline`.
pub async fn observe(places: &Places, deadline: Duration) -> Observed {
    let mut looks = JoinSet::new();
    for (host, place) in places {
        looks.spawn(look(host.clone(), place.clone(), deadline));
    }
    let mut observed = Observed::default();
    while let Some(look) = looks.join_next().await {
        // A look that panicked has no name to be recorded under; a plan refuses the nodes of a host not looked at.
        if let Ok((host, view)) = look {
            observed.hosts.insert(host, view);
        }
    }
    observed
}

async fn look(host: HostName, place: Place, deadline: Duration) -> (HostName, HostView) {
    let scope = Scope { host: host.clone(), node: None };
    let view = match tokio::time::timeout(deadline, place.provider.observe(&scope)).await {
        Ok(Ok(view)) => view,
        Ok(Err(error)) => HostView::Unreachable { why: error.to_string() },
        Err(_) => HostView::Unreachable { why: format!("no answer within {deadline:?}") },
    };
    (host, view)
}
