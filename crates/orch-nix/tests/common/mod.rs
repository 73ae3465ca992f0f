//! What tests with a real Nix share. They work in the store of this machine, under names that no other test has; what
//! they leave there is garbage for its collector.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use orch_nix::Tools;

/// Settings with which Nix works for root alone, without a daemon, without the network.
pub(crate) const SETTINGS: &str = "\
experimental-features = nix-command flakes
sandbox = false
build-users-group =
substituters =
require-sigs = false
";

/// The Nix of this machine; where there is none that a test can use, the reason is printed.
pub(crate) async fn nix() -> Option<Tools> {
    let tools = match Tools::find(None).await {
        Ok(tools) => tools.with_settings(SETTINGS),
        Err(error) => return skip(&format!("{error}")),
    };
    let can_write = std::fs::metadata("/nix/store").is_ok() && rustix::process::geteuid().is_root();
    if can_write { Some(tools) } else { skip("only root may use the store of this machine without a daemon") }
}

fn skip(reason: &str) -> Option<Tools> {
    assert!(std::env::var_os("ORCH_LAB_REQUIRE").is_none(), "Nix is required here: {reason}");
    println!("skipped: {reason}");
    None
}

/// A name that no other test has, on no other day.
pub(crate) fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("{what}-{}-{}-{now}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
