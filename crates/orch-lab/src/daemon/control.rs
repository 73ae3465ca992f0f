//! The lab's control socket: a line of JSON is a question, a line of JSON its answer. It lies in the lab's own folder, where
//! nobody else can look.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use orch_model::HostName;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::ask::Request;
use crate::faults::Rule;
use crate::lab::Lab;
use crate::lab_file::{LabFile, LabFolder};
use crate::settings::HostKind;
use crate::state;

/// No question is longer.
const LONGEST: u64 = 64 << 10;

/// How a lab is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabStatus {
    /// Whether it is served.
    pub is_up: bool,
    /// What it says of itself.
    pub file: LabFile,
    /// Its hosts, as far as it is served.
    pub hosts: BTreeMap<HostName, HostStatus>,
}

/// How a host of a lab is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// What it is.
    pub kind: HostKind,
    /// How many questions it was asked.
    pub calls: u64,
    /// What goes wrong with it.
    pub faults: Vec<Rule>,
}

/// Listens in a lab's folder. What a lab that was killed left there is taken away: the caller has the office.
pub(super) fn listen(folder: &LabFolder) -> io::Result<UnixListener> {
    state::remove(&folder.control())?;
    let (path, _held) = short_path(folder)?;
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// A path to the socket that is short enough for the kernel, wherever the folder is, and what it holds open meanwhile.
pub(super) fn short_path(folder: &LabFolder) -> io::Result<(PathBuf, File)> {
    let held = File::open(folder.path())?;
    let name = folder.control().file_name().map(PathBuf::from).unwrap_or_default();
    Ok((PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd())).join(name), held))
}

/// Answers until it is told to end.
pub(super) async fn serve(listener: UnixListener, lab: Arc<Lab>, end: Arc<Notify>) {
    let mut talks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = talks.join_next() => continue,
        };
        if let Ok((stream, _)) = accepted {
            let (lab, end) = (Arc::clone(&lab), Arc::clone(&end));
            // Whoever goes away in the middle has his reasons.
            talks.spawn(async move { talk(stream, &lab, &end).await.unwrap_or_default() });
        }
    }
}

async fn talk(stream: UnixStream, lab: &Lab, end: &Notify) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = String::new();
        if (&mut reader).take(LONGEST).read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let request = serde_json::from_str::<Request>(&line);
        let answer = match &request {
            Ok(request) => answer(lab, request),
            Err(error) => Err(format!("this is not understood: {error}")),
        };
        let answer = match answer {
            Ok(answer) => json!({ "ok": answer }),
            Err(why) => json!({ "error": why }),
        };
        writer.write_all(format!("{answer}\n").as_bytes()).await?;
        if matches!(request, Ok(Request::Shutdown)) {
            end.notify_one();
        }
    }
}

fn answer(lab: &Lab, request: &Request) -> Result<Json, String> {
    let known = |host: &HostName| {
        let faults = lab.faults(host).zip(lab.calls(host));
        faults.ok_or_else(|| format!("the lab has no host `{host}`"))
    };
    let chosen = |host: &Option<HostName>| match host {
        Some(host) => known(host).map(|_| vec![host.clone()]),
        None => Ok(lab.names().cloned().collect::<Vec<_>>()),
    };
    match request {
        Request::Status => Ok(json!(status(lab))),
        Request::AddFault { host, rule } => {
            known(host)?.0.add(rule.clone());
            Ok(Json::Null)
        }
        Request::ClearFaults { host } => {
            for host in chosen(host)? {
                known(&host)?.0.clear();
            }
            Ok(Json::Null)
        }
        Request::Calls { host, reset } => {
            let mut told = BTreeMap::new();
            for host in chosen(host)? {
                let (_, calls) = known(&host)?;
                told.insert(host, json!({ "count": calls.count(), "list": calls.list() }));
                if *reset {
                    calls.reset();
                }
            }
            Ok(json!(told))
        }
        Request::Shutdown => Ok(Json::Null),
    }
}

fn status(lab: &Lab) -> LabStatus {
    let host = |(name, shown): (&HostName, &crate::lab_file::LabFileHost)| {
        let calls = lab.calls(name).map(crate::serve::Calls::count).unwrap_or_default();
        let faults = lab.faults(name).map(crate::faults::Faults::list).unwrap_or_default();
        (name.clone(), HostStatus { kind: shown.kind, calls, faults })
    };
    LabStatus { is_up: true, file: lab.file().clone(), hosts: lab.file().hosts.iter().map(host).collect() }
}
