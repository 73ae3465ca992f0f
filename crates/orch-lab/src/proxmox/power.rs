//! Starting and stopping guests.

use std::sync::Arc;
use std::time::Duration;

use super::agent;
use super::call::Call;
use super::cloud_init;
use super::config::not_locked;
use super::guest::{Guest, Kind};
use super::lab::{Lab, no_memory};
use super::node::used_memory;
use super::reply::{Outcome, Refusal};
use super::state::{State, now};

/// The guest that is switched, and what the path calls it.
fn switched(call: &Call, state: &State) -> Result<(u32, Kind), Refusal> {
    let vmid = call.guest_id(state, &["VM.PowerMgmt"])?;
    call.skips_lock()?;
    Ok((vmid, call.kind()))
}

/// Containers say at once what virtual machines say in their tasks.
fn demand(call: &Call, state: &State, vmid: u32, is_running: bool) -> Result<(), Refusal> {
    let guest = call.guest(state, vmid)?;
    if guest.kind == Kind::Lxc && guest.is_running != is_running {
        let word = if is_running { "not" } else { "already" };
        return Err(Refusal::died(format!("CT {vmid} {word} running")));
    }
    Ok(())
}

pub(super) fn start(call: &Call, state: &mut State) -> Outcome {
    let (vmid, kind) = switched(call, state)?;
    demand(call, state, vmid, false)?;
    let guest = call.guest(state, vmid)?;
    if guest.is_template() {
        return Err(Refusal::died(format!(
            "you can't start a {} if it's a template",
            kind.word().replace("qemu", "vm")
        )));
    }
    let work = move |lab: Arc<Lab>, _| async move { begin(&lab, kind, vmid).await };
    Ok(call.fork(state, &kind.task("start"), &vmid.to_string(), work, None).into())
}

/// Starts a guest.
pub(super) async fn begin(lab: &Lab, kind: Kind, vmid: u32) -> Result<(), String> {
    let _held = lab.hold(&kind.lock_file(vmid), lab.settings.timings.lock).await?;
    switch_on(lab, vmid).await
}

async fn switch_on(lab: &Lab, vmid: u32) -> Result<(), String> {
    let (wanted, first) = lab.change(|stock| {
        let used = used_memory(stock.state);
        let guest = stock.state.guests.get_mut(&vmid).ok_or_else(|| format!("VM {vmid} does not exist"))?;
        not_locked(guest)?;
        if guest.is_running {
            return Err(format!("{} {vmid} already running", guest.kind.noun()));
        }
        guest.settle();
        fits(guest, vmid, used, stock.settings)?;
        let guest = guest.clone();
        Ok((guest.wanted(vmid), cloud_init::first_boot(lab, stock, vmid, &guest)?))
    })?;
    tokio::time::sleep(lab.settings.timings.start).await;
    let machines = &lab.settings.machines;
    machines.make(&wanted).await.map_err(|trouble| format!("start failed: {}", trouble.0))?;
    machines.start(&wanted.id, &first).await.map_err(|trouble| format!("start failed: {}", trouble.0))?;
    lab.change(|stock| {
        if let Some(guest) = stock.state.guests.get_mut(&vmid) {
            guest.is_running = true;
            guest.is_paused = false;
            guest.started = now();
        }
        Ok(())
    })
}

/// Whether the node has what a guest needs to run.
fn fits(guest: &Guest, vmid: u32, used: u64, settings: &super::ProxmoxSettings) -> Result<(), String> {
    if guest.cores() > settings.cores {
        return Err(format!("MAX {} vcpus allowed per VM on this node", settings.cores));
    }
    if used.saturating_add(u64::from(guest.memory()) << 20) > settings.memory {
        return Err(no_memory(&vmid.to_string()));
    }
    let nets = guest.config.iter().filter(|(key, _)| super::drive::numbered(key, "net"));
    let mut bridges =
        nets.filter_map(|(_, net)| net.split(',').find_map(|part| part.strip_prefix("bridge=")));
    match bridges.find(|bridge| !settings.bridges.iter().any(|known| known == bridge)) {
        Some(bridge) => Err(format!("bridge '{bridge}' does not exist")),
        None => Ok(()),
    }
}

pub(super) fn stop(call: &Call, state: &mut State) -> Outcome {
    let (vmid, kind) = switched(call, state)?;
    demand(call, state, vmid, true)?;
    let work = move |lab: Arc<Lab>, _| async move {
        let _held = lab.hold(&kind.lock_file(vmid), lab.settings.timings.lock).await?;
        switch_off(&lab, vmid).await
    };
    Ok(call.fork(state, &kind.task("stop"), &vmid.to_string(), work, None).into())
}

async fn switch_off(lab: &Lab, vmid: u32) -> Result<(), String> {
    let is_running = lab.change(|stock| {
        let guest = stock.state.guests.get(&vmid).ok_or_else(|| format!("VM {vmid} does not exist"))?;
        not_locked(guest)?;
        Ok(guest.is_running)
    })?;
    if !is_running {
        return Ok(());
    }
    tokio::time::sleep(lab.settings.timings.stop).await;
    lab.settings.machines.stop(&vmid.to_string()).await.map_err(|trouble| trouble.0)?;
    lab.change(|stock| {
        if let Some(guest) = stock.state.guests.get_mut(&vmid) {
            guest.is_running = false;
            guest.is_paused = false;
            guest.settle();
        }
        Ok(())
    })
}

