//! Network cards of a guest: each has an address, its own or a fresh one.

use super::guest::Kind;

/// An address from the block of Proxmox.
pub(super) fn fresh_mac() -> String {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    format!("BC:24:11:{:02X}:{:02X}:{:02X}", bytes[0], bytes[1], bytes[2])
}

/// A network card with an address of its own: the one that it has, or a fresh one.
pub(super) fn with_mac(kind: Kind, net: &str, is_fresh: bool) -> String {
    let mut parts: Vec<String> = net.split(',').map(str::to_owned).collect();
    if kind == Kind::Lxc {
        let has = parts.iter().any(|part| part.starts_with("hwaddr="));
        parts.retain(|part| !(is_fresh && part.starts_with("hwaddr=")));
        if is_fresh || !has {
            parts.push(format!("hwaddr={}", fresh_mac()));
        }
        if !parts.iter().any(|part| part.starts_with("type=")) {
            parts.push("type=veth".into());
        }
        return parts.join(",");
    }
    let given = parts.iter().find_map(|part| part.strip_prefix("macaddr=").map(str::to_owned));
    parts.retain(|part| !part.starts_with("macaddr="));
    if let Some(model) = parts.first_mut() {
        let (name, own) = match model.split_once('=') {
            Some(("model", name)) => (name.to_owned(), None),
            Some((name, mac)) => (name.to_owned(), Some(mac.to_owned())),
            None => (model.clone(), None),
        };
        let mac = own.or(given).filter(|_| !is_fresh).unwrap_or_else(fresh_mac);
        *model = format!("{name}={}", mac.to_uppercase());
    }
    parts.join(",")
}
