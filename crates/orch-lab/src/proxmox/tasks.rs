//! Calls about tasks: which there are, how they ended, what they said.

use serde_json::{Value as Json, json};

use super::call::Call;
use super::reply::{Outcome, Refusal, Reply};
use super::state::{State, Task};

/// How many tasks are shown where nobody says how many.
const PAGE: usize = 50;

fn listed(call: &Call, task: &Task) -> Json {
    let mut shown = task.show(&call.lab.settings.node);
    if let (Some(ended), Some(exit)) = (task.ended, &task.exit) {
        shown["endtime"] = ended.into();
        shown["status"] = exit.as_str().into();
    }
    shown
}

fn is_seen(call: &Call, state: &State, task: &Task) -> bool {
    let node = format!("/nodes/{}", call.lab.settings.node);
    task.is_of(&call.who.name()) || call.may_any(state, &node, &["Sys.Audit"])
}

/// The tasks of the cluster, the newest first.
pub(super) fn recent(call: &Call, state: &mut State) -> Outcome {
    let seen = state.tasks.iter().rev().filter(|task| is_seen(call, state, task)).take(PAGE);
    Ok(seen.map(|task| listed(call, task)).collect::<Json>().into())
}

/// The tasks of the node, the newest first, and how many there are.
pub(super) fn list(call: &Call, state: &mut State) -> Outcome {
    let params = &call.params;
    let number =
        |name: &str, otherwise| params.get(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let source = params.get("source").unwrap_or("archive");
    let fits = |task: &&Task| {
        let is_running = task.exit.is_none();
        (source == "all" || is_running == (source == "active"))
            && params.get("vmid").is_none_or(|vmid| task.id == vmid)
            && params.get("typefilter").is_none_or(|kind| task.kind == kind)
            && params.get("userfilter").is_none_or(|user| task.user.contains(user))
            && !(params.is_on("errors") && task.exit.as_deref() == Some("OK"))
            && task.begun >= number("since", 0)
            && task.begun <= number("until", u64::MAX)
    };
    let found: Vec<&Task> =
        state.tasks.iter().rev().filter(|task| is_seen(call, state, task)).filter(fits).collect();
    let total = found.len();
    let start = usize::try_from(number("start", 0)).unwrap_or(usize::MAX);
    let limit = number("limit", 0);
    let limit = if limit == 0 { PAGE } else { usize::try_from(limit).unwrap_or(usize::MAX) };
    let data = found.into_iter().skip(start).take(limit).map(|task| listed(call, task)).collect();
    Ok(Reply { data, total: Some(total) })
}

/// The task that the path names, if the caller may look at it.
fn find<'a>(call: &Call, state: &'a State, privilege: &str) -> Result<&'a Task, Refusal> {
    let upid = call.params.need("upid")?;
    if upid.split(':').count() != 9 || !upid.starts_with("UPID:") {
        return Err(Refusal::died(format!("unable to parse worker upid '{upid}'")));
    }
    let task = state.tasks.iter().rfind(|task| task.upid == upid);
    let task = task.ok_or_else(|| Refusal::died(format!("no such task '{upid}'")))?;
    if !task.is_of(&call.who.name()) {
        call.need(state, &format!("/nodes/{}", call.lab.settings.node), &[privilege])?;
    }
    Ok(task)
}

pub(super) fn status(call: &Call, state: &mut State) -> Outcome {
    let task = find(call, state, "Sys.Audit")?;
    let mut shown = task.show(&call.lab.settings.node);
    shown["status"] = if task.exit.is_some() { "stopped" } else { "running" }.into();
    if let Some(exit) = &task.exit {
        shown["exitstatus"] = exit.as_str().into();
    }
    Ok(shown.into())
}

pub(super) fn log(call: &Call, state: &mut State) -> Outcome {
    let task = find(call, state, "Sys.Audit")?;
    let line = match task.exit.as_deref() {
        None | Some("unexpected status") => "no content".to_owned(),
        Some("OK") => "TASK OK".to_owned(),
        Some(why) => format!("TASK ERROR: {why}"),
    };
    Ok(Reply { data: json!([{ "n": 1, "t": line }]), total: Some(1) })
}

pub(super) fn stop(call: &Call, state: &mut State) -> Outcome {
    let upid = find(call, state, "Sys.Modify")?.upid.clone();
    call.lab.stop(&upid);
    Ok(Reply::null())
}