/// Presses the power button, and waits.
async fn press(lab: &Lab, vmid: u32, patience: Duration, forces: bool) -> Result<(), String> {
    let listens = lab.change(|stock| {
        let guest = stock.state.guests.get(&vmid).ok_or_else(|| format!("VM {vmid} does not exist"))?;
        let hears = guest.config.get("acpi").is_none_or(|acpi| acpi != "0") || agent::is_configured(guest);
        Ok((hears && !guest.is_paused) || !guest.is_running)
    })?;
    if !listens {
        tokio::time::sleep(patience).await;
        if !forces {
            return Err("VM quit/powerdown failed - got timeout".into());
        }
    }
    switch_off(lab, vmid).await
}

fn patience(call: &Call) -> Duration {
    let most = call.lab.settings.timings.shutdown;
    let asked = call.params.get("timeout").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    asked.map_or(most, |asked| asked.min(most))
}

pub(super) fn shutdown(call: &Call, state: &mut State) -> Outcome {
    let (vmid, kind) = switched(call, state)?;
    demand(call, state, vmid, true)?;
    if call.kind() == Kind::Qemu && !call.guest(state, vmid)?.is_running {
        let work = |_: Arc<Lab>, _| async { Err("VM is not running".to_owned()) };
        return Ok(call.fork(state, "qmshutdown", &vmid.to_string(), work, None).into());
    }
    let (patience, forces) = (patience(call), call.params.is_on("forceStop"));
    let work = move |lab: Arc<Lab>, _| async move {
        let _held = lab.hold(&kind.lock_file(vmid), lab.settings.timings.lock).await?;
        press(&lab, vmid, patience, forces).await
    };
    Ok(call.fork(state, &kind.task("shutdown"), &vmid.to_string(), work, None).into())
}

/// Off by the power button, and on again: what waited for a start comes true.
pub(super) fn reboot(call: &Call, state: &mut State) -> Outcome {
    let (vmid, kind) = switched(call, state)?;
    if !call.guest(state, vmid)?.is_running {
        return Err(Refusal::died(format!("{} {vmid} not running", kind.noun())));
    }
    let patience = patience(call);
    let work = move |lab: Arc<Lab>, _| async move {
        let _held = lab.hold(&kind.lock_file(vmid), lab.settings.timings.lock).await?;
        press(&lab, vmid, patience, false).await?;
        switch_on(&lab, vmid).await
    };
    Ok(call.fork(state, &kind.task("reboot"), &vmid.to_string(), work, None).into())
}

/// Off and on at once, for the machine; nothing that waits for a start comes true.
pub(super) fn reset(call: &Call, state: &mut State) -> Outcome {
    let (vmid, kind) = switched(call, state)?;
    let work = move |lab: Arc<Lab>, _| async move {
        let _held = lab.hold(&kind.lock_file(vmid), lab.settings.timings.lock).await?;
        let first = lab.change(|stock| {
            let guest = stock.state.guests.get(&vmid).filter(|guest| guest.is_running);
            let guest = guest.ok_or_else(|| format!("VM {vmid} not running"))?.clone();
            cloud_init::first_boot(&lab, stock, vmid, &guest)
        })?;
        let (machines, id) = (&lab.settings.machines, vmid.to_string());
        machines.stop(&id).await.map_err(|trouble| trouble.0)?;
        machines.start(&id, &first).await.map_err(|trouble| trouble.0)?;
        lab.change(|stock| {
            if let Some(guest) = stock.state.guests.get_mut(&vmid) {
                guest.is_running = true;
                guest.started = now();
            }
            Ok(())
        })
    };
    Ok(call.fork(state, "qmreset", &vmid.to_string(), work, None).into())
}

pub(super) fn suspend(call: &Call, state: &mut State) -> Outcome {
    pause(call, state, "qmpause", true)
}

pub(super) fn resume(call: &Call, state: &mut State) -> Outcome {
    pause(call, state, "qmresume", false)
}

fn pause(call: &Call, state: &mut State, task: &str, is_paused: bool) -> Outcome {
    let (vmid, kind) = switched(call, state)?;
    if !call.guest(state, vmid)?.is_running {
        return Err(Refusal::died(format!("VM {vmid} not running")));
    }
    let work = move |lab: Arc<Lab>, _| async move {
        let _held = lab.hold(&kind.lock_file(vmid), lab.settings.timings.lock).await?;
        lab.change(|stock| {
            let guest =
                stock.state.guests.get_mut(&vmid).ok_or_else(|| format!("VM {vmid} does not exist"))?;
            guest.is_paused = is_paused;
            Ok(())
        })
    };
    Ok(call.fork(state, task, &vmid.to_string(), work, None).into())
}
