//! Calls about the node itself: how it is, its bridges, and the storages that are configured.

use serde_json::{Value as Json, json};

use super::call::Call;
use super::reply::{Outcome, Refusal};
use super::settings::ProxmoxStorage;
use super::state::{State, seconds};

/// How long the node says that it is up.
const UPTIME: u64 = 86_400;

pub(super) fn nodes(call: &Call, state: &mut State) -> Outcome {
    let mut shown = summary(call, state);
    shown["ssl_fingerprint"] = "".into();
    let dead = call.lab.settings.dead_nodes.iter().map(
        |node| json!({ "id": format!("node/{node}"), "node": node, "type": "node", "status": "offline" }),
    );
    Ok([shown].into_iter().chain(dead).collect::<Json>().into())
}

/// The node as lists show it.
pub(super) fn summary(call: &Call, state: &State) -> Json {
    let settings = &call.lab.settings;
    json!({
        "id": format!("node/{}", settings.node), "node": settings.node, "type": "node", "status": "online", "level": "",
        "maxcpu": settings.cores, "cpu": 0.01, "maxmem": settings.memory, "mem": used_memory(state),
        "maxdisk": 1_u64 << 39, "disk": 1_u64 << 32, "uptime": UPTIME,
    })
}

/// The bytes that running guests have.
pub(super) fn used_memory(state: &State) -> u64 {
    let running = state.guests.values().filter(|guest| guest.is_running);
    running.map(|guest| u64::from(guest.memory()) << 20).sum()
}

pub(super) fn status(call: &Call, state: &mut State) -> Outcome {
    let settings = &call.lab.settings;
    call.need(state, &format!("/nodes/{}", settings.node), &["Sys.Audit"])?;
    let used = used_memory(state);
    Ok(json!({
        "uptime": UPTIME, "loadavg": ["0.01", "0.02", "0.00"], "cpu": 0.01, "wait": 0, "idle": 0,
        "pveversion": "pve-manager/9.0.3/025864202ebb6109", "kversion": "Linux 6.14.8-2-pve",
        "cpuinfo": { "cpus": settings.cores, "cores": settings.cores, "sockets": 1, "model": "lab", "mhz": "2000.000" },
        "memory": { "total": settings.memory, "used": used, "free": settings.memory.saturating_sub(used) },
        "swap": { "total": 0, "used": 0, "free": 0 },
        "rootfs": { "total": 1_u64 << 39, "used": 1_u64 << 32, "free": 1_u64 << 38, "avail": 1_u64 << 38 },
        "boot-info": { "mode": "efi", "secureboot": 0 }, "time": seconds(),
    })
    .into())
}

pub(super) fn network(call: &Call, _: &mut State) -> Outcome {
    let wanted = call.params.get("type").unwrap_or("bridge");
    let bridges = call.lab.settings.bridges.iter().filter(|_| wanted.contains("bridge"));
    let shown = bridges.enumerate().map(|(number, bridge)| {
        json!({
            "iface": bridge, "type": "bridge", "active": 1, "autostart": 1, "method": "manual", "method6": "manual",
            "bridge_ports": "", "bridge_stp": "off", "bridge_fd": "0", "bridge_vlan_aware": 1, "bridge_vids": "2-4094",
            "families": ["inet"], "priority": number + 3,
        })
    });
    Ok(shown.collect::<Json>().into())
}

/// Whether the caller is shown a storage.
pub(super) fn may_see(call: &Call, state: &State, storage: &str) -> bool {
    call.may_any(state, &format!("/storage/{storage}"), &["Datastore.Audit", "Datastore.AllocateSpace"])
}

pub(super) fn storages(call: &Call, state: &mut State) -> Outcome {
    let wanted = call.params.get("type");
    let seen = call.lab.settings.storages.iter().filter(|storage| may_see(call, state, &storage.id));
    let seen = seen.filter(|storage| wanted.is_none_or(|wanted| wanted == storage.kind));
    Ok(seen.map(configured).collect::<Json>().into())
}

pub(super) fn storage(call: &Call, state: &mut State) -> Outcome {
    let id = call.params.need("storage")?;
    call.need(state, &format!("/storage/{id}"), &["Datastore.Audit"])?;
    let storage = call.lab.settings.storage(id);
    Ok(configured(storage.ok_or_else(|| Refusal::died(format!("storage '{id}' does not exist")))?).into())
}

fn configured(storage: &ProxmoxStorage) -> Json {
    let mut shown =
        json!({ "storage": storage.id, "type": storage.kind, "content": storage.content.join(",") });
    match storage.kind.as_str() {
        "zfspool" => shown["pool"] = "rpool/data".into(),
        "lvmthin" => shown["thinpool"] = "data".into(),
        _ => shown["path"] = "/var/lib/vz".into(),
    }
    shown["digest"] = super::guest::hex(storage.id.as_bytes()).into();
    shown
}
