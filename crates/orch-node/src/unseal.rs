//! The secrets of a node put in place when it starts: from what it holds, by the configuration that it has, without anybody
//! being asked.

use std::time::Duration;

use crate::apply::put_secrets;
use crate::error::ApplyError;
use crate::node::Node;
use crate::state::{ApplyLock, State};
use crate::vault;

/// How long whoever applies is waited for: it puts them in place too.
const PATIENCE: Duration = Duration::from_secs(30);

/// Puts every secret in place, and says of which that failed and why. Does nothing where there is no configuration, or it
/// has no secrets.
pub(crate) fn unseal(node: &Node) -> Result<Vec<String>, ApplyError> {
    let Some(state) = State::find(node)? else { return Ok(Vec::new()) };
    let Some(config) = state.config().filter(|config| !config.role.secrets.is_empty()) else {
        return Ok(Vec::new());
    };
    if !vault::is_there(&state)? {
        let path = vault::PATH;
        return Ok(vec![format!(
            "`{path}` is not there: the secrets of this node come with its next configuration"
        )]);
    }
    match ApplyLock::wait(&state, PATIENCE)? {
        Some(_lock) => Ok(put_secrets(node, &config)),
        None => Ok(vec!["another configuration is still being applied".into()]),
    }
}
