//! How guests are shown: in the cluster's list, in the node's list, and each by itself.

use serde_json::{Value as Json, json};

use super::call::Call;
use super::guest::{Guest, Kind};
use super::reply::Outcome;
use super::state::{State, now};

/// A guest in the cluster's list. Until the node has reported, after it was switched on
/// or the guest was made, the list knows its configuration file, and no more.
pub(super) fn resource(call: &Call, state: &State, vmid: u32, guest: &Guest) -> Json {
    let mut shown = json!({
        "id": format!("{}/{vmid}", guest.kind.word()), "type": guest.kind.word(), "vmid": vmid,
        "node": call.lab.settings.node, "status": "unknown", "template": i32::from(guest.is_template()),
    });
    let texts = [
        ("tags", guest.config.get("tags").map(String::as_str)),
        ("lock", guest.lock()),
        ("pool", state.pool_of(vmid)),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            shown[name] = value.into();
        }
    }
    let silence = u64::try_from(call.lab.settings.timings.report.as_millis()).unwrap_or(u64::MAX);
    if now() >= guest.made.max(call.lab.begun).saturating_add(silence) {
        describe(&mut shown, vmid, guest);
        shown["diskread"] = 0.into();
        shown["diskwrite"] = 0.into();
        shown["maxcpu"] = guest.cores().into();
    }
    shown
}

fn describe(shown: &mut Json, vmid: u32, guest: &Guest) {
    let uptime = if guest.is_running { now().saturating_sub(guest.started) / 1000 } else { 0 };
    shown["status"] = if guest.is_running { "running" } else { "stopped" }.into();
    shown["name"] = guest.name(vmid).into();
    shown["maxmem"] = (u64::from(guest.memory()) << 20).into();
    shown["mem"] = if guest.is_running { u64::from(guest.memory()) << 19 } else { 0 }.into();
    shown["maxdisk"] = guest.disk_bytes().into();
    shown["uptime"] = uptime.into();
    for name in ["disk", "cpu", "netin", "netout"] {
        shown[name] = 0.into();
    }
}

/// A guest as its node shows it.
fn summary(vmid: u32, guest: &Guest) -> Json {
    let mut shown = json!({ "vmid": vmid, "cpus": guest.cores(), "diskread": 0, "diskwrite": 0 });
    describe(&mut shown, vmid, guest);
    for name in ["tags", "lock"] {
        if let Some(value) = guest.config.get(name) {
            shown[name] = value.as_str().into();
        }
    }
    if guest.is_template() {
        shown["template"] = 1.into();
    }
    if guest.kind == Kind::Lxc {
        shown["type"] = "lxc".into();
        shown["swap"] = 0.into();
        shown["maxswap"] = (u64::from(guest.memory()) << 20).into();
    }
    if guest.is_running {
        shown["pid"] = (10_000 + vmid % 100_000).into();
    }
    shown
}

pub(super) fn list(call: &Call, state: &mut State) -> Outcome {
    let own = state.guests.iter().filter(|(_, guest)| guest.kind == call.kind());
    let seen = own.filter(|(vmid, _)| call.may_any(state, &format!("/vms/{vmid}"), &["VM.Audit"]));
    Ok(seen.map(|(vmid, guest)| summary(*vmid, guest)).collect::<Json>().into())
}

pub(super) fn current(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Audit"])?;
    let guest = call.guest(state, vmid)?;
    let mut shown = summary(vmid, guest);
    shown["ha"] = json!({ "managed": 0 });
    if guest.kind == Kind::Qemu {
        let state = if guest.is_paused { "paused" } else { "running" };
        shown["qmpstatus"] = if guest.is_running { state } else { "stopped" }.into();
        if super::agent::is_configured(guest) {
            shown["agent"] = 1.into();
        }
    }
    Ok(shown.into())
}
