//! Who runs this program, in words for people who meet it elsewhere.

use std::{env, fs};

/// `alice on laptop, process 4711`.
pub(crate) fn name() -> String {
    let user =
        ["USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok().filter(|name| !name.is_empty()));
    let user = user.unwrap_or_else(|| format!("user {}", rustix::process::getuid().as_raw()));
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine = machine.trim();
    let machine = if machine.is_empty() { "this computer" } else { machine };
    format!(
        "{} on {}, process {}",
        orch_model::printable(&user),
        orch_model::printable(machine),
        std::process::id()
    )
}
