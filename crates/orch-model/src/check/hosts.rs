//! Hosts that are reached through other hosts: those must exist, be reached themselves, and the way must come to an end.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use crate::catalog::Files;
use crate::decode::{Located, suggestion};
use crate::files::Host;
use crate::text::Finding;
use crate::word::HostName;

pub(super) fn check(hosts: &mut Files<'_, HostName, Host>) {
    let names: Vec<HostName> = hosts.names().cloned().collect();
    let jumps: BTreeMap<HostName, HostName> =
        hosts.each().filter_map(|(name, host, _)| Some((name.clone(), host.jump()?.clone()))).collect();
    for (name, host, cx) in hosts.each() {
        let Some((jump, span)) = host.ssh().and_then(|ssh| ssh.jump.as_ref()).and_then(Located::known) else {
            continue;
        };
        if !names.contains(jump) {
            let hint = suggestion(jump.as_str(), names.iter().map(HostName::as_str), cx);
            cx.report(Finding::new(span, format!("there is no host `{jump}`")).hint_option(hint));
        } else if leads_back(name, &jumps) {
            let message =
                format!("host `{name}` is reached through `{jump}`, and that through `{name}` again");
            cx.report(Finding::new(span, message).hint("one of them must be reached without the other"));
        }
    }
}

/// Whether the way to a host leads through itself.
fn leads_back(name: &HostName, jumps: &BTreeMap<HostName, HostName>) -> bool {
    let way = core::iter::successors(jumps.get(name), |host| jumps.get(*host));
    way.take(jumps.len()).any(|host| host == name)
}
