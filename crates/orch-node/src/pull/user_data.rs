//! What a machine of a cloud is given when it is created, so that cloud-init makes it a node that pulls.
//!
//! Whoever may ask the cloud about the machine can read it for ever, so it holds nothing that is still good for anything
//! once the node has come up: a token that is used up by its first use, and an SSH host key that the node replaces by its
//! own at its first fetch.

use std::fmt;

use orch_model::pull::Enrolment;
use serde_json::json;
use thiserror::Error;

use super::{ENROLMENT, UNIT_NAME, unit};

/// No cloud takes more.
pub const LARGEST_USER_DATA: usize = 32 << 10;

/// The SSH host key by which a machine is known until it shows the one that it made itself.
#[derive(Clone, Copy)]
pub struct HostKey<'k> {
    /// The private half, as OpenSSH writes it.
    pub private: &'k str,
    /// The public half, as one line.
    pub public: &'k str,
}

impl fmt::Debug for HostKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// Why a machine cannot be given this.
#[derive(Debug, Error)]
pub enum UserDataError {
    /// It is too much.
    #[error("the user data would be {0} bytes, and no cloud takes more than {LARGEST_USER_DATA}")]
    TooLarge(usize),
    /// It is no path.
    #[error("`{0}` is not the full path of a program")]
    NotAPath(String),
}

/// The user data of a machine whose image has the `orch-node` program at this path. No shell reads any of it: commands are
/// lists of words.
pub fn user_data(
    enrolment: &Enrolment,
    host_key: HostKey<'_>,
    program: &str,
) -> Result<String, UserDataError> {
    if !program.starts_with('/') || program.chars().any(char::is_control) {
        return Err(UserDataError::NotAPath(program.into()));
    }
    let secret = serde_json::to_string(enrolment).expect("what orch defines can be written as JSON");
    let document = json!({
        "ssh_deletekeys": true,
        "ssh_keys": { "ed25519_private": host_key.private, "ed25519_public": host_key.public },
        "write_files": [
            { "path": ENROLMENT, "owner": "root:root", "permissions": "0400", "content": secret },
            {
                "path": format!("/etc/systemd/system/{UNIT_NAME}"),
                "owner": "root:root",
                "permissions": "0644",
                "content": unit(program),
            },
        ],
        "runcmd": [
            // Whoever writes files makes their folders for everybody to look into.
            ["chmod", "0700", "/var/lib/orch"],
            ["systemctl", "daemon-reload"],
            ["systemctl", "enable", "--now", UNIT_NAME],
        ],
    });
    // JSON is YAML too, and leaves no doubt about what is a string.
    let text = format!("#cloud-config\n{document:#}\n");
    if text.len() > LARGEST_USER_DATA { Err(UserDataError::TooLarge(text.len())) } else { Ok(text) }
}
