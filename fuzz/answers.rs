//! What must be true of any bytes that come from a Proxmox VE or Hetzner Cloud, or that a machine is given at its first start.
//!
//! Shared by libFuzzer (`fuzz_targets/answers.rs`) and by the driver that needs no nightly (`crates/orch-lab/tests/fuzz.rs`).

use orch_providers::{hetzner, proxmox};

/// Reads the input as what its first byte says: an answer of one or the other, a disc, or user data.
pub(crate) fn answers(data: &[u8]) {
    let Some((choice, content)) = data.split_first() else { return };
    match choice % 5 {
        0 => check(&hetzner::untrusted::read(content)),
        1 => check(&proxmox::untrusted::read(200, "OK", content)),
        2 => {
            let reason = String::from_utf8_lossy(&content[..content.len().min(80)]);
            check(&proxmox::untrusted::read(500, &reason, content));
        }
        3 => {
            let files = orch_lab::files_of_disc(content).unwrap_or_default();
            let size: usize = files.values().map(Vec::len).sum();
            // Records may overlap, and there is an end to how many are looked at.
            assert!(size <= content.len() * 256, "a disc of {} bytes holds {size}", content.len());
        }
        _ => {
            let text = String::from_utf8_lossy(content);
            check(&orch_node::read_user_data(&text).err().into_iter().collect::<Vec<_>>());
        }
    }
}

/// A disc with this user data is read as it was written.
pub(crate) fn disc(user_data: &[u8]) -> Vec<u8> {
    let disc = proxmox::untrusted::disc_of(user_data);
    let files = orch_lab::files_of_disc(&disc).expect("we can read what we wrote");
    assert_eq!(files["user-data"], user_data);
    disc
}

/// What is told does not drive a terminal.
fn check(told: &[String]) {
    for said in told {
        assert!(!said.contains(|c: char| c.is_control()), "a control character is told: {said:?}");
    }
}
