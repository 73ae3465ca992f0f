//! Tasks: what takes longer is begun, has a name (a UPID), and is asked about until it has stopped.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value as Json;

use super::call::Caller;
use super::pace::Pace;
use super::read::Fields;
use super::trouble::Trouble;
use crate::api::encode;

/// How many of the last lines of a task's log are evidence.
const LINES: usize = 20;

/// The name of a task. The node that it runs on is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Upid {
    text: String,
    node: String,
    kind: String,
}

/// The least time that tasks of each kind were seen to take.
#[derive(Default)]
pub(super) struct Usual(Mutex<BTreeMap<String, Duration>>);

impl Usual {
    fn of(&self, kind: &str) -> Duration {
        self.0.lock().expect("nobody panics while holding this").get(kind).copied().unwrap_or_default()
    }

    fn learn(&self, kind: &str, took: Duration) {
        let mut known = self.0.lock().expect("nobody panics while holding this");
        known.entry(kind.to_owned()).and_modify(|least| *least = took.min(*least)).or_insert(took);
    }
}

impl FromStr for Upid {
    type Err = ();

    /// `UPID:node:pid:pstart:starttime:type:id:user:`
    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.split(':').collect();
        let node = parts.get(1).filter(|node| !node.is_empty()).ok_or(())?;
        let is_one = parts[0] == "UPID" && parts.len() >= 8;
        let kind = parts.get(5).copied().unwrap_or_default().to_owned();
        if is_one { Ok(Self { text: text.to_owned(), node: (*node).to_owned(), kind }) } else { Err(()) }
    }
}

impl Upid {
    pub(super) fn path(&self, what: &str) -> String {
        format!("/nodes/{}/tasks/{}/{what}", encode(&self.node), encode(&self.text))
    }
}

/// Waits for what an answer says was begun. An answer that names no task was done at once.
pub(super) async fn done(
    caller: &Caller,
    pace: &Pace,
    usual: &Usual,
    answer: &Json,
    what: &str,
) -> Result<(), Trouble> {
    match answer.as_str().and_then(|text| text.parse::<Upid>().ok()) {
        Some(upid) => wait(caller, pace, usual, &upid, what).await,
        None => Ok(()),
    }
}

/// Tells what an answer says was begun to stop. Whether it does is seen by whoever looks next.
pub(super) async fn stop(caller: &Caller, answer: &Json) {
    if let Some(upid) = answer.as_str().and_then(|text| text.parse::<Upid>().ok()) {
        let path = upid.path("");
        let _ = caller.delete(path.trim_end_matches('/')).await;
    }
}

async fn wait(caller: &Caller, pace: &Pace, usual: &Usual, upid: &Upid, what: &str) -> Result<(), Trouble> {
    let wait = pace.wait_usual(pace.task, usual.of(&upid.kind));
    let path = upid.path("status");
    while wait.pause().await {
        let answer = caller.get(&path).await?;
        let fields = Fields::of(&path, &answer)?;
        if fields.text("status").as_deref() != Some("stopped") {
            continue;
        }
        let exit = fields.text("exitstatus").unwrap_or_else(|| "it stopped without a word".into());
        if is_success(&exit) {
            usual.learn(&upid.kind, wait.waited());
            return Ok(());
        }
        let log = log(caller, upid).await;
        return Err(Trouble::Task {
            what: what.to_owned(),
            exit: orch_model::printable(&exit).to_string(),
            log,
        });
    }
    let what = format!("{what}: the task still runs");
    Err(Trouble::Late { what, evidence: log(caller, upid).await })
}

fn is_success(exit: &str) -> bool {
    exit == "OK" || exit.starts_with("WARNINGS")
}

/// The last lines of what a task wrote; none where that cannot be had, for it is no reason to fail once more.
async fn log(caller: &Caller, upid: &Upid) -> Vec<String> {
    // The cause is at the end, and there is no way to ask for that alone: no log of ours is nearly as long.
    let path = format!("{}?limit=50000", upid.path("log"));
    let Ok(answer) = caller.get(&path).await else { return Vec::new() };
    let Ok(entries) = Fields::each(&path, &answer) else { return Vec::new() };
    let lines = entries.iter().filter_map(|entry| entry.text("t"));
    let mut lines: Vec<String> = lines.map(|line| orch_model::printable(&line).to_string()).collect();
    lines.split_off(lines.len().saturating_sub(LINES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_says_which_node_it_runs_on() {
        let upid: Upid = "UPID:pve1:0000C530:001C9BEC:4F5A1B22:qmclone:9000:root@pam!orch:".parse().unwrap();
        assert_eq!(
            upid.path("status"),
            "/nodes/pve1/tasks/UPID%3Apve1%3A0000C530%3A001C9BEC%3A4F5A1B22%3Aqmclone%3A9000%3Aroot%40pam%21orch%3A/status"
        );
        for wrong in ["", "OK", "UPID:pve1", "UPID::1:2:3:t:i:u:"] {
            assert!(wrong.parse::<Upid>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn warnings_are_no_failure() {
        assert!(is_success("OK") && is_success("WARNINGS: 2") && !is_success("VM 101 already running"));
    }
}
