//! What is read of the answers of a Proxmox VE, by itself: for those who feed it what none would answer.

use std::collections::BTreeMap;

use super::call::answer;
use super::config::Config;
use super::guest::{GuestKind, list};
use super::iso::{File, disc};
use super::mark::{description, split, tags};
use super::task::Upid;
use super::{address, mark::Bears};
use crate::api::Reply;

/// Reads an answer in every way in which one is read, and gives what would be told of it.
pub fn read(status: u16, reason: &str, body: &[u8]) -> Vec<String> {
    let reply = Reply {
        status,
        reason: Some(reason.to_owned()),
        headers: BTreeMap::new(),
        body: body.to_vec().into(),
    };
    let said = match answer("GET /x", &reply) {
        Ok(said) => said,
        Err(trouble) => return vec![trouble.to_string()],
    };
    let mut told = Vec::new();
    if let Err(trouble) = list(&said) {
        told.push(trouble.to_string());
    }
    match Config::read("GET /x", &said) {
        Ok(config) => configured(&config),
        Err(trouble) => told.push(trouble.to_string()),
    }
    let _ = address::address_in(&said, "bc:24:11:aa:bb:01");
    if let Some(upid) = said.as_str().and_then(|text| text.parse::<Upid>().ok()) {
        let path = upid.path("status");
        assert!(path.is_ascii() && !path.contains([' ', '?', '#']), "a task leads astray: {path}");
    }
    told
}

/// A disc with this user data, as a machine is given it.
pub fn disc_of(user_data: &[u8]) -> Vec<u8> {
    let meta = b"instance-id: i-1\nlocal-hostname: web\n";
    let files = [
        File { short: "METADATA", name: "meta-data", bytes: meta },
        File { short: "USERDATA", name: "user-data", bytes: user_data },
    ];
    disc(&files).to_vec()
}

fn configured(config: &Config) {
    for kind in [GuestKind::Qemu, GuestKind::Lxc] {
        let _ = (config.extent(kind), config.boot_disk(kind));
    }
    let _ = (config.mac(), config.cloud_init_drives("ide2"));
    match config.bears() {
        Bears::Nothing => {}
        Bears::Begun(marks) => {
            let again = Bears::of(&[], Some(&description(&marks)));
            assert_eq!(again, Bears::Begun(marks), "marks are read as they are written");
        }
        Bears::Made(written) => {
            let again = Bears::of(&split(&tags(&written, &[])), None);
            assert_eq!(again.marks(), Some(&written.marks), "tags are read as they are written");
        }
    }
}
