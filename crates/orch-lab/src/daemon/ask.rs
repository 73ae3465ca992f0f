//! The other side of the control socket.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use orch_model::HostName;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::control::{LabStatus, short_path};
use super::read;
use crate::faults::Rule;
use crate::lab_error::LabError;
use crate::lab_file::LabFolder;

/// How long the lab may take to answer.
const LIMIT: Duration = Duration::from_secs(10);

/// What a lab is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Request {
    /// How it is; the answer is a [`LabStatus`].
    Status,
    /// Something is to go wrong with a host.
    AddFault {
        /// The host.
        host: HostName,
        /// What, when and how often.
        rule: Rule,
    },
    /// Nothing is to go wrong any more.
    ClearFaults {
        /// With this host; without one, with none.
        #[serde(default)]
        host: Option<HostName>,
    },
    /// What its hosts were asked: for each `count` and `list`.
    Calls {
        /// This host alone.
        #[serde(default)]
        host: Option<HostName>,
        /// Whether that is forgotten then.
        #[serde(default)]
        reset: bool,
    },
    /// It is to end. Machines go on.
    Shutdown,
}

/// Asks the lab of a folder.
pub async fn ask(folder: &Path, request: &Request) -> Result<Json, LabError> {
    let folder = LabFolder::at(folder);
    let down = |_: io::Error| LabError::Down(folder.path().to_owned());
    let heard = tokio::time::timeout(LIMIT, exchange(&folder, request)).await;
    let heard = heard.map_err(|_| LabError::Down(folder.path().to_owned()))?.map_err(down)?;
    match heard {
        Heard::Ok(answer) => Ok(answer),
        Heard::Error(why) => Err(LabError::Said(why)),
    }
}

/// How the lab of a folder is, also where it is not served.
pub async fn status(folder: &Path) -> Result<LabStatus, LabError> {
    let file = read(folder)?;
    match ask(folder, &Request::Status).await {
        Ok(status) => serde_json::from_value(status).map_err(|error| LabError::Said(error.to_string())),
        Err(LabError::Down(_)) => Ok(LabStatus { is_up: false, file, hosts: BTreeMap::new() }),
        Err(error) => Err(error),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Heard {
    Ok(Json),
    Error(String),
}

async fn exchange(folder: &LabFolder, request: &Request) -> io::Result<Heard> {
    let (path, _held) = short_path(folder)?;
    let mut stream = UnixStream::connect(path).await?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream.write_all(line.as_bytes()).await?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await?;
    Ok(serde_json::from_str(&answer)?)
}
