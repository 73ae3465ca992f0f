//! Which API a host has.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use crate::exchange::{Answer, Api, Asked};
use crate::faults::Faults;
use crate::lab_file::Token;
use crate::local_machines::LocalMachines;
use crate::machines::{Machines, Trouble};
use crate::settings::LabHost;

/// What an API is made with.
pub struct ApiParts {
    /// The host.
    pub host: LabHost,
    /// The machines behind it.
    pub machines: Arc<dyn Machines>,
    /// The same where they are on this computer and not on paper.
    pub local: Option<LocalMachines>,
    /// Where it keeps what it shows.
    pub state_file: PathBuf,
    /// What opens it.
    pub token: Token,
    /// The name of the node that it has, where it has one.
    pub node: Option<String>,
    /// Where its disks are, where that has a name.
    pub datastore: Option<String>,
    /// What goes wrong on purpose inside of it.
    pub faults: Faults,
    /// The published description of it, where it is at hand.
    pub description: Option<PathBuf>,
}

/// Makes APIs.
pub type MakeApi = dyn Fn(ApiParts) -> Result<Arc<dyn Api>, Trouble> + Send + Sync;

/// The API of a host, by what the host is.
#[expect(clippy::unnecessary_wraps, reason = "whoever reads what an earlier one kept can fail")]
pub(crate) fn api(parts: ApiParts) -> Result<Arc<dyn Api>, Trouble> {
    let absent: Arc<dyn Api> = Arc::new(Absent { parts });
    Ok(absent)
}

/// An API that has nothing to say.
struct Absent {
    parts: ApiParts,
}

#[async_trait]
impl Api for Absent {
    async fn answer(&self, _: Asked) -> Answer {
        Answer::json(501, &json!({ "message": format!("`{}` answers nothing", self.parts.host.name) }))
    }
}
